//! What a cluster has of the platform, and what has been done to it.

use scantling_plan::{Counts, ForeignField};
use scantling_run::{Action, Ended, Installed, OpenRun, PastRun, Status};

use crate::page::{Page, shortened};
use crate::style::{BAD, FAINT, GOOD, NOTED, RISKY, STRONG, Screen, count, paint};

/// Objects with trouble that are named; JSON has all of them.
const NAMED: usize = 20;

/// Whether somebody has to do something.
pub fn needs_somebody(status: &Status) -> bool {
    match (&status.open, &status.holder) {
        // What is missing or does not work yet is what the run is about.
        (Some(_), Some(_)) => false,
        (Some(_), None) => true,
        (None, _) => trouble(status) > 0 || status.lost.is_some(),
    }
}

/// How many objects are not as the release wants them.
fn trouble(status: &Status) -> usize {
    status.missing.len() + status.unhealthy.len() + status.edited.len()
}

/// The report of `scantling status`.
pub fn status(status: &Status, place: &str, screen: Screen) -> String {
    let mut out = Page::new(screen);
    match &status.installed {
        Some(installed) => {
            out.led(STRONG, &format!("{} {}", installed.release, installed.version), &format!(" on {place}"));
            let objects = count(installed.objects, "object");
            out.put(
                2,
                2,
                &match trouble(status) {
                    0 => format!("{objects}: all there and working"),
                    _ => format!(
                        "{objects}: {} missing, {} not working{}",
                        status.missing.len(),
                        status.unhealthy.len(),
                        match status.edited.len() {
                            0 => String::new(),
                            edited => format!(", {edited} edited"),
                        }
                    ),
                },
            );
        }
        None => out.led(STRONG, "nothing installed", &format!(" by Scantling on {place}")),
    }
    let missing = status.missing.iter().map(|key| format!("{key}: is not there"));
    let unhealthy = status.unhealthy.iter().map(|it| format!("{}: {}", it.key, it.why));
    let edited = status.edited.iter().flat_map(|it| {
        it.fields.iter().map(|field| format!("edited: {} {}", it.key, field_and_owners(field)))
    });
    let trouble: Vec<String> = missing.chain(unhealthy).chain(edited).collect();
    for line in trouble.iter().take(NAMED) {
        out.marked(4, &format!("{} ", paint(BAD, "✗")), 2, &shortened(line));
    }
    if trouble.len() > NAMED {
        out.put(4, 2, &format!("and {} more (--output json has all)", trouble.len() - NAMED));
    }
    let left = status.left.iter().flat_map(|it| {
        it.fields.iter().map(|field| {
            let why = match field.rule {
                Some(_) => "changed, and kept by the release's rules",
                None => "kept, since the release says nothing of it",
            };
            format!("{} {}: {why}", it.key, field_and_owners(field))
        })
    });
    let left: Vec<String> = left.collect();
    for line in left.iter().take(NAMED) {
        out.marked(4, &format!("{} ", paint(NOTED, "·")), 2, &shortened(line));
    }
    if left.len() > NAMED {
        out.put(4, 2, &format!("and {} more kept (--output json has all)", left.len() - NAMED));
    }
    open_run(&mut out, status);
    if let Some(last) = &status.last {
        out.section("Last run");
        one_run(&mut out, last);
    }
    end(&mut out, status);
    out.text
}

/// `.rules (kubectl-edit)`: a field and those who own it.
fn field_and_owners(field: &ForeignField) -> String {
    let owners = if field.owners.is_empty() { "nobody's".to_owned() } else { field.owners.join(", ") };
    format!("{} ({owners})", field.field)
}

fn open_run(out: &mut Page, status: &Status) {
    let Some(open) = &status.open else { return };
    out.section("Run");
    let what = format!("{} of {} {}", open.action, open.release, open.version);
    match &status.holder {
        Some(holder) => {
            out.marked(
                2,
                &format!("{} ", paint(NOTED, "going on")),
                9,
                &format!("{what}, begun {}, in stage {}, by {holder}", when(&open.started), open.reached),
            );
        }
        None => {
            out.marked(
                2,
                &format!("{} ", paint(BAD, "stopped")),
                8,
                &format!(
                    "{what}, begun {}, in stage {}, by {}{}",
                    when(&open.started),
                    open.reached,
                    open.holder,
                    if open.paused { ", where a person stopped it: the operator does not go on" } else { "" }
                ),
            );
        }
    }
}

/// What happened and what to do next.
fn end(out: &mut Page, status: &Status) {
    out.raw(0, "");
    let others: Vec<&str> = status
        .kept
        .iter()
        .map(String::as_str)
        .filter(|version| status.installed.as_ref().is_none_or(|it| it.version != *version))
        .collect();
    // By name: which one was there before is not always known, and after a rollback it is the newer one.
    let back: Vec<String> = others
        .iter()
        .map(|version| format!("; `scantling rollback {version}` brings {version} back"))
        .collect();
    let back = back.concat();
    let (style, word, text) = match (&status.open, &status.holder, &status.installed) {
        (Some(_), Some(_), _) => {
            (NOTED, "going on:", "a run is under way; ask again to see how far it is".to_owned())
        }
        (Some(open), None, installed) => (BAD, "stopped:", after_stop(open, installed.as_ref())),
        (None, _, None) if let Some(what) = &status.lost => (
            BAD,
            "damaged:",
            format!(
                "the state of what is installed is gone ({what}); `scantling upgrade RELEASE` with the installed release makes it anew"
            ),
        ),
        (None, _, None) => (NOTED, "nothing:", "`scantling upgrade RELEASE` installs a release".to_owned()),
        (None, _, Some(_)) if needs_somebody(status) => (
            BAD,
            "trouble:",
            if status.edited.is_empty() {
                format!(
                    "mend what is named above, or run the upgrade again, which brings back what is missing{back}"
                )
            } else {
                // What others have changed stops an upgrade.
                format!(
                    "undo what was edited, or let the release's `ownership` say whose it is, and run the upgrade again; `scantling plan RELEASE` tells what that does{back}"
                )
            },
        ),
        (None, _, Some(_)) if let Some(why) = &status.uncompared => (
            NOTED,
            "fine so far:",
            format!("all is there and works; what was edited was not looked for, since {why}{back}"),
        ),
        (None, _, Some(_)) => {
            let but = if status.left.is_empty() { "" } else { ", but for what it leaves to others" };
            (GOOD, "fine:", format!("the cluster is as the release wants it{but}{back}"))
        }
    };
    out.marked(0, &format!("{} ", paint(style, word)), word.len() + 1, &text);
}

/// What continues a run, and what goes back.
fn after_stop(open: &OpenRun, installed: Option<&Installed>) -> String {
    let again = match open.action {
        Action::Upgrade => {
            format!("`scantling upgrade` with {} {} continues the run", open.release, open.version)
        }
        Action::Rollback => format!("`scantling rollback {}` continues the run", open.version),
        Action::Uninstall => "`scantling uninstall` continues the run".to_owned(),
    };
    match installed {
        Some(installed) if open.action == Action::Upgrade && installed.version != open.version => {
            format!("{again}, `scantling rollback` goes back to {}", installed.version)
        }
        _ => again,
    }
}

/// The report of `scantling history`.
pub fn history(runs: &[PastRun], place: &str, screen: Screen) -> String {
    let mut out = Page::new(screen);
    if runs.is_empty() {
        out.put(
            0,
            2,
            &format!("no run has changed {place} yet; `scantling upgrade RELEASE` installs a release"),
        );
        return out.text;
    }
    out.led(STRONG, &count(runs.len(), "run"), &format!(" on {place}, the newest first"));
    for run in runs {
        out.raw(0, "");
        one_run(&mut out, run);
    }
    out.text
}

fn one_run(out: &mut Page, run: &PastRun) {
    let versions = match &run.from {
        Some(from) if *from != run.version => format!("{from} → {}", run.version),
        _ => run.version.clone(),
    };
    let (style, word) = match run.outcome {
        Ended::Finished => (GOOD, "finished"),
        Ended::Stopped => (BAD, "stopped "),
    };
    out.marked(
        2,
        &format!("{} {} ", paint(FAINT, &when(&run.ended)), paint(style, word)),
        // Year to minute with its zone, the word, and a blank behind each.
        when(&run.ended).chars().count() + word.len() + 2,
        &format!("{} {} {versions}", run.action, run.release),
    );
    let writes = count(run.writes, "write");
    out.put(4, 2, &format!("{}{writes}, by {}", counts(&run.counts), run.holder));
    if let Some(why) = &run.why {
        out.marked(4, &format!("{} ", paint(RISKY, "why")), 4, &shortened(why));
    }
}

/// `2 created, 3 updated, `: what there was of.
fn counts(counts: &Counts) -> String {
    let Counts { created, updated, replaced, adopted, unchanged, kept, conflicts, pruned } = *counts;
    [
        (created, "created"),
        (updated, "updated"),
        (replaced, "replaced"),
        (adopted, "adopted"),
        (unchanged, "unchanged"),
        (kept, "kept"),
        (conflicts, "in conflict"),
        (pruned, "removed"),
    ]
    .into_iter()
    .filter(|(number, _)| *number > 0)
    .fold(String::new(), |text, (number, word)| format!("{text}{number} {word}, "))
}

/// `2026-11-30 13:10 UTC` of a time as the cluster keeps it; anything else as it is.
fn when(rfc3339: &str) -> String {
    match rfc3339.parse::<jiff::Timestamp>() {
        Ok(time) => {
            let text = time.to_string();
            let minute = text.get(..16).map(|minute| minute.replace('T', " "));
            minute.map_or(text, |minute| format!("{minute} UTC"))
        }
        Err(_) => rfc3339.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::when;

    #[test]
    fn times_are_told_to_the_minute() {
        assert_eq!(when("2026-11-30T13:10:59Z"), "2026-11-30 13:10 UTC");
        assert_eq!(when("2026-11-30T13:10:59.5+01:00"), "2026-11-30 12:10 UTC");
        assert_eq!(when("yesterday"), "yesterday");
    }
}
