//! The objects of a release as they are to be in the cluster: images by digest, generated values filled in, and the
//! product's own objects beside them.

use scantling_api::schema::Schema;
use scantling_api::{GroupVersionKind, ObjectKey, object};
use scantling_finding::{Finding, Place, codes};
use scantling_plan::{Adjusted, Desired, GeneratedValues, encode_string_data, own_objects, pin};
use scantling_release::Release;
use serde_json::{Value, json};

use crate::report::Stop;
use crate::session::Session;

/// Keys and kinds of everything that is looked for in the cluster.
pub(crate) fn kinds(release: &Release) -> Vec<(ObjectKey, GroupVersionKind)> {
    let theirs = release.objects.iter().map(|o| (o.key.clone(), o.gvk.clone()));
    let own = own_objects(release).into_iter().filter_map(|(key, _, v)| Some((key, object::gvk(&v).ok()?)));
    theirs.chain(own).collect()
}

/// The types that a definition declares. Without them its objects could not be merged, so that a definition that cannot be
/// read ends the run.
pub(crate) fn types_of(definition: &Value) -> Result<Schema, Stop> {
    Schema::from_crd(definition).map_err(|error| {
        Stop::Refuse(format!(
            "the schema of CustomResourceDefinition {} cannot be read: {error}; correct the definition",
            object::name(definition)
        ))
    })
}

impl Session<'_> {
    /// Makes the desired objects. Generated secrets that must be equal and are not end the run here.
    pub(crate) fn make_desired(&mut self) -> Result<(), Stop> {
        let own = own_objects(self.release);
        let definitions =
            self.release.objects.iter().map(|o| &o.value).chain(own.iter().map(|(.., value)| value));
        for definition in definitions {
            if definition.get("kind").and_then(Value::as_str) == Some("CustomResourceDefinition") {
                self.schema.extend(types_of(definition)?);
            }
        }
        let namespace = self.release.namespace.as_deref();
        let entropy = &self.env.entropy;
        let make = |purpose: &str, length: usize| entropy.password(purpose, length);
        let values = match GeneratedValues::decide(&self.release.generated, namespace, &self.live, make) {
            Ok(values) => values,
            Err(disagreements) => {
                for d in disagreements {
                    let place = Place { object: Some(d.other_key.to_string()), ..self.release.place.clone() };
                    self.report.findings.push(
                        Finding::new(
                            codes::run::SECRETS_DISAGREE,
                            format!("{} and {} must be equal and are not", d.one, d.other),
                            place,
                        )
                        .with_related(
                            Place { object: Some(d.one_key.to_string()), ..self.release.place.clone() },
                            "the other one",
                        ),
                    );
                }
                return Err(self.refuse("generated secrets disagree".to_owned()));
            }
        };
        let mut desired = Vec::new();
        for object in &self.release.objects {
            let mut value = object.value.clone();
            encode_string_data(&mut value);
            if values.concerns(&object.key) {
                values.fill(&mut value, &object.key, self.live.get(&object.key));
            }
            let mut adjusted = pin(&mut value, &self.pins);
            adjusted.extend(keep_index(&mut value));
            desired.push(Desired { key: object.key.clone(), wave: object.wave, value, adjusted });
        }
        for (key, wave, value) in own {
            // A kind or a namespace that somebody else brought is theirs; it only has to exist.
            if self.previous.inventory.contains_key(&key) || !self.live.contains_key(&key) {
                desired.push(Desired { key, wave, value, adjusted: Vec::new() });
            }
        }
        self.desired = desired;
        Ok(())
    }
}

/// An import keeps the whole index: by default OpenShift keeps one platform's manifest only, whose digest is not the
/// locked one and which other platforms cannot run.
fn keep_index(stream: &mut Value) -> Vec<Adjusted> {
    import_mode(stream, "PreserveOriginal")
}

/// The mode that the server fills in when an object has none, for objects that others have written: it is nobody's choice.
pub(crate) fn default_import_mode(stream: &mut Value) {
    import_mode(stream, "Legacy");
}

fn import_mode(stream: &mut Value, mode: &str) -> Vec<Adjusted> {
    let mut adjusted = Vec::new();
    if stream.get("kind").and_then(Value::as_str) != Some("ImageStream") {
        return adjusted;
    }
    let tags = stream.pointer_mut("/spec/tags").and_then(Value::as_array_mut);
    for (index, tag) in tags.into_iter().flatten().enumerate() {
        if tag.pointer("/from/kind").and_then(Value::as_str) != Some("DockerImage") {
            continue;
        }
        let Some(tag) = tag.as_object_mut() else { continue };
        let policy = tag.entry("importPolicy").or_insert_with(|| json!({}));
        if let Some(policy) = policy.as_object_mut()
            && !policy.contains_key("importMode")
        {
            policy.insert("importMode".to_owned(), json!(mode));
            adjusted.push(Adjusted {
                field: format!(".spec.tags[{index}].importPolicy.importMode"),
                declared: None,
                written: mode.to_owned(),
                why: "the import keeps all platforms of the image".to_owned(),
            });
        }
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_cannot_be_read_is_named() {
        let mut definition = json!({
            "kind": "CustomResourceDefinition", "metadata": {"name": "things.example.com"},
            "spec": {"group": "example.com", "names": {"kind": "Thing"}, "versions": [{"name": "v1"}]},
        });
        assert!(types_of(&definition).is_ok());
        definition["spec"]["versions"] = json!([{}]);
        let why = types_of(&definition).err().map(|stop| stop.to_string()).unwrap_or_default();
        assert!(why.contains("things.example.com") && why.contains("spec.versions[].name"), "{why}");
    }
}
