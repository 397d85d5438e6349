//! The JSON paths of printer columns: fields, indices, `[*]` and filters by equality.

use serde_json::Value;

/// Longest path that is read.
const MAX_STEPS: usize = 64;

/// A path, read once.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::api) struct JsonPath(Vec<Step>);

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Field(String),
    Index(i64),
    All,
    /// `[?(@.a.b=="text")]`.
    Equals(Vec<String>, String),
}

impl JsonPath {
    /// Reads `.spec.x[0]`, `.status.conditions[?(@.type=="Ready")].status` and the like. None if it has other parts.
    pub(in crate::api) fn parse(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        let mut rest = text.trim().trim_start_matches('$');
        while !rest.is_empty() {
            if steps.len() >= MAX_STEPS {
                return None;
            }
            if let Some(after) = rest.strip_prefix('[') {
                let end = closing(after)?;
                let (inner, after) = after.split_at(end);
                steps.push(bracket(inner.trim())?);
                rest = after.strip_prefix(']')?;
            } else {
                let after = rest.strip_prefix('.')?;
                let (name, after) = field(after);
                // A dot at the end stands for the whole.
                if !name.is_empty() {
                    steps.push(Step::Field(name));
                } else if !after.is_empty() && !after.starts_with('[') {
                    return None;
                }
                rest = after;
            }
        }
        Some(Self(steps))
    }

    /// The first value that the path leads to.
    pub(in crate::api) fn first<'v>(&self, value: &'v Value) -> Option<&'v Value> {
        first(&self.0, value)
    }
}

fn first<'v>(steps: &[Step], value: &'v Value) -> Option<&'v Value> {
    let Some((step, rest)) = steps.split_first() else { return Some(value) };
    match step {
        Step::Field(name) => first(rest, value.get(name)?),
        Step::Index(index) => {
            let list = value.as_array()?;
            let length = i64::try_from(list.len()).ok()?;
            let index = if *index < 0 { length + index } else { *index };
            first(rest, list.get(usize::try_from(index).ok()?)?)
        }
        Step::All => value.as_array()?.iter().find_map(|item| first(rest, item)),
        Step::Equals(path, wanted) => value.as_array()?.iter().find_map(|item| {
            let found = path.iter().try_fold(item, |item, name| item.get(name))?;
            let equal = found.as_str().map_or_else(|| found.to_string(), str::to_owned) == *wanted;
            if equal { first(rest, item) } else { None }
        }),
    }
}

/// A name up to the next dot or bracket; a backslash keeps a dot within the name.
fn field(text: &str) -> (String, &str) {
    let mut name = String::new();
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            '\\' if !escaped => escaped = true,
            '.' | '[' if !escaped => return (name, text.get(at..).unwrap_or_default()),
            _ => {
                escaped = false;
                name.push(c);
            }
        }
    }
    (name, "")
}

/// Where the bracket ends, past quoted text.
fn closing(text: &str) -> Option<usize> {
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, ']') => return Some(at),
            _ => {}
        }
    }
    None
}

fn bracket(inner: &str) -> Option<Step> {
    if inner == "*" {
        return Some(Step::All);
    }
    if let Some(name) = unquote(inner) {
        return Some(Step::Field(name.to_owned()));
    }
    if let Ok(index) = inner.parse() {
        return Some(Step::Index(index));
    }
    let condition = inner.strip_prefix("?(")?.strip_suffix(')')?;
    let (path, value) = condition.split_once("==")?;
    let path = path.trim().strip_prefix("@.")?;
    let value = value.trim();
    let names = path.split('.').map(str::to_owned).collect();
    Some(Step::Equals(names, unquote(value).unwrap_or(value).to_owned()))
}

fn unquote(text: &str) -> Option<&str> {
    ['\'', '"'].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_values() {
        let value = json!({
            "a": {"b.c": 1, "list": [{"type": "X", "v": 1}, {"type": "Y", "v": 2}]},
            "metadata": {"annotations": {"example.com/x": "y"}},
        });
        for (path, found) in [
            (".a.list[1].v", json!(2)),
            (".a.list[-1].type", json!("Y")),
            (".a.list[?(@.type=='Y')].v", json!(2)),
            (".a.list[?(@.type == \"X\")].v", json!(1)),
            (".a.list[*].v", json!(1)),
            (".a.b\\.c", json!(1)),
            (".a['b.c']", json!(1)),
            (".metadata.annotations.example\\.com/x", json!("y")),
        ] {
            assert_eq!(JsonPath::parse(path).unwrap().first(&value), Some(&found), "{path}");
        }
        for path in [".a.x", ".a.list[9]", ".a.list[?(@.type=='Z')].v", ".a[*]"] {
            assert_eq!(JsonPath::parse(path).unwrap().first(&value), None, "{path}");
        }
        for path in ["a", ".a[", ".a[x]", ".a..b", ".a[?(@.b>1)]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn no_path_makes_it_fail(path in "[.a\\[\\]?(@)='\"\\\\*0-9-]{0,30}|\\PC{0,20}") {
            if let Some(path) = JsonPath::parse(&path) {
                path.first(&json!({"a": [{"a": "0"}]}));
            }
        }
    }
}
