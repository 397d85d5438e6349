//! Canonical form of resource quantities.
//!
//! Rules: <https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/quantity/>. No value is
//! written with a fraction; the largest possible suffix is used; the kind of suffix stays as it was given.

/// Most digits that are read exactly; a longer number is left as it was written.
const MAX_DIGITS: usize = 30;

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 7] =
    [("", 0), ("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

enum Suffix {
    Decimal(i32),
    Exponent(i32),
    Binary(i32),
}

/// The canonical form of a quantity; none if the text is no quantity, or too long to be read exactly.
pub(crate) fn canonical(text: &str) -> Option<String> {
    let text = text.trim();
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => ("-", text.get(1..)?),
        b'+' => ("", text.get(1..)?),
        _ => ("", text),
    };
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
    let (number, suffix) = rest.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > MAX_DIGITS || fraction.contains('.') {
        return None;
    }
    let mantissa: u128 = digits.parse().ok()?;
    let scale = -i32::try_from(fraction.len()).ok()?;
    let suffix = suffix_of(suffix)?;
    let text = match suffix {
        Suffix::Decimal(exponent) => decimal(mantissa, scale + exponent, false),
        Suffix::Exponent(exponent) => decimal(mantissa, scale.checked_add(exponent)?, true),
        Suffix::Binary(power) => binary(mantissa, scale, power),
    }?;
    Some(if text == "0" { text } else { format!("{sign}{text}") })
}

fn suffix_of(text: &str) -> Option<Suffix> {
    if let Some((_, power)) = BINARY.iter().find(|(name, power)| *power > 0 && *name == text) {
        return Some(Suffix::Binary(*power));
    }
    if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == text) {
        return Some(Suffix::Decimal(*exponent));
    }
    let exponent: i32 = text.strip_prefix(['e', 'E'])?.parse().ok()?;
    (exponent.abs() <= 100).then_some(Suffix::Exponent(exponent))
}

/// `mantissa · 10^exponent` with an exponent that is a multiple of three, no less than nano.
fn decimal(mut mantissa: u128, mut exponent: i32, scientific: bool) -> Option<String> {
    if mantissa == 0 {
        return Some("0".to_owned());
    }
    while mantissa.is_multiple_of(10) {
        mantissa /= 10;
        exponent += 1;
    }
    // What is smaller than nano is rounded up.
    while exponent < -9 {
        mantissa = mantissa.div_ceil(10);
        exponent += 1;
    }
    while mantissa.is_multiple_of(10) {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent % 3 != 0 || (!scientific && exponent > 18) {
        mantissa = mantissa.checked_mul(10)?;
        exponent -= 1;
    }
    if scientific {
        return Some(if exponent == 0 { mantissa.to_string() } else { format!("{mantissa}e{exponent}") });
    }
    let (suffix, _) = DECIMAL.iter().find(|(_, power)| *power == exponent)?;
    Some(format!("{mantissa}{suffix}"))
}

fn binary(mantissa: u128, scale: i32, power: i32) -> Option<String> {
    let divisor = 10u128.checked_pow(u32::try_from(-scale).ok()?)?;
    let scaled = mantissa.checked_mul(1u128.checked_shl(u32::try_from(power).ok()?)?)?;
    let (whole, rest) = (scaled / divisor, scaled % divisor);
    if rest != 0 || whole < 1024 {
        // A small or fractional number of bytes has no binary suffix.
        return decimal(scaled, scale, false);
    }
    let mut value = whole;
    let mut steps = 0;
    while value.is_multiple_of(1024) && steps + 1 < BINARY.len() {
        value /= 1024;
        steps += 1;
    }
    Some(format!("{value}{}", BINARY.get(steps)?.0))
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
            ("+1", "1"),
            ("1000", "1k"),
            ("1024", "1024"),
            ("1024Mi", "1Gi"),
            ("128Mi", "128Mi"),
            ("1.5Gi", "1536Mi"),
            ("0.5Ki", "512"),
            ("0", "0"),
            ("-0", "0"),
            ("-1000m", "-1"),
            ("0Gi", "0"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1000e0", "1e3"),
            ("1E", "1E"),
            ("100E", "100E"),
            ("1000E", "1000E"),
            ("0.1n", "1n"),
            ("1024Ei", "1024Ei"),
            (" 1 ", "1"),
            ("0.1Ki", "102400m"),
        ] {
            assert_eq!(canonical(text).as_deref(), Some(wanted), "{text}");
        }
        for text in ["", "-", "x", "1x", "1.2.3", "1 Gi", "1e", "1Ee", "Ki"] {
            assert_eq!(canonical(text), None, "{text}");
        }
    }

    #[test]
    fn is_stable() {
        for text in ["12345n", "7e-4", "3.14159", "99999999999999999999", "1.000000001Ti"] {
            let once = canonical(text).unwrap();
            assert_eq!(canonical(&once), Some(once.clone()), "{text}");
        }
    }
}
