//! Stage 7: what runs, held against what the release says.

use std::collections::BTreeMap;

use scantling_api::object;
use scantling_finding::{Finding, Place, codes};
use scantling_image::{Digest, Reference, Sameness};
use scantling_observed::{Pod, PodContainer, View};
use serde_json::Value;

use crate::event::{Stage, What};
use crate::report::{Stop, Verified};
use crate::session::{Session, slashed};

impl Session<'_> {
    /// Compares the image IDs of the containers of the release's Deployments, `StatefulSets` and `DaemonSets` with the
    /// release. Their pods are found by `matchLabels`; a workload that selects otherwise is not looked at. Only a
    /// container that runs another image stops the run: one that is not known or has not started does not.
    pub(crate) async fn verify(&mut self) -> Result<(), Stop> {
        self.stage = Stage::Verify;
        let mut workloads = self.desired_of("apps", "Deployment");
        workloads.extend(self.desired_of("apps", "StatefulSet"));
        workloads.extend(self.desired_of("apps", "DaemonSet"));
        let mut different = 0;
        for workload in &workloads {
            different += self.verify_workload(workload).await?;
        }
        if different > 0 {
            return Err(Stop::Halt(format!(
                "{different} containers run another image than the release says"
            )));
        }
        Ok(())
    }

    async fn verify_workload(&mut self, workload: &Value) -> Result<usize, Stop> {
        let Ok(key) = object::key(workload) else { return Ok(0) };
        let labels = object::mapping(workload, "/spec/selector/matchLabels").cloned().unwrap_or_default();
        if labels.is_empty() {
            return Ok(0);
        }
        let selector: Vec<String> =
            labels.iter().filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?))).collect();
        let Some(resource) = self.served.by_kind("", "Pod") else { return Ok(0) };
        let pods =
            self.env.cluster.list(resource, key.namespace.as_deref(), Some(&selector.join(","))).await?;
        let template = workload.pointer("/spec/template/spec").cloned().unwrap_or_default();
        let wanted: BTreeMap<String, String> = object::pod_containers(&template)
            .iter()
            .filter_map(|c| Some((c.name().to_owned(), c.image()?.to_owned())))
            .collect();
        let (mut same, mut different) = (0, 0);
        for pod in &pods {
            let view = Pod::of(pod);
            if view.is_being_deleted() || matches!(view.phase(), "Succeeded" | "Failed") {
                continue;
            }
            for container in view.containers() {
                // Containers that the template does not have were put in by others (a mesh, a proxy).
                let Some(wanted) = wanted.get(container.name) else { continue };
                let answer = self.hold_against(container, wanted).await;
                match answer {
                    Some(Sameness::Same) => same += 1,
                    Some(Sameness::Different) => different += 1,
                    Some(Sameness::Unknown) | None => {}
                }
                self.note(pod, container, wanted, answer);
            }
        }
        self.tell(What::Verified { workload: key.to_string(), same, different });
        Ok(different)
    }

    /// None as long as the node has not said what it runs.
    async fn hold_against(&self, container: PodContainer<'_>, wanted: &str) -> Option<Sameness> {
        let running = container.image_id()?.ok()?;
        let identity = self.identity(wanted);
        if identity.is_empty() {
            return Some(Sameness::Unknown);
        }
        if identity.contains(running.digest()) {
            return Some(Sameness::Same);
        }
        // A runtime may name an image by another digest of its class: what it names is looked up before it is called
        // different.
        let looked_up = self.look_up(running.reference(), running.digest(), wanted).await;
        Some(looked_up.map_or(Sameness::Unknown, |class| identity.relation(&class)))
    }

    async fn look_up(
        &self,
        seen: Option<&Reference>,
        digest: &Digest,
        wanted: &str,
    ) -> Option<scantling_image::ImageIdentity> {
        let elsewhere = Reference::parse(wanted).ok().map(|r| r.with_digest(digest));
        for reference in seen.cloned().into_iter().chain(elsewhere) {
            if let Ok(resolved) = self.env.registry.resolve(&reference).await {
                return Some(resolved.identity);
            }
        }
        None
    }

    fn note(&mut self, pod: &Value, container: PodContainer<'_>, wanted: &str, answer: Option<Sameness>) {
        let running = match container.image_id() {
            Some(Ok(id)) => id.written().to_owned(),
            _ => String::new(),
        };
        let (word, code) = match answer {
            Some(Sameness::Same) => ("same", None),
            Some(Sameness::Different) => ("different", Some(codes::run::RUNNING_DIFFERS)),
            Some(Sameness::Unknown) => ("unknown", Some(codes::run::IDENTITY_UNKNOWN)),
            None => ("not started", None),
        };
        let name = slashed(pod);
        if let Some(code) = code {
            let place = Place {
                object: Some(format!("Pod {name}")),
                field: Some(format!(".status.containerStatuses[name=\"{}\"].imageID", container.name)),
                ..Place::default()
            };
            let message = format!("container {} runs {running}, wanted is {wanted}", container.name);
            self.report.findings.push(Finding::new(code, message, place));
        }
        self.report.verified.push(Verified {
            pod: name,
            container: container.name.to_owned(),
            wanted: wanted.to_owned(),
            running,
            answer: word.to_owned(),
        });
    }
}
