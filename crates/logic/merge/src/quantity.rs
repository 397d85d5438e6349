//! The form in which a server writes resource quantities.
//!
//! Rules: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>. No value is
//! written with a fraction; the largest possible suffix is used; the kind of suffix stays as it was given. A
//! short quantity that already looks canonical is written as it was given, even if it is not quite so.

/// Most digits of a quantity that may be written as it was given.
const SHORT: usize = 18;
/// Most digits that are read at all; a longer number is left as it was written.
const MAX_DIGITS: usize = 30;
/// The largest number of bytes a binary quantity can hold.
const MAX_BINARY: u128 = i64::MAX as u128;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 7] =
    [("", 0), ("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

#[derive(Clone, Copy)]
enum Suffix {
    Decimal(i32),
    Exponent(i32),
    Binary(u32),
}

/// A quantity taken apart.
struct Parts<'a> {
    sign: &'static str,
    /// Digits before the point, without leading zeros unless that leaves none.
    whole: &'a str,
    fraction: &'a str,
    suffix: Suffix,
}

/// A quantity as the server writes it; none if the text is no quantity.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    if text.is_empty() {
        return None;
    }
    let parts = take_apart(text)?;
    let digits = format!("{}{}", parts.whole, parts.fraction);
    if digits.len() > MAX_DIGITS || parts.fraction.len() > MAX_DIGITS {
        return Some(text.to_owned());
    }
    if is_written_as_given(&parts, &digits) {
        return Some(text.to_owned());
    }
    let value: u128 = digits.parse().ok()?;
    let scale = -i32::try_from(parts.fraction.len()).ok()?;
    let written = match parts.suffix {
        Suffix::Decimal(exponent) => decimal(value, scale + exponent, false),
        Suffix::Exponent(exponent) => decimal(value, scale + exponent, true),
        Suffix::Binary(power) => binary(value, scale, power),
    };
    let Some(written) = written else { return Some(text.to_owned()) };
    Some(if written == "0" { written } else { format!("{}{written}", parts.sign) })
}

/// Whether the server's type holds `text` just as it holds its canonical form, so that the two are equal
/// even where whole values are compared: they are if neither keeps the text it was read from.
pub(crate) fn same_inside(text: &str, canonical: &str) -> bool {
    let text = text.trim();
    if text == canonical {
        return true;
    }
    let whole_bytes = |text: &str| match take_apart(text) {
        Some(parts) => {
            let digits = format!("{}{}", parts.whole, parts.fraction);
            matches!(parts.suffix, Suffix::Binary(_))
                && parts.fraction.is_empty()
                && !is_written_as_given(&parts, &digits)
        }
        None => false,
    };
    whole_bytes(text) && whole_bytes(canonical)
}

fn take_apart(text: &str) -> Option<Parts<'_>> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => ("-", text.get(1..)?),
        b'+' => ("", text.get(1..)?),
        _ => ("", text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let (whole, rest) = rest.split_at(digits(rest));
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(digits(rest)),
        None => ("", rest),
    };
    let whole = whole.trim_start_matches('0');
    Some(Parts { sign, whole: if whole.is_empty() { "0" } else { whole }, fraction, suffix: suffix(rest)? })
}

fn suffix(text: &str) -> Option<Suffix> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == text) {
        return Some(Suffix::Decimal(*exponent));
    }
    if let Some((_, power)) = BINARY.iter().find(|(name, _)| *name == text) {
        return Some(Suffix::Binary(*power));
    }
    let exponent: i32 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
    (exponent.abs() <= 1000).then_some(Suffix::Exponent(exponent))
}

/// Whether the server keeps the text: the number is short, its scale fits a suffix, and it does not end in
/// digits that a larger suffix would take up.
fn is_written_as_given(parts: &Parts<'_>, digits: &str) -> bool {
    let Ok(value) = digits.parse::<i64>() else { return false };
    match parts.suffix {
        Suffix::Decimal(exponent) | Suffix::Exponent(exponent) => {
            let scale = exponent - i32::try_from(parts.fraction.len()).unwrap_or(i32::MAX);
            digits.len() <= SHORT
                && scale >= -9
                && scale % 3 == 0
                && !digits.ends_with("000")
                && !digits.starts_with('0')
        }
        Suffix::Binary(power) => {
            let room = [14, 11, 8, 5, 2, -1, -4].get((power / 10) as usize).copied().unwrap_or(-1);
            parts.fraction.is_empty()
                && room >= i32::try_from(digits.len()).unwrap_or(i32::MAX)
                && value & 7 != 0
        }
    }
}

/// `value · 10^exponent` with an exponent that is a multiple of three, no less than nano.
fn decimal(mut value: u128, mut exponent: i32, scientific: bool) -> Option<String> {
    if value == 0 {
        return Some("0".to_owned());
    }
    let reduce = |value: &mut u128, exponent: &mut i32| {
        while value.is_multiple_of(10) {
            *value /= 10;
            *exponent += 1;
        }
    };
    reduce(&mut value, &mut exponent);
    // What is smaller than nano is rounded up.
    while exponent < -9 {
        value = value.div_ceil(10);
        exponent += 1;
    }
    reduce(&mut value, &mut exponent);
    while exponent % 3 != 0 || (!scientific && exponent > 18) {
        value = value.checked_mul(10)?;
        exponent -= 1;
    }
    if scientific {
        return Some(if exponent == 0 { value.to_string() } else { format!("{value}e{exponent}") });
    }
    let (suffix, _) = DECIMAL.iter().find(|(_, power)| *power == exponent)?;
    Some(format!("{value}{suffix}"))
}

fn binary(value: u128, scale: i32, power: u32) -> Option<String> {
    let divisor = 10u128.checked_pow(u32::try_from(-scale).ok()?)?;
    let scaled = value.checked_mul(1u128.checked_shl(power)?)?;
    if scaled / divisor >= MAX_BINARY {
        return Some(MAX_BINARY.to_string());
    }
    let (mut whole, rest) = (scaled / divisor, scaled % divisor);
    if rest != 0 || whole < 1024 {
        // A small or fractional number of bytes has no binary suffix.
        return decimal(scaled, scale, false);
    }
    let mut steps = 0;
    while whole.is_multiple_of(1024) && steps + 1 < BINARY.len() {
        whole /= 1024;
        steps += 1;
    }
    Some(format!("{whole}{}", BINARY.get(steps)?.0))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn writes_the_canonical_form() {
        for (text, wanted) in [
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("0.5", "500m"),
            (".5", "500m"),
            ("1.0", "1"),
            ("+1", "+1"),
            ("007", "007"),
            ("1.500", "1.500"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("8Ki", "8Ki"),
            ("012Ki", "012Ki"),
            ("016Ki", "16Ki"),
            ("0", "0"),
            ("-0", "0"),
            ("-1000m", "-1"),
            ("0Gi", "0"),
            ("1e3", "1e3"),
            ("1E3", "1E3"),
            ("1000e0", "1e3"),
            ("1E", "1E"),
            ("100E", "100E"),
            ("0.1n", "1n"),
            ("16Ei", "9223372036854775807"),
            (" 1 ", "1"),
            ("0.1Ki", "102400m"),
            ("Ki", "0"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", " ", "x", "1x", "1.2.3", "1 Gi", "1e", "1Ee", "1KiB", "--1"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn tells_what_is_held_alike() {
        for (text, canonical, alike) in [
            ("1Gi", "1Gi", true),
            ("1024Mi", "1Gi", false),
            ("16384Mi", "16Gi", true),
            ("1.5Gi", "1536Mi", false),
            ("1000m", "1", false),
            ("0m", "0", false),
        ] {
            assert_eq!(same_inside(text, canonical), alike, "{text}");
        }
    }

    #[test]
    fn is_stable() {
        for text in ["12345n", "7e-4", "3.14159", "99999999999999999999", "1.000000001Ti", "1e-30"] {
            let once = canonical(text).unwrap();
            assert_eq!(canonical(&once), Some(once.clone()), "{text}");
        }
    }
}
