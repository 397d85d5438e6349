//! Asking registries: where to ask and with what, and what their answers mean for a release.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal as _;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use futures::stream::{self, StreamExt as _};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_files::{Limits, read_file};
use scantling_image::{Digest, Platform, Reference};
use scantling_registry::{Options, Probe, RegistryClient, RegistryError, Resolved, Verdict, tcp_transport};
use scantling_release::{Answer, LockedImage, LockedPlatform};

use crate::outcome::Failure;

/// How many references are worked on at the same time; the client bounds requests per registry besides.
const PARALLEL: usize = 8;
/// A person waits: a registry that is silent for longer is taken for unreachable.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Repetitions after a failing server or a broken connection.
const RETRIES: u32 = 2;

/// Where registries are and who asks.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Registries")]
pub(crate) struct RegistryArguments {
    /// Where the cluster asks instead: OpenShift's mirror sets, registries.conf, or a file of endpoints. May be repeated.
    #[arg(long, value_name = "FILE", env = "SCANTLING_MIRRORS")]
    mirrors: Vec<Utf8PathBuf>,
    /// Credentials, in the format of Docker's config.json.
    #[arg(long, value_name = "FILE", env = "REGISTRY_AUTH_FILE")]
    auth: Option<Utf8PathBuf>,
    /// A platform that must be there, such as linux/amd64; without it, those that each image has. May be repeated.
    #[arg(long, value_name = "OS/ARCH", value_parser = platform)]
    platform: Vec<Platform>,
}

fn platform(text: &str) -> Result<Platform, String> {
    Platform::parse(text).map_err(|error| error.to_string())
}

impl RegistryArguments {
    /// Whether the user says where to ask.
    pub(crate) fn are_given(&self) -> bool {
        self.mirrors.iter().any(|path| !path.as_str().is_empty())
    }

    /// The same for files that are mounted into a pod: a folder stands for the files in it, and what is not there is left out.
    pub(crate) fn as_mounted(&self) -> Self {
        let mut mirrors = Vec::new();
        for path in &self.mirrors {
            let Ok(entries) = path.read_dir_utf8() else {
                mirrors.extend(Some(path.clone()).filter(|path| path.exists()));
                continue;
            };
            // The kubelet keeps what it mounts in folders of such names.
            let files = entries.flatten().filter(|entry| !entry.file_name().starts_with(".."));
            mirrors.extend(files.map(|entry| entry.path().to_owned()).filter(|path| path.is_file()));
        }
        mirrors.sort();
        Self {
            mirrors,
            auth: self.auth.clone().filter(|path| path.exists()),
            platform: self.platform.clone(),
        }
    }

    /// Reads the rules and the credentials that are given.
    pub(crate) fn rules(&self) -> Result<(Mirrors, Keyring), Failure> {
        let mut mirrors = Mirrors::new();
        // An empty variable in the environment is no file.
        for path in self.mirrors.iter().filter(|path| !path.as_str().is_empty()) {
            add_mirrors(&mut mirrors, path)?;
        }
        let mut keyring = Keyring::new();
        if let Some(path) = &self.auth {
            let bytes = read_file(path, &Limits::default())?;
            keyring
                .add_docker_config(path.as_str(), &bytes)
                .map_err(|error| Failure::usage(error.to_string()))?;
        }
        Ok((mirrors, keyring))
    }
}

/// A client of registries over the network.
pub(crate) fn client(mirrors: Mirrors, keyring: Keyring) -> Result<RegistryClient, Failure> {
    let transport = tcp_transport(&mirrors, &[]).map_err(|error| Failure::usage(error.to_string()))?;
    let options = Options { timeout: TIMEOUT, retries: RETRIES, ..Options::default() };
    Ok(RegistryClient::new(transport, mirrors, keyring, options))
}

/// Registries, ready to be asked.
pub(crate) struct Registries {
    client: RegistryClient,
    platforms: Vec<Platform>,
    runtime: tokio::runtime::Runtime,
}

impl Registries {
    /// Reads rules and credentials; nothing is asked yet.
    pub(crate) fn new(arguments: &RegistryArguments) -> Result<Self, Failure> {
        let (mirrors, keyring) = arguments.rules()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self { client: client(mirrors, keyring)?, platforms: arguments.platform.clone(), runtime })
    }

    /// Asks whether references can be pulled.
    pub(crate) fn probe(&self, references: &BTreeSet<Reference>) -> BTreeMap<Reference, Answer> {
        let progress = progress("asking registries", references.len());
        let probes = stream::iter(references)
            .map(|reference| async {
                let probe = self.client.probe(reference, &self.platforms).await;
                progress.inc(1);
                (reference.clone(), answer_of_probe(&probe))
            })
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let answers = self.runtime.block_on(probes);
        progress.finish_and_clear();
        answers.into_iter().collect()
    }

    /// Resolves references; of each that cannot be resolved, why.
    pub(crate) fn resolve(
        &self,
        references: &BTreeSet<Reference>,
        contents: bool,
    ) -> (Vec<LockedImage>, BTreeMap<Reference, Answer>) {
        let progress = progress("resolving", references.len());
        let work = stream::iter(references)
            .map(|reference| async {
                let resolved = self.locked(reference, contents).await;
                progress.inc(1);
                (reference.clone(), resolved)
            })
            .buffered(PARALLEL)
            .collect::<Vec<_>>();
        let results = self.runtime.block_on(work);
        progress.finish_and_clear();
        let mut images = Vec::new();
        let mut answers = BTreeMap::new();
        for (reference, result) in results {
            match result {
                Ok(image) => images.push(image),
                Err(answer) => {
                    answers.insert(reference, answer);
                }
            }
        }
        (images, answers)
    }

    async fn locked(&self, reference: &Reference, contents: bool) -> Result<LockedImage, Answer> {
        let resolved = self.client.resolve_as_named(reference).await;
        let resolved = resolved.map_err(|error| answer_of_error(&error))?;
        let wanted = |platform: &Platform| {
            self.platforms.is_empty() || self.platforms.iter().any(|wanted| platform.matches(wanted))
        };
        if let Some(missing) = self
            .platforms
            .iter()
            .find(|wanted| !resolved.platforms.iter().any(|image| image.platform.matches(wanted)))
        {
            return Err(Answer::Refused {
                verdict: Verdict::WrongPlatform.to_string(),
                detail: format!("{} has no image for {missing}", resolved.host),
            });
        }
        let pinned = reference.with_digest(&resolved.digest);
        let mut image = image_of(reference, &resolved);
        image.platforms.retain(|image| wanted(&image.platform));
        if contents {
            let mut read: BTreeMap<Digest, scantling_contents::Contents> = BTreeMap::new();
            for platform in &mut image.platforms {
                let found = match read.get(&platform.config) {
                    Some(found) => found.clone(),
                    None => self
                        .client
                        .contents(&pinned, &platform.platform)
                        .await
                        .map_err(|error| answer_of_error(&error))?,
                };
                read.insert(platform.config.clone(), found.clone());
                platform.contents = Some(found);
            }
        }
        Ok(image)
    }
}

/// What a lock holds of a resolved reference.
fn image_of(reference: &Reference, resolved: &Resolved) -> LockedImage {
    LockedImage {
        reference: reference.clone(),
        digest: resolved.digest.clone(),
        media_type: resolved.media_type.clone(),
        found_at: resolved.host.clone(),
        platforms: resolved
            .platforms
            .iter()
            .map(|image| LockedPlatform {
                platform: image.platform.clone(),
                manifest: image.manifest.clone(),
                config: image.config.clone(),
                size: image.size,
                contents: None,
            })
            .collect(),
    }
}

fn answer_of_probe(probe: &Probe) -> Answer {
    let details: Vec<String> = probe
        .attempts
        .iter()
        .map(|attempt| {
            let via = attempt.via.as_ref().map(|via| format!(" (by {via})")).unwrap_or_default();
            format!("{}{via}: {}", attempt.endpoint, attempt.detail)
        })
        .collect();
    answer(probe.verdict, details.join("; "))
}

fn answer_of_error(error: &RegistryError) -> Answer {
    answer(error.verdict(), error.to_string())
}

fn answer(verdict: Verdict, detail: String) -> Answer {
    match verdict {
        Verdict::Pullable => Answer::Pullable,
        Verdict::Absent => Answer::Absent { detail },
        Verdict::Unauthenticated
        | Verdict::Forbidden
        | Verdict::WrongPlatform
        | Verdict::Malformed
        | Verdict::DigestMismatch
        | Verdict::RefusedByPolicy => Answer::Refused { verdict: words(verdict), detail },
        Verdict::Unreachable | Verdict::RateLimited | Verdict::Unknown => {
            Answer::Undecided { verdict: words(verdict), detail }
        }
    }
}

/// The verdict's name as people say it.
fn words(verdict: Verdict) -> String {
    verdict.as_str().replace('-', " ")
}

/// Fails if every answer is that no registry answered: then nothing is known, and nobody may take that for a good end.
pub(crate) fn somebody_answered(answers: &BTreeMap<Reference, Answer>) -> Result<(), Failure> {
    let silent = words(Verdict::Unreachable);
    let is_silent =
        |answer: &Answer| matches!(answer, Answer::Undecided { verdict, .. } if *verdict == silent);
    if answers.is_empty() || !answers.values().all(is_silent) {
        return Ok(());
    }
    Err(Failure::failed("no registry could be reached").with_hint(
        "see that this machine has a way out; --mirrors says where else to ask, and `scantling check --offline` asks nobody",
    ))
}

/// Takes mirror rules of any known form.
fn add_mirrors(mirrors: &mut Mirrors, path: &Utf8Path) -> Result<(), Failure> {
    add_mirrors_of(mirrors, path, &read_file(path, &Limits::default())?)
}

/// Takes mirror rules of any known form from the contents of a file.
pub(crate) fn add_mirrors_of(mirrors: &mut Mirrors, path: &Utf8Path, bytes: &[u8]) -> Result<(), Failure> {
    let refuse = |message: String| {
        Failure::usage(message).with_hint(
            "give ImageDigestMirrorSet, ImageTagMirrorSet or ImageContentSourcePolicy objects, a registries.conf, or a file of endpoints",
        )
    };
    if matches!(path.extension(), Some("conf" | "toml")) {
        let text = String::from_utf8_lossy(bytes);
        return mirrors.add_registries_conf(path.as_str(), &text).map_err(|error| refuse(error.to_string()));
    }
    let documents = scantling_yaml::parse(bytes).map_err(|error| refuse(format!("{path}:{error}")))?;
    if documents.iter().any(|document| document.root.get("endpoints").is_some()) {
        return mirrors.add_endpoints(path.as_str(), bytes).map_err(|error| refuse(error.to_string()));
    }
    for document in &documents {
        let object = document.root.to_json();
        match mirrors.add_object(&object) {
            Ok(true) => {}
            Ok(false) => {
                let kind =
                    document.root.get("kind").and_then(scantling_yaml::Node::as_str).unwrap_or("a document");
                return Err(refuse(format!("{path}: {kind} holds no mirror rules")));
            }
            Err(error) => return Err(refuse(format!("{path}: {error}"))),
        }
    }
    Ok(())
}

/// A line that counts, where someone looks at it.
fn progress(what: &'static str, number: usize) -> ProgressBar {
    let target = if std::io::stderr().is_terminal() && number > 0 {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(Some(number as u64), target);
    if let Ok(style) = ProgressStyle::with_template("{spinner} {msg}: {pos} of {len}") {
        bar.set_style(style);
    }
    bar.set_message(what);
    bar.enable_steady_tick(Duration::from_millis(120));
    bar
}
