//! What a run does, told while it does it: from its many events to the few lines that a person reads.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use scantling_plan::Outcome;
use scantling_run::{RunEvent, Stage, What};

use crate::objects::past;
use crate::page::{one_line, shortened};
use crate::style::{BAD, FAINT, NOTED, RISKY, count, paint};

/// How the gate's verdict on an image begins that can be pulled.
const PULLABLE: &str = "ok from ";

/// One piece of news.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum News {
    /// A line that stays.
    Line(String),
    /// What is going on now, until the next piece of news.
    Now(String),
    /// The same, worth a line where nothing can be replaced.
    Wait(String),
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
        let before = before(event, begun);
        let mut news = self.ended_by(event, &before);
        let line = |text: String| News::Line(format!("{before}{}", one_line(&shortened(&text))));
        let styled = |style, lead: &str, rest: &str| {
            let (lead, rest) = (one_line(&shortened(lead)), one_line(&shortened(rest)));
            News::Line(format!("{before}{}{rest}", paint(style, &lead)))
        };
        let now = |text: String| News::Now(format!("{before}{}", one_line(&shortened(&text))));
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
                let text = format!("{before}{}", one_line(&shortened(&format!("waiting for {on}: {until}"))));
                let first = self.waited.insert(on.clone());
                news.push(if first { News::Wait(text) } else { News::Now(text) });
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
            What::Finished { .. } => news.push(line("finished".to_owned())),
            What::ClusterRead { nodes, platforms, objects } => {
                let objects = format!("{} of the release and the one before", count(*objects, "object"));
                news.push(line(match nodes {
                    0 => objects,
                    _ => format!("{} ({}), {objects}", count(*nodes, "node"), platforms.join(", ")),
                }));
            }
            What::Started { release, version, from } => {
                let from = from.as_ref().filter(|from| *from != version);
                let from = from.map(|from| format!("{from} → ")).unwrap_or_default();
                news.push(line(format!("{release} {from}{version}")));
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
                news.push(line(if parts.is_empty() { "nothing to do".to_owned() } else { parts.join(", ") }));
            }
            other => news.push(line(other.to_string())),
        }
        news
    }

    /// The line of a group that an event ends.
    fn ended_by(&mut self, event: &RunEvent, before: &str) -> Vec<News> {
        let mut news = Vec::new();
        if self.asked > 0 && !matches!(event.what, What::Probed { .. }) {
            let (asked, pullable) = (std::mem::take(&mut self.asked), std::mem::take(&mut self.pullable));
            let begin = before_stage(before, Stage::Gate);
            news.push(News::Line(format!(
                "{begin}{pullable} of {} can be pulled",
                count(asked, "reference")
            )));
        }
        if self.verified.0 > 0 && !matches!(event.what, What::Verified { .. }) {
            let (workloads, containers) = std::mem::take(&mut self.verified);
            let run = if containers == 1 { "runs" } else { "run" };
            news.push(News::Line(format!(
                "{}{}: {} {run} what the release says",
                before_stage(before, Stage::Verify),
                count(workloads, "workload"),
                count(containers, "container"),
            )));
        }
        let another = matches!(
            event.what,
            What::Wave { .. } | What::Finished { .. } | What::Waiting { .. } | What::Ready { .. }
        );
        if let Some(group) = self.group.take_if(|group| another || group.stage != event.stage)
            && let Some(text) = group.text()
        {
            news.push(News::Line(format!("{}{text}", before_stage(before, group.stage))));
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

/// The time since the run began, and the stage.
fn before(event: &RunEvent, begun: Timestamp) -> String {
    let seconds = event.at.duration_since(begun).as_secs().max(0);
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    let time = if hours > 0 {
        format!("{hours}:{minutes:02}:{seconds:02}")
    } else {
        format!("{minutes:02}:{seconds:02}")
    };
    format!("{} {}", paint(FAINT, &time), stage(event.stage))
}

fn stage(stage: Stage) -> String {
    paint(NOTED, &format!("{:<10}", stage.to_string()))
}

/// The same beginning with another stage.
fn before_stage(before: &str, other: Stage) -> String {
    match before.split_once(' ') {
        Some((time, _)) => format!("{time} {}", stage(other)),
        None => stage(other),
    }
}
