//! Examples that can't be played are refused with what, where and what to do.

use scantling_rehearse::scenario::Scenario;

use crate::support::{STALE, change, example};

#[test]
fn what_is_wrong_is_said_with_its_place() {
    for (from, to, said) in [
        ("flavour: openshift", "flavor: openshift", "rehearsal.yaml:"),
        ("- wait: 8h", "- wait: 8 parsecs", "is not a duration"),
        ("- wait: 8h", "- wait: 9000h", "90 days"),
        ("node: worker-c}", "node: worker-z}", "there is no node"),
        ("- upgrade: new", "- upgrade: newer", "there is no release"),
        ("- upgrade: new", "- wait: 1h", "0 upgrades"),
        ("images: images.yaml", "images: pictures.yaml", "pictures.yaml is not in the example"),
        ("new: releases/1.5", "new: releases/1.4", "releases/1.4/ is not in the example"),
        (
            "mustHold: [pullable, pinned, converged, truthful, nothing-lost, nothing-silent, people]",
            "mustHold: []",
            "mustHold is empty",
        ),
        ("kind: Rehearsal", "kind: Concert", "Rehearsal"),
        ("- apply: manifests/namespaces.yaml", "- aply: manifests/namespaces.yaml", "apply"),
        ("title: Stale", "title: [Stale", "rehearsal.yaml:"),
    ] {
        let mut tree = example(STALE);
        change(&mut tree, "rehearsal.yaml", from, to);
        let error = Scenario::read(&tree).unwrap_err().to_string();
        assert!(error.contains(said), "{to}: {error}");
    }
}

#[test]
fn a_folder_without_a_scenario_is_none() {
    let error = Scenario::read(&std::collections::BTreeMap::new()).unwrap_err().to_string();
    assert!(error.contains("rehearsal.yaml"), "{error}");
}
