//! Everything that can be said about a release before it touches a cluster.

use std::collections::{BTreeMap, BTreeSet};

use scantling_contents::{Claim, ClaimVerdict, check_claim};
use scantling_finding::{Finding, Place, Severity, codes};
use scantling_image::Reference;
use serde::Serialize;

use crate::change::agree;
use crate::{
    Change, ImageName, Listed, Lock, PublishedList, Reach, Release, StreamTag, UsedReference,
    change_findings, diff,
};

/// What a release is held against.
#[derive(Debug, Clone, Copy, Default)]
pub struct Against<'a> {
    /// Its lock.
    pub lock: Option<&'a Lock>,
    /// The release that it is to follow, with its lock.
    pub previous: Option<(&'a Release, Option<&'a Lock>)>,
    /// A list of published images.
    pub published: Option<&'a PublishedList>,
    /// What registries answered, by reference.
    pub answers: Option<&'a BTreeMap<Reference, Answer>>,
}

/// What a registry answered about a reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Answer {
    /// It can be pulled from where the question was asked.
    Pullable,
    /// Every place where it could be says that it is not there.
    Absent {
        /// Who said so, in words.
        detail: String,
    },
    /// It is there, or may be, but cannot be pulled.
    Refused {
        /// The verdict's name, such as `wrong platform`.
        verdict: String,
        /// Who said so, in words.
        detail: String,
    },
    /// Nobody gave an answer that decides.
    Undecided {
        /// The verdict's name, such as `unreachable`.
        verdict: String,
        /// What happened, in words.
        detail: String,
    },
}

/// The outcome of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Checked {
    /// What was found, the worst first.
    pub findings: Vec<Finding>,
    /// What happens to every name since the previous release.
    pub changes: Vec<Change>,
}

impl Checked {
    /// How many findings there are of a severity.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}

/// Checks a release.
pub fn check(release: &Release, against: Against<'_>) -> Checked {
    let mut findings = release.findings.clone();
    let mut changes = Vec::new();
    if let Some((previous, previous_lock)) = against.previous {
        findings.extend(succession(previous, release));
        changes = diff((previous, previous_lock), (release, against.lock));
        findings.extend(change_findings(&changes));
    }
    findings.extend(closure(release, against));
    findings.extend(tags(release, against.lock));
    findings.extend(environments(release));
    for tag in &release.streams {
        findings.extend(disagreements(tag));
        if let Some(lock) = against.lock {
            findings.extend(claims(tag, lock));
        }
    }
    if let Some(lock) = against.lock {
        findings.extend(lock.missing(release));
    }
    findings.sort_by(|a, b| (b.severity, a.code, &a.place).cmp(&(a.severity, b.code, &b.place)));
    Checked { findings, changes }
}

/// Whether a release may follow another.
fn succession(previous: &Release, release: &Release) -> Option<Finding> {
    let (old, new) = (previous.version.as_ref()?, release.version.as_ref()?);
    let message = if previous.name != release.name {
        format!("{} is another platform than {}", release.name, previous.name)
    } else if !release.may_follow(old) {
        format!("{} {new} was not made to follow {old}", release.name)
    } else {
        return None;
    };
    let follows: Vec<&str> = release.follows.iter().map(crate::Version::as_str).collect();
    let finding = Finding::new(codes::release::NOT_A_SUCCESSOR, message, release.place.clone());
    Some(match follows.as_slice() {
        [] => finding.with_cause("`follows:` is empty, so that it can only be installed fresh"),
        some => finding.with_cause(format!("`follows:` names {}", some.join(", "))),
    })
}

/// Whether everything that can be asked for exists.
fn closure(release: &Release, against: Against<'_>) -> Vec<Finding> {
    by_reference(release)
        .into_iter()
        .filter_map(|(reference, uses)| {
            let answer = against.answers.and_then(|answers| answers.get(reference));
            let missing = match (answer, against.published) {
                // A registry that gave no answer leaves the list as the witness.
                (None | Some(Answer::Undecided { .. }), Some(list)) => listed(list, reference)?,
                (Some(answer), _) => answered(answer)?,
                (None, None) => return None,
            };
            Some(missing.finding(release, reference, &uses))
        })
        .collect()
}

/// What is wrong with the references of a release, by what registries answered.
pub fn answer_findings(release: &Release, answers: &BTreeMap<Reference, Answer>) -> Vec<Finding> {
    closure(release, Against { answers: Some(answers), ..Against::default() })
}

/// The uses of every reference. Those in what is applied come first: they are what has to be mended.
fn by_reference(release: &Release) -> BTreeMap<&Reference, Vec<&UsedReference>> {
    let mut uses: BTreeMap<&Reference, Vec<&UsedReference>> = BTreeMap::new();
    for used in &release.references {
        uses.entry(&used.reference).or_default().push(used);
    }
    for uses in uses.values_mut() {
        uses.sort_by_key(|used| used.reach.clone());
    }
    uses
}

/// What is wrong with a reference.
struct Missing {
    code: scantling_finding::Code,
    /// Whether the image surely does not exist.
    absent: bool,
    says: String,
    cause: String,
}

fn answered(answer: &Answer) -> Option<Missing> {
    Some(match answer {
        Answer::Pullable => return None,
        Answer::Absent { detail } => Missing {
            code: codes::publication::NEVER_PUBLISHED,
            absent: true,
            says: "does not exist".to_owned(),
            cause: detail.clone(),
        },
        Answer::Refused { verdict, detail } => Missing {
            code: codes::publication::CANNOT_BE_PULLED,
            absent: false,
            says: format!("cannot be pulled from here: {verdict}"),
            cause: detail.clone(),
        },
        Answer::Undecided { verdict, detail } => Missing {
            code: codes::publication::NOT_DECIDED,
            absent: false,
            says: format!("could not be checked: {verdict}"),
            cause: detail.clone(),
        },
    })
}

fn listed(list: &PublishedList, reference: &Reference) -> Option<Missing> {
    let images = |count: usize| match count {
        0 => "no image".to_owned(),
        1 => "one image".to_owned(),
        n => format!("{n} images"),
    };
    let name = reference.name();
    match list.holds(reference) {
        Listed::Yes => None,
        Listed::OnlyDigests { same_repository } => Some(Missing {
            code: codes::publication::NOT_DECIDED,
            absent: false,
            says: format!("is a tag, and {} names digests", list.path),
            cause: format!(
                "the list holds {} of {name}; which of them the tag means is not known",
                images(same_repository)
            ),
        }),
        Listed::No { same_repository, same_digest } => {
            let mut cause = format!("the list holds {} of {name}, and not this one", images(same_repository));
            if same_repository == 0 {
                cause = format!("the list holds no image of {name}");
            }
            if let Some(other) = same_digest.first() {
                cause = format!("{cause}; it holds the same digest as {other}");
            }
            Some(match &list.complete {
                Some(who) => Missing {
                    code: codes::publication::NEVER_PUBLISHED,
                    absent: true,
                    says: "was never published".to_owned(),
                    cause: format!("{cause}; {} declares itself complete ({who})", list.path),
                },
                None => Missing {
                    code: codes::publication::NOT_IN_LIST,
                    absent: false,
                    says: format!("is not in {}", list.path),
                    cause: format!(
                        "{cause}; the list does not declare itself complete, so that this proves no more"
                    ),
                },
            })
        }
    }
}

impl Missing {
    fn finding(self, release: &Release, reference: &Reference, uses: &[&UsedReference]) -> Finding {
        let Self { code, absent, says, cause } = self;
        let first = uses.first();
        let place = first.map(|used| used.place.clone()).unwrap_or_default();
        let decided = code != codes::publication::NOT_DECIDED;
        let fallback = match first.map(|used| &used.reach) {
            Some(Reach::Fallback(when)) if decided => Some(when),
            _ => None,
        };
        let mut finding = match fallback {
            Some(when) => {
                let message = format!("fallback {reference} {says}");
                let mut why = format!("it becomes live when {when}");
                if let Some(place) = when.declared.as_ref().and_then(|declared| defined(release, declared)) {
                    why = format!(
                        "{why}; a fresh installation has the key ({place}), so that only an upgraded or edited cluster meets this"
                    );
                }
                why = format!("{why}; {cause}");
                Finding::new(codes::fallbacks::FALLBACK_UNPUBLISHED, message, place).with_cause(why)
            }
            None => Finding::new(code, format!("{reference} {says}"), place).with_cause(cause),
        };
        if absent {
            finding = finding.with_severity(Severity::Error);
        }
        for used in uses.iter().skip(1) {
            let also = match &used.reach {
                Reach::Applied => "also here".to_owned(),
                Reach::Fallback(when) => format!("also here, when {when}"),
                Reach::Undeclared => "also here, in code".to_owned(),
            };
            finding = finding.with_related(used.place.clone(), also);
        }
        finding
    }
}

/// Where the release's own manifests define what a fallback's condition misses.
fn defined<'r>(release: &'r Release, when: &crate::LiveWhen) -> Option<&'r scantling_finding::FilePlace> {
    let object = release.objects.iter().find(|object| {
        object.key.kind == when.kind
            && object.key.name == when.name
            && when
                .namespace
                .as_ref()
                .is_none_or(|namespace| object.key.namespace.as_ref() == Some(namespace))
    })?;
    let has = |map: &str, key: &str| object.value.get(map).and_then(|map| map.get(key)).is_some();
    let complete = when.missing_key.as_ref().is_none_or(|key| has("data", key) || has("stringData", key));
    complete.then_some(object.place.file.as_ref()).flatten()
}

/// References by tag that no lock ties down. Those in the registry that the admin chose are one finding: the release cannot
/// know their digests.
fn tags(release: &Release, lock: Option<&Lock>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut unlocked: Vec<(String, Place)> = Vec::new();
    for (reference, uses) in by_reference(release) {
        if reference.is_pinned() || lock.is_some_and(|lock| lock.image(reference).is_some()) {
            continue;
        }
        let Some((first, others)) = uses.split_first() else { continue };
        if let Some(registry) =
            release.registry.as_ref().filter(|registry| below(&reference.name(), registry))
        {
            let written = reference.written();
            let short = written.strip_prefix(registry.as_str()).unwrap_or(written).trim_start_matches('/');
            unlocked.push((short.to_owned(), first.place.clone()));
            continue;
        }
        let message = match reference.tag() {
            Some(_) => format!("{reference} can lead to another image at any time"),
            None => format!("{reference} has no tag and no digest, which means :latest"),
        };
        let mut finding = Finding::new(codes::identity::MUTABLE_TAG, message, first.place.clone());
        for used in others {
            finding = finding.with_related(used.place.clone(), "also here");
        }
        findings.push(finding);
    }
    if let (Some((_, first)), Some(registry)) = (unlocked.first(), &release.registry) {
        let names: Vec<&str> = unlocked.iter().map(|(name, _)| name.as_str()).collect();
        let message = match names.as_slice() {
            [one] => format!("{one} in {registry} is named by its tag, and no lock says what that leads to"),
            many => format!(
                "{} images in {registry} are named by tags, and no lock says what those lead to",
                many.len()
            ),
        };
        let mut finding = Finding::new(codes::identity::MUTABLE_TAG, message, first.clone())
            .with_remedy("run `scantling lock` with the same --registry; a run writes digests in any case");
        if names.len() > 1 {
            let cause = format!("{}: {}", finding.cause, names.join(", "));
            finding = finding.with_cause(cause);
        }
        findings.push(finding);
    }
    findings
}

/// References outside the registries that an environment allows.
fn environments(release: &Release) -> Vec<Finding> {
    let mut findings = Vec::new();
    for environment in &release.environments {
        for (reference, uses) in by_reference(release) {
            let name = reference.name();
            let own = [&environment.registry, &release.registry].into_iter().flatten();
            let allowed = environment.registries.iter().chain(own).any(|registry| below(&name, registry));
            let Some(first) = uses.first().filter(|_| !allowed) else { continue };
            let message =
                format!("{reference} is outside the registries of environment {}", environment.name);
            findings.push(
                Finding::new(codes::publication::OUTSIDE_ENVIRONMENT, message, first.place.clone())
                    .with_cause(format!("{} allows {}", environment.name, environment.registries.join(", "))),
            );
        }
    }
    findings
}

/// Whether a name is in a registry, or below the beginning of repositories in one.
fn below(name: &str, registry: &str) -> bool {
    let rest = name.strip_prefix(registry.trim_end_matches('/'));
    rest.is_some_and(|rest| rest.starts_with('/') || rest.is_empty())
}

/// Two claims of one tag about the same package that cannot both be true.
fn disagreements(tag: &StreamTag) -> Vec<Finding> {
    let mut first: BTreeMap<String, (&Claim, &Place)> = BTreeMap::new();
    let mut findings = Vec::new();
    for placed in &tag.claims {
        let name = scantling_contents::normalised(&placed.claim.name);
        match first.get(&name) {
            Some((claim, place)) if !agree(&claim.version, &placed.claim.version) => findings.push(
                Finding::new(
                    codes::contents::CLAIMS_DISAGREE,
                    format!(
                        "{} claims {} {} and {}",
                        tag.name.short(),
                        placed.claim.name,
                        claim.version,
                        placed.claim.version
                    ),
                    placed.place.clone(),
                )
                .with_related((*place).clone(), format!("{} is claimed here", claim.version)),
            ),
            Some(_) => {}
            None => {
                first.insert(name, (&placed.claim, &placed.place));
            }
        }
    }
    findings
}

/// The claims of a tag against what the lock found in its image, once per difference.
fn claims(tag: &StreamTag, lock: &Lock) -> Vec<Finding> {
    let Some(ImageName::Reference(written)) = &tag.from else { return Vec::new() };
    let image = Reference::parse(written).ok().and_then(|reference| lock.image(&reference).cloned());
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for platform in image.into_iter().flat_map(|image| image.platforms) {
        let Some(contents) = platform.contents else { continue };
        for placed in &tag.claims {
            let Claim { name, version } = &placed.claim;
            let finding = match check_claim(&contents, &placed.claim) {
                ClaimVerdict::Holds => continue,
                ClaimVerdict::Differs { found, .. } => Finding::new(
                    codes::contents::CLAIM_DIFFERS,
                    format!("{} claims {name} {version}, its image holds {found}", tag.name.short()),
                    placed.place.clone(),
                ),
                ClaimVerdict::Absent => Finding::new(
                    codes::contents::CLAIM_ABSENT,
                    format!(
                        "{} claims {name} {version}, and its image does not show {name}",
                        tag.name.short()
                    ),
                    placed.place.clone(),
                ),
            };
            if seen.insert(finding.message.clone()) {
                findings.push(finding.with_cause(format!(
                    "the layers of {} for {} say so",
                    platform.manifest.short(),
                    platform.platform
                )));
            }
        }
    }
    findings
}
