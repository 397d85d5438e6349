//! What is said of runs: while they work, when they have ended, and of a cluster that has seen them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;

use jiff::Timestamp;
use scantling_api::ObjectKey;
use scantling_finding::{Finding, Place, codes};
use scantling_plan::{Counts, FieldChange, ForeignField, Outcome, Plan};
use scantling_reconcile::{Forecast, Roll};
use scantling_release::{Rule, Wave};
use scantling_report::findings::Texts;
use scantling_report::objects::Detail;
use scantling_report::progress::{Progress, Weight};
use scantling_report::run::{Frame, Purpose, run};
use scantling_report::status::{history, needs_somebody, status};
use scantling_report::style::Screen;
use scantling_run::{
    Action, CutOff, Edited, Ended, Installed, MissingRight, ObjectOutcome, OpenRun, PastRun, RunError,
    RunEvent, RunReport, Stage, Status, Unhealthy, What,
};

fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::namespaced("apps", "Deployment", "shop", name)
}

fn written(name: &str) -> What {
    What::Object { key: key(name), outcome: Outcome::Updated, cause: String::new() }
}

/// What is said in lines, of events a second apart.
fn lines(events: Vec<(Stage, What)>) -> Vec<String> {
    let mut progress = Progress::new();
    let mut lines = Vec::new();
    for (second, (stage, what)) in (3590..).zip(events) {
        // The first at 0; the others go on an hour later.
        let second = if lines.is_empty() && second == 3590 { 0 } else { second };
        let at = Timestamp::from_second(1_700_000_000 + second).unwrap();
        for news in progress.news(&RunEvent { at, stage, what }) {
            if news.weight != Weight::Now {
                lines.push(plain(&news.line()));
            }
        }
    }
    lines
}

#[test]
fn many_events_are_a_few_lines() {
    let probed = |verdict: &str| What::Probed {
        reference: format!("quay.io/a@sha256:{}", "1".repeat(64)),
        verdict: verdict.to_owned(),
        digest: None,
    };
    let waiting =
        |until: &str| What::Waiting { on: "Deployment shop/web".to_owned(), until: until.to_owned() };
    let said = lines(vec![
        (Stage::Read, What::Started { release: "shop".into(), version: "2".into(), from: Some("1".into()) }),
        (Stage::Gate, probed("ok from here")),
        (Stage::Gate, probed("absent")),
        (Stage::Plan, What::Planned { create: 0, update: 2, replace: 0, adopt: 0, unchanged: 7, prune: 1 }),
        (Stage::Apply, What::Wave { wave: Wave::Workloads, objects: 2 }),
        (Stage::Apply, written("web")),
        (Stage::Apply, written("\u{1b}[31mdb")),
        (Stage::Apply, waiting("0 of 2 pods are available")),
        (Stage::Apply, waiting("1 of 2 pods are available")),
        (Stage::Apply, What::Ready { on: "Deployment shop/web".into(), state: "rolled out".into() }),
        (Stage::Prepull, What::Pulling { node: "n".into(), images: 1 }),
        (Stage::Prepull, What::Pulled { node: "n".into(), image: "quay.io/a@sha256:1".into() }),
        (Stage::Verify, What::Verified { workload: "Deployment shop/web".into(), same: 2, different: 0 }),
        (Stage::Verify, What::Verified { workload: "Deployment shop/db".into(), same: 1, different: 0 }),
        (
            Stage::Prune,
            What::Object {
                key: key("old"),
                outcome: Outcome::Pruned,
                cause: "the release no longer has it".into(),
            },
        ),
        (
            Stage::Prune,
            What::Object { key: key("data"), outcome: Outcome::KeptByUser, cause: "it holds data".into() },
        ),
        (Stage::State, What::Finished { writes: 5 }),
    ]);
    let expected = [
        "00:00 read      shop 1 → 2",
        "59:52 gate      quay.io/a@sha256:111111111111: absent",
        "59:53 gate      1 of 2 references can be pulled",
        "59:53 plan      2 to update, 1 to remove, 7 unchanged",
        "59:57 apply     workloads: 2 updated",
        "59:57 apply     waiting for Deployment shop/web: 0 of 2 pods are available",
        "59:59 apply     Deployment shop/web: rolled out",
        "1:00:00 prepull   n: pulling 1 image",
        "1:00:01 prepull   n: has 1 image",
        "1:00:04 verify    2 workloads: 3 containers run what the release says",
        "1:00:05 prune     kept by user: Deployment shop/data: it holds data",
        "1:00:06 prune     1 kept by user, 1 removed",
        "1:00:06 state     finished",
    ];
    assert_eq!(said, expected);
}

fn report() -> RunReport {
    let mut report = RunReport {
        release: "shop".to_owned(),
        version: "2".to_owned(),
        from: Some("1".to_owned()),
        plan: Some(Plan { release: "shop".to_owned(), version: "2".to_owned(), ..Plan::default() }),
        writes: 3,
        ..RunReport::default()
    };
    let field = |name: &str| FieldChange { field: name.to_owned(), change: scantling_plan::Change::Set };
    for (name, outcome, changes) in [
        ("web", Outcome::Updated, vec![field(".a"), field(".b"), field(".c"), field(".d"), field(".e")]),
        ("old", Outcome::Pruned, Vec::new()),
        ("same", Outcome::Unchanged, Vec::new()),
    ] {
        report.outcomes.push(ObjectOutcome {
            key: key(name),
            outcome,
            cause: if outcome == Outcome::Pruned {
                "the release no longer has it".into()
            } else {
                String::new()
            },
            changes,
            adjusted: Vec::new(),
            kept: Vec::new(),
            taken: Vec::new(),
        });
    }
    report
}

fn told(result: &Result<RunReport, RunError>, action: Action, purpose: Purpose, width: usize) -> String {
    let texts = Texts::new();
    let frame = Frame {
        action,
        purpose,
        place: "prod (https://10.0.0.1:6443)",
        command: "scantling upgrade shop/2",
        texts: &texts,
        detail: Detail::Summary,
        screen: Screen::new(width),
    };
    plain(&run(result, &frame))
}

#[test]
fn the_end_says_what_happened_and_what_to_do_next() {
    let done = told(&Ok(report()), Action::Upgrade, Purpose::Change, 100);
    let expected = "shop 1 → 2 · upgrade of prod (https://10.0.0.1:6443)\n\nObjects\n  3 objects: 1 updated, 1 unchanged, 1 removed\n  \
        ~ updated      Deployment shop/web: .a, .b, .c and 2 more\n  \
        - removed      Deployment shop/old: the release no longer has it\n\ndone: the cluster has shop 2 (3 writes)\n";
    assert_eq!(done, expected);

    let with_warning = || {
        let mut report = report();
        let finding = Finding::new(codes::run::NODE_NOT_PREPARED, "node n is unfit", Place::default());
        report.findings.push(finding);
        report
    };
    let warned = told(&Ok(with_warning()), Action::Upgrade, Purpose::Change, 100);
    assert!(warned.ends_with("done: the cluster has shop 2 (3 writes); see 1 warning above\n"), "{warned}");

    let stopped = RunError::Stopped {
        stage: Stage::Apply,
        why: "Deployment shop/web is not healthy".to_owned(),
        report: Box::new(report()),
    };
    let stopped = told(&Err(stopped), Action::Upgrade, Purpose::Change, 100);
    assert!(
        stopped.ends_with(
            "\nstopped: in stage apply: Deployment shop/web is not healthy\n         what is written stays (3 writes); \
             `scantling upgrade shop/2` continues the run, `scantling\n         rollback` goes back\n"
        ),
        "{stopped}"
    );

    let refused = |purpose| {
        let mut report =
            RunReport { release: "shop".to_owned(), version: "2".to_owned(), ..RunReport::default() };
        report.missing_rights.push(MissingRight {
            what: "patch deployments.apps in namespace shop".to_owned(),
            grant: "kubectl create role …".to_owned(),
        });
        let error = RunError::Refused { why: "1 right is missing".to_owned(), report: Box::new(report) };
        told(&Err(error), Action::Upgrade, purpose, 100)
    };
    let change = refused(Purpose::Change);
    assert!(
        change.contains("Rights\n  ✗ patch deployments.apps in namespace shop\n    kubectl create role …\n"),
        "{change}"
    );
    assert!(
        change.ends_with(
            "refused: 1 right is missing\n         nothing was written; mend it and run `scantling upgrade shop/2` again\n"
        ),
        "{change}"
    );
    assert!(
        refused(Purpose::Plan).ends_with("nothing was written; `scantling upgrade shop/2` would stop here\n")
    );

    let gone = |kept: bool| {
        let mut report = report();
        if !kept {
            report.outcomes.retain(|ended| ended.outcome == Outcome::Pruned);
        }
        told(&Ok(report), Action::Uninstall, Purpose::Change, 100)
    };
    assert!(gone(false).ends_with("done: the platform is gone (3 writes)\n"));
    assert!(gone(true).ends_with("done: the platform is gone, 2 objects stay, as said above (3 writes)\n"));
}

#[test]
fn lines_end_before_the_screen_does() {
    for width in [40, 60, 80, 160] {
        for purpose in [Purpose::Change, Purpose::Plan, Purpose::Question] {
            for line in told(&Ok(report()), Action::Upgrade, purpose, width).lines() {
                assert!(line.chars().count() <= width, "{width}: {line}");
                assert_eq!(line, line.trim_end());
            }
        }
    }
}

fn past() -> PastRun {
    PastRun {
        action: Action::Upgrade,
        release: "shop".to_owned(),
        version: "2".to_owned(),
        from: Some("1".to_owned()),
        started: "2026-11-30T13:00:00Z".to_owned(),
        ended: "2026-11-30T13:05:00Z".to_owned(),
        holder: "cli/host/1/a".to_owned(),
        outcome: Ended::Stopped,
        counts: Counts { updated: 1, pruned: 2, ..Counts::default() },
        writes: 1,
        why: Some("Deployment shop/web is not healthy".to_owned()),
        promises: BTreeMap::new(),
    }
}

#[test]
#[allow(clippy::too_many_lines)] // a table
fn a_cluster_tells_what_somebody_has_to_do() {
    let open = OpenRun {
        paused: false,
        action: Action::Upgrade,
        release: "shop".to_owned(),
        version: "2".to_owned(),
        started: "2026-11-30T13:00:00Z".to_owned(),
        reached: "apply".to_owned(),
        holder: "cli/host/1/a".to_owned(),
    };
    let whole = Status {
        installed: Some(Installed { release: "shop".to_owned(), version: "1".to_owned(), objects: 9 }),
        open: None,
        holder: None,
        last: None,
        kept: vec!["0".to_owned(), "1".to_owned()],
        missing: Vec::new(),
        unhealthy: Vec::new(),
        edited: Vec::new(),
        left: Vec::new(),
        uncompared: None,
        lost: None,
    };
    let edited = |field: &str, rule| {
        let owners = vec!["kubectl-edit".to_owned()];
        vec![Edited { key: key("web"), fields: vec![ForeignField { field: field.to_owned(), owners, rule }] }]
    };
    let unhealthy = vec![Unhealthy { key: key("web"), why: "0 of 1 pods are available".to_owned() }];
    let cases = [
        (
            whole.clone(),
            false,
            "fine: the cluster is as the release wants it; `scantling rollback 0` brings 0 back",
        ),
        (
            Status { edited: edited(".rules", None), ..whole.clone() },
            true,
            "  9 objects: 0 missing, 0 not working, 1 edited\n    ✗ edited: Deployment shop/web .rules (kubectl-edit)\n",
        ),
        (Status { edited: edited(".rules", None), ..whole.clone() }, true, "trouble: undo what was edited"),
        (
            Status { left: edited(".data.size", Some(Rule::Keep)), ..whole.clone() },
            false,
            "    · Deployment shop/web .data.size (kubectl-edit): changed, and kept by the release's rules\n",
        ),
        (
            Status { left: edited(".data.size", None), ..whole.clone() },
            false,
            "fine: the cluster is as the release wants it, but for what it leaves to others; `scantling rollback",
        ),
        (
            Status { uncompared: Some("nobody may read it".to_owned()), ..whole.clone() },
            false,
            "fine so far: all is there and works; what was edited was not looked for",
        ),
        (
            Status { installed: None, lost: Some("release 1 is stored".to_owned()), ..whole.clone() },
            true,
            "damaged: the state of what is installed is gone (release 1 is stored)",
        ),
        (
            Status { unhealthy, missing: vec![key("db")], ..whole.clone() },
            true,
            "  9 objects: 1 missing, 1 not working\n    ✗ Deployment shop/db: is not there\n    ✗ Deployment shop/web: 0 of 1 pods are available\n",
        ),
        (
            Status { open: Some(open.clone()), holder: Some("cli/host/1/a".to_owned()), ..whole.clone() },
            false,
            "going on: a run is under way",
        ),
        (
            Status { open: Some(open.clone()), ..whole.clone() },
            true,
            "stopped: `scantling upgrade` with shop 2 continues the run, `scantling rollback` goes back to 1",
        ),
        (
            Status { open: Some(OpenRun { paused: true, ..open.clone() }), ..whole.clone() },
            true,
            "by cli/host/1/a, where a",
        ),
        (
            Status {
                open: Some(OpenRun { action: Action::Uninstall, ..open }),
                installed: None,
                ..whole.clone()
            },
            true,
            "stopped: `scantling uninstall` continues the run",
        ),
        (
            Status { installed: None, kept: Vec::new(), ..whole },
            false,
            "nothing: `scantling upgrade RELEASE` installs a release",
        ),
    ];
    for (found, needed, said) in cases {
        assert_eq!(needs_somebody(&found), needed, "{found:?}");
        let text = plain(&status(&found, "prod", Screen::new(100)));
        assert!(text.contains(said), "{text}");
    }
    let text = plain(&history(&[past()], "prod", Screen::new(100)));
    let expected = "1 run on prod, the newest first\n\n  2026-11-30 13:05 UTC stopped  upgrade shop 1 → 2\n    \
        1 updated, 2 removed, 1 write, by cli/host/1/a\n    why Deployment shop/web is not healthy\n";
    assert_eq!(text, expected);
}

#[test]
fn a_run_that_was_cut_off_says_what_has_to_be_mended_first() {
    for (cut_off, said) in [
        (None, "what is written stays (3 writes); `c` continues the run, `scantling rollback` goes back"),
        (
            Some(CutOff::Unreachable),
            "what is written stays (at least 3 writes); when the cluster answers again, `c` continues the run",
        ),
        (
            Some(CutOff::Unauthenticated),
            "(at least 3 writes); with credentials that are accepted, `c` continues",
        ),
        (Some(CutOff::Forbidden), "(3 writes); with the right that is missing, `c` continues"),
    ] {
        let report = Box::new(RunReport { cut_off, ..report() });
        let stopped = Err(RunError::Stopped { stage: Stage::Apply, why: "gone".to_owned(), report });
        let frame = Frame {
            action: Action::Upgrade,
            purpose: Purpose::Change,
            place: "prod",
            command: "c",
            texts: &Texts::new(),
            detail: Detail::Summary,
            screen: Screen::new(200),
        };
        let text = plain(&run(&stopped, &frame));
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn a_plan_tells_what_it_means_for_people() {
    let notebook = |name: &str, difference: Option<&str>| scantling_plan::PlannedNotebook {
        namespace: "team".to_owned(),
        name: name.to_owned(),
        selection: "ds:2026".to_owned(),
        running: None,
        wanted: None,
        difference: difference.map(str::to_owned),
        why: "it keeps running".to_owned(),
    };
    let model = |name: &str, roll: Option<Roll>, refused: Option<&str>| Forecast {
        service: ObjectKey::namespaced("serving.kserve.io", "InferenceService", "team", name),
        runtime: Some("ClusterServingRuntime mlserver".to_owned()),
        instead_of: None,
        image: None,
        wanted_image: None,
        difference: Some("another image".to_owned()),
        roll,
        refused: refused.map(str::to_owned),
    };
    let mut notebooks: Vec<_> = (0..7).map(|n| notebook(&format!("lab-{n}"), Some("pandas 2 → 3"))).collect();
    notebooks.push(notebook("other", None));
    let no_room = Roll::Recreate { why: "its claim can be mounted once".to_owned() };
    let plan = Plan {
        notebooks,
        models: vec![
            model("a", Some(Roll::Surge), None),
            model("b", Some(Roll::Surge), None),
            model("c", Some(no_room), None),
            model("d", None, Some("no runtime serves onnx")),
        ],
        on_offer: vec![scantling_plan::OnOffer {
            component: "gpu".to_owned(),
            about: Some("For GPUs.".to_owned()),
            resource: "nvidia.com/gpu".to_owned(),
            nodes: 1,
        }],
        ..Plan::default()
    };
    let report = RunReport { plan: Some(plan), ..RunReport::default() };
    let text = told(&Ok(report), Action::Upgrade, Purpose::Plan, 120);
    for expected in [
        "\nNotebooks\n  team/lab-0, team/lab-1, team/lab-2, team/lab-3, team/lab-4 and 2 more: ds:2026, pandas 2 → 3: it keeps running\n",
        "\n  team/other: ds:2026: it keeps running\n",
        "\n  team/a, team/b: ClusterServingRuntime mlserver, another image: a new pod is ready before an old one goes\n",
        "\n  team/c: ClusterServingRuntime mlserver, another image: old pods go first, nobody answers until the new ones are\n    ready: its claim can be mounted once\n",
        "\n  team/d: not served as it is written: no runtime serves onnx; pods that run stay\n",
        "\nOn offer\n  gpu: For GPUs. 1 node has nvidia.com/gpu; `--with gpu` brings it\n",
    ] {
        assert!(text.contains(expected), "{expected}\n{text}");
    }
}
