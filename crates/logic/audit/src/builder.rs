//! Making rows.

use std::collections::BTreeMap;

use scantling_api::ObjectKey;
use scantling_finding::Code;
use scantling_image::Digest;

use crate::facts::{Asked, Facts, RefId};
use crate::images::DigestId;
use crate::knowledge::Options;
use crate::remedy::{Holder, pin};
use crate::row::{Evidence, MAX_EVIDENCE, Remedy, Row, Section, Subject, Verdict, Wanted};
use crate::seen::{ContainerSeen, PodSeen};
use crate::uses::Use;
use crate::wanted::Meant;

/// Events about one container that a row shows.
const MAX_EVENTS: usize = 3;

/// What all sections need to make rows.
#[derive(Debug)]
pub(crate) struct Builder<'o> {
    pub(crate) options: &'o Options,
    /// Templates by the object that has them, by number.
    by_object: BTreeMap<ObjectKey, Vec<usize>>,
}

impl<'o> Builder<'o> {
    pub(crate) fn new(facts: &Facts<'_>, options: &'o Options) -> Self {
        let mut by_object: BTreeMap<ObjectKey, Vec<usize>> = BTreeMap::new();
        for (number, used) in facts.templates.iter().enumerate() {
            by_object.entry(used.object.clone()).or_default().push(number);
        }
        Self { options, by_object }
    }

    /// The template that a container of a pod comes from, if it can be told.
    pub(crate) fn template<'f>(
        &self,
        facts: &'f Facts<'_>,
        pod: &PodSeen,
        container: &ContainerSeen,
    ) -> Option<&'f Use> {
        let numbers = self.by_object.get(&pod.workload)?;
        let mut named = numbers
            .iter()
            .filter_map(|number| facts.templates.get(*number))
            .filter(|used| used.name == *container.name);
        let first = named.next()?;
        named.next().is_none().then_some(first)
    }

    /// Writes what is meant into what names it.
    pub(crate) fn pin(
        &self,
        facts: &Facts<'_>,
        pod: &PodSeen,
        container: &ContainerSeen,
        asked: &Asked,
        meant: &Meant,
    ) -> Option<Remedy> {
        let digest = facts.images.digest(meant.digest)?;
        Some(pin(&self.holder(facts, pod, container), &asked.reference, digest))
    }

    /// Who holds the image of a container.
    pub(crate) fn holder<'f>(
        &self,
        facts: &'f Facts<'_>,
        pod: &'f PodSeen,
        container: &'f ContainerSeen,
    ) -> Holder<'f> {
        Holder {
            object: &pod.workload,
            pointer: self.template(facts, pod, container).map(|used| used.pointer.as_str()),
            container: &container.name,
            is_static: pod.is_static,
        }
    }
}

/// A container of a pod, by what made the pod.
pub(crate) fn subject(pod: &PodSeen, container: &str, node: Option<&str>) -> Subject {
    Subject {
        object: pod.workload.to_string(),
        namespace: pod.key.namespace.clone(),
        pod: (pod.workload != pod.key).then(|| pod.key.name.clone()),
        container: Some(container.to_owned()),
        node: node.map(str::to_owned),
    }
}

/// The last events about the image of a container.
pub(crate) fn events(
    facts: &Facts<'_>,
    reference: RefId,
    pod: &PodSeen,
    container: &ContainerSeen,
) -> Vec<Evidence> {
    let Some(held) = pod.node.and_then(|node| facts.table.get(&(reference, node))) else {
        return Vec::new();
    };
    let key = (pod.key.namespace.as_deref().unwrap_or_default(), pod.key.name.as_str());
    held.pulls
        .iter()
        .rev()
        .filter(|number| {
            facts.seen.pulls.get(**number).is_some_and(|pull| {
                (pull.pod.0.as_ref(), pull.pod.1.as_ref()) == key && pull.is_about(&container.name)
            })
        })
        .take(MAX_EVENTS)
        .filter_map(|number| crate::evidence::of_pull(facts, *number))
        .collect()
}

/// A row in the making.
#[derive(Debug)]
pub(crate) struct Draft {
    section: Section,
    verdict: Verdict,
    code: Code,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) reference: Option<String>,
    pub(crate) found: Vec<String>,
    pub(crate) wanted: Option<Wanted>,
    pub(crate) why: String,
    pub(crate) evidence: Vec<Evidence>,
    pub(crate) remedies: Vec<Remedy>,
    pub(crate) severity: scantling_finding::Severity,
}

impl Draft {
    pub(crate) fn new(section: Section, verdict: Verdict, code: Code) -> Self {
        Self {
            section,
            verdict,
            code,
            subjects: Vec::new(),
            reference: None,
            found: Vec::new(),
            wanted: None,
            why: String::new(),
            evidence: Vec::new(),
            remedies: Vec::new(),
            severity: code.info().severity,
        }
    }

    pub(crate) fn found(&mut self, facts: &Facts<'_>, digest: DigestId) {
        self.found.extend(facts.images.digest(digest).map(Digest::to_string));
    }

    pub(crate) fn want(&mut self, facts: &Facts<'_>, meant: &Meant) {
        self.wanted = facts
            .images
            .digest(meant.digest)
            .map(|digest| Wanted { digest: digest.clone(), basis: meant.words(facts) });
    }

    /// The row. Its id is made of what it is about, not of what is found there: a fault keeps its id while it lasts.
    pub(crate) fn row(mut self) -> Row {
        fn text(of: Option<&String>) -> &str {
            of.map(String::as_str).unwrap_or_default()
        }
        let subject = self.subjects.first();
        let id = Row::id_of(
            self.section,
            &[
                self.code.as_str(),
                subject.map(|it| it.object.as_str()).unwrap_or_default(),
                text(subject.and_then(|it| it.pod.as_ref())),
                text(subject.and_then(|it| it.container.as_ref())),
                text(subject.and_then(|it| it.node.as_ref())),
                text(self.reference.as_ref()),
            ],
        );
        self.evidence.sort();
        self.evidence.dedup();
        self.evidence.truncate(MAX_EVIDENCE);
        Row {
            id,
            section: self.section,
            verdict: self.verdict,
            code: self.code,
            severity: self.severity,
            subjects: self.subjects,
            reference: self.reference,
            found: self.found,
            wanted: self.wanted,
            why: self.why,
            evidence: self.evidence,
            remedies: self.remedies,
        }
    }
}
