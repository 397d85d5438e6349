//! Runs recorded histories of the Kubernetes field manager: every step must give the recorded object,
//! ownership, times and conflicts.
//!
//! `SSA_VECTORS` names another file of vectors; `SSA_VECTOR` runs the one with that id and shows all of
//! its differences.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use scantling_api::schema::Schema;
use scantling_merge::{
    MergeError, Request, Store, apply, json_patch, merge_patch, strategic_merge_patch, update,
};
use serde_json::{Map, Value, json};

/// So many of the committed vectors agree; a change may raise it and never lower it.
const FLOOR: usize = 3_000;
/// Of the vectors of another file, so many in a hundred must agree: it may hold cases that were never seen.
const FLOOR_ELSEWHERE: usize = 80;
/// Differences shown without being asked.
const SHOWN: usize = 5;
/// Start of the clock of all histories, in seconds since 1970.
const START: i64 = 1_704_067_200;

#[allow(clippy::disallowed_methods, reason = "the line that a test ends with says how long it took")]
fn main() -> ExitCode {
    let started = Instant::now();
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let given = std::env::var_os("SSA_VECTORS").map(PathBuf::from);
    let file = given.clone().unwrap_or_else(|| data.join("vectors-open.jsonl.gz"));
    let only = std::env::var("SSA_VECTOR").ok();
    let schema = schema(&data);

    let vectors = lines(&file);
    let mut others = Vec::new();
    if given.is_none() {
        others.extend(lines(&data.join("samples.jsonl")));
        others.extend(lines(&data.join("mixed.jsonl.gz")));
    }
    let mut out = std::io::stdout().lock();
    let (mut agree, mut shown) = (0, 0);
    let mut failed_others = 0;
    for (index, vector) in vectors.iter().chain(&others).enumerate() {
        let id = vector["id"].as_str().unwrap_or("?");
        if only.as_ref().is_some_and(|only| only != id) {
            continue;
        }
        let is_other = index >= vectors.len();
        match run(&schema, vector) {
            Ok(()) => {
                agree += usize::from(!is_other);
                if only.is_some() {
                    writeln!(out, "{id} agrees").unwrap();
                }
            }
            Err(difference) => {
                failed_others += usize::from(is_other);
                shown += 1;
                if shown <= SHOWN || only.is_some() {
                    writeln!(out, "{id} ({}): {difference}", vector["kind"].as_str().unwrap_or("?")).unwrap();
                }
            }
        }
    }
    writeln!(out, "{agree} of {} vectors agree", vectors.len()).unwrap();
    let floor = match (&only, &given) {
        (Some(_), _) => 0,
        (None, Some(_)) => (vectors.len() * FLOOR_ELSEWHERE).div_ceil(100),
        (None, None) => FLOOR,
    };
    let holds = agree >= floor && failed_others == 0 && (only.is_none() || shown == 0);
    writeln!(
        out,
        "\ntest result: {}. {} passed; {} failed; 0 ignored; 0 measured; 0 filtered out; finished in {:.2}s\n",
        if holds { "ok" } else { "FAILED" },
        usize::from(holds),
        usize::from(!holds),
        started.elapsed().as_secs_f64()
    )
    .unwrap();
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn schema(data: &Path) -> Schema {
    let mut schema =
        Schema::from_json(&serde_json::from_str(&text(&data.join("schema-1.35.json.gz"))).unwrap())
            .expect("the schema is readable");
    let definitions: Value = serde_json::from_str(&text(&data.join("crds.json"))).unwrap();
    for definition in definitions["items"].as_array().unwrap() {
        let custom = Schema::from_crd(definition).expect("the definition is readable");
        for (name, def) in custom.types() {
            assert_eq!(schema.type_def(name), Some(def), "{name} is converted as recorded");
        }
        schema.extend(custom);
    }
    schema
}

fn text(file: &Path) -> String {
    let bytes = std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut text = String::new();
    if file.extension().is_some_and(|extension| extension == "gz") {
        flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text
}

fn lines(file: &Path) -> Vec<Value> {
    text(file)
        .lines()
        .filter(|line| !line.trim().is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn run(schema: &Schema, vector: &Value) -> Result<(), String> {
    let stores: &[Store] = match vector["store"].as_str() {
        Some("json") => &[Store::Json],
        Some("go") => &[Store::Typed],
        _ if schema.kinds().any(|(_, _, kind, facts)| vector["kind"] == kind && !facts.custom) => {
            &[Store::Json, Store::Typed]
        }
        _ => &[Store::Json],
    };
    for store in stores {
        history(schema, vector, *store).map_err(|difference| format!("{store:?}: {difference}"))?;
    }
    Ok(())
}

fn history(schema: &Schema, vector: &Value, store: Store) -> Result<(), String> {
    let kind = vector["kind"].as_str().unwrap();
    let mut live = vector.get("initial").cloned();
    for (index, step) in vector["steps"].as_array().unwrap().iter().enumerate() {
        let wanted = &step["result"];
        let result = perform(schema, kind, store, live.as_ref(), step, index);
        compare(&result, wanted).map_err(|difference| {
            let subresource = step["subresource"].as_str().unwrap_or("");
            format!(
                "step {index} ({} {subresource} by {}, {}): {difference}",
                step["op"].as_str().unwrap(),
                step["manager"].as_str().unwrap(),
                if step["force"] == true { "forced" } else { "not forced" },
            )
        })?;
        if let Ok(object) = result {
            live = Some(object);
        }
    }
    Ok(())
}

/// The version a request is made at: that of the body if the kind is served there, else the stored one.
fn version(schema: &Schema, kind: &str, body: &Value) -> String {
    let served: BTreeSet<String> = schema
        .kinds()
        .filter(|(_, _, name, _)| *name == kind)
        .map(
            |(group, version, ..)| {
                if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
            },
        )
        .collect();
    let of = |object: Option<&Value>| {
        let version = object?.get("apiVersion")?.as_str()?;
        (served.is_empty() && version == "stable.example.com/v1" || served.contains(version))
            .then(|| version.to_owned())
    };
    of(Some(body)).or_else(|| served.into_iter().next()).unwrap_or_else(|| "stable.example.com/v1".to_owned())
}

fn perform(
    schema: &Schema,
    kind: &str,
    store: Store,
    live: Option<&Value>,
    step: &Value,
    index: usize,
) -> Result<Value, MergeError> {
    let body = &step["body"];
    let version = version(schema, kind, body);
    let now = time(index);
    let manager = step["manager"].as_str().unwrap();
    let mut request = Request::new(schema, &version, kind, manager, &now);
    request.store = store;
    request.subresource = step.get("subresource").and_then(Value::as_str);
    let mut current = live.cloned();
    if let Some(current) = current.as_mut() {
        current["apiVersion"] = json!(version);
    }
    let current = current.as_ref();
    let patched = |patched: Result<Value, MergeError>| update(&request, current, &patched?);
    let mut object = match step["op"].as_str().unwrap() {
        "apply" => apply(&request, current, body, step["force"] == true)?,
        "create" | "update" => update(&request, current, body)?,
        "patch-merge" => patched(merge_patch(current.unwrap_or(&Value::Null), body))?,
        "patch-json" => patched(json_patch(current.unwrap_or(&Value::Null), body))?,
        "patch-strategic" => {
            patched(strategic_merge_patch(schema, request.type_name, current.unwrap_or(&Value::Null), body))?
        }
        other => panic!("unknown operation {other}"),
    };
    identify(&mut object, live);
    Ok(object)
}

/// What the server gives an object when it creates it, and keeps from then on.
fn identify(object: &mut Value, live: Option<&Value>) {
    let created =
        json!({"uid": "00000000-0000-4000-8000-000000000001", "creationTimestamp": "2024-01-01T00:00:00Z"});
    let source = match live {
        Some(live) => &live["metadata"],
        None => &created,
    };
    if !object["metadata"].is_object() {
        object["metadata"] = json!({});
    }
    for name in ["uid", "creationTimestamp"] {
        match source.get(name) {
            Some(value) => object["metadata"][name] = value.clone(),
            None => {
                if let Some(metadata) = object["metadata"].as_object_mut() {
                    metadata.remove(name);
                }
            }
        }
    }
}

fn time(index: usize) -> String {
    let minutes = index + 1;
    format!("2024-01-01T{:02}:{:02}:00Z", minutes / 60, minutes % 60)
}

fn compare(result: &Result<Value, MergeError>, wanted: &Value) -> Result<(), String> {
    match result {
        Ok(object) if wanted["ok"] == true => {
            let mut object = object.clone();
            let times = take_times(&mut object);
            let mut differences = Vec::new();
            differ("", &object, &wanted["object"], &mut differences);
            let wanted_times = wanted.get("times").cloned().unwrap_or_else(|| json!([]));
            if !same(&times, &wanted_times) {
                differences.push(format!("times are {times}, not {wanted_times}"));
            }
            if differences.is_empty() { Ok(()) } else { Err(differences.join("\n    ")) }
        }
        Ok(_) => Err(format!("succeeds, but should fail with {}", wanted["message"])),
        Err(error) if wanted["ok"] == true => Err(format!("fails with {}: {error}", error.code())),
        Err(error) => {
            if wanted["code"] != error.code() {
                return Err(format!(
                    "fails with {} ({error}), not {}: {}",
                    error.code(),
                    wanted["code"],
                    wanted["message"]
                ));
            }
            let found: BTreeSet<String> = match error {
                MergeError::Conflicts(conflicts) => conflicts
                    .iter()
                    .map(|conflict| {
                        let mut entry = Map::new();
                        entry.insert("manager".into(), json!(conflict.manager));
                        entry.insert("field".into(), json!(conflict.field.to_string()));
                        if let Some(using) = &conflict.using {
                            entry.insert("using".into(), json!(using));
                        }
                        if let Some(subresource) = &conflict.subresource {
                            entry.insert("subresource".into(), json!(subresource));
                        }
                        Value::Object(entry).to_string()
                    })
                    .collect(),
                _ => BTreeSet::new(),
            };
            let wanted: BTreeSet<String> =
                wanted["conflicts"].as_array().into_iter().flatten().map(Value::to_string).collect();
            if found == wanted {
                return Ok(());
            }
            let missing: Vec<_> = wanted.difference(&found).collect();
            let extra: Vec<_> = found.difference(&wanted).collect();
            Err(format!("conflicts: missing {missing:?}, too many {extra:?}"))
        }
    }
}

/// Takes the times out of the ownership, as the step each was stamped at.
fn take_times(object: &mut Value) -> Value {
    let entries = object.pointer_mut("/metadata/managedFields").and_then(Value::as_array_mut);
    let times = entries.into_iter().flatten().map(|entry| {
        let time = entry.as_object_mut().and_then(|entry| entry.remove("time"));
        match time.as_ref().and_then(Value::as_str) {
            Some(text) => json!((text.parse::<jiff::Timestamp>().unwrap().as_second() - START) / 60 - 1),
            None => Value::Null,
        }
    });
    Value::Array(times.collect())
}

fn same(a: &Value, b: &Value) -> bool {
    let mut differences = Vec::new();
    differ("", a, b, &mut differences);
    differences.is_empty()
}

fn differ(path: &str, found: &Value, wanted: &Value, out: &mut Vec<String>) {
    match (found, wanted) {
        (Value::Object(a), Value::Object(b)) => {
            let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => differ(&path, a, b, out),
                    (Some(a), None) => out.push(format!("{path}: is {a}, should be absent")),
                    (None, Some(b)) => out.push(format!("{path}: is absent, should be {b}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}/{index}"), a, b, out);
            }
        }
        (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
        _ if found == wanted => {}
        _ => out.push(format!("{path}: is {found}, should be {wanted}")),
    }
}
