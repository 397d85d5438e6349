//! `scantling history`: the runs that a cluster has seen.

use clap::Args;
use scantling_report::{json, status as report};
use scantling_run::history;

use crate::cluster::ClusterArguments;
use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::{runs, terminal};

/// List the last runs that changed the cluster: when, what, by whom, and how each ended.
#[derive(Debug, Args)]
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
        let found = history(&connected.environment_without_registries()?).await.map_err(runs::unread)?;
        let place = connected.place.to_string();
        terminal::print(&match arguments.output {
            Format::Json => json::history(&found, &place)? + "\n",
            Format::Terminal => report::history(&found, &place, terminal::screen()),
        })?;
        Ok(Outcome::Fine)
    })
}
