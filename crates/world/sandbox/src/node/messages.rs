//! What the container runtimes say when a pull fails: containerd 1.6 on plain Kubernetes, CRI-O on
//! OpenShift. The kubelet passes these texts on in events and in a container's waiting message, and people
//! and tools read them.

use http::StatusCode;
use scantling_image::Reference;

use crate::distribution::FetchError;
use crate::node::pull::{Cause, PullError, Step};
use crate::node::store::store_name;
use crate::world::Flavour;

/// The runtime's message for a failed pull of `reference`.
pub(crate) fn pull_failure(flavour: Flavour, reference: &Reference, error: &PullError) -> String {
    match flavour {
        Flavour::Kubernetes => containerd(reference, error),
        Flavour::OpenShift => crio(reference, error),
    }
}

fn containerd(reference: &Reference, error: &PullError) -> String {
    let name = store_name(reference);
    let (code, detail) = match (&error.step, &error.cause) {
        (_, Cause::Fetch(FetchError::NoPlatform)) => {
            ("NotFound", "no match for platform in manifest: not found".to_owned())
        }
        (Step::Resolve, Cause::Fetch(FetchError::NotFound { .. })) => {
            ("NotFound", format!("failed to resolve reference \"{name}\": {name}: not found"))
        }
        (Step::Resolve, Cause::Fetch(cause)) => {
            let cause = match cause {
                FetchError::NoHost { host } | FetchError::Unreachable { host } => {
                    format!(
                        "failed to do request: Head \"https://{host}/v2/{}/manifests/{}\": {cause}",
                        reference.repository(),
                        selector(reference)
                    )
                }
                FetchError::Status { method, url, status } => {
                    format!("unexpected status from {method} request to {url}: {status}")
                }
                other => other.to_string(),
            };
            ("Unknown", format!("failed to resolve reference \"{name}\": {cause}"))
        }
        (Step::Copy(_), Cause::Fetch(FetchError::NotFound { what })) => (
            "NotFound",
            format!("failed to copy: httpReadSeeker: failed open: content at {what} not found: not found"),
        ),
        (Step::Copy(digest), Cause::Fetch(cause @ FetchError::Mismatch { .. })) => {
            ("FailedPrecondition", format!("failed commit on ref \"layer-{digest}\": {cause}"))
        }
        (Step::Copy(_), Cause::Fetch(cause)) => {
            ("Unknown", format!("failed to copy: httpReadSeeker: failed open: {cause}"))
        }
        (step, Cause::NoSpace) => {
            let digest = match step {
                Step::Copy(digest) => digest.hex(),
                Step::Resolve => "",
            };
            (
                "Unknown",
                format!(
                    "failed to copy: write /var/lib/containerd/io.containerd.content.v1.content/ingest/{digest}/data: \
                     no space left on device"
                ),
            )
        }
    };
    format!("rpc error: code = {code} desc = failed to pull and unpack image \"{name}\": {detail}")
}

fn crio(reference: &Reference, error: &PullError) -> String {
    let name = reference.name();
    let what = selector(reference);
    let detail = match (&error.step, &error.cause) {
        (_, Cause::NoSpace) => {
            "writing blob: storing blob to file \"/var/tmp/container_images_storage/1\": no space left on device".to_owned()
        }
        (_, Cause::Fetch(FetchError::NoPlatform)) => {
            "choosing image instance: no image found in manifest list for the node's architecture, variant \"\", OS linux".to_owned()
        }
        (Step::Resolve, Cause::Fetch(FetchError::NotFound { .. })) => {
            format!("reading manifest {what} in {name}: manifest unknown")
        }
        (Step::Copy(_), Cause::Fetch(FetchError::NotFound { .. })) => {
            "reading blob: fetching blob: blob unknown to registry".to_owned()
        }
        (_, Cause::Fetch(FetchError::Denied)) => {
            format!("reading manifest {what} in {name}: unauthorized: authentication required")
        }
        (_, Cause::Fetch(FetchError::Status { status: StatusCode::TOO_MANY_REQUESTS, .. })) => {
            format!("reading manifest {what} in {name}: toomanyrequests: too many requests to registry")
        }
        (_, Cause::Fetch(FetchError::Status { status: StatusCode::FORBIDDEN, .. })) => {
            format!("reading manifest {what} in {name}: denied: access forbidden")
        }
        (_, Cause::Fetch(FetchError::Status { status, .. })) => {
            format!("reading manifest {what} in {name}: received unexpected HTTP status: {status}")
        }
        (_, Cause::Fetch(FetchError::NoHost { host } | FetchError::Unreachable { host })) => {
            let Cause::Fetch(cause) = &error.cause else { return String::new() };
            format!("pinging container registry {host}: Get \"https://{host}/v2/\": {cause}")
        }
        (_, Cause::Fetch(cause @ FetchError::Mismatch { .. })) => format!("writing blob: {cause}"),
        (_, Cause::Fetch(cause @ (FetchError::Malformed { .. } | FetchError::Refused))) => cause.to_string(),
    };
    format!(
        "rpc error: code = Unknown desc = initializing source docker://{}: {detail}",
        store_name(reference)
    )
}

fn selector(reference: &Reference) -> String {
    match (reference.digest(), reference.effective_tag()) {
        (Some(digest), _) => digest.to_string(),
        (None, tag) => tag.unwrap_or("latest").to_owned(),
    }
}
