//! `scantling upgrade`: a release is brought to a cluster; installing is upgrading from nothing.

use clap::Args;
use scantling_report::run::{Command, Frame};
use scantling_run::upgrade;
use scantling_run::upgrade as plan;

use crate::cluster::ClusterArguments;
use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::registries::RegistryArguments;
use crate::runs::{self, ReleaseArguments, ShownArguments};
use crate::terminal;
use crate::watch::{Audience, Display, Stop};

/// Bring a release to a cluster: install it, or upgrade what is there. Run again, it continues a run that did not end.
#[derive(Debug, Args)]
#[command(
    after_help = "On a terminal the plan is shown and a question asked first. Elsewhere (a script, a pipeline, --output json) nobody \
                  is asked: what would have to be decided by a person stops the run before anything is written."
)]
pub(crate) struct Arguments {
    #[command(flatten)]
    release: ReleaseArguments,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
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
    let shown = &arguments.shown;
    runs::runtime()?.block_on(async {
        let connected = arguments.cluster.connect().await?;
        let env = connected.environment(&arguments.registries, read.release.namespace.as_deref()).await?;
        let place = connected.place.to_string();
        let frame = Frame {
            command: Command::Upgrade,
            place: &place,
            named: arguments.release.release.as_str(),
            texts: &texts,
            detail: shown.detail(),
            screen: terminal::screen(),
        };
        let options = read.options();
        if !arguments.yes && shown.output == Format::Terminal && runs::can_ask() {
            let mut display = Display::new(Audience::Soon);
            let planned = plan(&env, &read.release, &options, &mut |event| display.show(&event)).await;
            drop(display);
            let outcome = runs::report(&planned, &Frame { command: Command::Plan, ..frame }, shown.output)?;
            if outcome != Outcome::Fine || !runs::ask(&format!("bring it to {place}?")).await? {
                return Ok(Outcome::Faults);
            }
        }
        let mut stop = Stop::listen()?;
        let mut display = Display::new(Audience::Whole);
        let mut sink = |event| display.show(&event);
        let ended = stop.during(upgrade(&env, &read.release, &options, &mut sink)).await;
        drop(display);
        match ended {
            Some(result) => runs::report(&result, &frame, shown.output),
            None => {
                Err(Failure::failed("stopped by an interrupt")
                    .with_hint("the same command continues the run"))
            }
        }
    })
}
