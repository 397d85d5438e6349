//! `scantling rollback`: back to an earlier release, by what the cluster keeps of it.

use clap::Args;
use scantling_report::findings::Texts;
use scantling_report::run::{Frame, Purpose};
use scantling_run::{Action, namespace_of_earlier, rollback};

use crate::cluster::{ClusterArguments, options};
use crate::outcome::{Failure, Outcome};
use crate::registries::RegistryArguments;
use crate::runs::{self, AskArguments, Job, ShownArguments};
use crate::terminal;

/// Go back to the release before, which the cluster keeps: no folder is needed. Also after an upgrade that stopped.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal the plan is shown and a question asked first; elsewhere nobody is asked. People's data, generated \
                  secrets and definitions of kinds stay, running notebooks are not restarted."
)]
pub(crate) struct Arguments {
    /// The version to go back to; the one before by default. `scantling status` says which are kept.
    #[arg(value_name = "VERSION")]
    to: Option<String>,
    #[command(flatten)]
    ask: AskArguments,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
    #[command(flatten)]
    registries: RegistryArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let to = arguments.to.as_deref();
        let stored = connected.environment_without_registries()?;
        // What cannot be gone back to is told by the run itself.
        let namespace = namespace_of_earlier(&stored, to).await.ok().flatten();
        let env = connected.environment(&arguments.registries, namespace.as_deref()).await?;
        let job = Job {
            frame: Frame {
                action: Action::Rollback,
                purpose: Purpose::Change,
                place: &connected.place.to_string(),
                command: &runs::again("rollback"),
                texts: &Texts::new(),
                detail: arguments.shown.detail(),
                screen: terminal::screen(),
            },
            options: options()?,
            shown: &arguments.shown,
        };
        let run = async |options: &_, sink: &mut dyn FnMut(_)| rollback(&env, to, options, sink).await;
        job.carry_out(&arguments.ask, &run).await
    })
}
