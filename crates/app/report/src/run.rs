//! The reports of runs and of plans, which are runs that end before they write.

use std::collections::BTreeMap;

use anstyle::Style;
use scantling_finding::Severity;
use scantling_plan::Outcome;
use scantling_run::{Action, CutOff, RunError, RunReport, Stage};

use crate::findings::{Texts, findings};
use crate::nodes::nodes;
use crate::objects::{Detail, Shown, Tense, objects};
use crate::page::{Page, shortened};
use crate::people::people;
use crate::style::{BAD, GOOD, STRONG, Screen, count, paint};

/// Why a run is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// To change the cluster.
    Change,
    /// To say what would happen.
    Plan,
    /// To say what would happen to somebody who is asked next whether it may.
    Question,
}

/// What a report of a run needs beside the run.
#[derive(Debug, Clone, Copy)]
pub struct Frame<'a> {
    /// What is to be done.
    pub action: Action,
    /// Why.
    pub purpose: Purpose,
    /// The cluster, in words.
    pub place: &'a str,
    /// The command that changes the cluster, to say what comes next.
    pub command: &'a str,
    /// The files that findings point into.
    pub texts: &'a Texts<'a>,
    /// How much is shown.
    pub detail: Detail,
    /// Where it is shown.
    pub screen: Screen,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End<'a> {
    /// As it should.
    Done,
    /// Before anything was written.
    Refused(&'a str),
    /// In the middle.
    Stopped(Stage, &'a str),
}

impl<'a> End<'a> {
    /// How a result says that it ended, and the report in it.
    pub fn of(result: &'a Result<RunReport, RunError>) -> (Self, &'a RunReport) {
        match result {
            Ok(report) => (Self::Done, report),
            Err(error) => match error {
                RunError::Refused { why, report } => (Self::Refused(why), report),
                RunError::Stopped { stage, why, report } => (Self::Stopped(*stage, why), report),
            },
        }
    }
}

/// The report of a run or of a plan.
pub fn run(result: &Result<RunReport, RunError>, frame: &Frame<'_>) -> String {
    let (end, report) = End::of(result);
    let mut out = Page::new(frame.screen);
    heading(&mut out, report, frame);
    gate(&mut out, report, frame.detail);
    match &report.plan {
        // What was planned is of no interest once it is known what came of it.
        Some(_) if frame.purpose == Purpose::Change && !report.outcomes.is_empty() => {
            objects(&mut out, report.outcomes.iter().map(Shown::from), Tense::Past, frame.detail);
        }
        Some(plan) => {
            objects(&mut out, plan.steps.iter().map(Shown::from), Tense::Future, frame.detail);
            nodes(&mut out, plan, frame.detail);
            people(&mut out, plan, frame.detail);
        }
        None => {}
    }
    rights(&mut out, report);
    prepulled(&mut out, report);
    catalogue(&mut out, report, frame.detail);
    verified(&mut out, report, frame.detail);
    meanwhile(&mut out, report);
    if !report.findings.is_empty() {
        out.section("Findings");
        out.text.push_str(findings(&report.findings, frame.texts, frame.screen).trim_end());
        out.text.push('\n');
    }
    last(&mut out, report, end, frame);
    out.text
}

fn heading(out: &mut Page, report: &RunReport, frame: &Frame<'_>) {
    let title = title(report);
    let what = match (frame.action, report.from.is_some()) {
        (Action::Upgrade, true) => "upgrade of",
        (Action::Upgrade, false) => "installation on",
        (Action::Rollback, _) => "rollback of",
        (Action::Uninstall, _) => "removal from",
    };
    let what = if frame.purpose == Purpose::Change { what.to_owned() } else { format!("plan of the {what}") };
    out.led(STRONG, &title, &format!(" · {what} {}", frame.place));
}

/// `scantling 2026.1 → 2026.2`.
fn title(report: &RunReport) -> String {
    match report.from.as_ref().filter(|from| **from != report.version) {
        _ if report.version.is_empty() => "the platform".to_owned(),
        Some(from) => format!("{} {from} → {}", report.release, report.version),
        None => format!("{} {}", report.release, report.version),
    }
}

fn gate(out: &mut Page, report: &RunReport, detail: Detail) {
    if report.gate.is_empty() {
        return;
    }
    out.section("Gate");
    let passing = report.gate.iter().filter(|verdict| verdict.passes).count();
    let all = report.gate.len();
    let text = format!("{passing} of {} can be pulled", count(all, "reference"));
    let mark = if passing == all { paint(GOOD, "passed ") } else { paint(BAD, "refused ") };
    out.marked(2, &mark, 8, &text);
    // Those that cannot be pulled are among the findings, with their places.
    for verdict in report.gate.iter().filter(|_| detail == Detail::All) {
        out.put(4, 2, &format!("{}: {}", verdict.reference, verdict.verdict));
    }
}

/// Rights that are missing, each with the command that grants it.
fn rights(out: &mut Page, report: &RunReport) {
    if report.missing_rights.is_empty() {
        return;
    }
    out.section("Rights");
    for missing in &report.missing_rights {
        out.marked(2, &format!("{} ", paint(BAD, "✗")), 2, &missing.what);
        out.put(4, 2, &missing.grant);
    }
}

fn prepulled(out: &mut Page, report: &RunReport) {
    let given: Vec<(&String, usize)> =
        report.prepulled.iter().map(|(node, images)| (node, images.len())).filter(|(_, n)| *n > 0).collect();
    if given.is_empty() {
        return;
    }
    out.section("Nodes");
    for (node, images) in given {
        let them = if images == 1 { "it" } else { "them" };
        out.put(2, 2, &format!("{node}: {}, brought before anything needed {them}", count(images, "image")));
    }
}

fn catalogue(out: &mut Page, report: &RunReport, detail: Detail) {
    if report.catalogue.is_empty() {
        return;
    }
    out.section("Catalogue");
    for entry in &report.catalogue {
        let wrong: Vec<_> = entry.claims.iter().filter(|claim| !claim.holds).collect();
        let claims = match (entry.claims.len(), wrong.len()) {
            (0, _) => String::new(),
            (all, 0) => format!(", {} as its layers say", count(all, "version")),
            (all, bad) => {
                format!(", {bad} of {} not as its layers say", count(all, "version"))
            }
        };
        out.put(2, 2, &format!("{}: {}{claims}", entry.name, shortened(&entry.image)));
        for claim in entry.claims.iter().filter(|claim| detail == Detail::All || !claim.holds) {
            let found = claim.found.as_deref().unwrap_or("absent");
            let said = if claim.holds { String::new() } else { format!(", said to be {}", claim.claimed) };
            out.put(4, 2, &format!("{} {found}{said}", claim.name));
        }
    }
}

fn verified(out: &mut Page, report: &RunReport, detail: Detail) {
    if report.verified.is_empty() {
        return;
    }
    out.section("Running");
    let mut answers: BTreeMap<&str, usize> = BTreeMap::new();
    for container in &report.verified {
        *answers.entry(&container.answer).or_default() += 1;
    }
    for (answer, number) in &answers {
        let containers = count(*number, "container");
        let text = match (*answer, *number) {
            ("same", 1) => format!("{containers} runs what the release says"),
            ("same", _) => format!("{containers} run what the release says"),
            ("different", 1) => format!("{containers} runs something else"),
            ("different", _) => format!("{containers} run something else"),
            (other, _) => format!("{containers} {other}"),
        };
        out.put(2, 2, &text);
    }
    for container in report.verified.iter().filter(|it| detail == Detail::All || it.answer == "different") {
        out.put(
            4,
            2,
            &shortened(&format!(
                "{} {}: {}, wanted {}, runs {}",
                container.pod, container.container, container.answer, container.wanted, container.running
            )),
        );
    }
}

/// What others did, and what the run did about it.
fn meanwhile(out: &mut Page, report: &RunReport) {
    if report.meanwhile.is_empty() {
        return;
    }
    out.section("Meanwhile");
    for each in &report.meanwhile {
        out.put(2, 4, &format!("{}: {}; {}", each.object, each.what, each.did));
    }
}

/// What happened, and what to do next.
fn last(out: &mut Page, report: &RunReport, end: End<'_>, frame: &Frame<'_>) {
    out.raw(0, "");
    let (style, word, text, next) = match end {
        End::Done => {
            let (style, word, text) = done(report, frame);
            (style, word, text, String::new())
        }
        End::Refused(why) => (BAD, "refused:", why.to_owned(), after_refusal(frame)),
        End::Stopped(stage, why) => {
            (BAD, "stopped:", format!("in stage {stage}: {why}"), after_stop(report, frame))
        }
    };
    let hang = word.len() + 1;
    out.marked(0, &format!("{} ", paint(style, word)), hang, &shortened(&text));
    if !next.is_empty() {
        out.put(hang, 0, &next);
    }
}

fn done(report: &RunReport, frame: &Frame<'_>) -> (Style, &'static str, String) {
    let errors = report.findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let warnings = report.findings.iter().filter(|finding| finding.severity == Severity::Warning).count();
    let look: Vec<String> = [(errors, "error"), (warnings, "warning")]
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, what)| count(number, what))
        .collect();
    let look = if look.is_empty() { String::new() } else { format!("; see {} above", look.join(" and ")) };
    let style = if errors > 0 { BAD } else { GOOD };
    if frame.purpose != Purpose::Change {
        return (style, "plan:", planned(report, frame) + &look);
    }
    let title = format!("{} {}", report.release, report.version);
    let text = match (frame.action, report.writes) {
        (Action::Uninstall, 0) => "there was nothing to remove".to_owned(),
        (Action::Uninstall, writes) => {
            let stays = report.outcomes.iter().filter(|ended| ended.outcome != Outcome::Pruned).count();
            let but = match stays {
                0 => String::new(),
                1 => ", 1 object stays, as said above".to_owned(),
                stays => format!(", {stays} objects stay, as said above"),
            };
            format!("the platform is gone{but} ({})", count(writes, "write"))
        }
        (_, 0) => format!("the cluster has {title} already; nothing was written"),
        (_, writes) => format!("the cluster has {title} ({})", count(writes, "write")),
    };
    (style, "done:", text + &look)
}

fn planned(report: &RunReport, frame: &Frame<'_>) -> String {
    let steps = report.plan.iter().flat_map(|plan| &plan.steps);
    let number = steps.filter(|step| step.writes()).count();
    let next =
        if frame.purpose == Purpose::Plan { format!("; `{}` does it", frame.command) } else { String::new() };
    match (frame.action, number) {
        (Action::Uninstall, 0) => "there is nothing to remove".to_owned(),
        (Action::Uninstall, _) => format!("{} would be removed{next}", count(number, "object")),
        (_, 0) => "every object is as the release wants it".to_owned(),
        (_, _) => format!("{} would be written, nothing has been{next}", count(number, "object")),
    }
}

fn after_refusal(frame: &Frame<'_>) -> String {
    match frame.purpose {
        Purpose::Change => format!("nothing was written; mend it and run `{}` again", frame.command),
        Purpose::Plan | Purpose::Question => {
            format!("nothing was written; `{}` would stop here", frame.command)
        }
    }
}

fn after_stop(report: &RunReport, frame: &Frame<'_>) -> String {
    let back = match (frame.action, &report.from) {
        (Action::Upgrade, Some(_)) => ", `scantling rollback` goes back",
        _ => "",
    };
    let written = count(report.writes, "write");
    // Of the last ones no answer may have come.
    let (written, when) = match report.cut_off {
        None => (written, ""),
        Some(CutOff::Unreachable) => (format!("at least {written}"), "when the cluster answers again, "),
        Some(CutOff::Unauthenticated) => {
            (format!("at least {written}"), "with credentials that are accepted, ")
        }
        Some(CutOff::Forbidden) => (written, "with the right that is missing, "),
    };
    format!("what is written stays ({written}); {when}`{}` continues the run{back}", frame.command)
}
