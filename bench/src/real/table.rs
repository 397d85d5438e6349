//! What was measured, and how it compares.

use std::time::Duration;

/// One measurement: in which situation, of what.
struct Line {
    case: &'static str,
    what: &'static str,
    time: Duration,
    is_ours: bool,
}

/// A figure, and what it is to be.
pub(crate) struct Goal {
    what: String,
    value: f64,
    wanted: f64,
    /// Whether less is better.
    at_most: bool,
    unit: &'static str,
}

impl Goal {
    /// A figure that is not to be larger.
    pub(crate) fn at_most(what: &str, value: f64, wanted: f64, unit: &'static str) -> Self {
        Self { what: what.to_owned(), value, wanted, at_most: true, unit }
    }

    fn is_met(&self) -> bool {
        if self.at_most { self.value <= self.wanted } else { self.value >= self.wanted }
    }

    fn text(&self) -> String {
        let sign = if self.at_most { "≤" } else { "≥" };
        let met = if self.is_met() { "met" } else { "missed" };
        let of = if self.wanted > 0.0 {
            format!(", {:.2} of it", self.value / self.wanted)
        } else {
            String::new()
        };
        format!(
            "{:<52} {:>8.2} {:<3} goal {sign} {} {}: {met}{of}",
            self.what, self.value, self.unit, self.wanted, self.unit
        )
    }
}

/// What others' times are to be of ours: situation, ours, theirs, how many times as long at least or, for bare requests, how many times as
/// long ours may take.
const RATIOS: [(&str, &str, &str, f64); 8] = [
    ("fresh", "scantling upgrade", "PATCHes, 16 at a time", 1.2),
    ("fresh", "scantling upgrade", "kubectl apply --server-side", 2.0),
    ("fresh", "scantling upgrade", "helm install", 4.0),
    ("nothing changed", "scantling plan", "kubectl diff --server-side", 10.0),
    ("nothing changed", "scantling upgrade", "kubectl apply --server-side", 10.0),
    ("nothing changed", "scantling upgrade", "helm upgrade", 20.0),
    ("1 % changed", "scantling upgrade", "kubectl apply --server-side", 10.0),
    ("1 % changed", "scantling upgrade", "helm upgrade", 20.0),
];

/// All of them.
#[derive(Default)]
pub(crate) struct Table {
    lines: Vec<Line>,
    goals: Vec<Goal>,
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

    /// Adds a figure with its goal.
    pub(crate) fn goal(&mut self, goal: Goal) {
        self.goals.push(goal);
    }

    /// Adds the goals that compare our times with those of others, as far as both were measured.
    pub(crate) fn ratios(&mut self) {
        let time = |case: &str, what: &str| {
            self.lines.iter().find(|line| line.case == case && line.what == what).map(|line| line.time)
        };
        let goals: Vec<Goal> = RATIOS
            .into_iter()
            .filter_map(|(case, ours, theirs, goal)| {
                let (our, their) = (time(case, ours)?, time(case, theirs)?);
                let bare = theirs.starts_with("PATCHes");
                let (value, what) = if bare {
                    (ratio(our, their), format!("{case}: {ours} / {theirs}"))
                } else {
                    (ratio(their, our), format!("{case}: {theirs} / {ours}"))
                };
                Some(Goal { what, value, wanted: goal, at_most: bare, unit: "×" })
            })
            .collect();
        self.goals.extend(goals);
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
        if !self.goals.is_empty() {
            println!("goals:");
        }
        for goal in &self.goals {
            println!("  {}", goal.text());
        }
        for note in &self.notes {
            println!("{note}");
        }
    }
}

fn ratio(one: Duration, other: Duration) -> f64 {
    one.as_secs_f64() / other.as_secs_f64().max(f64::EPSILON)
}
