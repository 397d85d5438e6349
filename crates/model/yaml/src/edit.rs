//! Changing one value in a text and nothing else.

use crate::emit::double_quoted;
use crate::resolve::{self, Scalar};
use crate::{Node, NodeKind, Style};

/// Why a value cannot be changed in place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// A list or a mapping is not one value.
    #[error("a list or a mapping cannot be replaced by a string")]
    NotScalar,
    /// The node's span does not fit the text.
    #[error("the value does not belong to this text")]
    OtherText,
    /// A tag such as `!!int` says what the value is.
    #[error("the value has the tag {0}, which the new value may not fit")]
    Tagged(String),
    /// There is no place at which a value could be written.
    #[error("there is no place to write the value: the key stands alone in a flow mapping")]
    NoPlace,
}

/// Replaces a scalar by a string, in the style in which it is written where that can hold the string.
///
/// `text` is what the node's tree was made from. Only the scalar's own bytes change: comments, order, quoting and
/// everything around it stay. Where an alias stands, the alias is replaced; where an anchor stands, the aliases follow.
pub fn replace_scalar(text: &str, node: &Node, new: &str) -> Result<String, EditError> {
    if matches!(node.kind, NodeKind::Sequence(_) | NodeKind::Mapping(_)) && node.alias.is_none() {
        return Err(EditError::NotScalar);
    }
    if let (Some(tag), None) = (&node.tag, node.alias)
        && tag != "tag:yaml.org,2002:str"
        && tag != "!"
    {
        return Err(EditError::Tagged(tag.clone()));
    }
    let span = node.alias.unwrap_or(node.span);
    let (Some(before), Some(written), Some(after)) =
        (text.get(..span.start), text.get(span.start..span.end), text.get(span.end..))
    else {
        return Err(EditError::OtherText);
    };
    // What begins like JSON may be JSON, which has no plain strings.
    let json = text.trim_start_matches('\u{feff}').trim_start().starts_with(['{', '[']);
    let replacement = if json && !matches!(node.style, Style::SingleQuoted) && !written.is_empty() {
        double_quoted(new)
    } else if node.alias.is_some() {
        plain_or_quoted(new)
    } else {
        match node.style {
            Style::Plain if written.is_empty() => {
                let tight = !before.ends_with([' ', '\t', '\n']);
                if !before.trim_end().ends_with([':', '-', '?']) && node.tag.is_none() {
                    return Err(EditError::NoPlace);
                }
                format!("{}{}", if tight { " " } else { "" }, plain_or_quoted(new))
            }
            Style::Plain => plain_or_quoted(new),
            Style::SingleQuoted if is_single_line(new) => format!("'{}'", new.replace('\'', "''")),
            Style::SingleQuoted | Style::DoubleQuoted => double_quoted(new),
            Style::Literal | Style::Folded => block(before, written, node.style, new),
            Style::Collection => return Err(EditError::NotScalar),
        }
    };
    Ok([before, &replacement, after].concat())
}

fn plain_or_quoted(new: &str) -> String {
    if is_plain(new) { new.to_owned() } else { double_quoted(new) }
}

/// Whether the text has one line and nothing that has to be escaped.
fn is_single_line(text: &str) -> bool {
    text.chars().all(is_printable)
}

/// Whether the character may stand in a text unescaped, line breaks aside.
pub(crate) fn is_printable(character: char) -> bool {
    !character.is_control()
        && !matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Whether the text, written without quotes, is read as itself by every YAML reader, in block and flow collections.
pub(crate) fn is_plain(text: &str) -> bool {
    let starts_well = text
        .starts_with(|first: char| first.is_alphanumeric() || matches!(first, '/' | '_' | '.' | '$' | '('));
    let ends_well = !text.ends_with([' ', ':']);
    let harmless = |character: char| {
        is_printable(character)
            && !matches!(character, ',' | '[' | ']' | '{' | '}' | '#' | '"' | '\'' | '\\' | '`' | '\t')
    };
    starts_well
        && ends_well
        && text.chars().all(harmless)
        && !text.contains(": ")
        && !text.starts_with("...")
        && resolve::plain(text) == Scalar::String
        && !is_ambiguous(text)
}

/// Whether some reader takes the text for something else than a string: dates, numbers to base 60, `y`, `=`.
fn is_ambiguous(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b'-' | b'_'))
}

/// Whether a line ends in a carriage return alone, which YAML allows and no line counter here knows.
fn has_lone_return(text: &str) -> bool {
    text.replace("\r\n", "\n").contains('\r')
}

/// A block scalar with new content: the same indentation, the same kind of header.
fn block(before: &str, written: &str, style: Style, new: &str) -> String {
    let content = new.trim_end_matches('\n');
    let trailing = new.len() - content.len();
    let holds = !content.is_empty()
        && !content.starts_with([' ', '\n', '\t'])
        && content.chars().all(|character| character == '\n' || character == '\t' || is_printable(character));
    // What a folded scalar holds on one line it can hold again; lines would be joined.
    let style = if style == Style::Folded && !content.contains('\n') { '>' } else { '|' };
    let (header, body) = written.split_once('\n').unwrap_or((written, ""));
    let indent = body
        .lines()
        .find(|line| !line.trim_matches([' ', '\r']).is_empty())
        .map(|line| line.len() - line.trim_start_matches(' ').len());
    let indent = match indent {
        Some(indent) if holds && indent > 0 && !has_lone_return(written) => indent,
        _ => {
            let ending = ["\r\n", "\n", "\r"].into_iter().find(|ending| written.ends_with(ending));
            return format!("{}{}", double_quoted(new), ending.unwrap_or_default());
        }
    };
    let _ = before;
    let ending = if header.ends_with('\r') { "\r\n" } else { "\n" };
    let comment =
        header.find(" #").and_then(|at| header.get(at..)).unwrap_or_default().trim_end_matches('\r');
    let chomp = match trailing {
        0 => "-",
        1 => "",
        _ => "+",
    };
    let kept = written.trim_end_matches(['\n', '\r', ' ']).len();
    let blank_lines = written.get(kept..).unwrap_or_default().matches('\n').count();
    let mut result = format!("{style}{chomp}{comment}{ending}");
    let padding = " ".repeat(indent);
    let lines: Vec<&str> = content.split('\n').collect();
    for (at, line) in lines.iter().enumerate() {
        if !line.is_empty() {
            result.push_str(&padding);
            result.push_str(line);
        }
        if at + 1 < lines.len() {
            result.push_str(ending);
        }
    }
    // With `+` every line break counts; otherwise those that stood behind the content stay.
    let breaks = if trailing > 1 { trailing } else { blank_lines.max(trailing) };
    result.push_str(&ending.repeat(breaks));
    result
}
