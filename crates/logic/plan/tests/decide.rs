//! What happens to one object, case by case. The live side is made with the API's own merge, as a server would.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::{Case, applied, carried_out, changes, kept, step, written};
use scantling_plan::{Change, Outcome};
use serde_json::{Value, json};

#[allow(clippy::needless_pass_by_value)]
fn config(data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c", "namespace": "n"}, "data": data})
}

#[test]
fn what_is_not_there_is_created() {
    let desired = config(json!({"a": "1"}));
    let step = step(&Case { desired: &desired, base: None, live: None, ours: false, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Created);
    assert_eq!(step.body, desired);
}

#[test]
fn what_is_as_it_should_be_is_left_alone() {
    let desired = config(json!({"a": "1"}));
    let live = applied(None, &desired);
    let step =
        step(&Case { desired: &desired, base: Some(&desired), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Unchanged);
    assert!(!step.writes());
}

#[test]
fn a_new_release_moves_its_own_fields_and_drops_what_it_no_longer_has() {
    let base = config(json!({"a": "1", "old": "x", "same": "s"}));
    let live = applied(None, &base);
    let desired = config(json!({"a": "2", "new": "y", "same": "s"}));
    let step =
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Updated);
    assert_eq!(
        changes(&step),
        [
            (".data.a".to_owned(), Change::Set),
            (".data.new".to_owned(), Change::Add),
            (".data.old".to_owned(), Change::Remove),
        ]
    );
    assert_eq!(carried_out(&step, &live)["data"], json!({"a": "2", "new": "y", "same": "s"}));
}

#[test]
fn somebody_elses_change_stops_unless_a_rule_decides() {
    let base = config(json!({"a": "1", "b": "1"}));
    let edited = config(json!({"a": "mine", "b": "1"}));
    let live = written(Some(&applied(None, &base)), &edited, "kubectl-edit");
    let desired = config(json!({"a": "2", "b": "2"}));
    let rule = |rule: &str| format!("[{{kind: ConfigMap, name: c, field: .data.a, rule: {rule}}}]");
    let run = |rules: &str| {
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules })
    };

    let stopped = run("[]");
    assert_eq!(stopped.outcome, Outcome::Conflict);
    assert_eq!(stopped.cause, ".data.a was changed by kubectl-edit");
    assert_eq!(stopped.conflicts.len(), 1);
    assert!(!stopped.writes());

    let taken = run(&rule("take"));
    assert_eq!(taken.outcome, Outcome::Updated);
    assert_eq!(taken.taken[0].owners, ["kubectl-edit"]);
    assert_eq!(carried_out(&taken, &live)["data"], json!({"a": "2", "b": "2"}));

    let left = run(&rule("keep"));
    assert_eq!(left.outcome, Outcome::Updated);
    assert_eq!(kept(&left), [(".data.a".to_owned(), vec!["kubectl-edit".to_owned()])]);
    let after = carried_out(&left, &live);
    assert_eq!(after["data"], json!({"a": "mine", "b": "2"}));

    // The next run on the result has nothing to do.
    let rules = rule("keep");
    let again = step(&Case {
        desired: &desired,
        base: Some(&desired),
        live: Some(&after),
        ours: true,
        rules: &rules,
    });
    assert_eq!(again.outcome, Outcome::Unchanged, "{again:?}");
}

#[test]
fn a_change_to_the_very_value_that_the_release_wants_is_no_conflict() {
    let base = config(json!({"a": "1"}));
    let desired = config(json!({"a": "2"}));
    let live = written(Some(&applied(None, &base)), &desired, "kubectl-edit");
    let step =
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Updated);
    assert!(step.changes.is_empty() && step.conflicts.is_empty());
    assert_eq!(step.cause, "the fields have the release's values and become Scantling's");
}

#[test]
fn a_removed_field_is_not_brought_back_silently() {
    let base = config(json!({"a": "1", "b": "1"}));
    let live = written(Some(&applied(None, &base)), &config(json!({"b": "1"})), "kubectl-edit");
    let step = step(&Case { desired: &base, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Conflict);
    assert_eq!(step.cause, ".data.a has been removed since it was last applied");
}

#[test]
fn adopting_takes_over_the_vendors_fields_and_keeps_the_users() {
    let vendors = config(json!({"a": "1", "old": "x"}));
    let by_vendor = written(None, &vendors, "kubectl-client-side-apply");
    let with_users = config(json!({"a": "1", "old": "x", "mine": "m"}));
    let live = written(Some(&by_vendor), &with_users, "kubectl-edit");
    let desired = config(json!({"a": "2"}));

    let step =
        step(&Case { desired: &desired, base: Some(&vendors), live: Some(&live), ours: false, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Adopted, "{step:?}");
    assert_eq!(step.taken_over, ["kubectl-client-side-apply"]);
    assert_eq!(kept(&step), [(".data.mine".to_owned(), vec!["kubectl-edit".to_owned()])]);
    let after = carried_out(&step, &live);
    assert_eq!(after["data"], json!({"a": "2", "mine": "m"}));
    let managers: Vec<&str> = after["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["manager"].as_str().unwrap())
        .collect();
    assert!(!managers.contains(&"kubectl-client-side-apply"), "{managers:?}");
}

#[test]
fn the_previous_releases_values_are_the_vendors_whoever_wrote_them() {
    let vendors = config(json!({"a": "1", "old": "x"}));
    let live = written(None, &vendors, "deploy.sh");
    let desired = config(json!({"a": "2"}));
    let step =
        step(&Case { desired: &desired, base: Some(&vendors), live: Some(&live), ours: false, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Adopted);
    assert_eq!(carried_out(&step, &live)["data"], json!({"a": "2"}));
}

#[test]
fn without_proof_that_a_value_is_the_platforms_own_the_rule_decides() {
    let desired = config(json!({"a": "2"}));
    let rule = |rule: &str| format!("[{{kind: ConfigMap, name: c, field: .data.a, rule: {rule}}}]");
    let old = config(json!({"a": "1"}));
    let other_base = config(json!({"a": "0"}));
    // Every one of these tools is used by people, those that also install platforms included.
    for manager in
        ["oc", "kubectl", "kubectl-create", "kubectl-edit", "kubectl-client-side-apply", "somebody"]
    {
        let live = written(None, &config(json!({"a": "1", "other": "x"})), manager);
        let run = |base, rules: &str| {
            step(&Case { desired: &desired, base, live: Some(&live), ours: false, rules })
        };
        let owners = vec![manager.to_owned()];
        for base in [None, Some(&other_base)] {
            let stopped = run(base, "[]");
            assert_eq!(stopped.outcome, Outcome::Conflict, "{manager}");
            assert_eq!(stopped.cause, format!(".data.a was changed by {manager}"));
            assert_eq!(stopped.conflicts[0].owners, owners);

            let taken = run(base, &rule("take"));
            assert_eq!(taken.outcome, Outcome::Adopted, "{manager}");
            assert_eq!((&*taken.taken[0].field, &taken.taken[0].owners), (".data.a", &owners));
            assert_eq!(carried_out(&taken, &live)["data"], json!({"a": "2", "other": "x"}));

            let left = run(base, &rule("keep"));
            assert_eq!(left.outcome, Outcome::Adopted, "{manager}");
            assert_eq!(
                kept(&left),
                [(".data.a".to_owned(), owners.clone()), (".data.other".to_owned(), owners.clone())]
            );
            assert_eq!(carried_out(&left, &live)["data"], json!({"a": "1", "other": "x"}));
        }
        let proven = run(Some(&old), "[]");
        assert_eq!((proven.outcome, proven.taken.len()), (Outcome::Adopted, 0), "{manager}");
        assert_eq!(carried_out(&proven, &live)["data"], json!({"a": "2", "other": "x"}));

        let equal = written(None, &desired, manager);
        let equal =
            step(&Case { desired: &desired, base: None, live: Some(&equal), ours: false, rules: "[]" });
        assert_eq!((equal.outcome, equal.taken.len()), (Outcome::Adopted, 0), "{manager}");
    }
    // Somebody has emptied the list of owners: that makes nobody's value the platform's.
    let mut nameless = written(None, &config(json!({"a": "1"})), "oc");
    nameless["metadata"].as_object_mut().unwrap().remove("managedFields");
    let nameless =
        step(&Case { desired: &desired, base: None, live: Some(&nameless), ours: false, rules: "[]" });
    assert_eq!(nameless.outcome, Outcome::Conflict);
    assert_eq!(nameless.cause, ".data.a was changed, and nobody is named as its owner");
}

#[test]
fn the_note_of_client_side_apply_is_the_base_when_there_is_no_other_and_goes() {
    let mut vendors = config(json!({"a": "1", "old": "x"}));
    let note = vendors.to_string();
    vendors["metadata"]["annotations"] = json!({"kubectl.kubernetes.io/last-applied-configuration": note});
    let live = written(None, &vendors, "kubectl-client-side-apply");
    let desired = config(json!({"a": "2"}));
    let step = step(&Case { desired: &desired, base: None, live: Some(&live), ours: false, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Adopted);
    let after = carried_out(&step, &live);
    assert_eq!(after["data"], json!({"a": "2"}));
    assert_eq!(after["metadata"].get("annotations"), None, "{after}");
    assert!(step.kept.is_empty(), "{:?}", step.kept);
}

#[test]
fn a_default_that_the_server_filled_in_is_nobodys_choice() {
    let applied = json!({"b": "2"});
    let note = |data: &Value| config(data.clone()).to_string();
    let desired = config(json!({"a": "wanted", "b": "2"}));
    // The note says only what was applied: the server filled in `a`.
    for (noted, manager, wanted) in [
        (applied.clone(), "kubectl-client-side-apply", Outcome::Adopted),
        // Somebody applied `a`, or wrote it by other means.
        (json!({"a": "filled", "b": "2"}), "kubectl-client-side-apply", Outcome::Adopted),
        (applied.clone(), "kubectl-edit", Outcome::Conflict),
    ] {
        let mut object = config(json!({"a": "filled", "b": "2"}));
        object["metadata"]["annotations"] =
            json!({"kubectl.kubernetes.io/last-applied-configuration": note(&noted)});
        let live = written(None, &object, manager);
        let step = step(&Case { desired: &desired, base: None, live: Some(&live), ours: false, rules: "[]" });
        assert_eq!(step.outcome, wanted, "{noted} of {manager}");
    }
    let mut object = config(json!({"a": "filled", "b": "2"}));
    object["metadata"]["annotations"] =
        json!({"kubectl.kubernetes.io/last-applied-configuration": note(&applied)});
    let live = written(None, &object, "kubectl-client-side-apply");
    let without = config(applied);
    let step = step(&Case { desired: &without, base: None, live: Some(&live), ours: false, rules: "[]" });
    assert_eq!(carried_out(&step, &live)["data"], object["data"], "what nobody wants otherwise stays");
}

#[test]
fn a_rule_that_keeps_is_obeyed_at_adoption() {
    let live = written(None, &config(json!({"a": "theirs"})), "oc");
    let desired = config(json!({"a": "2", "b": "2"}));
    let rules = "[{kind: ConfigMap, name: c, field: .data.a, rule: keep}]";
    let step = step(&Case { desired: &desired, base: None, live: Some(&live), ours: false, rules });
    assert_eq!(step.outcome, Outcome::Adopted);
    assert_eq!(carried_out(&step, &live)["data"], json!({"a": "theirs", "b": "2"}));
}

#[test]
fn an_adoption_that_was_cut_in_the_middle_goes_on() {
    let vendors = config(json!({"a": "1", "old": "x"}));
    let live = written(None, &vendors, "oc");
    let desired = config(json!({"a": "2"}));
    let first =
        step(&Case { desired: &desired, base: Some(&vendors), live: Some(&live), ours: false, rules: "[]" });
    let mut half = live;
    half["metadata"]["managedFields"] = first.managed_fields.unwrap();
    let second =
        step(&Case { desired: &desired, base: Some(&vendors), live: Some(&half), ours: false, rules: "[]" });
    assert!(second.writes() && second.managed_fields.is_none(), "{second:?}");
    assert_eq!(carried_out(&second, &half)["data"], json!({"a": "2"}));
}

#[test]
fn lists_with_keys_are_compared_item_by_item() {
    let deployment = |image: &str, extra: Option<Value>| {
        let mut containers = vec![json!({"name": "main", "image": image})];
        containers.extend(extra);
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d", "namespace": "n"},
            "spec": {"selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": containers}}}})
    };
    let base = deployment("q.io/a:1", None);
    let edited = deployment("q.io/a:1", Some(json!({"name": "side", "image": "q.io/s:1"})));
    let live = written(Some(&applied(None, &base)), &edited, "kubectl-edit");
    let desired = deployment("q.io/a:2", None);
    let step =
        step(&Case { desired: &desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" });
    assert_eq!(step.outcome, Outcome::Updated);
    assert_eq!(
        changes(&step),
        [(".spec.template.spec.containers[name=\"main\"].image".to_owned(), Change::Set)]
    );
    assert!(step.kept.iter().any(|k| k.field.contains("side")), "{:?}", step.kept);
    let after = carried_out(&step, &live);
    assert_eq!(after["spec"]["template"]["spec"]["containers"].as_array().unwrap().len(), 2);
}

#[test]
fn the_precondition_moves_with_what_was_read_and_with_nothing_else() {
    let base = config(json!({"a": "1"}));
    let live = applied(None, &base);
    let desired = config(json!({"a": "2"}));
    let read = |live: &Value| {
        step(&Case { desired: &desired, base: Some(&base), live: Some(live), ours: true, rules: "[]" })
            .precondition
    };
    let mut touched = live.clone();
    touched["metadata"]["resourceVersion"] = json!("99");
    touched["data"]["other"] = json!("x");
    assert_eq!(read(&live), read(&touched));
    let edited = written(Some(&live), &config(json!({"a": "9"})), "kubectl-edit");
    assert_ne!(read(&live), read(&edited));
}

#[test]
fn a_secret_never_shows_its_values() {
    let secret = |value: &str| json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "n"}, "data": {"k": value}});
    let live = written(None, &secret("b2xkLXBhc3N3b3Jk"), "somebody");
    let desired = secret("bmV3LXBhc3N3b3Jk");
    let step = step(&Case { desired: &desired, base: None, live: Some(&live), ours: false, rules: "[]" });
    let text = serde_json::to_string(&step).unwrap();
    assert!(!text.contains("b2xkLXBhc3N3b3Jk") && !text.contains("bmV3LXBhc3N3b3Jk"), "{text}");
    // Only whether there is a value is part of the precondition: a digest of a password could be guessed at.
    let other = written(None, &secret("b3RoZXI="), "somebody");
    let again =
        common::step(&Case { desired: &desired, base: None, live: Some(&other), ours: false, rules: "[]" });
    assert_eq!(step.precondition, again.precondition);
}

#[test]
fn a_step_that_writes_over_more_than_the_plan_said_names_the_fields() {
    let base = config(json!({"a": "1", "b": "1"}));
    let desired = config(json!({"a": "2", "b": "1", "c": "1"}));
    let rules = "[{kind: ConfigMap, name: c, field: .data.b, rule: take}]";
    let run =
        |live: Option<&Value>| step(&Case { desired: &desired, base: Some(&base), live, ours: true, rules });
    let planned_on = applied(None, &base);
    let planned = run(Some(&planned_on));
    let edit = |data: Value| written(Some(&planned_on), &config(data), "kubectl-edit");
    for (live, expected) in [
        (planned_on.clone(), &[][..]),
        // In the plan: that it is somebody else's value by now stops as a conflict if no rule takes it.
        (edit(json!({"a": "2", "b": "1"})), &[]),
        (edit(json!({"a": "1", "b": "1", "more": "x"})), &[]),
        (edit(json!({"a": "1", "b": "9"})), &[".data.b"]),
    ] {
        assert_eq!(run(Some(&live)).beyond(&planned), expected, "{live}");
    }
    let created = run(None);
    assert_eq!(run(Some(&edit(json!({"a": "1", "b": "9"})))).beyond(&created), [".data.a", ".data.b"]);
}

fn service(target: i64) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
        "spec": {"ports": [{"port": 80, "targetPort": target}]}})
}

/// A port is known by number and protocol, and a protocol that is not written is TCP.
#[test]
fn a_port_that_does_not_say_its_protocol_is_moved_all_the_same() {
    let base = service(1);
    let mut live = applied(None, &base);
    live["spec"]["ports"][0]["protocol"] = json!("TCP");
    let step = |desired: &Value| {
        step(&Case { desired, base: Some(&base), live: Some(&live), ours: true, rules: "[]" })
    };
    assert_eq!(step(&base).outcome, Outcome::Unchanged);
    let moved = step(&service(2));
    assert_eq!(
        changes(&moved),
        [(".spec.ports[port=80,protocol=\"TCP\"].targetPort".to_owned(), Change::Set)]
    );
    assert_eq!(carried_out(&moved, &live)["spec"]["ports"][0]["targetPort"], json!(2));
}
