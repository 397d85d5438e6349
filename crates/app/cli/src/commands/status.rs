//! `scantling status`: what a cluster has of the platform.

use clap::Args;
use scantling_report::{json, status as report};
use scantling_run::status;

use crate::cluster::ClusterArguments;
use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::{runs, terminal};

/// Say which release the cluster has, whether all of it is there and works, and which run is going on.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit code 1 if something is missing, does not work or was edited, if a run has stopped in the middle, or if the state is gone."
)]
pub(crate) struct Arguments {
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let found = status(&connected.environment_without_registries()?).await.map_err(runs::unread)?;
        let place = connected.place.to_string();
        terminal::print(&match arguments.output {
            Format::Json => json::status(&found, &place)? + "\n",
            Format::Terminal => report::status(&found, &place, terminal::screen()),
        })?;
        Ok(Outcome::of(usize::from(report::needs_somebody(&found))))
    })
}
