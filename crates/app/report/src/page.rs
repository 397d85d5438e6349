//! A report that is read from top to bottom: sections, paragraphs that hang, marks.

use scantling_finding::{Finding, Severity};

use crate::style::{BAD, FAINT, NOTED, RISKY, STRONG, Screen, paint, safe, wrap};

/// A text with its digests cut to what tells them apart; the JSON document has them whole.
pub(crate) fn shortened(text: &str) -> String {
    const SHOWN: usize = 12;
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("sha256:") {
        let (before, from) = rest.split_at(start + "sha256:".len());
        out.push_str(before);
        let digits = from.bytes().take_while(u8::is_ascii_hexdigit).count();
        let shown = if digits == 64 { SHOWN } else { digits };
        out.push_str(from.get(..shown).unwrap_or_default());
        rest = from.get(digits..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// A text as one line: a name or a message that has line breaks in it must not look like lines of the report.
pub(crate) fn one_line(text: &str) -> String {
    safe(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

/// Text in the making.
pub(crate) struct Page {
    pub(crate) text: String,
    pub(crate) screen: Screen,
}

impl Page {
    /// Nothing yet.
    pub(crate) fn new(screen: Screen) -> Self {
        Self { text: String::new(), screen }
    }

    /// A heading with a blank line before it.
    pub(crate) fn section(&mut self, title: &str) {
        self.text.push('\n');
        self.text.push_str(&paint(STRONG, title));
        self.text.push('\n');
    }

    /// A paragraph at an indent; further lines are indented by as much again as `hang`.
    pub(crate) fn put(&mut self, indent: usize, hang: usize, text: &str) {
        let width = self.screen.width.saturating_sub(indent + hang);
        for (number, line) in wrap(&one_line(text), width).into_iter().enumerate() {
            let indent = if number == 0 { indent } else { indent + hang };
            self.raw(indent, &line);
        }
    }

    /// A mark in colour, then a paragraph that hangs under its first word.
    pub(crate) fn marked(&mut self, indent: usize, mark: &str, width: usize, text: &str) {
        let room = self.screen.width.saturating_sub(indent + width);
        for (number, line) in wrap(&one_line(text), room).into_iter().enumerate() {
            if number == 0 {
                self.raw(indent, &format!("{mark}{line}"));
            } else {
                self.raw(indent + width, &line);
            }
        }
    }

    /// A paragraph whose first words are in a style, if they stand in its first line.
    pub(crate) fn led(&mut self, style: anstyle::Style, lead: &str, text: &str) {
        const HANG: usize = 2;
        let lead = one_line(lead);
        let width = self.screen.width.saturating_sub(HANG);
        for (number, line) in wrap(&one_line(&format!("{lead}{text}")), width).iter().enumerate() {
            match line.strip_prefix(&lead).filter(|_| number == 0) {
                Some(rest) => self.raw(0, &format!("{}{rest}", paint(style, &lead))),
                None => self.raw(if number == 0 { 0 } else { HANG }, line),
            }
        }
    }

    /// A line as it is.
    pub(crate) fn raw(&mut self, indent: usize, line: &str) {
        if !line.is_empty() {
            self.text.push_str(&" ".repeat(indent));
            self.text.push_str(line);
        }
        self.text.push('\n');
    }
}

/// A finding without the text that it points into.
pub(crate) fn one_finding(out: &mut Page, finding: &Finding) {
    let style = match finding.severity {
        Severity::Error => BAD,
        Severity::Warning => RISKY,
        Severity::Note => NOTED,
    };
    out.marked(4, &format!("{} ", paint(style, finding.code.as_str())), 8, &finding.message);
    out.put(12, 0, &format!("at {}", finding.place));
    for line in [&finding.cause, &finding.remedy] {
        if !line.is_empty() {
            out.put(12, 0, &shortened(line));
        }
    }
}

/// A label, then its text, in two columns.
pub(crate) fn pair(out: &mut Page, label: &str, text: &str) {
    out.marked(6, &paint(FAINT, &format!("{label:<12}")), 12, text);
}
