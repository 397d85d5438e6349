//! What a run does, told while it does it: from its many events to the few lines that a person reads.

use std::collections::{BTreeMap, BTreeSet};

use anstyle::Style;
use jiff::{SignedDuration, Timestamp};
use scantling_plan::Outcome;
use scantling_run::{RunEvent, Stage, What};

use crate::objects::past;
use crate::page::{one_line, shortened};
use crate::style::{BAD, FAINT, NOTED, RISKY, count, paint};

/// How the gate's verdict on an image begins that can be pulled.
const PULLABLE: &str = "ok from ";

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct News {
    /// How long it is worth being shown.
    pub weight: Weight,
    /// The stage that it is of.
    pub(crate) stage: Stage,
    style: Option<Style>,
    lead: String,
    rest: String,
    since_begin: SignedDuration,
}

/// How long a piece of news is worth being shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// A line that stays.
    Stays,
    /// What is going on now, until the next piece of news.
    Now,
    /// The same, worth a line where nothing can be replaced.
    Wait,
}

impl News {
    /// One line: the time since the run began, the stage, what there is to say.
    pub fn line(&self) -> String {
        let lead = one_line(&shortened(&self.lead));
        let lead = self.style.map_or_else(|| lead.clone(), |style| paint(style, &lead));
        let (time, rest) = (time(self.since_begin), one_line(&shortened(&self.rest)));
        format!("{} {}{lead}{rest}", paint(FAINT, &time), stage(self.stage))
    }

    /// What there is to say.
    pub(crate) fn text(&self) -> String {
        shortened(&format!("{}{}", self.lead, self.rest))
    }
}

/// Makes news of events.
#[derive(Debug, Default)]
pub struct Progress {
    begun: Option<Timestamp>,
    /// References asked for, and those that can be pulled.
    asked: usize,
    pullable: usize,
    group: Option<Group>,
    /// By node, the images that it pulls and has pulled.
    pulls: BTreeMap<String, (usize, usize)>,
    /// What has been waited for.
    waited: BTreeSet<String>,
    /// Workloads that have been held against the lock, and their containers.
    verified: (usize, usize),
}

/// Objects that are written together.
#[derive(Debug)]
struct Group {
    stage: Stage,
    name: Option<String>,
    /// How many objects there are to write, if that is known.
    of: Option<usize>,
    outcomes: BTreeMap<Outcome, usize>,
}

impl Progress {
    /// Nothing has happened yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What an event tells.
    pub fn news(&mut self, event: &RunEvent) -> Vec<News> {
        let begun = *self.begun.get_or_insert(event.at);
        let since_begin = event.at.duration_since(begun);
        let mut news = self.ended_by(event, since_begin);
        let of = |weight, style, lead: String, rest: String| News {
            weight,
            stage: event.stage,
            style,
            lead,
            rest,
            since_begin,
        };
        let line = |text: String| of(Weight::Stays, None, String::new(), text);
        let styled =
            |style, lead: &str, rest: &str| of(Weight::Stays, Some(style), lead.to_owned(), rest.to_owned());
        let now = |text: String| of(Weight::Now, None, String::new(), text);
        match &event.what {
            What::Probed { reference, verdict, .. } => {
                self.asked += 1;
                if verdict.starts_with(PULLABLE) {
                    self.pullable += 1;
                } else {
                    news.push(styled(BAD, &format!("{reference}: {verdict}"), ""));
                }
                news.push(now(format!("{} asked: {reference}", self.asked)));
            }
            What::Wave { wave, objects } => {
                self.group = Some(Group::new(event.stage, Some(wave.to_string()), Some(*objects)));
                news.push(now(format!("{wave}: 0 of {}", count(*objects, "object"))));
            }
            What::Object { key, outcome, cause } => {
                let group = self.group.get_or_insert_with(|| Group::new(event.stage, None, None));
                *group.outcomes.entry(*outcome).or_default() += 1;
                let style = match outcome {
                    Outcome::Failed | Outcome::Conflict => Some(BAD),
                    Outcome::KeptByUser | Outcome::Kept => Some(RISKY),
                    _ => None,
                };
                news.push(match style {
                    Some(style) => styled(style, &outcome.to_string(), &format!(": {key}: {cause}")),
                    None => now(format!("{}: {key}", group.far())),
                });
            }
            What::Waiting { on, until } => {
                let weight = if self.waited.insert(on.clone()) { Weight::Wait } else { Weight::Now };
                news.push(of(weight, None, String::new(), format!("waiting for {on}: {until}")));
            }
            What::Ready { on, .. } => {
                self.waited.remove(on);
                news.push(line(event.what.to_string()));
            }
            What::Pulling { node, images } => {
                self.pulls.insert(node.clone(), (*images, 0));
                news.push(line(format!("{node}: pulling {}", count(*images, "image"))));
            }
            What::Pulled { node, image } => {
                let (wanted, has) = self.pulls.entry(node.clone()).or_default();
                *has += 1;
                news.push(if *has >= *wanted {
                    line(format!("{node}: has {}", count(*has, "image")))
                } else {
                    now(format!("{node}: has {has} of {wanted} images: {image}"))
                });
            }
            What::Verified { workload, same, different: 0 } => {
                self.verified.0 += 1;
                self.verified.1 += same;
                news.push(now(workload.clone()));
            }
            What::Verified { .. } | What::Refused { .. } => {
                news.push(styled(BAD, &event.what.to_string(), ""));
            }
            What::NodeSkipped { .. } => news.push(styled(RISKY, &event.what.to_string(), "")),
            other => news.push(line(said(other))),
        }
        news
    }

    /// The line of a group that an event ends.
    fn ended_by(&mut self, event: &RunEvent, since_begin: SignedDuration) -> Vec<News> {
        let mut news = Vec::new();
        let line = |stage, rest| News {
            weight: Weight::Stays,
            stage,
            style: None,
            lead: String::new(),
            rest,
            since_begin,
        };
        if self.asked > 0 && !matches!(event.what, What::Probed { .. }) {
            let (asked, pullable) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.pullable));
            let text = format!("{pullable} of {} can be pulled", count(asked, "reference"));
            news.push(line(Stage::Gate, text));
        }
        if self.verified.0 > 0 && !matches!(event.what, What::Verified { .. }) {
            let (workloads, containers) = std::mem::take(&mut self.verified);
            let run = if containers == 1 { "runs" } else { "run" };
            let (workloads, containers) = (count(workloads, "workload"), count(containers, "container"));
            let text = format!("{workloads}: {containers} {run} what the release says");
            news.push(line(Stage::Verify, text));
        }
        let another = matches!(
            event.what,
            What::Wave { .. } | What::Finished { .. } | What::Waiting { .. } | What::Ready { .. }
        );
        if let Some(group) = self.group.take_if(|group| another || group.stage != event.stage)
            && let Some(text) = group.text()
        {
            news.push(line(group.stage, text));
        }
        news
    }
}

impl Group {
    fn new(stage: Stage, name: Option<String>, of: Option<usize>) -> Self {
        Self { stage, name, of, outcomes: BTreeMap::new() }
    }

    fn name(&self) -> String {
        self.name.as_ref().map(|name| format!("{name}: ")).unwrap_or_default()
    }

    /// How far it is.
    fn far(&self) -> String {
        let done: usize = self.outcomes.values().sum();
        match self.of {
            Some(of) => format!("{}{} of {of}", self.name(), done.min(of)),
            None => format!("{}{done}", self.name()),
        }
    }

    /// How its objects ended; none if there were none.
    fn text(&self) -> Option<String> {
        let parts: Vec<String> =
            self.outcomes.iter().map(|(outcome, number)| format!("{number} {}", past(*outcome))).collect();
        (!parts.is_empty()).then(|| format!("{}{}", self.name(), parts.join(", ")))
    }
}

/// What an event tells by itself.
fn said(what: &What) -> String {
    match what {
        What::Finished { .. } => "finished".to_owned(),
        What::ClusterRead { nodes, platforms, objects } => {
            let objects = format!("{} of the release and the one before", count(*objects, "object"));
            match nodes {
                0 => objects,
                _ => format!("{} ({}), {objects}", count(*nodes, "node"), platforms.join(", ")),
            }
        }
        What::Started { release, version, from } => {
            let from = from.as_ref().filter(|from| *from != version);
            let from = from.map(|from| format!("{from} → ")).unwrap_or_default();
            format!("{release} {from}{version}")
        }
        What::Planned { create, update, replace, adopt, unchanged, prune } => {
            let parts = [
                (create, "to create"),
                (update, "to update"),
                (replace, "to replace"),
                (adopt, "to adopt"),
                (prune, "to remove"),
                (unchanged, "unchanged"),
            ];
            let parts: Vec<String> = parts
                .into_iter()
                .filter(|(number, _)| **number > 0)
                .map(|(number, what)| format!("{number} {what}"))
                .collect();
            if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }
        }
        other => other.to_string(),
    }
}

fn time(since_begin: SignedDuration) -> String {
    let seconds = since_begin.as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    }
}

pub(crate) fn stage(stage: Stage) -> String {
    paint(NOTED, &format!("{:<10}", stage.to_string()))
}
