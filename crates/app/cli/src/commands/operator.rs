//! `scantling operator`: the process in the cluster.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;

use clap::Args;
use scantling_cluster::Cluster;
use scantling_operator::{Line, Operator, Parts, ask_over_http};
use scantling_run::read_registry_rules;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::cluster::{ClusterArguments, clock, entropy, own_name};
use crate::outcome::{Failure, Outcome};
use crate::probes::serve;
use crate::registries::{RegistryArguments, client};
use crate::runs;

/// Keep a cluster's notebooks, models and platform as they should be, and perform the runs that are due. This is what runs in
/// the cluster; of several, one works and the others wait.
#[derive(Debug, Args)]
#[command(
    after_help = "Writes one line of JSON for each decision to standard output. GET /healthz, /readyz and /metrics say how it is. Told to \
                  end (SIGTERM, SIGINT), it stops between two writes and gives its leases back; another one, or `scantling upgrade`, \
                  continues a run that was under way. Here --mirrors may name a folder, and files that are not there are left out."
)]
pub(crate) struct Arguments {
    /// Where probes and metrics are served.
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0:8080")]
    listen: SocketAddr,
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
            registries: registries(arguments.registries.clone(), connected.cluster.clone()),
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
            failed = serve(operator.clone(), arguments.listen) => match failed {
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

/// Rules and credentials as they are when somebody asks: mounted files first, then the cluster's own.
fn registries(arguments: RegistryArguments, cluster: Cluster) -> Box<scantling_operator::Registries> {
    let arguments = Arc::new(arguments);
    Box::new(move || {
        let (arguments, cluster) = (arguments.clone(), cluster.clone());
        Box::pin(async move {
            let (mut mirrors, mut keyring) =
                arguments.as_mounted().rules().map_err(|failure| failure.into_message())?;
            read_registry_rules(&cluster, None, &mut mirrors, &mut keyring)
                .await
                .map_err(|error| error.to_string())?;
            client(mirrors, keyring).map_err(|failure| failure.into_message())
        })
    })
}

/// One line of JSON. Where nobody reads any more there is nobody to tell.
fn print(line: &Line) {
    if let Ok(mut text) = serde_json::to_vec(line) {
        text.push(b'\n');
        let mut out = std::io::stdout().lock();
        let _ = out.write_all(&text).and_then(|()| out.flush());
    }
}
