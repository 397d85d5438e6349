//! What is done about the platform's release, and what its status says.

use std::collections::{BTreeMap, BTreeSet};

use scantling_observed::{Observed, PlatformRun, PlatformStatus};
use scantling_reconcile::{
    Action, Context, Evidence, KnownImages, LastRun, Next, Outcome, PLATFORM, PlatformFacts, Promise,
    RunKind, next,
};
use scantling_reconcile::{LastUses, Met};
use serde_json::{Value, json};

fn platform(spec: &Value, approved: Option<&str>) -> Observed {
    let annotations = approved.map(|version| json!({"scantling.dev/approved-release": version}));
    Observed::from_objects([json!({
        "apiVersion": "scantling.dev/v1alpha1", "kind": "Platform",
        "metadata": {"name": "platform", "uid": "u", "generation": 2, "annotations": annotations},
        "spec": spec,
    })])
    .unwrap()
}

fn wants(version: &str) -> Value {
    json!({"release": {"version": version}})
}

fn facts(installed: Option<&str>, stored: &[&str]) -> PlatformFacts {
    PlatformFacts {
        installed: installed.map(ToOwned::to_owned),
        stored: stored.iter().map(|version| (*version).to_owned()).collect::<BTreeSet<_>>(),
        ..PlatformFacts::default()
    }
}

fn begun(version: &str, holder: &str) -> PlatformRun {
    PlatformRun {
        version: version.to_owned(),
        stage: "apply".to_owned(),
        started: "2026-01-01T00:00:00Z".to_owned(),
        holder: holder.to_owned(),
    }
}

fn ended(kind: RunKind, version: &str, from: &str, outcome: Outcome) -> LastRun {
    let promises = BTreeMap::from([(
        Promise::Pullable,
        Evidence { holds: Some(true), text: "5 of 5 references, asked from a pod".to_owned() },
    )]);
    let ended = "2026-11-30T13:05:00Z".to_owned();
    LastRun { kind, version: version.to_owned(), from: Some(from.to_owned()), outcome, ended, promises }
}

fn stopped() -> Outcome {
    Outcome::Stopped { stage: "apply".to_owned(), why: "it does not roll out".to_owned() }
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn what_is_to_be_done() {
    let text = str::to_owned;
    let both = ["2026.1", "2026.2"];
    let with = |change: &dyn Fn(&mut PlatformFacts)| {
        let mut facts = facts(Some("2026.1"), &both);
        change(&mut facts);
        facts
    };
    let rollback = json!({"release": {"version": "2026.2"}, "onFailure": "rollback"});
    let manual = json!({"release": {"version": "2026.2"}, "approval": "manual"});
    let run = |begun| Next::Run { version: text("2026.2"), begun };
    let back = Next::Rollback { to: text("2026.1"), from: text("2026.2") };
    let refused = Outcome::Refused { why: "an image is absent".to_owned() };
    for (what, spec, approved, facts, expected) in [
        ("nothing is wanted", json!({}), None, facts(None, &[]), Next::Rest),
        ("an empty version", wants(""), None, facts(None, &[]), Next::Rest),
        ("it is there", wants("2026.1"), None, with(&|_| {}), Next::Rest),
        ("another one is wanted", wants("2026.2"), None, with(&|_| {}), run(false)),
        ("from nothing", wants("2026.2"), None, facts(None, &both), run(false)),
        (
            "its files are not here",
            wants("2026.3"),
            None,
            with(&|_| {}),
            Next::NotStored { version: text("2026.3") },
        ),
        (
            "somebody else is at it",
            wants("2026.2"),
            None,
            with(&|f| f.holder = Some("cli/host/1".to_owned())),
            Next::Watch { holder: text("cli/host/1") },
        ),
        (
            "we are at it",
            wants("2026.2"),
            None,
            with(&|f| f.holder = Some("operator/a".to_owned())),
            run(false),
        ),
        (
            "somebody was killed",
            wants("2026.2"),
            None,
            with(&|f| f.run = Some(begun("2026.2", ""))),
            run(true),
        ),
        (
            "killed while it brought what is there",
            wants("2026.1"),
            None,
            with(&|f| f.run = Some(begun("2026.1", ""))),
            Next::Run { version: text("2026.1"), begun: true },
        ),
        (
            "somebody was killed who went back",
            wants("2026.1"),
            None,
            {
                let mut facts = facts(Some("2026.2"), &both);
                facts.run = Some(begun("2026.1", ""));
                facts.goes_back = true;
                facts
            },
            Next::Rollback { to: text("2026.1"), from: text("2026.2") },
        ),
        (
            "the wish has changed since it was begun",
            wants("2026.1"),
            None,
            with(&|f| f.run = Some(begun("2026.2", ""))),
            Next::Run { version: text("2026.1"), begun: false },
        ),
        ("nobody allowed it", manual.clone(), None, with(&|_| {}), Next::Approve { version: text("2026.2") }),
        (
            "another one was allowed",
            manual.clone(),
            Some("2026.1"),
            with(&|_| {}),
            Next::Approve { version: text("2026.2") },
        ),
        ("it was allowed", manual.clone(), Some("2026.2"), with(&|_| {}), run(false)),
        ("a begun one needs no leave", manual, None, with(&|f| f.run = Some(begun("2026.2", ""))), run(true)),
        (
            "it stopped, and stays",
            wants("2026.2"),
            None,
            with(&|f| {
                f.run = Some(begun("2026.2", ""));
                f.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", stopped()));
            }),
            run(true),
        ),
        (
            "it stopped, and goes back",
            rollback.clone(),
            None,
            with(&|f| {
                f.run = Some(begun("2026.2", ""));
                f.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", stopped()));
            }),
            back.clone(),
        ),
        (
            "killed while it went back",
            rollback.clone(),
            None,
            with(&|f| {
                f.run = Some(begun("2026.1", ""));
                f.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", stopped()));
            }),
            back,
        ),
        (
            "a refusal has nothing to take back",
            rollback.clone(),
            None,
            with(&|f| f.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", refused.clone()))),
            run(false),
        ),
        (
            "the first install stopped: there is nothing to go back to",
            rollback.clone(),
            None,
            {
                let mut facts = facts(None, &both);
                facts.run = Some(begun("2026.2", ""));
                facts.last = Some(ended(RunKind::Upgrade, "2026.2", "", stopped()));
                facts
            },
            run(true),
        ),
        (
            "it went back: not again by itself",
            rollback.clone(),
            None,
            with(&|f| f.last = Some(ended(RunKind::Rollback, "2026.1", "2026.2", Outcome::Succeeded))),
            Next::WasRolledBack { version: text("2026.2") },
        ),
        (
            "it went back, and yet another one is wanted",
            wants("2026.3"),
            None,
            with(&|f| {
                f.stored.insert("2026.3".to_owned());
                f.last = Some(ended(RunKind::Rollback, "2026.1", "2026.2", Outcome::Succeeded));
            }),
            Next::Run { version: text("2026.3"), begun: false },
        ),
        (
            "what is stored is damaged",
            wants("2026.2"),
            None,
            with(&|f| f.problem = Some("part 2 is missing".to_owned())),
            Next::Blocked { why: text("part 2 is missing") },
        ),
        (
            "an odd spec",
            json!({"release": {"version": "2026.2"}, "approval": "perhaps"}),
            None,
            with(&|_| {}),
            Next::Blocked {
                why: text(
                    "the spec cannot be read: unknown variant `perhaps`, expected `automatic` or `manual`",
                ),
            },
        ),
    ] {
        let observed = platform(&spec, approved);
        assert_eq!(next(observed.platform(), &facts, "operator/a"), expected, "{what}");
    }
    assert_eq!(next(None, &facts(None, &both), "operator/a"), Next::Rest);
}

/// A merge patch, as a server does it.
fn merge(live: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else { return *live = patch.clone() };
    if !live.is_object() {
        *live = json!({});
    }
    for (name, value) in fields {
        if value.is_null() {
            live.as_object_mut().unwrap().remove(name);
        } else {
            merge(&mut live[name], value);
        }
    }
}

/// Reconciles once; the status afterwards and the reasons of events.
fn settle(
    observed: &mut Observed,
    facts: &PlatformFacts,
    now: &str,
) -> (Option<PlatformStatus>, Vec<String>) {
    let images = KnownImages::new();
    let context = Context {
        now,
        namespace: "scantling",
        images: &images,
        platform: Some(facts),
        last_uses: &LastUses::new(),
        met: &Met::default(),
    };
    let actions = (PLATFORM.reconcile)(observed, &context);
    let mut written = None;
    let mut events = Vec::new();
    for action in actions {
        match action {
            Action::PatchStatus { status, .. } => {
                let mut object =
                    observed.platform().map(|p| scantling_observed::View::object(p).clone()).unwrap();
                let mut live = object.get("status").cloned().unwrap_or_else(|| json!({}));
                merge(&mut live, &status);
                object["status"] = live;
                observed.insert(object).unwrap();
                written = observed.platform().map(scantling_observed::Platform::status);
            }
            Action::Event { reason, .. } => events.push(reason),
            other => panic!("{other:?}"),
        }
    }
    (written, events)
}

fn condition<'a>(status: &'a PlatformStatus, kind: &str) -> (&'a str, &'a str, &'a str, &'a str) {
    let found = status.conditions.iter().find(|condition| condition.kind == kind).unwrap();
    (&found.status, &found.reason, &found.message, &found.last_transition_time)
}

#[test]
fn the_status_follows_a_run_and_then_rests() {
    let mut observed = platform(&wants("2026.2"), None);
    let mut facts = facts(Some("2026.1"), &["2026.1", "2026.2"]);
    let (status, events) = settle(&mut observed, &facts, "2026-01-01T00:00:00Z");
    let status = status.unwrap();
    assert_eq!(condition(&status, "Ready").1, "Due");
    assert_eq!(
        condition(&status, "Pullable"),
        ("Unknown", "NotChecked", "nobody has looked yet", "2026-01-01T00:00:00Z")
    );
    assert_eq!((status.observed_generation, events.len()), (2, 0));

    facts.run = Some(begun("2026.2", "cli/laptop/7"));
    facts.holder = Some("cli/laptop/7".to_owned());
    let (status, events) = settle(&mut observed, &facts, "2026-01-01T00:01:00Z");
    let status = status.unwrap();
    assert_eq!(
        condition(&status, "Upgrading"),
        ("True", "Running", "2026.1 → 2026.2: stage apply, done by cli/laptop/7", "2026-01-01T00:01:00Z")
    );
    assert_eq!(condition(&status, "Ready").3, "2026-01-01T00:00:00Z");
    assert_eq!(events, ["Running"]);

    facts.run = Some(begun("2026.2", ""));
    facts.holder = None;
    let (status, _) = settle(&mut observed, &facts, "2026-01-01T00:02:00Z");
    assert_eq!(condition(&status.unwrap(), "Upgrading").1, "Waiting");

    facts.run = None;
    facts.installed = Some("2026.2".to_owned());
    facts.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", Outcome::Succeeded));
    let (status, events) = settle(&mut observed, &facts, "2026-01-01T00:03:00Z");
    let status = status.unwrap();
    assert_eq!(condition(&status, "Ready").0, "True");
    assert_eq!(
        condition(&status, "Pullable").2,
        "as of the last run, which ended 2026-11-30T13:05:00Z: 5 of 5 references, asked from a pod"
    );
    assert_eq!((status.run, events), (None, vec!["Settled".to_owned(), "NoRun".to_owned()]));

    let (status, events) = settle(&mut observed, &facts, "2026-02-01T00:00:00Z");
    assert_eq!((status, events.len()), (None, 0), "a settled platform is not written to");
}

#[test]
fn what_went_wrong_is_said_with_the_way_out() {
    let mut gone_back = facts(Some("2026.1"), &["2026.1", "2026.2"]);
    gone_back.last = Some(ended(RunKind::Rollback, "2026.1", "2026.2", Outcome::Succeeded));
    gone_back.rolled_back_because = Some("it does not roll out".to_owned());
    let mut halted = facts(Some("2026.1"), &["2026.2"]);
    halted.last = Some(ended(RunKind::Upgrade, "2026.2", "2026.1", stopped()));
    for (spec, facts, reason, part) in [
        (wants("2026.2"), facts(None, &[]), "ReleaseNotStored", "`scantling upgrade RELEASE` stores"),
        (wants("2026.2"), gone_back, "RolledBack", "(it does not roll out); write another version"),
        (wants("2026.2"), halted, "RunStopped", "2026.2 stopped in stage apply: it does not roll out"),
        (json!({"approval": "perhaps"}), facts(None, &[]), "Blocked", "unknown variant `perhaps`"),
    ] {
        let mut observed = platform(&spec, None);
        let (status, events) = settle(&mut observed, &facts, "2026-01-01T00:00:00Z");
        let status = status.unwrap();
        let (is, why, message, _) = condition(&status, "Degraded");
        assert_eq!((is, why), ("True", reason));
        assert!(message.contains(part), "{message}");
        assert_eq!(condition(&status, "Ready").0, "False");
        assert_eq!(events, [reason]);
    }
    let waiting = json!({"release": {"version": "2026.2"}, "approval": "manual"});
    let mut observed = platform(&waiting, None);
    let (status, _) = settle(&mut observed, &facts(Some("2026.1"), &["2026.2"]), "2026-01-01T00:00:00Z");
    let status = status.unwrap();
    let (_, why, message, _) = condition(&status, "Ready");
    assert_eq!(why, "WaitsForApproval");
    assert!(message.ends_with("kubectl annotate platform platform scantling.dev/approved-release=2026.2"));
}

#[test]
fn words_of_any_length_fit() {
    let mut facts = facts(None, &[]);
    facts.problem = Some("é".repeat(60_000));
    let mut observed = platform(&wants("1"), None);
    let (status, _) = settle(&mut observed, &facts, "2026-01-01T00:00:00Z");
    assert!(condition(&status.unwrap(), "Degraded").2.len() <= 1030);
}
