//! What is told: one line for each decision. No values of secrets are in it, since none are known here.

use jiff::Timestamp;
use scantling_cluster::Driven;
use scantling_run::RunEvent;
use serde::Serialize;

/// Something that was decided, done or met.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    /// When.
    pub at: Timestamp,
    /// Whether somebody should look.
    pub level: Level,
    /// What.
    #[serde(flatten)]
    pub told: Told,
}

/// Whether somebody should look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// It is as it should be.
    Info,
    /// Somebody should look.
    Warn,
}

/// What was decided, done or met.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case", tag = "event")]
pub enum Told {
    /// Another one leads.
    Follows {
        /// Who.
        leader: String,
    },
    /// It cannot be found out who leads.
    Leaderless {
        /// Why.
        why: String,
    },
    /// This one leads from now on.
    Leads,
    /// This one leads no longer.
    LeadLost {
        /// Why.
        why: String,
    },
    /// The driver did or met something.
    Driver {
        /// What.
        #[serde(flatten)]
        what: Driven,
    },
    /// The driver could not start and is started again.
    DriverFailed {
        /// Why.
        why: String,
    },
    /// What is to be done about the release has changed.
    Decided {
        /// In words.
        next: String,
    },
    /// A run begins.
    RunBegins {
        /// The version that it brings.
        version: String,
        /// Whether it is one that somebody has begun.
        continued: bool,
        /// Whether it goes back.
        back: bool,
    },
    /// A run did or met something.
    Run {
        /// What.
        #[serde(flatten)]
        what: RunEvent,
    },
    /// A run ended.
    RunEnds {
        /// The version that it was to bring.
        version: String,
        /// Whether it was brought.
        brought: bool,
        /// How it ended, in words.
        how: String,
        /// Seconds until it is tried again, where it is.
        #[serde(skip_serializing_if = "Option::is_none")]
        again_in_seconds: Option<u64>,
    },
    /// The bookkeeping could not be read.
    BooksUnread {
        /// Why.
        why: String,
    },
    /// A rule about registries may not be read; nodes may ask other places than this does.
    RulesUnread {
        /// Which, and why.
        what: String,
    },
    /// The contents of an image that runs could not be read.
    ImageUnread {
        /// The image.
        image: String,
        /// Why.
        why: String,
    },
    /// Notebooks were asked when they were used last.
    Asked {
        /// How many.
        notebooks: usize,
        /// How many gave no answer.
        silent: usize,
        /// How many were left for the next time because there are too many.
        left: usize,
    },
    /// It could not be written down when a notebook was used last.
    ActivityUnwritten {
        /// The notebook.
        notebook: String,
        /// Why.
        why: String,
    },
    /// It ends.
    Stops,
}

impl Told {
    /// Whether somebody should look.
    pub fn level(&self) -> Level {
        if self.is_warning() { Level::Warn } else { Level::Info }
    }

    fn is_warning(&self) -> bool {
        match self {
            Self::Leaderless { .. }
            | Self::LeadLost { .. }
            | Self::DriverFailed { .. }
            | Self::BooksUnread { .. }
            | Self::RulesUnread { .. }
            | Self::ImageUnread { .. }
            | Self::ActivityUnwritten { .. } => true,
            Self::RunEnds { brought, .. } => !brought,
            Self::Driver { what } => matches!(
                what,
                Driven::Failed { .. }
                    | Driven::Fought { .. }
                    | Driven::WatchBroken { .. }
                    | Driven::KindsUnknown { .. }
                    | Driven::Unread { .. }
                    | Driven::Postponed { .. }
            ),
            _ => false,
        }
    }

    /// Whether it is a decision or a change, and not one of the many steps between them.
    pub fn is_decision(&self) -> bool {
        !matches!(self, Self::Driver { what: Driven::Reconciled { .. } })
            && !matches!(self, Self::Asked { silent: 0, left: 0, .. })
    }
}
