//! What was measured, and how it compares.

use std::time::Duration;

/// One measurement: in which situation, of what.
struct Line {
    case: &'static str,
    what: &'static str,
    time: Duration,
    is_ours: bool,
}

/// All of them.
#[derive(Default)]
pub(crate) struct Table {
    lines: Vec<Line>,
    notes: Vec<String>,
}

impl Table {
    /// Adds a time of ours.
    pub(crate) fn ours(&mut self, case: &'static str, what: &'static str, time: Duration) {
        self.lines.push(Line { case, what, time, is_ours: true });
    }

    /// Adds a time of others.
    pub(crate) fn theirs(&mut self, case: &'static str, what: &'static str, time: Duration) {
        self.lines.push(Line { case, what, time, is_ours: false });
    }

    /// Adds a remark.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Prints every time, that of others with how many of ours it is.
    pub(crate) fn print(&self) {
        let mut cases: Vec<&str> = Vec::new();
        for line in &self.lines {
            if !cases.contains(&line.case) {
                cases.push(line.case);
            }
        }
        for case in cases {
            println!("{case}:");
            let of_case = || self.lines.iter().filter(move |line| line.case == case);
            for line in of_case() {
                let ratios: Vec<String> = of_case()
                    .filter(|ours| ours.is_ours && !line.is_ours)
                    .map(|ours| format!("{:.2} × {}", ratio(line.time, ours.time), ours.what))
                    .collect();
                let time = line.time.as_secs_f64();
                println!("  {:<40} {time:>8.2} s  {}", line.what, ratios.join(", "));
            }
        }
        for note in &self.notes {
            println!("{note}");
        }
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(f64::EPSILON)
}
