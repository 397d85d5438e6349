//! Blobs: configurations and layers.

use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode, header};
use scantling_image::Digest;

use crate::reply::{Answer, CONTENT_DIGEST, Code, Refusal};
use crate::repository::Repository;

const OCTETS: &str = "application/octet-stream";

/// Answers `GET` and `HEAD`, with one byte range if asked. Several ranges in one request are answered with the whole blob, which HTTP
/// allows and clients must cope with.
pub(crate) fn get(
    repository: &Repository,
    digest: &Digest,
    headers: &HeaderMap,
) -> Result<Response<Bytes>, Refusal> {
    let blob = repository.blobs.get(digest).ok_or_else(|| unknown(digest))?;
    let size = blob.len();
    let range = headers
        .get(header::RANGE)
        .and_then(|value| value.to_str().ok())
        .map(|value| ByteRange::parse(value, size));
    let answer = match range {
        None | Some(ByteRange::Ignored) => Answer::new(StatusCode::OK).body(OCTETS, blob.clone()),
        Some(ByteRange::Part { first, end }) => Answer::new(StatusCode::PARTIAL_CONTENT)
            .body(OCTETS, blob.slice(first..end))
            .header(header::CONTENT_RANGE, format!("bytes {first}-{}/{size}", end - 1)),
        Some(ByteRange::Unsatisfiable) => {
            return Err(Refusal::new(Code::RangeInvalid, format!("the blob has {size} bytes"))
                .header(header::CONTENT_RANGE, format!("bytes */{size}")));
        }
    };
    Ok(answer
        .header(header::ACCEPT_RANGES, "bytes")
        .header(CONTENT_DIGEST, digest.to_string())
        .header(header::ETAG, format!("\"{digest}\""))
        .into_response())
}

/// Answers `DELETE`.
pub(crate) fn delete(repository: &mut Repository, digest: &Digest) -> Result<Response<Bytes>, Refusal> {
    repository.blobs.remove(digest).ok_or_else(|| unknown(digest))?;
    Ok(Answer::new(StatusCode::ACCEPTED).header(header::CONTENT_LENGTH, "0").into_response())
}

fn unknown(digest: &Digest) -> Refusal {
    Refusal::new(Code::BlobUnknown, format!("blob {digest} is not known to this repository"))
}

/// A `Range` header, held against the size of what it is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ByteRange {
    /// Malformed, of another unit, or more than one: HTTP says to ignore it.
    Ignored,
    /// From `first` to before `end`; never empty, never beyond the size.
    Part { first: usize, end: usize },
    /// Begins behind the end.
    Unsatisfiable,
}

impl ByteRange {
    fn parse(value: &str, size: usize) -> Self {
        let number = |text: &str| {
            let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            // A number too large for the machine is behind every end.
            digits.then(|| text.parse::<usize>().unwrap_or(usize::MAX))
        };
        let Some((unit, spec)) = value.split_once('=') else { return Self::Ignored };
        let Some((from, to)) = spec.trim().split_once('-') else { return Self::Ignored };
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return Self::Ignored;
        }
        let (first, end) = match (number(from), number(to)) {
            (Some(first), None) if to.is_empty() => (first, size),
            (Some(first), Some(last)) if first <= last => (first, last.saturating_add(1).min(size)),
            (None, Some(last)) if from.is_empty() => (size.saturating_sub(last), size),
            _ => return Self::Ignored,
        };
        if first < end { Self::Part { first, end } } else { Self::Unsatisfiable }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges() {
        use ByteRange::{Ignored, Part, Unsatisfiable};
        for (value, want) in [
            ("bytes=0-0", Part { first: 0, end: 1 }),
            ("bytes=2-", Part { first: 2, end: 10 }),
            ("bytes=2-99", Part { first: 2, end: 10 }),
            ("bytes=-3", Part { first: 7, end: 10 }),
            ("bytes=-99", Part { first: 0, end: 10 }),
            ("Bytes = 9-9", Part { first: 9, end: 10 }),
            ("bytes=10-", Unsatisfiable),
            ("bytes=99999999999999999999999-", Unsatisfiable),
            ("bytes=-0", Unsatisfiable),
            ("bytes=3-2", Ignored),
            ("bytes=0-1,3-4", Ignored),
            ("bytes=a-b", Ignored),
            ("bytes=-", Ignored),
            ("lines=0-1", Ignored),
            ("bytes", Ignored),
        ] {
            assert_eq!(ByteRange::parse(value, 10), want, "{value}");
        }
        assert_eq!(ByteRange::parse("bytes=0-0", 0), Unsatisfiable);
    }

    proptest! {
        #[test]
        fn a_part_is_inside(value in "(bytes=)?[0-9]{0,22}-[0-9]{0,22}", size in 0usize..50) {
            if let ByteRange::Part { first, end } = ByteRange::parse(&value, size) {
                prop_assert!(first < end && end <= size);
            }
        }
    }
}
