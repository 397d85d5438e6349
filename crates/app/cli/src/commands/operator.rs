//! `scantling operator`: the process in the cluster.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use camino::Utf8PathBuf;
use clap::Args;
use scantling_api::ObjectKey;
use scantling_cluster::Cluster;
use scantling_endpoint::Mirrors;
use scantling_operator::{Line, Operator, Parts, ask_over_http};
use scantling_run::{SYSTEM_NAMESPACE, read_registry_rules};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster::{ClusterArguments, clock, entropy, own_name};
use crate::outcome::{Failure, Outcome};
use crate::probes::serve;
use crate::registries::{RegistryArguments, add_mirrors_of, client};
use crate::runs;

/// The `ConfigMap` of `scantling-system` with rules for registries that the operator is to follow.
const KEPT_RULES: &str = "scantling-registries";

/// Keep a cluster's notebooks, models and platform as they should be, and perform the runs that are due. This is what runs in
/// the cluster; of several, one works and the others wait.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes one line of JSON for each decision to standard output. GET /healthz, /readyz and /metrics say how it is. Told to \
                  end (SIGTERM, SIGINT), it stops between two writes and gives its leases back; another one, or `scantling upgrade`, \
                  continues a run that was under way. Here --mirrors may name a folder, and files that are not there are left out; \
                  the keys of ConfigMap scantling-system/scantling-registries count as such files, read anew for each run."
)]
pub(crate) struct Arguments {
    /// Where probes and metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
    /// A file with the token that readers of metrics have to show, as `Authorization: Bearer TOKEN`; without it, anybody reads them.
    #[arg(long, value_name = "FILE")]
    metrics_token: Option<Utf8PathBuf>,
    /// The namespace of the platform, where the catalogue is.
    #[arg(long, value_name = "NAME", default_value = "scantling")]
    namespace: String,
    /// A name that no other operator has; without it, the pod's.
    #[arg(long, value_name = "NAME", env = "POD_NAME", hide_env_values = true)]
    name: Option<String>,
    /// Tell also what is not a decision: that reconcilers were asked, that notebooks answered.
    #[arg(long)]
    verbose: bool,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let name = match arguments.name.as_deref().filter(|name| !name.is_empty()) {
            Some(name) => name.to_owned(),
            None => own_name()?,
        };
        let verbose = arguments.verbose;
        let operator = Arc::new(Operator::new(Parts {
            registries: registries(
                arguments.registries.clone(),
                connected.cluster.clone(),
                arguments.namespace.clone(),
            ),
            cluster: connected.cluster,
            clock: clock(),
            entropy: entropy()?,
            ask: ask_over_http(),
            identity: format!("operator/{name}"),
            namespace: arguments.namespace.clone(),
            vantage: "a pod in the cluster".to_owned(),
            lines: Box::new(move |line| {
                if verbose || line.told.is_decision() {
                    print(line);
                }
            }),
        }));
        let (stop, stops) = watch::channel(false);
        tokio::select! {
            biased;
            failed = serve(operator.clone(), arguments.listen, arguments.metrics_token.clone()) => match failed {
                Ok(never) => match never {},
                Err(failure) => return Err(failure),
            },
            () = operator.run(stops) => {}
            told = told_to_end(&stop) => return Err(told),
        }
        Ok(Outcome::Fine)
    })
}

/// Passes the first signal on, and ends at the second.
async fn told_to_end(stop: &watch::Sender<bool>) -> Failure {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return Failure::failed("the operating system gives no signals");
    };
    for _ in 0..2 {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.send_replace(true);
    }
    Failure::failed("ended at the second signal; leases end by themselves within 30 seconds")
}

/// Rules and credentials as they are when somebody asks: mounted files first, then the cluster's own, with the pull secrets of
/// the platform's namespace.
fn registries(
    arguments: RegistryArguments,
    cluster: Cluster,
    namespace: String,
) -> Box<scantling_operator::Registries> {
    let arguments = Arc::new(arguments);
    Box::new(move || {
        let (arguments, cluster, namespace) = (arguments.clone(), cluster.clone(), namespace.clone());
        Box::pin(async move {
            let (mut mirrors, mut keyring) = arguments.as_mounted().rules().map_err(Failure::into_message)?;
            add_kept_rules(&cluster, &mut mirrors).await?;
            let unread = read_registry_rules(&cluster, Some(&namespace), &mut mirrors, &mut keyring)
                .await
                .map_err(|error| error.to_string())?;
            Ok((client(mirrors, keyring).map_err(Failure::into_message)?, unread))
        })
    })
}

/// The rules that an admin keeps in the cluster for the operator: each key of the `ConfigMap` is a file as for `--mirrors`.
async fn add_kept_rules(cluster: &Cluster, mirrors: &mut Mirrors) -> Result<(), String> {
    let served = cluster.served().await.map_err(|error| error.to_string())?;
    let key = ObjectKey::namespaced("", "ConfigMap", SYSTEM_NAMESPACE, KEPT_RULES);
    let found = cluster.get_by_key(&served, &key).await.map_err(|error| error.to_string())?;
    let files = found.as_ref().and_then(|map| map.get("data")).and_then(serde_json::Value::as_object);
    for (name, text) in files.into_iter().flatten() {
        let path = Utf8PathBuf::from(format!("{KEPT_RULES}/{name}"));
        add_mirrors_of(mirrors, &path, text.as_str().unwrap_or_default().as_bytes())
            .map_err(Failure::into_message)?;
    }
    Ok(())
}

/// One line of JSON. Where nobody reads any more there is nobody to tell.
fn print(line: &Line) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&text).and_then(|()| out.flush());
    }
}
