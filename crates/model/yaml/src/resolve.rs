//! What a plain scalar means to Kubernetes.
//!
//! `kubectl`, the API server and the controllers read YAML through `sigs.k8s.io/yaml`: go-yaml v2 resolves scalars
//! (`resolve.go`), and the result is written as JSON, which has no infinities, no timestamps and one kind of number.
//! Hence `y` and `on` are true, `0644` is 420, `08` is 8, `1.0` is 1, `1e3` is 1000, a date is a string.

use serde_json::Number;

/// What a scalar is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Number(Number),
    /// The text itself.
    String,
    /// Infinity or not a number, which JSON cannot hold.
    NotJson,
}

/// What a plain scalar without a tag is.
pub(crate) fn plain(text: &str) -> Scalar {
    let Some(first) = text.as_bytes().first() else { return Scalar::Null };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" => Scalar::NotJson,
            _ => fraction(text).map_or(Scalar::String, Scalar::Number),
        },
        b'+' | b'-' | b'0'..=b'9' => match text {
            "+.inf" | "+.Inf" | "+.INF" | "-.inf" | "-.Inf" | "-.INF" => Scalar::NotJson,
            _ if is_timestamp(text) => Scalar::String,
            _ => number(text).map_or(Scalar::String, Scalar::Number),
        },
        _ => Scalar::String,
    }
}

fn word(text: &str) -> Scalar {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Scalar::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Scalar::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Scalar::Null,
        _ => Scalar::String,
    }
}

/// A number that begins with a sign or a digit. Underscores count for nothing, wherever they stand.
fn number(text: &str) -> Option<Number> {
    let without;
    let text = if text.contains('_') {
        without = text.replace('_', "");
        &without
    } else {
        text
    };
    integer(text).or_else(|| decimal(text))
}

/// A number that begins with its point. Here underscores count for nothing only between digits.
fn fraction(text: &str) -> Option<Number> {
    let parts: Vec<&str> = text.split('_').collect();
    let between = parts.windows(2).all(|pair| match pair {
        [left, right] => {
            left.ends_with(|last: char| last.is_ascii_digit())
                && right.starts_with(|first: char| first.is_ascii_digit())
        }
        _ => false,
    });
    if between { decimal(&parts.concat()) } else { None }
}

/// Whether a number is written as an integer.
pub(crate) fn is_integer(text: &str) -> bool {
    integer(&text.replace('_', "")).is_some()
}

/// An integer as Go's `strconv.ParseInt` with base 0 reads it: `0x`, `0o`, `0b`, and a leading 0 for octal.
fn integer(text: &str) -> Option<Number> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, text.get(1..)?),
        b'+' => (false, text.get(1..)?),
        _ => (false, text),
    };
    let prefix = digits.get(..2).map(str::to_ascii_lowercase);
    let (radix, digits) = match prefix.as_deref() {
        Some("0x") => (16, digits.get(2..)?),
        Some("0o") => (8, digits.get(2..)?),
        Some("0b") => (2, digits.get(2..)?),
        Some(_) if digits.starts_with('0') => (8, digits.get(1..)?),
        _ => (10, digits),
    };
    // `from_str_radix` would take a second sign.
    if !digits.bytes().next()?.is_ascii_alphanumeric() {
        return None;
    }
    match u64::from_str_radix(digits, radix) {
        Ok(magnitude) if negative => 0_i64.checked_sub_unsigned(magnitude).map(Number::from),
        Ok(magnitude) if text.starts_with('+') => i64::try_from(magnitude).ok().map(Number::from),
        Ok(magnitude) => Some(Number::from(magnitude)),
        Err(_) => None,
    }
}

/// A decimal number of YAML 1.1: `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`.
fn decimal(text: &str) -> Option<Number> {
    let rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    let whole = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let has_whole = whole.len() < rest.len();
    let (fraction, has_fraction) = match whole.strip_prefix('.') {
        Some(after) => {
            let left = after.trim_start_matches(|digit: char| digit.is_ascii_digit());
            (left, left.len() < after.len())
        }
        None => (whole, false),
    };
    if !has_whole && !has_fraction {
        return None;
    }
    if let Some(exponent) = fraction.strip_prefix(['e', 'E']) {
        let digits = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
    } else if !fraction.is_empty() {
        return None;
    }
    let value: f64 = text.parse().ok()?;
    if value.is_finite() { from_float(value) } else { None }
}

/// A floating-point number as it comes out of JSON: Go writes one without a fraction below 1e21 as an integer, with the
/// fewest digits that tell it from its neighbours and zeros after them. So does Rust's `Display`.
pub(crate) fn from_float(value: f64) -> Option<Number> {
    const LARGEST: f64 = 1e21;
    if value.fract() == 0.0 && value.abs() < LARGEST {
        let written = value.to_string();
        let written = if written == "-0" { "0" } else { &written };
        let integer =
            written.parse::<i64>().map(Number::from).or_else(|_| written.parse::<u64>().map(Number::from));
        if let Ok(integer) = integer {
            return Some(integer);
        }
    }
    Number::from_f64(value)
}

/// Whether go-yaml v2 takes the text for a timestamp, and hence, on its way to JSON, leaves it a string.
///
/// Only texts of the form `YYYY-…` are looked at; the exact formats matter little, since what begins with a year and a
/// dash is no number either.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    bytes.len() > 4 && bytes.iter().take(4).all(u8::is_ascii_digit) && bytes.get(4) == Some(&b'-')
}

/// What a scalar with a tag of YAML's own (the part after `tag:yaml.org,2002:`) is, or why it is not that.
pub(crate) fn tagged(tag: &str, text: &str) -> Result<Scalar, &'static str> {
    let scalar = plain(text);
    match (tag, scalar) {
        ("int", Scalar::Number(number)) if is_integer(text) => Ok(Scalar::Number(number)),
        ("int", _) => Err("an integer"),
        ("float", Scalar::NotJson) => Ok(Scalar::NotJson),
        ("float", Scalar::Number(number)) if !is_integer(text) || number.is_i64() => {
            number.as_f64().and_then(from_float).map(Scalar::Number).ok_or("a number")
        }
        ("float", _) => Err("a number"),
        ("bool", scalar @ Scalar::Bool(_)) => Ok(scalar),
        ("bool", _) => Err("a boolean"),
        ("null", Scalar::Null) => Ok(Scalar::Null),
        ("null", _) => Err("null"),
        ("timestamp", _) if is_timestamp(text) => Ok(Scalar::String),
        ("timestamp", _) => Err("a timestamp"),
        // `!!str`, and tags that Kubernetes' reader does not know.
        _ => Ok(Scalar::String),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn numbers_are_those_of_kubernetes() {
        let cases: &[(&str, &str)] = &[
            ("0644", "420"),
            ("0o644", "420"),
            ("0x1F", "31"),
            ("-0x1f", "-31"),
            ("0b101", "5"),
            ("1_000", "1000"),
            ("0_7", "7"),
            ("08", "8"),
            ("+5", "5"),
            ("1.0", "1"),
            ("1.", "1"),
            ("1e3", "1000"),
            ("14.10", "14.1"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("20190612073634", "20190612073634"),
            ("18446744073709551615", "18446744073709551615"),
            ("-9223372036854775808", "-9223372036854775808"),
            ("1e21", "1e21"),
        ];
        for (text, wanted) in cases {
            match plain(text) {
                Scalar::Number(number) => {
                    assert_eq!(number.to_string().replace("e+", "e"), *wanted, "{text}");
                }
                other => panic!("{text} is {other:?}"),
            }
        }
    }

    #[test]
    fn what_only_looks_like_something_else_is_a_string() {
        for text in [
            "2024-01-01",
            "1:30",
            "0x",
            "0b2",
            "-",
            "+",
            ".",
            "1e",
            "1e999",
            "_1",
            "12a",
            "1.2.3",
            "yEs",
            "tRue",
            "nULL",
            "0644a",
            "--1",
            "+-1",
            "1__",
            "",
        ] {
            let wanted = match text {
                "" => Scalar::Null,
                "1__" => Scalar::Number(1.into()),
                _ => Scalar::String,
            };
            assert_eq!(plain(text), wanted, "{text:?}");
        }
    }

    #[test]
    fn tags_decide() {
        assert_eq!(tagged("str", "5"), Ok(Scalar::String));
        assert_eq!(tagged("int", "5"), Ok(Scalar::Number(5.into())));
        assert_eq!(tagged("int", "5.0"), Err("an integer"));
        assert_eq!(tagged("float", "5"), Ok(Scalar::Number(5.into())));
        assert_eq!(tagged("bool", "yes"), Ok(Scalar::Bool(true)));
        assert_eq!(tagged("null", "x"), Err("null"));
    }
}
