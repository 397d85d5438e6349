//! Definitions whose objects are converted by a webhook.
//!
//! From the moment in which a definition names such a webhook, objects of its kind cannot even be read as long as nothing
//! answers there. A definition is therefore written first with the conversion and the stored version that it has, and
//! whole when what it names is ready, together with the other webhooks.

use std::collections::BTreeMap;
use std::time::Duration;

use scantling_api::{ObjectKey, object};
use scantling_plan::Step;
use scantling_release::Wave;
use serde_json::Value;

use crate::event::What;
use crate::health::Health;
use crate::report::Stop;
use crate::session::Session;
use crate::wait::Wait;

/// Between two looks at the endpoints of a service.
const PAUSE: Duration = Duration::from_secs(2);

impl Session<'_> {
    /// Takes conversions that have to wait out of the desired definitions, and gives those definitions back whole.
    pub(crate) fn hold_conversions(&mut self) -> BTreeMap<ObjectKey, Value> {
        let mut held = BTreeMap::new();
        for desired in self.desired.iter_mut().filter(|d| d.wave == Wave::Definitions) {
            if let Some(before) = before_arming(&desired.value, self.live.get(&desired.key)) {
                let whole = std::mem::replace(&mut desired.value, before);
                held.insert(desired.key.clone(), whole);
            }
        }
        held
    }

    /// Writes the held definitions whole, each when its webhook's service leads to something that is ready.
    pub(crate) async fn arm_conversions(
        &mut self,
        held: BTreeMap<ObjectKey, Value>,
        steps: &[Step],
    ) -> Result<(), Stop> {
        for (key, whole) in held {
            if let Some((namespace, name)) = service(&whole) {
                let (namespace, name) = (namespace.to_owned(), name.to_owned());
                self.until_reached(&key, &namespace, &name).await?;
            }
            let Some(desired) = self.desired.iter_mut().find(|d| d.key == key) else { continue };
            desired.value = whole;
            let step: Vec<&Step> = steps.iter().filter(|s| s.key == key).collect();
            self.apply_steps(&step).await?;
            self.settle(&key, self.options.waits.definitions, is_armed).await?;
        }
        Ok(())
    }

    /// Waits until a service leads to something that is ready.
    async fn until_reached(&mut self, key: &ObjectKey, namespace: &str, name: &str) -> Result<(), Stop> {
        let on = format!("Service {namespace}/{name}, which converts the objects of {key}");
        let mut wait = Wait::new(on, self.options.waits.rollout, PAUSE);
        loop {
            let slices = self.list("discovery.k8s.io", "EndpointSlice", Some(namespace)).await?;
            if slices.iter().any(|slice| leads_somewhere(slice, name)) {
                return Ok(());
            }
            if wait.is_over() {
                return Err(Stop::Halt(format!(
                    "Service {namespace}/{name} leads to nothing that is ready, and {key} cannot name it before: objects of the kind could not be read"
                )));
            }
            self.pause(&mut wait, "it leads to nothing that is ready".to_owned()).await;
        }
    }

    /// Tells which conversions are set later than their definitions.
    pub(crate) fn tell_held(&mut self, held: &BTreeMap<ObjectKey, Value>) {
        for (key, whole) in held {
            let until = match service(whole) {
                Some((namespace, name)) => format!("its conversion is set after {namespace}/{name} is ready"),
                None => "its conversion is set after the workloads are ready".to_owned(),
            };
            self.tell(What::Waiting { on: key.to_string(), until });
        }
    }
}

/// The service of the webhook that a definition names.
fn service(definition: &Value) -> Option<(&str, &str)> {
    let service = definition.pointer("/spec/conversion/webhook/clientConfig/service")?;
    Some((service.get("namespace")?.as_str()?, service.get("name")?.as_str()?))
}

fn converts(definition: &Value) -> bool {
    object::text(definition, "/spec/conversion/strategy") == "Webhook"
}

/// A definition as it is written before its webhook is there; none if it needs not wait.
fn before_arming(desired: &Value, live: Option<&Value>) -> Option<Value> {
    const CLIENT: &str = "/spec/conversion/webhook/clientConfig";
    let address = |value: &Value| {
        let client = value.pointer(CLIENT);
        client.map(|client| (client.get("service").cloned(), client.get("url").cloned()))
    };
    let is_there = live.is_some_and(|live| {
        converts(live)
            && (service(live), address(live).map(|(_, url)| url))
                == (service(desired), address(desired).map(|(_, url)| url))
    });
    if !converts(desired) || is_there {
        return None;
    }
    let mut before = desired.clone();
    let spec = before.get_mut("spec")?.as_object_mut()?;
    let mut conversion =
        live.filter(|live| converts(live)).and_then(|live| live.pointer("/spec/conversion")).cloned();
    match &mut conversion {
        Some(conversion) => {
            // Whoever has put it in keeps it.
            if let Some(client) =
                conversion.pointer_mut("/webhook/clientConfig").and_then(Value::as_object_mut)
            {
                client.remove("caBundle");
            }
            spec.insert("conversion".to_owned(), conversion.clone());
        }
        None => {
            spec.remove("conversion");
        }
    }
    if let Some(stored) = live.and_then(stored_version) {
        let versions = spec.get_mut("versions").and_then(Value::as_array_mut)?;
        // Objects go on being stored as they are: nothing could make others of them.
        if versions.iter().any(|version| object::text(version, "/name") == stored) {
            for version in versions.iter_mut().filter_map(Value::as_object_mut) {
                let is_stored = version.get("name").and_then(Value::as_str) == Some(stored);
                version.insert("storage".to_owned(), Value::Bool(is_stored));
            }
        }
    }
    Some(before)
}

fn stored_version(definition: &Value) -> Option<&str> {
    let versions = definition.pointer("/spec/versions")?.as_array()?;
    let stored = versions.iter().find(|v| v.get("storage").and_then(Value::as_bool) == Some(true))?;
    stored.get("name")?.as_str()
}

/// Whether a slice has an endpoint of a service that is ready.
fn leads_somewhere(slice: &Value, service: &str) -> bool {
    let endpoints = slice.get("endpoints").and_then(Value::as_array);
    object::label(slice, "kubernetes.io/service-name") == Some(service)
        && endpoints.into_iter().flatten().any(|endpoint| {
            // What is not said is taken for ready, as the API's documentation has it.
            endpoint.pointer("/conditions/ready").and_then(Value::as_bool) != Some(false)
        })
}

/// Whether the server can trust the webhook of a definition: for a service the authority of its certificate is there.
fn is_armed(definition: &Value) -> Health {
    let bundle = object::text(definition, "/spec/conversion/webhook/clientConfig/caBundle");
    if service(definition).is_some() && bundle.is_empty() {
        return Health::NotYet(
            "nobody has put in the authority of its webhook's certificate (caBundle)".to_owned(),
        );
    }
    Health::Healthy("its objects are converted".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn definition(stored: &str, names: &[&str], hook: Option<&str>) -> Value {
        let versions: Vec<Value> = names
            .iter()
            .map(|name| json!({"name": name, "served": true, "storage": *name == stored}))
            .collect();
        let mut definition = json!({"kind": "CustomResourceDefinition", "spec": {"versions": versions}});
        if let Some(hook) = hook {
            definition["spec"]["conversion"] = json!({"strategy": "Webhook", "webhook": {"clientConfig":
                {"caBundle": "Y2E=", "service": {"namespace": "n", "name": hook}}}});
        }
        definition
    }

    #[test]
    fn a_conversion_waits_for_what_answers_and_nothing_is_stored_otherwise_until_then() {
        let whole = definition("v2", &["v1", "v2"], Some("new"));
        assert_eq!(before_arming(&definition("v1", &["v1"], None), None), None);
        // There is nothing to convert yet, and nobody to ask.
        assert_eq!(before_arming(&whole, None), Some(definition("v2", &["v1", "v2"], None)));
        let live = definition("v1", &["v1"], None);
        assert_eq!(before_arming(&whole, Some(&live)), Some(definition("v1", &["v1", "v2"], None)));
        // The one that answers until then is still asked.
        let live = definition("v1", &["v1"], Some("old"));
        let mut before = definition("v1", &["v1", "v2"], Some("old"));
        if let Some(client) = before["spec"]["conversion"]["webhook"]["clientConfig"].as_object_mut() {
            client.remove("caBundle");
        }
        assert_eq!(before_arming(&whole, Some(&live)), Some(before));
        // It is there already.
        assert_eq!(before_arming(&whole, Some(&definition("v1", &["v1"], Some("new")))), None);
    }

    #[test]
    fn a_service_leads_somewhere_when_an_endpoint_is_ready() {
        for (conditions, expected) in
            [(json!({"ready": true}), true), (json!({"ready": false}), false), (json!({}), true)]
        {
            let slice = json!({"metadata": {"labels": {"kubernetes.io/service-name": "s"}},
                "endpoints": [{"addresses": ["10.0.0.1"], "conditions": conditions}]});
            assert_eq!(leads_somewhere(&slice, "s"), expected, "{slice}");
            assert!(!leads_somewhere(&slice, "other"));
        }
    }
}
