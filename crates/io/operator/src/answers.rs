//! What is answered to probes and to whoever collects metrics.

use crate::operator::Operator;

/// A process that has done nothing for this many seconds hangs. Reconcilers are asked at least once a minute.
const HANGS_AFTER: i64 = 300;

/// An answer over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// The status code.
    pub status: u16,
    /// The media type of the text.
    pub media_type: &'static str,
    /// The text.
    pub text: String,
}

impl Operator {
    /// Answers a `GET` of `/healthz`, `/readyz` or `/metrics`.
    pub fn answer(&self, path: &str) -> Answered {
        let plain = |status, words: &str| Answered {
            status,
            media_type: "text/plain; charset=utf-8",
            text: format!("{words}\n"),
        };
        let last = self.metrics.last_beat();
        let silent = self.clock.now().as_second().saturating_sub(last);
        match path {
            "/healthz" if last == 0 || silent < HANGS_AFTER => plain(200, "ok"),
            "/healthz" => plain(503, &format!("nothing was done for {silent} seconds")),
            // Whoever waits to lead is ready as well: it can take over at any moment.
            "/readyz" if last == 0 => plain(503, "the API server has not answered yet"),
            "/readyz" => plain(200, "ok"),
            "/metrics" => Answered {
                status: 200,
                media_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
                text: self.metrics.text(),
            },
            _ => plain(404, "there are /healthz, /readyz and /metrics"),
        }
    }
}
