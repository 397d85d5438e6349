//! `scantling uninstall`: the platform is taken away, people's data stays.

use clap::Args;
use scantling_report::findings::Texts;
use scantling_report::run::{Frame, Purpose};
use scantling_run::{Action, uninstall};

use crate::cluster::{ClusterArguments, options};
use crate::outcome::{Failure, Outcome};
use crate::runs::{self, AskArguments, Job, ShownArguments};
use crate::terminal;

/// Remove what Scantling created. What holds people's data stays, and what was there before; each is named with its cause.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal it is shown what would go and a question asked first; elsewhere --yes is needed. Run again, it \
                  continues a removal that did not end."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    ask: AskArguments,
    #[command(flatten)]
    shown: ShownArguments,
    #[command(flatten)]
    cluster: ClusterArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let env = connected.environment_without_registries()?;
        let job = Job {
            frame: Frame {
                action: Action::Uninstall,
                purpose: Purpose::Change,
                place: &connected.place.to_string(),
                command: &runs::again("uninstall"),
                texts: &Texts::new(),
                detail: arguments.shown.detail(),
                screen: terminal::screen(),
            },
            options: options()?,
            shown: &arguments.shown,
        };
        let run = async |options: &_, sink: &mut dyn FnMut(_)| uninstall(&env, options, sink).await;
        job.carry_out(&arguments.ask, &run).await
    })
}
