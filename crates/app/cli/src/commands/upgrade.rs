//! `scantling upgrade`: a release is brought to a cluster; installing is upgrading from nothing.

use clap::Args;

use crate::bring::{BringArguments, bring};
use crate::outcome::{Failure, Outcome};
use crate::runs::AskArguments;

/// Bring a release to a cluster: install it, or upgrade what is there. Run again, it continues a run that did not end.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal the plan is shown and a question asked first. Elsewhere (a script, a pipeline, --output json) nobody \
                  is asked: what a person would have to decide stops the run before anything is written. \
                  Exit code 1 if it was refused or has stopped, 3 if the cluster could not be asked, or not any more; the report says \
                  how far it came and what continues it."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    bring: BringArguments,
    #[command(flatten)]
    ask: AskArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    bring(&arguments.bring, Some(&arguments.ask))
}
