//! Finds the end of a value without reading it.

/// Blanks between tokens of JSON.
pub(super) fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// Where a string ends whose opening quote is before `rest`: the index of its closing quote.
pub(super) fn string_end(rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', rest.get(at..)?)?;
        if rest.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// How far a value has been followed.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Scan {
    depth: usize,
    in_string: bool,
    /// The byte before was a backslash that ended the block.
    escaped: bool,
    /// A number or a word has begun.
    in_word: bool,
}

/// What a byte outside of strings does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Other,
    Quote,
    Open,
    Close,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Other; 256];
    classes[b'"' as usize] = Class::Quote;
    classes[b'{' as usize] = Class::Open;
    classes[b'[' as usize] = Class::Open;
    classes[b'}' as usize] = Class::Close;
    classes[b']' as usize] = Class::Close;
    classes
};

impl Scan {
    /// Follows the value through `text`: how many bytes belong to it, and whether it is over.
    pub(super) fn run(&mut self, text: &[u8]) -> (usize, bool) {
        let mut at = 0;
        if self.escaped && !text.is_empty() {
            self.escaped = false;
            at = 1;
        }
        loop {
            let Some(rest) = text.get(at..).filter(|rest| !rest.is_empty()) else {
                return (text.len(), false);
            };
            if self.in_string {
                let Some(length) = string_end(rest) else {
                    self.escaped = ends_escaped(rest);
                    return (text.len(), false);
                };
                at += length + 1;
                self.in_string = false;
                if self.depth == 0 {
                    return (at, true);
                }
            } else if self.depth == 0 && (self.in_word || !matches!(rest.first(), Some(b'"' | b'{' | b'['))) {
                self.in_word = true;
                let end = rest.iter().position(|byte| blank(*byte) || matches!(byte, b',' | b'}' | b']'));
                return end.map_or((text.len(), false), |end| (at + end, true));
            } else {
                let found = rest.iter().position(|byte| CLASSES[usize::from(*byte)] != Class::Other);
                let Some(found) = found else { return (text.len(), false) };
                let class = rest.get(found).map_or(Class::Other, |byte| CLASSES[usize::from(*byte)]);
                at += found + 1;
                match class {
                    Class::Quote => self.in_string = true,
                    Class::Open => self.depth += 1,
                    Class::Close => {
                        self.depth = self.depth.saturating_sub(1);
                        if self.depth == 0 {
                            return (at, true);
                        }
                    }
                    Class::Other => {}
                }
            }
        }
    }
}

/// Does a piece of a string end with a backslash that takes the next byte with it?
fn ends_escaped(text: &[u8]) -> bool {
    text.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn values_end_where_they_end_however_the_text_is_cut() {
        for (text, length) in [
            (r#""a\"b",1"#, 6),
            (r#""a\\",1"#, 5),
            (r#"{"a":"}","b":["]",{}]} ,"#, 22),
            ("[[],[]]]", 7),
            ("12.5e3,", 6),
            ("null}", 4),
            (r#"["\\\"]"]x"#, 9),
        ] {
            for size in 1..=text.len() {
                let mut scan = Scan::default();
                let mut seen = 0;
                let mut ended = false;
                for part in text.as_bytes().chunks(size) {
                    let (here, over) = scan.run(part);
                    seen += here;
                    ended = over;
                    if over {
                        break;
                    }
                }
                assert!(ended, "{text} by {size}");
                assert_eq!(seen, length, "{text} by {size}");
            }
        }
    }
}
