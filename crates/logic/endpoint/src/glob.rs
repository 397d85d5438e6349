//! Patterns in one label of a host, as Go's `filepath.Match` reads them.

/// True if the pattern covers the whole text: `*` any run, `?` one character, `[a-z]` and `[^a-z]` classes, `\` the
/// next character itself. A malformed pattern covers nothing.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let Some(tokens) = tokens(pattern) else {
        return false;
    };
    let text: Vec<char> = text.chars().collect();
    // One row per token: reached[i] says that the tokens so far cover text[..i].
    let mut reached: Vec<bool> = (0..=text.len()).map(|length| length == 0).collect();
    for token in &tokens {
        let mut next = vec![false; text.len() + 1];
        match token {
            Token::Run => {
                let mut any = false;
                for (new, old) in next.iter_mut().zip(&reached) {
                    any |= *old;
                    *new = any;
                }
            }
            single => {
                for ((new, old), c) in next.iter_mut().skip(1).zip(&reached).zip(&text) {
                    *new = *old && single.covers(*c);
                }
            }
        }
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

enum Token {
    Run,
    Any,
    Same(char),
    Class { inverted: bool, ranges: Vec<(char, char)> },
}

impl Token {
    fn covers(&self, c: char) -> bool {
        match self {
            Self::Run | Self::Any => true,
            Self::Same(same) => *same == c,
            Self::Class { inverted, ranges } => {
                ranges.iter().any(|(low, high)| (*low..=*high).contains(&c)) != *inverted
            }
        }
    }
}

fn tokens(pattern: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = pattern.chars().peekable();
    while let Some(c) = chars.next() {
        tokens.push(match c {
            '*' => Token::Run,
            '?' => Token::Any,
            '\\' => Token::Same(chars.next()?),
            '[' => {
                let inverted = chars.next_if_eq(&'^').is_some();
                let mut ranges = Vec::new();
                while ranges.is_empty() || chars.peek() != Some(&']') {
                    let low = class_character(&mut chars)?;
                    let high =
                        if chars.next_if_eq(&'-').is_some() { class_character(&mut chars)? } else { low };
                    ranges.push((low, high));
                }
                chars.next();
                Token::Class { inverted, ranges }
            }
            same => Token::Same(same),
        });
    }
    Some(tokens)
}

fn class_character(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    match chars.next()? {
        '-' | ']' => None,
        '\\' => chars.next(),
        c => Some(c),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns() {
        // Expectations as in the tests of Go's path/filepath.
        let check = |pattern: &str, text: &str, expected: bool| {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        };
        check("abc", "abc", true);
        check("*", "abc", true);
        check("*", "", true);
        check("*c", "abc", true);
        check("a*", "a", true);
        check("a*b*c*d*e*", "axbxcxdxe", true);
        check("a*b?c*x", "abxbbxdbxebxczzx", true);
        check("a*b?c*x", "abxbbxdbxebxczzy", false);
        check("ab[c]", "abc", true);
        check("ab[b-d]", "abc", true);
        check("ab[e-g]", "abc", false);
        check("ab[^c]", "abc", false);
        check("ab[^e-g]", "abc", true);
        check("a\\*b", "a*b", true);
        check("a\\*b", "ab", false);
        check("a?b", "a☺b", true);
        check("[\\]a]", "]", true);
        check("[x\\-]", "-", true);
        for malformed in ["[]a]", "[-]", "[x-]", "[-x]", "[", "[^", "[^bc", "a[", "\\"] {
            check(malformed, "a", false);
        }
    }

    proptest! {
        #[test]
        fn a_text_without_signs_covers_only_itself(a in "[a-z0-9-]{0,8}", b in "[a-z0-9-]{0,8}") {
            prop_assert_eq!(matches(&a, &b), a == b);
        }

        #[test]
        fn nothing_panics(pattern in "[a-c*?\\[\\]\\\\^-]{0,20}", text in "[a-c\\]-]{0,20}") {
            let _ = matches(&pattern, &text);
        }
    }
}
