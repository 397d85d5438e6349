//! `WWW-Authenticate`: how a registry wants to be asked.

use http::{HeaderMap, header};

/// Longest header that is looked at, in bytes; realms and scopes are short.
const LENGTH_MAX: usize = 8 * 1024;

/// One way to authenticate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Challenge {
    /// A token from a service.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
    /// User name and password with each request.
    Basic,
}

/// The challenge to answer: the first bearer challenge, else basic. Others are not understood.
pub(crate) fn from_headers(headers: &HeaderMap) -> Option<Challenge> {
    let mut basic = None;
    for value in headers.get_all(header::WWW_AUTHENTICATE) {
        for challenge in value.to_str().map(parse).unwrap_or_default() {
            match challenge {
                Challenge::Bearer { .. } => return Some(challenge),
                Challenge::Basic => basic = Some(challenge),
            }
        }
    }
    basic
}

fn parse(text: &str) -> Vec<Challenge> {
    let mut found = Vec::new();
    if text.len() > LENGTH_MAX {
        return found;
    }
    let mut rest = text;
    // A scheme is a word that a space follows; parameters are `name=value`, separated by commas.
    let mut open: Option<(String, Vec<(String, String)>)> = None;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let end = rest.find(|c: char| !is_token(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        if word.is_empty() {
            break;
        }
        if let Some(value) = behind.trim_start().strip_prefix('=') {
            let (value, behind) = value_of(value.trim_start());
            if let Some((_, parameters)) = &mut open {
                parameters.push((word.to_ascii_lowercase(), value));
            }
            rest = behind;
        } else {
            found.extend(open.take().and_then(finished));
            open = Some((word.to_ascii_lowercase(), Vec::new()));
            rest = behind;
        }
    }
    found.extend(open.and_then(finished));
    found
}

fn is_token(c: char) -> bool {
    c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c)
}

/// A token or a quoted text, and what follows.
fn value_of(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        let (value, rest) = text.split_at(end);
        return (value.to_owned(), rest);
    };
    let mut value = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (value, quoted.get(at + 1..).unwrap_or_default()),
            '\\' => value.extend(chars.next().map(|(_, escaped)| escaped)),
            c => value.push(c),
        }
    }
    (value, "")
}

fn finished((scheme, parameters): (String, Vec<(String, String)>)) -> Option<Challenge> {
    let get = |name: &str| {
        parameters
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.clone())
            .filter(|v| !v.is_empty())
    };
    match scheme.as_str() {
        "bearer" => {
            Some(Challenge::Bearer { realm: get("realm")?, service: get("service"), scope: get("scope") })
        }
        "basic" => Some(Challenge::Basic),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;

    fn bearer(realm: &str, service: Option<&str>, scope: Option<&str>) -> Challenge {
        let own = |text: Option<&str>| text.map(str::to_owned);
        Challenge::Bearer { realm: realm.into(), service: own(service), scope: own(scope) }
    }

    #[test]
    fn headers() {
        let check = |text: &str, expected: &[Challenge]| assert_eq!(parse(text), expected, "{text}");
        check(
            r#"Bearer realm="https://auth.example/token",service="registry.example",scope="repository:a/b:pull,push""#,
            &[bearer(
                "https://auth.example/token",
                Some("registry.example"),
                Some("repository:a/b:pull,push"),
            )],
        );
        check(
            "bearer realm=https://a.example/t , service=s",
            &[bearer("https://a.example/t", Some("s"), None)],
        );
        check(r#"Basic realm="a \"quoted\" realm""#, &[Challenge::Basic]);
        check("Basic", &[Challenge::Basic]);
        check(
            r#"Negotiate, Basic realm="x", Bearer realm="https://a/t""#,
            &[Challenge::Basic, bearer("https://a/t", None, None)],
        );
        check("Bearer service=x", &[]);
        check(r#"Bearer realm="unfinished"#, &[bearer("unfinished", None, None)]);
        check("", &[]);
    }

    #[test]
    fn bearer_is_preferred() {
        let mut headers = HeaderMap::new();
        headers.append(header::WWW_AUTHENTICATE, "Basic realm=x".parse().unwrap());
        headers.append(header::WWW_AUTHENTICATE, "Bearer realm=https://a/t".parse().unwrap());
        assert_eq!(from_headers(&headers), Some(bearer("https://a/t", None, None)));
    }

    proptest! {
        #[test]
        fn nothing_panics_or_hangs(text in "[a-zA-Z=\", \\\\;é]{0,60}") {
            let _ = parse(&text);
        }
    }
}
