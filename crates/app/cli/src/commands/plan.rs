//! `scantling plan`: what an upgrade would do to a cluster.

use clap::Args;
use scantling_report::run::{Command, Frame};
use scantling_run::upgrade as plan;

use crate::cluster::ClusterArguments;
use crate::outcome::{Failure, Outcome};
use crate::registries::RegistryArguments;
use crate::runs::{self, ReleaseArguments, ShownArguments};
use crate::terminal;
use crate::watch::{Audience, Display};

/// Say what `upgrade` would do to the cluster, object by object and node by node, and write nothing.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    release: ReleaseArguments,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let folders = arguments.release.folders()?;
    let texts = folders.texts();
    let read = arguments.release.read(&folders, &texts)?;
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let env = connected.environment(&arguments.registries, read.release.namespace.as_deref()).await?;
        let mut display = Display::new(Audience::Soon);
        let result = plan(&env, &read.release, &read.options(), &mut |event| display.show(&event)).await;
        drop(display);
        let frame = Frame {
            command: Command::Plan,
            place: &connected.place.to_string(),
            named: arguments.release.release.as_str(),
            texts: &texts,
            detail: arguments.shown.detail(),
            screen: terminal::screen(),
        };
        runs::report(&result, &frame, arguments.shown.output)
    })
}
