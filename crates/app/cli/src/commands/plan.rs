//! `scantling plan`: what an upgrade would do to a cluster.

use clap::Args;
use scantling_report::run::{Frame, Purpose};
use scantling_run::{Action, upgrade};

use crate::bring::ReleaseArguments;
use crate::cluster::ClusterArguments;
use crate::outcome::{Failure, Outcome};
use crate::registries::RegistryArguments;
use crate::runs::{self, AskArguments, Job, ShownArguments};
use crate::terminal;

/// Say what `upgrade` would do to the cluster, object by object and node by node, and write nothing.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) release: ReleaseArguments,
    #[command(flatten)]
    pub(crate) shown: ShownArguments,
    #[command(flatten)]
    pub(crate) cluster: ClusterArguments,
    #[command(flatten)]
    pub(crate) registries: RegistryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    bring(arguments, None)
}

/// Plans to bring a release; brings it if it is said whether to ask first.
pub(crate) fn bring(arguments: &Arguments, ask: Option<&AskArguments>) -> Result<Outcome, Failure> {
    let folders = arguments.release.folders()?;
    let texts = folders.texts();
    let read = arguments.release.read(&folders, &texts)?;
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let env = connected.environment(&arguments.registries, read.release.namespace.as_deref()).await?;
        let job = Job {
            frame: Frame {
                action: Action::Upgrade,
                purpose: Purpose::Plan,
                place: &connected.place.to_string(),
                command: &format!("scantling upgrade {}", arguments.release.release),
                texts: &texts,
                detail: arguments.shown.detail(),
                screen: terminal::screen(),
            },
            options: read.options,
            shown: &arguments.shown,
        };
        let run = async |options: &_, sink: &mut dyn FnMut(_)| upgrade(&env, &read.release, options, sink).await;
        match ask {
            None => job.plan(&run).await,
            Some(ask) => job.carry_out(ask, &run).await,
        }
    })
}
