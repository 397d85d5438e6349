//! The report of a rehearsal, made to be read from top to bottom.

use std::collections::BTreeMap;

use scantling_finding::Severity;
use scantling_rehearse::people::{ModelSeen, NotebookOutcome, NotebookSeen};
use scantling_rehearse::promises::{Checked, Promise, Verdict};
use scantling_rehearse::record::{Actor, Line, Said, clock};
use scantling_rehearse::{Attempt, Rehearsal, Way};
use scantling_release::Change;
use scantling_run::What;

use crate::objects::{foreign, is_a_choice};
use crate::page::{Page, one_finding, one_line, pair, shortened};
use crate::progress::{Progress, Weight, stage};
use crate::style::{BAD, FAINT, GOOD, NOTED, RISKY, STRONG, Screen, count, paint, safe};

/// Evidence shown for one promise; the JSON document has all of it.
const EVIDENCE_SHOWN: usize = 6;

/// The whole report.
pub fn rehearsal(rehearsal: &Rehearsal, screen: Screen) -> String {
    let mut out = Page::new(screen);
    heading(&mut out, rehearsal);
    release(&mut out, rehearsal);
    gate(&mut out, rehearsal);
    plan(&mut out, rehearsal);
    run(&mut out, rehearsal);
    people(&mut out, rehearsal);
    promises(&mut out, rehearsal);
    end(&mut out, rehearsal);
    out.text
}

/// One line of the story, as a progress display shows it.
pub fn story_line(line: &Line) -> String {
    format!("{}{}", before_text(line), safe(&line.text))
}

/// When and who.
fn before_text(line: &Line) -> String {
    let style = match line.actor {
        Actor::Vendor => RISKY,
        Actor::Scantling => NOTED,
        Actor::Admin => STRONG,
        Actor::Person(_) => GOOD,
    };
    let actor = format!("{:<9}", one_line(&line.actor.to_string()));
    format!("{} {} ", paint(FAINT, &clock(line.at_ms)), paint(style, &safe(&actor)))
}

fn heading(out: &mut Page, rehearsal: &Rehearsal) {
    let mut how = match (rehearsal.way, rehearsal.fresh) {
        (Way::Scantling, false) => "upgraded by Scantling".to_owned(),
        (Way::Scantling, true) => "installed by Scantling on a fresh cluster".to_owned(),
        (Way::AsShipped, false) => "upgraded as the vendor shipped it".to_owned(),
        (Way::AsShipped, true) => "installed as the vendor shipped it, on a fresh cluster".to_owned(),
    };
    if rehearsal.variant.is_some() {
        how.push_str(", with a workaround");
    }
    out.led(STRONG, &rehearsal.title, &format!(" · {how} · seed {}", rehearsal.seed));
    out.put(0, 0, &rehearsal.about);
    if let Some(variant) = &rehearsal.variant {
        out.put(0, 0, &format!("Workaround {}: {}.", variant.name, variant.about));
    }
}

fn release(out: &mut Page, rehearsal: &Rehearsal) {
    let release = &rehearsal.release;
    out.section("Release");
    let from = release.from.as_ref().map(|from| format!("{from} → ")).unwrap_or_default();
    out.put(
        2,
        2,
        &format!(
            "{from}{}: {}, {}, {} built on the cluster",
            release.title,
            count(release.objects, "object"),
            count(release.references, "image reference"),
            count(release.builds, "image"),
        ),
    );
    let moved: Vec<_> = release
        .changes
        .iter()
        .filter_map(|change| match change {
            Change::SameName { name, changed, through, .. } => Some((name, changed, through)),
            _ => None,
        })
        .collect();
    if moved.is_empty() {
        return;
    }
    out.put(2, 2, &format!("{} the same name for other content:", keeps(moved.len())));
    for (name, changed, through) in moved {
        let mut parts: Vec<String> = changed.iter().map(scantling_release::Changed::text).collect();
        if let Some(base) = through.first() {
            parts.push(format!("rebuilt on {base}"));
        }
        out.put(4, 4, &format!("{name}: {}", parts.join(", ")));
    }
}

fn keeps(number: usize) -> String {
    if number == 1 { "1 image keeps".to_owned() } else { format!("{number} images keep") }
}

fn gate(out: &mut Page, rehearsal: &Rehearsal) {
    out.section("Gate");
    for attempt in &rehearsal.attempts {
        let Some(report) = &attempt.report else {
            out.put(2, 2, "none: the vendor's script asks no registry before it writes");
            continue;
        };
        let pullable = report.gate.iter().filter(|verdict| verdict.passes).count();
        let text = format!(
            "{}: {} of {} can be pulled",
            attempt.release,
            pullable,
            count(report.gate.len(), "reference")
        );
        if attempt.refused {
            out.marked(
                2,
                &format!("{} ", paint(BAD, "refused")),
                8,
                &format!("{text}; {} writes", attempt.writes),
            );
            for finding in report.findings.iter().filter(|finding| finding.severity == Severity::Error) {
                one_finding(out, finding);
            }
        } else {
            out.marked(2, &format!("{} ", paint(GOOD, "passed")), 7, &text);
        }
    }
}

fn plan(out: &mut Page, rehearsal: &Rehearsal) {
    out.section("Plan");
    let mut any = false;
    for attempt in &rehearsal.attempts {
        let Some(plan) = attempt.report.as_ref().and_then(|report| report.plan.as_ref()) else { continue };
        any = true;
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for step in &plan.steps {
            *counts.entry(step.outcome.to_string()).or_default() += 1;
        }
        let counts: Vec<String> =
            counts.iter().map(|(outcome, number)| format!("{number} {outcome}")).collect();
        out.put(
            2,
            2,
            &format!("{}: {}: {}", attempt.release, count(plan.steps.len(), "object"), counts.join(", ")),
        );
        for step in &plan.steps {
            for (what, fields) in
                [("keeps", &step.kept), ("takes", &step.taken), ("stops at", &step.conflicts)]
            {
                // What an API server filled in was never anybody's choice.
                for field in fields.iter().filter(|field| what != "keeps" || is_a_choice(&field.field)) {
                    out.put(4, 4, &format!("{}: {}", step.key, foreign(what, field)));
                }
            }
        }
    }
    if !any {
        let text = match rehearsal.way {
            Way::AsShipped => "none: the script decides call by call",
            Way::Scantling => "none was made: the gate refused",
        };
        out.put(2, 2, text);
    }
}

/// What happened, told as a run tells it: things of the same kind together. The JSON document has every line.
fn run(out: &mut Page, rehearsal: &Rehearsal) {
    out.section("Run");
    let mut progress = Progress::new();
    let mut story = rehearsal.story.iter().peekable();
    while let Some(line) = story.next() {
        match &line.said {
            Said::Run(event) => {
                if matches!(event.what, What::Started { .. }) {
                    progress = Progress::new();
                }
                for news in progress.news(event) {
                    if news.weight != Weight::Now {
                        let mark = format!("{}{}", before_text(line), stage(news.stage));
                        out.marked(2, &mark, 32, &news.text());
                    }
                }
            }
            Said::Write => {
                let mut writes = 1;
                while story.next_if(|next| next.said == Said::Write).is_some() {
                    writes += 1;
                }
                out.marked(2, &before_text(line), 22, &format!("controllers: {}", count(writes, "write")));
            }
            Said::Word => {
                let mut times = 1;
                while story.next_if(|next| next.actor == line.actor && next.text == line.text).is_some() {
                    times += 1;
                }
                let again = if times > 1 { format!(" ({times} times)") } else { String::new() };
                out.marked(2, &before_text(line), 22, &format!("{}{again}", shortened(&line.text)));
            }
        }
    }
    for attempt in &rehearsal.attempts {
        ended(out, attempt);
        let findings = attempt.report.iter().filter(|_| !attempt.refused).flat_map(|report| &report.findings);
        findings.for_each(|finding| one_finding(out, finding));
    }
}

fn ended(out: &mut Page, attempt: &Attempt) {
    let Some(failure) = attempt.failure.as_ref().filter(|_| !attempt.refused) else { return };
    out.marked(2, &format!("{} ", paint(BAD, "stopped")), 8, &format!("{}: {failure}", attempt.release));
}

fn people(out: &mut Page, rehearsal: &Rehearsal) {
    out.section("What people got");
    if rehearsal.notebooks.is_empty() && rehearsal.models.is_empty() {
        out.put(2, 2, "nobody opened or deployed anything");
    }
    for notebook in &rehearsal.notebooks {
        one_notebook(out, notebook);
    }
    for model in &rehearsal.models {
        one_model(out, model);
    }
}

fn one_notebook(out: &mut Page, notebook: &NotebookSeen) {
    let (mark, what) = match notebook.outcome {
        NotebookOutcome::AsPromised if notebook.since_before_upgrade => (paint(GOOD, "✓"), "up to date"),
        NotebookOutcome::AsPromised => (paint(GOOD, "✓"), "as promised"),
        NotebookOutcome::KeptAndMarked => (paint(GOOD, "✓"), "kept running, marked as outdated"),
        NotebookOutcome::KeptUnmarked => (paint(RISKY, "!"), "kept running, outdated, nothing tells"),
        NotebookOutcome::Stale => (paint(BAD, "✗"), "not what the screen promised"),
        NotebookOutcome::ClaimFalse => (paint(BAD, "✗"), "not what the screen says it is"),
        NotebookOutcome::NotRunning => (paint(BAD, "✗"), "does not run"),
    };
    let node = notebook.node.as_deref().unwrap_or("no node");
    out.marked(
        2,
        &format!("{mark} "),
        2,
        &format!("{} · {} on {node}: {what}", notebook.person, notebook.selection),
    );
    let all_hold = notebook.claims.iter().all(|claim| claim.holds);
    if !notebook.claims.is_empty() && !all_hold {
        let said: Vec<String> =
            notebook.claims.iter().map(|claim| format!("{} {}", claim.name, claim.screen)).collect();
        pair(out, "screen", &said.join(", "));
    }
    if !notebook.claims.is_empty() {
        // The screen's words are enough where they are true.
        pair(out, if all_hold { "screen, pod" } else { "pod runs" }, &running(notebook).join(", "));
    }
    let short = |digest: &Option<scantling_image::Digest>| {
        digest.as_ref().map_or("none".to_owned(), scantling_image::Digest::short)
    };
    pair(out, "digest", &format!("wanted {}, running {}", short(&notebook.wanted), short(&notebook.running)));
    if let Some(mark) = &notebook.update_pending {
        pair(out, "mark", mark);
    }
    if let Some(trouble) = &notebook.trouble {
        pair(out, "trouble", &shortened(trouble));
    }
}

/// What the pod holds for each name on the screen, with what advisories say of it.
fn running(notebook: &NotebookSeen) -> Vec<String> {
    let mut runs: Vec<String> = notebook
        .claims
        .iter()
        .map(|claim| format!("{} {}", claim.name, claim.runs.as_deref().unwrap_or("absent")))
        .collect();
    for advisory in &notebook.advisories {
        let claimed = notebook.claims.iter().position(|it| it.name.eq_ignore_ascii_case(&advisory.package));
        match claimed.and_then(|index| runs.get_mut(index)) {
            Some(text) => {
                text.push_str(" (");
                text.push_str(&advisory.note);
                text.push(')');
            }
            None => runs.push(format!("{} {} ({})", advisory.package, advisory.version, advisory.note)),
        }
    }
    runs
}

fn one_model(out: &mut Page, model: &ModelSeen) {
    let (mark, what) =
        if model.serves { (paint(GOOD, "✓"), "answers") } else { (paint(BAD, "✗"), "does not answer") };
    out.marked(
        2,
        &format!("{mark} "),
        2,
        &format!("{} · model {} in {}: {what}", model.person, model.model, model.project),
    );
    if let Some(pod) = &model.pod {
        pair(out, "pod", &format!("{pod} on {}", model.node.as_deref().unwrap_or("no node")));
    }
    if let Some(written) = &model.written {
        pair(out, "image", written);
    }
    if !model.packages.is_empty() {
        pair(out, "pod runs", &model.packages.join(", "));
    }
    if let Some(trouble) = &model.trouble {
        pair(out, "trouble", &shortened(trouble));
    }
}

fn promises(out: &mut Page, rehearsal: &Rehearsal) {
    out.section("Promises");
    let shown = rehearsal.promises.iter().filter(|checked| {
        Promise::SIX.contains(&checked.promise) || rehearsal.must_hold.contains(&checked.promise)
    });
    for checked in shown {
        one_promise(out, checked);
    }
    let excused: Vec<_> =
        rehearsal.comparison.iter().flat_map(|it| &it.differences).filter(|it| it.excused).collect();
    if !excused.is_empty() {
        out.put(2, 2, "Differences from a fresh install that are not the platform's, with their owners:");
        for difference in excused.iter().take(EVIDENCE_SHOWN) {
            let field = difference.field.as_deref().map(|field| format!(" {field}")).unwrap_or_default();
            out.put(4, 4, &format!("{}{field}: {}", difference.object, difference.owner));
        }
        more(out, excused.len());
    }
}

fn one_promise(out: &mut Page, checked: &Checked) {
    let (mark, style, word) = match checked.verdict {
        Verdict::Held => ("✓", GOOD, "held"),
        Verdict::AtRisk => ("!", RISKY, "at risk"),
        Verdict::Broken => ("✗", BAD, "broken"),
        Verdict::Unchecked => ("·", FAINT, "not checked"),
    };
    let label = format!("{} {:<14} {:<11} ", mark, checked.promise.title(), word);
    let text = match checked.verdict {
        Verdict::Held | Verdict::Unchecked => format!("{}: {}", checked.promise.text(), checked.summary),
        _ => format!("{}: not so ({})", checked.promise.text(), checked.summary),
    };
    out.marked(2, &paint(style, &label), 29, &text);
    for line in checked.evidence.iter().take(EVIDENCE_SHOWN) {
        out.put(6, 2, &shortened(line));
    }
    more(out, checked.evidence.len());
}

fn more(out: &mut Page, all: usize) {
    if all > EVIDENCE_SHOWN {
        out.raw(6, &paint(FAINT, &format!("and {} more (--output json has all)", all - EVIDENCE_SHOWN)));
    }
}

fn end(out: &mut Page, rehearsal: &Rehearsal) {
    out.raw(0, "");
    let must: Vec<&Checked> =
        rehearsal.promises.iter().filter(|checked| rehearsal.must_hold.contains(&checked.promise)).collect();
    let named = |verdict: Verdict| -> Vec<&str> {
        must.iter()
            .filter(|checked| checked.verdict == verdict)
            .map(|checked| checked.promise.title())
            .collect()
    };
    let (broken, at_risk, open) = (named(Verdict::Broken), named(Verdict::AtRisk), named(Verdict::Unchecked));
    let mut parts = vec![format!("{} of {} held", named(Verdict::Held).len(), must.len())];
    for (what, names) in [("broken", &broken), ("at risk", &at_risk), ("not checked", &open)] {
        if !names.is_empty() {
            parts.push(format!("{what}: {}", names.join(", ")));
        }
    }
    let text = format!(
        "{} ({}, {})",
        parts.join("; "),
        clock(rehearsal.duration_ms),
        count(rehearsal.events, "event")
    );
    let (style, word) = if broken.is_empty() { (GOOD, "ended well:") } else { (BAD, "went wrong:") };
    out.marked(0, &format!("{} ", paint(style, word)), 12, &text);
}
