//! What was seen to happen, in order: the events of a report.

use std::sync::{Arc, Mutex, PoisonError};

use scantling_run::RunEvent;
use serde::Serialize;
use tokio::time::Instant;

/// Who did something.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case", tag = "who", content = "name")]
pub enum Actor {
    /// The vendor's script.
    Vendor,
    /// Scantling.
    Scantling,
    /// A person.
    Person(String),
    /// Whoever works round the incident.
    Admin,
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Vendor => f.write_str("vendor"),
            Self::Scantling => f.write_str("scantling"),
            Self::Admin => f.write_str("admin"),
            Self::Person(name) => f.write_str(name),
        }
    }
}

/// One line of the story as it was played.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// Milliseconds of virtual time since the start.
    pub at_ms: u64,
    /// Who.
    pub actor: Actor,
    /// What.
    pub text: String,
    /// Of which kind it is; a report tells things of the same kind together.
    #[serde(skip)]
    pub said: Said,
}

/// What a line tells of.
#[derive(Debug, Clone, PartialEq)]
pub enum Said {
    /// Something that somebody did or said.
    Word,
    /// What a run of Scantling told.
    Run(Box<RunEvent>),
    /// A write of the controllers that succeeded.
    Write,
}

/// Virtual time since the start: days, hours, minutes, seconds.
pub fn clock(ms: u64) -> String {
    let seconds = ms / 1000;
    format!("{}d {:02}:{:02}:{:02}", seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
}

/// Collects lines, and passes them on as they come.
#[derive(Clone)]
pub struct Recorder {
    lines: Arc<Mutex<Vec<Line>>>,
    progress: Arc<dyn Fn(&Line) + Send + Sync>,
    origin: Instant,
}

impl Recorder {
    /// A recorder whose time zero is now; every line is also given to `progress`.
    pub fn new(progress: Arc<dyn Fn(&Line) + Send + Sync>) -> Self {
        Self { lines: Arc::default(), progress, origin: Instant::now() }
    }

    /// Records that somebody did or said something just now.
    pub fn say(&self, actor: &Actor, text: String) {
        self.record(actor, text, Said::Word);
    }

    /// Records what a run tells.
    pub fn run(&self, event: &RunEvent) {
        let text = format!("{}: {}", event.stage, event.what);
        self.record(&Actor::Scantling, text, Said::Run(Box::new(event.clone())));
    }

    /// Records a write of the controllers that succeeded.
    pub fn write(&self, write: &str) {
        self.record(&Actor::Scantling, format!("controllers: {write}"), Said::Write);
    }

    fn record(&self, actor: &Actor, text: String, said: Said) {
        let line = Line { at_ms: self.now_ms(), actor: actor.clone(), text, said };
        (self.progress)(&line);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }

    /// Milliseconds of virtual time since the start.
    pub fn now_ms(&self) -> u64 {
        u64::try_from(self.origin.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// All lines so far.
    pub fn lines(&self) -> Vec<Line> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
