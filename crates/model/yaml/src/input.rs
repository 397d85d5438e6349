//! Bytes to text.

use std::borrow::Cow;

use crate::limits::MAX_BYTES;
use crate::{Span, YamlError};

/// The text of a file: UTF-8, or UTF-16 if it begins with a byte order mark of UTF-16.
///
/// A byte order mark of UTF-8 stays in the text, so that offsets into it are offsets into the file.
pub fn text(bytes: &[u8]) -> Result<Cow<'_, str>, YamlError> {
    if bytes.len() > MAX_BYTES {
        let message = format!("the text has {} bytes, more than {MAX_BYTES}", bytes.len());
        return Err(YamlError { line: 1, column: 1, ..YamlError::at(Span::new(0, 0), message) });
    }
    match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes).map(Cow::Owned),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes).map(Cow::Owned),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Cow::Borrowed(text)),
            Err(error) => {
                let valid = error.valid_up_to();
                let before =
                    bytes.get(..valid).and_then(|part| std::str::from_utf8(part).ok()).unwrap_or_default();
                Err(YamlError::at(Span::new(valid, valid), "the text is not UTF-8")
                    .with_hint("save the file as UTF-8; binary data belongs base64-encoded into binaryData")
                    .located(before))
            }
        },
    }
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Result<String, YamlError> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let decoded: Result<String, _> = char::decode_utf16(pairs.iter().map(|pair| unit(*pair))).collect();
    match decoded {
        Ok(text) if rest.is_empty() => Ok(text),
        _ => Err(YamlError {
            line: 1,
            column: 1,
            ..YamlError::at(Span::new(0, 0), "the text begins like UTF-16 but is not")
                .with_hint("save the file as UTF-8")
        }),
    }
}

/// Finds a character that Kubernetes' reader refuses or takes for something else than a modern YAML reader does.
///
/// The reader of go-yaml v2 refuses control characters (`readerc.go`), and takes NEL, LS and PS for line breaks.
pub(crate) fn refused_character(text: &str) -> Option<YamlError> {
    // Nothing below is in plain ASCII but C0 controls and DEL; the fast way is one pass over the bytes.
    let suspicious =
        |byte: &u8| matches!(byte, 0..=8 | 0x0b | 0x0c | 0x0e..=0x1f | 0x7f | 0xc2 | 0xe2 | 0xef);
    if !text.as_bytes().iter().any(suspicious) {
        return None;
    }
    for (at, character) in text.char_indices() {
        let what = match character {
            '\t' | '\n' | '\r' => continue,
            '\0'..='\u{1f}' | '\u{7f}'..='\u{84}' | '\u{86}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => {
                "a control character"
            }
            '\u{85}' | '\u{2028}' | '\u{2029}' => "a character that Kubernetes takes for a line break",
            _ => continue,
        };
        let span = Span::new(at, at + character.len_utf8());
        let number = u32::from(character);
        return Some(
            YamlError::at(span, format!("{what} (U+{number:04X}) stands in the text"))
                .with_hint("write it as an escape such as \\u2028 in a double-quoted string"),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf16_with_a_mark_is_decoded() {
        let little: Vec<u8> = "\u{feff}a: ü😀".encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = "\u{feff}a: ü😀".encode_utf16().flat_map(u16::to_be_bytes).collect();
        assert_eq!(text(&little).as_deref(), Ok("a: ü😀"));
        assert_eq!(text(&big).as_deref(), Ok("a: ü😀"));
        assert!(text(&little[..little.len() - 1]).is_err());
    }

    #[test]
    fn what_is_not_utf8_is_refused_with_its_place() {
        let error = text(b"a: b\nc: \xff").map(Cow::into_owned).unwrap_err();
        assert_eq!((error.line, error.column, error.span.start), (2, 4, 8));
    }

    #[test]
    fn control_characters_and_foreign_line_breaks_are_refused() {
        for (text, wanted) in [
            ("a: \u{1}", Some(3)),
            ("a: é\u{2028}b", Some(5)),
            ("a: \u{85}", Some(3)),
            ("a: é\tb\r\n", None),
            ("a: \0", Some(3)),
        ] {
            assert_eq!(refused_character(text).map(|error| error.span.start), wanted, "{text:?}");
        }
    }
}
