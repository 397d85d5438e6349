//! Telling text from other bytes.

use crate::SkipReason;

/// How far into a file a zero byte is looked for; the same window that git uses to call a file binary.
const PROBE_BYTES: usize = 8_000;

/// Why `bytes` are not text that manifests are written in, if they are not.
pub(crate) fn why_not_text(bytes: &[u8]) -> Option<SkipReason> {
    if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
        return Some(SkipReason::Utf16);
    }
    let probe = bytes.get(..PROBE_BYTES).unwrap_or(bytes);
    if probe.contains(&0) {
        return Some(SkipReason::Binary);
    }
    std::str::from_utf8(bytes).err().map(|_| SkipReason::NotUtf8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_text_from_other_bytes() {
        let cases: &[(&[u8], Option<SkipReason>)] = &[
            (b"", None),
            (b"kind: Pod\n", None),
            ("name: Größe\n".as_bytes(), None),
            ("\u{feff}kind: Pod".as_bytes(), None),
            (b"\xff\xfek\0i\0", Some(SkipReason::Utf16)),
            (b"\xfe\xff\0k\0i", Some(SkipReason::Utf16)),
            (b"PK\x03\x04\0\0", Some(SkipReason::Binary)),
            (b"Gr\xf6\xdfe", Some(SkipReason::NotUtf8)),
        ];
        for (bytes, wanted) in cases {
            assert_eq!(why_not_text(bytes), *wanted, "{bytes:?}");
        }
    }
}
