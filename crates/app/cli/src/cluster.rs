//! The cluster that a command works on: which one, as whom, and everything else that a run needs from outside.

use std::path::PathBuf;

use camino::Utf8PathBuf;
use clap::Args;
use scantling_cluster::{Clock, Cluster, ClusterError, Place};
use scantling_endpoint::{Keyring, Mirrors};
use scantling_registry::RegistryClient;
use scantling_run::{Entropy, Environment, Options, RulesError, read_registry_rules};
use sha2::{Digest as _, Sha256};

use crate::outcome::Failure;
use crate::registries::{RegistryArguments, client};
use crate::terminal;

/// Which cluster.
#[derive(Debug, Args)]
#[command(next_help_heading = "Cluster")]
pub(crate) struct ClusterArguments {
    /// The kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the service account of the pod that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Utf8PathBuf>,
    /// The context in the kubeconfig; without it, its current one.
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

/// A cluster that answers.
pub(crate) struct Connected {
    pub(crate) cluster: Cluster,
    pub(crate) place: Place,
}

impl ClusterArguments {
    /// For commands that take the context by its place.
    pub(crate) fn of(kubeconfig: Option<Utf8PathBuf>, context: Option<String>) -> Self {
        Self { kubeconfig, context }
    }

    /// Finds the cluster and asks whether it is there.
    pub(crate) async fn connect(&self) -> Result<Connected, Failure> {
        let seed = u64::from_be_bytes(random()?);
        let files = self.files();
        let (cluster, place) = if !files.is_empty() {
            Cluster::from_kubeconfig(&files, self.context.as_deref(), seed).await
        } else if self.context.is_none() && std::env::var_os("KUBERNETES_SERVICE_HOST").is_some() {
            Cluster::of_this_pod(seed)
        } else {
            return Err(Failure::usage(
                "no kubeconfig: KUBECONFIG is not set and ~/.kube/config is not there",
            )
            .with_hint("name one with --kubeconfig"));
        }
        .map_err(|error| cannot_reach(&error))?;
        Ok(Connected { cluster, place })
    }

    /// The kubeconfigs, those that are not there left out, as `kubectl` does, unless one was named.
    fn files(&self) -> Vec<PathBuf> {
        if let Some(file) = &self.kubeconfig {
            return vec![file.clone().into_std_path_buf()];
        }
        let listed: Vec<PathBuf> = std::env::var_os("KUBECONFIG")
            .map(|list| std::env::split_paths(&list).filter(|path| !path.as_os_str().is_empty()).collect())
            .unwrap_or_default();
        if !listed.is_empty() {
            let there: Vec<PathBuf> = listed.iter().filter(|path| path.exists()).cloned().collect();
            // Somebody meant a file: reading it says what is wrong.
            return if there.is_empty() { listed } else { there };
        }
        let home = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".kube/config"));
        home.filter(|path| path.exists()).into_iter().collect()
    }
}

impl Connected {
    /// Everything that a run needs. Registries are asked by the cluster's own rules and with its own pull secrets, those of
    /// `namespace` included; what the command line adds comes before them.
    pub(crate) async fn environment(
        &self,
        registries: &RegistryArguments,
        namespace: Option<&str>,
    ) -> Result<Environment, Failure> {
        let (mut mirrors, mut keyring) = registries.rules()?;
        let read = read_registry_rules(&self.cluster, namespace, &mut mirrors, &mut keyring).await;
        let unread = read.map_err(|error| match error {
            RulesError::Cluster(error) => cannot_reach(&error),
            error => Failure::failed(error.to_string())
                .with_hint("mend the object in the cluster: nodes read it as well"),
        })?;
        for what in unread {
            terminal::complain(&format!(
                "note: {what}; nodes may ask other places, or with other credentials\n"
            ));
        }
        self.with(client(mirrors, keyring)?)
    }

    /// The same for what asks no registry.
    pub(crate) fn environment_without_registries(&self) -> Result<Environment, Failure> {
        self.with(client(Mirrors::new(), Keyring::new())?)
    }

    fn with(&self, registry: RegistryClient) -> Result<Environment, Failure> {
        Ok(Environment {
            cluster: self.cluster.clone(),
            registry,
            clock: clock(),
            entropy: entropy()?,
            vantage: "here".to_owned(),
        })
    }
}

/// How a run from the command line goes: under a name that nobody else has.
pub(crate) fn options() -> Result<Options, Failure> {
    Ok(Options { holder: format!("cli/{}", own_name()?), pauses: true, ..Options::default() })
}

/// A name that no other process has, of this host or another.
pub(crate) fn own_name() -> Result<String, Failure> {
    let host = rustix::system::uname();
    let host = host.nodename().to_string_lossy();
    let random = u32::from_be_bytes(random()?);
    Ok(format!("{host}/{}/{random:08x}", std::process::id()))
}

/// The wall clock.
#[expect(clippy::disallowed_methods, reason = "this is where the time of day enters a run")]
pub(crate) fn clock() -> Clock {
    Clock::starting_at(jiff::Timestamp::now())
}

/// Bytes of the operating system.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], Failure> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)
        .map_err(|error| Failure::failed(format!("the operating system gives no random bytes: {error}")))?;
    Ok(bytes)
}

/// Bytes for passwords, from 256 bits of the operating system. Derived, so that nothing can fail later.
pub(crate) fn entropy() -> Result<Entropy, Failure> {
    let key: [u8; 32] = random()?;
    Ok(Entropy::new(move |purpose, bytes| {
        for (block, chunk) in (0u64..).zip(bytes.chunks_mut(32)) {
            let mut hash = Sha256::new();
            hash.update(key);
            hash.update(block.to_be_bytes());
            hash.update(purpose.as_bytes());
            for (to, from) in chunk.iter_mut().zip(hash.finalize()) {
                *to = from;
            }
        }
    }))
}

/// What a cluster that cannot be used means for the command line.
pub(crate) fn cannot_reach(error: &ClusterError) -> Failure {
    let text = error.to_string();
    match error {
        ClusterError::Configuration { .. } => Failure::usage(text).with_hint(
            "`kubectl config get-contexts` lists what a kubeconfig offers; --context and --kubeconfig choose",
        ),
        ClusterError::Unreachable { .. } => Failure::failed(text).with_hint(
            "see that the cluster is up and that the kubeconfig's address is right; --context names another",
        ),
        ClusterError::Forbidden { .. } => Failure::failed(text).with_hint(
            "`scantling rbac RELEASE --to WHO` prints the rights that are needed, for somebody who may grant them",
        ),
        _ => Failure::failed(text),
    }
}
