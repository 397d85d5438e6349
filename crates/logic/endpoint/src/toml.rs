//! A reader for the part of TOML that `registries.conf` uses.
//!
//! Tables, arrays of tables, dotted and quoted keys, single-line strings, integers, booleans, arrays and inline
//! tables. Floats, dates and multi-line strings are refused by name; nothing is skipped.

use serde_json::{Map, Value};

/// Deepest nesting of arrays, inline tables and table names; `registries.conf` needs three.
const DEPTH_MAX: usize = 16;

/// Where and why a text is no TOML that we read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct TomlError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
}

/// A tree, and the paths of its tables and entries in the order of the text.
pub(crate) type Ordered = (Map<String, Value>, Vec<Vec<String>>);

/// Reads a document into the same tree that JSON would give.
pub(crate) fn parse(text: &str) -> Result<Map<String, Value>, TomlError> {
    parse_ordered(text).map(|(root, _)| root)
}

/// Reads a document, and lists the paths of its tables and entries in the order of the text, which the tree does not keep.
pub(crate) fn parse_ordered(text: &str) -> Result<Ordered, TomlError> {
    let mut order: Vec<Vec<String>> = Vec::new();
    let mut parser = Parser { rest: text, line: 1 };
    let mut root = Map::new();
    let mut current: Vec<String> = Vec::new();
    let mut opened: Vec<Vec<String>> = Vec::new();
    loop {
        parser.skip_blank(true);
        if parser.rest.is_empty() {
            return Ok((root, order));
        }
        if parser.take("[[") {
            current = parser.key_path()?;
            parser.expect("]]")?;
            parser.end_of_line()?;
            parser.push_table(&mut root, &current)?;
            // Tables below an earlier element of the array may be opened again below the new one.
            opened.retain(|path| !path.starts_with(&current));
        } else if parser.take("[") {
            current = parser.key_path()?;
            parser.expect("]")?;
            parser.end_of_line()?;
            if opened.contains(&current) {
                return Err(parser.error(format!("the table [{}] is there twice", current.join("."))));
            }
            opened.push(current.clone());
            order.push(current.clone());
            parser.table(&mut root, &current)?;
        } else {
            let path = parser.key_path()?;
            parser.expect("=")?;
            let value = parser.value(0)?;
            parser.end_of_line()?;
            order.push(current.iter().chain(&path).cloned().collect());
            let table = parser.table(&mut root, &current)?;
            parser.insert(table, &path, value)?;
        }
    }
}

struct Parser<'a> {
    rest: &'a str,
    line: usize,
}

impl Parser<'_> {
    fn error(&self, problem: impl Into<String>) -> TomlError {
        TomlError { line: self.line, problem: problem.into() }
    }

    fn take(&mut self, token: &str) -> bool {
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, token: &str) -> Result<(), TomlError> {
        self.skip_blank(false);
        if self.take(token) {
            self.skip_blank(false);
            return Ok(());
        }
        let found = self.rest.chars().next().filter(|c| *c != '\n');
        Err(self.error(match found {
            Some(found) => format!("`{token}` is needed before `{found}`"),
            None => format!("`{token}` is missing at the end"),
        }))
    }

    /// Skips blanks and, over several lines if wanted, line breaks and comments.
    fn skip_blank(&mut self, over_lines: bool) {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !over_lines {
                return;
            }
            if self.rest.starts_with('#') {
                self.rest = self.rest.find('\n').and_then(|end| self.rest.get(end..)).unwrap_or_default();
            }
            if self.take("\r\n") || self.take("\n") {
                self.line += 1;
            } else if !self.rest.starts_with([' ', '\t']) {
                return;
            }
        }
    }

    fn end_of_line(&mut self) -> Result<(), TomlError> {
        self.skip_blank(false);
        match self.rest.chars().next() {
            None | Some('\n' | '#') => Ok(()),
            Some('\r') if self.rest.starts_with("\r\n") => Ok(()),
            Some(found) => Err(self.error(format!("`{found}` after the end of the entry"))),
        }
    }

    fn key_path(&mut self) -> Result<Vec<String>, TomlError> {
        let mut path = Vec::new();
        loop {
            self.skip_blank(false);
            let key = if self.rest.starts_with(['"', '\'']) {
                self.string()?
            } else {
                let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
                let end = self.rest.find(|c| !legal(c)).unwrap_or(self.rest.len());
                let (key, rest) = self.rest.split_at(end);
                self.rest = rest;
                if key.is_empty() {
                    return Err(self.error("a key is needed"));
                }
                key.to_owned()
            };
            path.push(key);
            if path.len() > DEPTH_MAX {
                return Err(self.error(format!("a key of more than {DEPTH_MAX} parts")));
            }
            self.skip_blank(false);
            if !self.take(".") {
                return Ok(path);
            }
        }
    }

    fn value(&mut self, depth: usize) -> Result<Value, TomlError> {
        if depth > DEPTH_MAX {
            return Err(self.error(format!("nested deeper than {DEPTH_MAX}")));
        }
        match self.rest.chars().next() {
            Some('"' | '\'') => self.string().map(Value::String),
            Some('[') => self.array(depth),
            Some('{') => self.inline_table(depth),
            None | Some('\r' | '\n' | '#') => Err(self.error("a value is needed")),
            Some(_) => self.word(),
        }
    }

    fn word(&mut self) -> Result<Value, TomlError> {
        let end = self.rest.find([',', ']', '}', '#', '\n', '\r', ' ', '\t']).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        match word {
            "true" => return Ok(Value::Bool(true)),
            "false" => return Ok(Value::Bool(false)),
            _ => {}
        }
        let digits = word.strip_prefix(['-', '+']).unwrap_or(word);
        let integer = !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
            && (digits.len() == 1 || !digits.starts_with('0'));
        match word.strip_prefix('+').unwrap_or(word).parse::<i64>() {
            Ok(number) if integer => Ok(Value::from(number)),
            _ => Err(self.error(format!(
                "`{}` is no value that is read here: text in quotes, true, false, a whole number, a list or a table",
                word.chars().take(40).collect::<String>()
            ))),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, TomlError> {
        self.take("[");
        let mut items = Vec::new();
        loop {
            self.skip_blank(true);
            if self.take("]") {
                return Ok(Value::Array(items));
            }
            items.push(self.value(depth + 1)?);
            self.skip_blank(true);
            if !self.take(",") && !self.rest.starts_with(']') {
                return Err(self.error("`,` or `]` is needed in the list"));
            }
        }
    }

    fn inline_table(&mut self, depth: usize) -> Result<Value, TomlError> {
        self.take("{");
        let mut table = Map::new();
        self.skip_blank(false);
        if self.take("}") {
            return Ok(Value::Object(table));
        }
        loop {
            let path = self.key_path()?;
            self.expect("=")?;
            let value = self.value(depth + 1)?;
            self.insert(&mut table, &path, value)?;
            self.skip_blank(false);
            if self.take("}") {
                return Ok(Value::Object(table));
            }
            self.expect(",")?;
        }
    }

    fn string(&mut self) -> Result<String, TomlError> {
        if self.rest.starts_with("\"\"\"") || self.rest.starts_with("'''") {
            return Err(self.error("text over several lines is not read here"));
        }
        let literal = self.rest.starts_with('\'');
        let mut chars = self.rest.char_indices();
        chars.next();
        let mut text = String::new();
        loop {
            match chars.next() {
                None | Some((_, '\n' | '\r')) => return Err(self.error("the quotes are not closed")),
                Some((at, '\'')) if literal => return Ok(self.end_string(at, text)),
                Some((at, '"')) if !literal => return Ok(self.end_string(at, text)),
                Some((_, '\\')) if !literal => {
                    let escaped = chars.next().map(|(_, c)| c);
                    let digits = match escaped {
                        Some('u') => 4,
                        Some('U') => 8,
                        _ => 0,
                    };
                    if digits > 0 {
                        let hex: String = chars.by_ref().take(digits).map(|(_, c)| c).collect();
                        let valid = hex.len() == digits && hex.bytes().all(|b| b.is_ascii_hexdigit());
                        let code = u32::from_str_radix(&hex, 16).ok().filter(|_| valid);
                        text.push(
                            code.and_then(char::from_u32)
                                .ok_or_else(|| self.error("no character has this code"))?,
                        );
                        continue;
                    }
                    text.push(match escaped {
                        Some('b') => '\u{8}',
                        Some('t') => '\t',
                        Some('n') => '\n',
                        Some('f') => '\u{c}',
                        Some('r') => '\r',
                        Some(same @ ('"' | '\\')) => same,
                        _ => return Err(self.error("`\\` must be written twice in double quotes")),
                    });
                }
                Some((_, c)) if c.is_control() && c != '\t' => {
                    return Err(self.error("a control character in a text"));
                }
                Some((_, c)) => text.push(c),
            }
        }
    }

    fn end_string(&mut self, quote: usize, text: String) -> String {
        self.rest = self.rest.get(quote + 1..).unwrap_or_default();
        text
    }

    /// The table at the path; the last element where an array of tables is on the way.
    fn table<'t>(
        &self,
        root: &'t mut Map<String, Value>,
        path: &[String],
    ) -> Result<&'t mut Map<String, Value>, TomlError> {
        let mut table = root;
        for key in path {
            let value = table.entry(key.clone()).or_insert_with(|| Value::Object(Map::new()));
            table = match value {
                Value::Object(inner) => inner,
                Value::Array(items) => match items.last_mut() {
                    Some(Value::Object(inner)) => inner,
                    _ => return Err(self.error(format!("`{key}` is a list, not a table"))),
                },
                _ => return Err(self.error(format!("`{key}` has a value already and is no table"))),
            };
        }
        Ok(table)
    }

    fn push_table(&self, root: &mut Map<String, Value>, path: &[String]) -> Result<(), TomlError> {
        let Some((last, before)) = path.split_last() else {
            return Err(self.error("a key is needed"));
        };
        let table = self.table(root, before)?;
        match table.entry(last.clone()).or_insert_with(|| Value::Array(Vec::new())) {
            Value::Array(items) if items.iter().all(Value::is_object) => {
                items.push(Value::Object(Map::new()));
                Ok(())
            }
            _ => Err(self.error(format!("`{last}` has a value already and is no list of tables"))),
        }
    }

    fn insert(&self, table: &mut Map<String, Value>, path: &[String], value: Value) -> Result<(), TomlError> {
        let Some((last, before)) = path.split_last() else {
            return Err(self.error("a key is needed"));
        };
        let table = self.table(table, before)?;
        if table.contains_key(last) {
            return Err(self.error(format!("`{last}` is there twice")));
        }
        table.insert(last.clone(), value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn documents() {
        let check =
            |text: &str, expected: Value| assert_eq!(Value::Object(parse(text).unwrap()), expected, "{text}");
        check("", json!({}));
        check("# only\n\n", json!({}));
        check(
            "a = 1\r\nb.c = 'x\\y' # end\n\"d e\" = \"\\u00e9\\t\"",
            json!({"a": 1, "b": {"c": "x\\y"}, "d e": "é\t"}),
        );
        check("a = [ 'x', # one\n 'y',\n]\nb = -3\nc = []", json!({"a": ["x", "y"], "b": -3, "c": []}));
        check("a = { b = true, c.d = [{}] }", json!({"a": {"b": true, "c": {"d": [{}]}}}));
        check(
            "[[r]]\nl='a'\n[[r.m]]\nl='b'\n[[r.m]]\nl='c'\n[[r]]\nl='d'\n[r.x]\nk=1\n[[r]]\n[r.x]\n",
            json!({"r": [{"l": "a", "m": [{"l": "b"}, {"l": "c"}]}, {"l": "d", "x": {"k": 1}}, {"x": {}}]}),
        );
    }

    #[test]
    fn what_is_refused_says_where_and_why() {
        let check = |text: &str, line: usize, part: &str| {
            let error = parse(text).unwrap_err();
            assert_eq!(error.line, line, "{text}");
            assert!(error.problem.contains(part), "{text}: {}", error.problem);
        };
        check("a = 1\na = 2", 2, "twice");
        check("[a]\n[a]", 2, "twice");
        check("a = 1\n[a]", 2, "no table");
        check("a = 1.5", 1, "no value");
        check("a = 2020-01-01", 1, "no value");
        check("a = 010", 1, "no value");
        check("a = \"\"\"x", 1, "several lines");
        check("a = \"x\nb = 1", 1, "not closed");
        check("a = \"\\x\"", 1, "twice");
        check("a = \"\\ud800\"", 1, "no character");
        check("a = 1 b = 2", 1, "after the end");
        check("a 1", 1, "`=`");
        check("a =", 1, "value is needed");
        check("= 1", 1, "key is needed");
        check("[a", 1, "missing");
        check("\n\na = [1 2]", 3, "needed in the list");
        check("a = [1]\n[[a]]", 2, "no list of tables");
        check(&format!("a = {}", "[".repeat(50)), 1, "deeper");
        check(&format!("{}a = 1", "a.".repeat(50)), 1, "parts");
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "\\PC{0,8}".prop_map(Value::from)
        ];
        leaf.prop_recursive(3, 12, 4, |inner| proptest::collection::vec(inner, 0..4).prop_map(Value::from))
    }

    proptest! {
        #[test]
        fn written_values_are_read_back(entries in proptest::collection::btree_map("[a-z]{1,5}", values(), 0..5)) {
            // JSON's texts, numbers, booleans and lists are TOML's.
            let lines: Vec<String> = entries.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let expected: Map<String, Value> = entries.into_iter().collect();
            prop_assert_eq!(parse(&lines.join("\n")).unwrap(), expected);
        }

        #[test]
        fn nothing_panics(text in prop_oneof!["\\PC{0,80}", "[a-c=\\[\\]{}\"'.,#\n \\\\]{0,60}"]) {
            let _ = parse(&text);
        }
    }
}
