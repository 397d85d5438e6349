//! Writes that a webhook guards which does not answer yet.
//!
//! A webhook's pods can be ready before its service leads to them and before its certificate is known to the API server.
//! Until then the server refuses what the webhook is to look at; that is no answer about the object.

use std::time::Duration;

use scantling_cluster::ClusterError;

/// Between two tries. Services and certificates take seconds to tens of seconds.
pub(crate) const PAUSE: Duration = Duration::from_secs(5);

/// How the API server begins to say that it could not reach a webhook. Source: `ErrCallingWebhook` in
/// `apiserver/pkg/admission/plugin/webhook` and `conversion/webhook_converter.go` in `apiextensions-apiserver`.
const WORDS: [&str; 2] = ["failed calling webhook", "conversion webhook for"];

/// Whether the server could not ask a webhook, so that the same write may succeed a little later.
pub(crate) fn is_webhook_away(error: &ClusterError) -> bool {
    match error {
        ClusterError::Status { status: 500, message, .. } => {
            WORDS.iter().any(|words| message.contains(words))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_webhook_that_could_not_be_asked_is_waited_for() {
        for (status, message, expected) in [
            (
                500,
                "Internal error occurred: failed calling webhook \"rt\": failed to call webhook: Post \"https://w.n.svc:443/v\": dial tcp 10.0.0.1:443: connect: connection refused",
                true,
            ),
            (
                500,
                "Internal error occurred: failed calling webhook \"rt\": failed to call webhook: no endpoints available for service \"w\"",
                true,
            ),
            (
                500,
                "conversion webhook for lab.example.com/v1, Kind=Part failed: Post \"https://w.n.svc:443/convert\": x509: certificate signed by unknown authority",
                true,
            ),
            (500, "Internal error occurred: etcdserver: leader changed", false),
            (503, "failed calling webhook", false),
        ] {
            let error =
                ClusterError::Status { what: "apply".to_owned(), status, message: message.to_owned() };
            assert_eq!(is_webhook_away(&error), expected, "{message}");
        }
        let denied = ClusterError::Forbidden {
            what: "apply".to_owned(),
            message: "admission webhook \"rt\" denied the request".to_owned(),
        };
        assert!(!is_webhook_away(&denied));
    }
}
