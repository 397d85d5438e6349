//! When to ask again.

use std::time::Duration;

use http::{HeaderMap, StatusCode, header};

use crate::options::Options;

/// True if the same request may succeed later.
pub(crate) fn may_pass(status: StatusCode) -> bool {
    matches!(status.as_u16(), 408 | 429 | 500 | 502 | 503 | 504)
}

/// The wait that a server asks for: seconds, or a date, which is held against the answer's own date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(header::RETRY_AFTER)?.to_str().ok()?.trim();
    if text.bytes().all(|b| b.is_ascii_digit()) && !text.is_empty() {
        // A number that does not fit is longer than anyone waits.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = |text: &str| jiff::fmt::rfc2822::parse(text).ok().map(|date| date.timestamp());
    let until = date(text)?;
    let now = date(headers.get(header::DATE)?.to_str().ok()?.trim())?;
    Some(Duration::try_from(until.duration_since(now)).unwrap_or(Duration::ZERO))
}

/// The pause before repetition number `round` (from 0): doubled each time, bounded, between half and all of that by jitter.
pub(crate) fn pause(options: &Options, round: u32, jitter: f64) -> Duration {
    let doubled = options.first_delay.saturating_mul(1u32.checked_shl(round).unwrap_or(u32::MAX));
    doubled.min(options.longest_delay).mul_f64(0.5 + jitter.clamp(0.0, 1.0) / 2.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn waits() {
        let check = |after: &str, date: Option<&str>, expected: Option<u64>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::RETRY_AFTER, after.parse().unwrap());
            if let Some(date) = date {
                headers.insert(header::DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{after}");
        };
        check("120", None, Some(120));
        check("0", None, Some(0));
        check("99999999999999999999999", None, Some(u64::MAX));
        let now = Some("Wed, 21 Oct 2015 07:28:00 GMT");
        check("Wed, 21 Oct 2015 07:30:00 GMT", now, Some(120));
        check("Wed, 21 Oct 2015 07:00:00 GMT", now, Some(0));
        check("Wed, 21 Oct 2015 07:30:00 GMT", None, None);
        check("soon", now, None);
        check("-1", now, None);
        check("", now, None);
        assert_eq!(retry_after(&HeaderMap::new()), None);
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        let options = Options::default();
        assert_eq!(pause(&options, 0, 1.0), Duration::from_millis(250));
        assert_eq!(pause(&options, 0, 0.0), Duration::from_millis(125));
        assert_eq!(pause(&options, 2, 1.0), Duration::from_secs(1));
        assert_eq!(pause(&options, 31, 1.0), options.longest_delay);
        assert_eq!(pause(&options, 400, 1.0), options.longest_delay);
    }
}
