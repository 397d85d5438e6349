//! One decision: the sides are made with the API's own merge, as a server would.
#![allow(dead_code)] // Not every test uses every helper.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::schema::Schema;
use scantling_api::{ObjectKey, object};
use scantling_merge::{Request, apply, update};
use scantling_plan::{Change, Frame, Sides, Step, decide};
use scantling_release::{Release, Settings, Wave};
use serde_json::Value;

const NOW: &str = "2022-01-01T00:00:00Z";

fn request<'a>(object: &'a Value, manager: &'a str) -> Request<'a> {
    let text = |p: &str| object.pointer(p).unwrap().as_str().unwrap();
    Request::new(Schema::kubernetes(), text("/apiVersion"), text("/kind"), manager, NOW)
}

/// The object after somebody wrote it whole (create or PUT).
pub(crate) fn written(live: Option<&Value>, object: &Value, manager: &str) -> Value {
    update(&request(object, manager), live, object).unwrap()
}

/// The object after we applied it.
pub(crate) fn applied(live: Option<&Value>, object: &Value) -> Value {
    apply(&request(object, "scantling"), live, object, true).unwrap()
}

fn release(rules: &str) -> Release {
    let file = format!(
        "apiVersion: scantling.dev/v1alpha1\nkind: Release\nname: r\nversion: 1.0.0\nmanifests: [a.yaml]\nownership: {rules}\n"
    );
    let manifest = "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n";
    let tree = BTreeMap::from([
        ("release.yaml".to_owned(), file.into_bytes()),
        ("a.yaml".to_owned(), manifest.as_bytes().to_vec()),
    ]);
    Release::read(&tree, &Settings::default()).unwrap()
}

#[derive(Clone, Copy)]
pub(crate) struct Case<'a> {
    pub(crate) desired: &'a Value,
    pub(crate) base: Option<&'a Value>,
    pub(crate) live: Option<&'a Value>,
    pub(crate) ours: bool,
    pub(crate) rules: &'a str,
}

pub(crate) fn step(case: &Case<'_>) -> Step {
    let release = release(case.rules);
    let legacy = BTreeSet::from(["kubectl-client-side-apply".to_owned(), "oc".to_owned()]);
    let frame = Frame { schema: Schema::kubernetes(), rules: &release.ownership, legacy_managers: &legacy };
    let key: ObjectKey = object::key(case.desired).unwrap();
    let sides = Sides {
        desired: case.desired,
        base: case.base,
        traces: None,
        live: case.live,
        ours: case.ours,
        created: case.ours,
    };
    decide(&frame, &key, Wave::Configuration, sides).unwrap()
}

pub(crate) fn changes(step: &Step) -> Vec<(String, Change)> {
    step.changes.iter().map(|c| (c.field.clone(), c.change)).collect()
}

pub(crate) fn kept(step: &Step) -> Vec<(String, Vec<String>)> {
    step.kept.iter().map(|k| (k.field.clone(), k.owners.clone())).collect()
}

/// What the object is after the step, as the run writes it.
pub(crate) fn carried_out(step: &Step, live: &Value) -> Value {
    let mut live = live.clone();
    if let Some(fields) = &step.managed_fields {
        live["metadata"]["managedFields"] = fields.clone();
    }
    apply(&request(&step.body, "scantling"), Some(&live), &step.body, true).unwrap()
}
