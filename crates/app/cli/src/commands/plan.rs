//! `scantling plan`: what an upgrade would do to a cluster.

use clap::Args;

use crate::bring::{BringArguments, bring};
use crate::outcome::{Failure, Outcome};

/// Say what `upgrade` would do to the cluster, object by object and node by node, and write nothing.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    bring: BringArguments,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    bring(&arguments.bring, None)
}
