//! How long ago, as people read it.

use scantling_api::object;
use serde_json::{Value, json};

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// The age of an object.
pub(in crate::api) fn since(object: &Value, now: jiff::Timestamp) -> Value {
    json!(ago(object::text(object, "/metadata/creationTimestamp"), now))
}

/// How long ago a time was; `<unknown>` if there is none.
pub(in crate::api) fn ago(time: &str, now: jiff::Timestamp) -> String {
    match time.parse::<jiff::Timestamp>() {
        Ok(time) => human_duration(now.duration_since(time).as_secs()),
        Err(_) => "<unknown>".to_owned(),
    }
}

/// `HumanDuration` of `k8s.io/apimachinery/pkg/util/duration`.
pub(in crate::api) fn human_duration(seconds: i64) -> String {
    let two = |major: i64, unit: char, minor: i64, small: char| {
        if minor == 0 { format!("{major}{unit}") } else { format!("{major}{unit}{minor}{small}") }
    };
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        _ if seconds < 2 * MINUTE => format!("{seconds}s"),
        _ if seconds < 10 * MINUTE => two(seconds / MINUTE, 'm', seconds % MINUTE, 's'),
        _ if seconds < 3 * HOUR => format!("{}m", seconds / MINUTE),
        _ if seconds < 8 * HOUR => two(seconds / HOUR, 'h', seconds % HOUR / MINUTE, 'm'),
        _ if seconds < 2 * DAY => format!("{}h", seconds / HOUR),
        _ if seconds < 8 * DAY => two(seconds / DAY, 'd', seconds % DAY / HOUR, 'h'),
        _ if seconds < 2 * YEAR => format!("{}d", seconds / DAY),
        _ if seconds < 8 * YEAR => two(seconds / YEAR, 'y', seconds % YEAR / DAY, 'd'),
        _ => format!("{}y", seconds / YEAR),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (10 * MINUTE + 30, "10m"),
            (179 * MINUTE, "179m"),
            (3 * HOUR, "3h"),
            (7 * HOUR + 59 * MINUTE, "7h59m"),
            (47 * HOUR, "47h"),
            (2 * DAY, "2d"),
            (2 * DAY + HOUR, "2d1h"),
            (100 * DAY, "100d"),
            (2 * YEAR + DAY, "2y1d"),
            (9 * YEAR, "9y"),
        ] {
            assert_eq!(human_duration(seconds), text);
        }
    }
}
