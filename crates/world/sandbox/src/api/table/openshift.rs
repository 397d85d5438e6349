//! Rows of OpenShift's kinds.

use scantling_api::object;
use serde_json::{Value, json};

use super::{AGE, Cells, Column, NAME, ago, human_duration, items, number, plain_text, text_or};

/// Tags that are named before the rest is only counted.
const MAX_TAGS: usize = 3;

pub(super) fn columns(group: &str, kind: &str) -> Option<(&'static [Column], Cells)> {
    let found: (&'static [Column], Cells) = match (group, kind) {
        ("image.openshift.io", "ImageStream") => (
            &[
                NAME,
                Column("Image Repository", "string", 0),
                Column("Tags", "string", 0),
                Column("Updated", "string", 0),
            ],
            image_stream,
        ),
        ("image.openshift.io", "ImageStreamTag") => (
            &[NAME, Column("Image Reference", "string", 0), Column("Updated", "string", 0)],
            image_stream_tag,
        ),
        ("build.openshift.io", "BuildConfig") => (
            &[NAME, Column("Type", "string", 0), Column("From", "string", 0), Column("Latest", "integer", 0)],
            build_config,
        ),
        ("build.openshift.io", "Build") => (
            &[
                NAME,
                Column("Type", "string", 0),
                Column("From", "string", 0),
                Column("Status", "string", 0),
                Column("Started", "string", 0),
                Column("Duration", "string", 0),
            ],
            build,
        ),
        ("route.openshift.io", "Route") => (
            &[
                NAME,
                Column("Host/Port", "string", 0),
                Column("Path", "string", 0),
                Column("Services", "string", 0),
                Column("Port", "string", 0),
                Column("Termination", "string", 0),
                Column("Wildcard", "string", 0),
            ],
            route,
        ),
        ("project.openshift.io", "Project") => {
            (&[NAME, Column("Display Name", "string", 0), Column("Status", "string", 0)], project)
        }
        ("template.openshift.io", "Template") => (
            &[
                NAME,
                Column("Description", "string", 0),
                Column("Parameters", "string", 0),
                Column("Objects", "integer", 0),
                AGE,
            ],
            template,
        ),
        _ => return None,
    };
    Some(found)
}

fn image_stream(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let tags = items(object, "/status/tags");
    let names: Vec<&str> = tags.iter().map(|tag| object::text(tag, "/tag")).collect();
    let shown = match names.get(..MAX_TAGS) {
        Some(first) if names.len() > MAX_TAGS => {
            format!("{} + {} more...", first.join(","), names.len() - MAX_TAGS)
        }
        _ => names.join(","),
    };
    let updated = tags.iter().map(|tag| object::text(tag, "/items/0/created")).max().unwrap_or_default();
    vec![
        json!(object::name(object)),
        json!(text_or(
            object,
            "/status/publicDockerImageRepository",
            object::text(object, "/status/dockerImageRepository")
        )),
        json!(shown),
        json!(if updated.is_empty() { String::new() } else { format!("{} ago", ago(updated, now)) }),
    ]
}

fn image_stream_tag(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let created = object::text(object, "/metadata/creationTimestamp");
    vec![
        json!(object::name(object)),
        json!(object::text(object, "/image/dockerImageReference")),
        json!(if created.is_empty() { String::new() } else { format!("{} ago", ago(created, now)) }),
    ]
}

fn strategy(object: &Value) -> String {
    let name = object::text(object, "/spec/strategy/type");
    name.strip_suffix("BuildStrategy").unwrap_or(name).to_owned()
}

fn source(object: &Value) -> String {
    match (object::text(object, "/spec/source/type"), object::text(object, "/spec/source/git/ref")) {
        ("Git", "") => "Git".to_owned(),
        ("Git", commit) => format!("Git@{commit}"),
        (other, _) => other.to_owned(),
    }
}

fn build_config(object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
    vec![
        json!(object::name(object)),
        json!(strategy(object)),
        json!(source(object)),
        json!(number(object, "/status/lastVersion")),
    ]
}

fn build(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let started = object::text(object, "/status/startTimestamp");
    let time = |pointer: &str| object::text(object, pointer).parse::<jiff::Timestamp>().ok();
    let duration = match (time("/status/startTimestamp"), time("/status/completionTimestamp")) {
        (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start).as_secs()),
        (None, _) => String::new(),
    };
    let reason = object::text(object, "/status/reason");
    let phase = object::text(object, "/status/phase");
    vec![
        json!(object::name(object)),
        json!(strategy(object)),
        json!(source(object)),
        json!(if reason.is_empty() { phase.to_owned() } else { format!("{phase} ({reason})") }),
        json!(if started.is_empty() { String::new() } else { format!("{} ago", ago(started, now)) }),
        json!(duration),
    ]
}

fn route(object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
    let termination = object::text(object, "/spec/tls/termination");
    let insecure = object::text(object, "/spec/tls/insecureEdgeTerminationPolicy");
    vec![
        json!(object::name(object)),
        json!(text_or(object, "/status/ingress/0/host", object::text(object, "/spec/host"))),
        json!(object::text(object, "/spec/path")),
        json!(object::text(object, "/spec/to/name")),
        json!(object.pointer("/spec/port/targetPort").map_or_else(|| "<all>".to_owned(), plain_text)),
        json!(if insecure.is_empty() { termination.to_owned() } else { format!("{termination}/{insecure}") }),
        json!(text_or(object, "/spec/wildcardPolicy", "None")),
    ]
}

fn project(object: &Value, _now: jiff::Timestamp) -> Vec<Value> {
    vec![
        json!(object::name(object)),
        json!(object::annotation(object, "openshift.io/display-name").unwrap_or_default()),
        json!(object::text(object, "/status/phase")),
    ]
}

fn template(object: &Value, now: jiff::Timestamp) -> Vec<Value> {
    let parameters = items(object, "/parameters");
    let blank = |parameter: &&Value| {
        object::text(parameter, "/value").is_empty() && object::text(parameter, "/generate").is_empty()
    };
    let blank = parameters.iter().filter(blank).count();
    let parameters = match (parameters.len(), blank) {
        (all, 0) => format!("{all} (all set)"),
        (all, blank) => format!("{all} ({blank} blank)"),
    };
    vec![
        json!(object::name(object)),
        json!(object::annotation(object, "description").unwrap_or_default()),
        json!(parameters),
        json!(items(object, "/objects").len()),
        super::since(object, now),
    ]
}
