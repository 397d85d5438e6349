//! Defaults of OpenShift's kinds, from `pkg/*/apis/*/v1/defaults.go` of its API server and `types.go` of its API.

use scantling_api::KindFacts;
use serde_json::{Value, json};

use super::{at, each, fill, fill_in, fill_text};

pub(super) fn apply(facts: &KindFacts, object: &mut Value) {
    match (facts.gvk.group.as_str(), facts.gvk.kind.as_str()) {
        ("image.openshift.io", "ImageStream") => {
            fill(object, &["spec", "lookupPolicy"], "local", json!(false));
            for tag in each(object, "/spec/tags") {
                fill_in(tag, "annotations", Value::Null);
                let policy = tag.entry("referencePolicy").or_insert_with(|| json!({}));
                fill(policy, &[], "type", json!("Source"));
                let import = tag.entry("importPolicy").or_insert_with(|| json!({}));
                fill(import, &[], "importMode", json!("Legacy"));
            }
        }
        ("build.openshift.io", "BuildConfig") => {
            let spec = at(object, &["spec"]);
            fill_text(spec, "runPolicy", "Serial");
            fill_in(spec, "successfulBuildsHistoryLimit", json!(5));
            fill_in(spec, "failedBuildsHistoryLimit", json!(5));
            fill(object, &["status"], "lastVersion", json!(0));
        }
        ("route.openshift.io", "Route") => {
            fill_text(at(object, &["spec"]), "wildcardPolicy", "None");
            let to = at(object, &["spec", "to"]);
            fill_text(to, "kind", "Service");
            fill_in(to, "weight", json!(100));
        }
        _ => {}
    }
}
