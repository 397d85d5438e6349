//! Passwords that stand in addresses (`https://user:password@host`, `user:password@host/image`): they are covered before anything
//! looks at a file, so that no report, snippet or error can show them.

/// What stands for each byte of a password. Places in the file stay where they are.
const COVER: u8 = b'x';

/// Covers the password of every address in a text.
pub(crate) fn cover(text: &mut [u8]) {
    let ats: Vec<usize> =
        text.iter().enumerate().filter(|(_, byte)| **byte == b'@').map(|(at, _)| at).collect();
    for at in ats {
        let after = text.get(at + 1..).unwrap_or_default();
        // A digest stands behind an `@` as well.
        if after.starts_with(b"sha256:") || after.starts_with(b"sha512:") {
            continue;
        }
        let is_part = |byte: &u8| byte.is_ascii_graphic() && !b"\"'/@,;(){}[]<>`|".contains(byte);
        let start =
            at - text.get(..at).unwrap_or_default().iter().rev().take_while(|byte| is_part(byte)).count();
        let named =
            after.iter().take_while(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(byte)).count();
        let Some(colon) = text.get(start..at).and_then(|before| before.iter().position(|byte| *byte == b':'))
        else {
            continue;
        };
        if named == 0 {
            continue;
        }
        for byte in text.get_mut(start + colon + 1..at).unwrap_or_default() {
            *byte = COVER;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::cover;

    #[test]
    fn passwords_are_covered_and_nothing_else() {
        let digest = "a/b:1@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
        for (text, covered) in [
            ("image: https://u:secret@quay.io/a/b:1", "image: https://u:xxxxxx@quay.io/a/b:1"),
            ("image: user:pw@quay.io/a/b:1", "image: user:xx@quay.io/a/b:1"),
            ("redis://:pw@host", "redis://:xx@host"),
            (digest, digest),
            ("mail: someone@example.com", "mail: someone@example.com"),
            ("key: value @ place", "key: value @ place"),
            ("@", "@"),
            ("", ""),
        ] {
            let mut bytes = text.as_bytes().to_vec();
            cover(&mut bytes);
            assert_eq!(String::from_utf8(bytes).unwrap(), covered, "{text}");
        }
    }
}
