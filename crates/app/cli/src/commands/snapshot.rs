//! `scantling snapshot`: a live cluster, written down.

use camino::Utf8PathBuf;
use clap::Args;
use scantling_report::{json, snapshot as report};
use scantling_snapshot::{TakeError, TakeEvent, TakeSettings, TokenKey, take};

use crate::cluster::{ClusterArguments, cannot_reach, clock, random};
use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::{runs, terminal};

/// Write down what a cluster holds, to be looked at elsewhere: every kind that may be listed, page by page, values of secrets replaced.
#[derive(Debug, Args)]
#[command(
    allow_missing_positional = true,
    after_help = "Nothing but the right to list is needed. What may not be listed is named, with the right that is missing, in the report \
                  and in the folder's index.json; the exit code is then 1. A run that was ended continues with the same command. \
                  Values of secrets become tokens: equal values have equal tokens within a snapshot, and nobody can go back from them. \
                  Values that are written into other objects, such as variables of containers, stay as they are."
)]
pub(crate) struct Arguments {
    /// The context in the kubeconfig; without it, its current one.
    context: Option<String>,
    /// Where to: a folder that is not there yet, or one with a snapshot that was begun.
    folder: Utf8PathBuf,
    /// Only this namespace, and the objects that are in none.
    #[arg(long, short, value_name = "NAME")]
    namespace: Option<String>,
    /// The kubeconfig; without it KUBECONFIG, then ~/.kube/config, then the service account of the pod that this runs in.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<Utf8PathBuf>,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    runs::runtime()?.block_on(async {
        let cluster = ClusterArguments::of(arguments.kubeconfig.clone(), arguments.context.clone());
        let connected = cluster.connect().await?;
        let settings = TakeSettings {
            folder: arguments.folder.clone(),
            namespace: arguments.namespace.clone(),
            server: connected.place.server.clone(),
            key: TokenKey::new(random()?),
            clock: clock(),
        };
        let spinner = terminal::spinner();
        let index = take(&connected.cluster, &settings, &mut |event| match event {
            TakeEvent::Continued => spinner.set_message("continuing a snapshot that was begun"),
            TakeEvent::Page(kind, objects) => spinner.set_message(format!("{kind}: {objects}")),
            TakeEvent::Again(kind) => {
                spinner.set_message(format!("{kind}: once more, the server had forgotten where it was"));
            }
            TakeEvent::NotSeen(resource) => spinner.set_message(format!("{}: not seen", resource.resource)),
        })
        .await;
        spinner.finish_and_clear();
        let index = index.map_err(|error| failure(error, arguments))?;
        terminal::print(&match arguments.output {
            Format::Json => json::snapshot(&index)? + "\n",
            Format::Terminal => report::taken(&index, arguments.folder.as_str(), terminal::screen()),
        })?;
        Ok(Outcome::of(usize::from(report::needs_somebody(&index))))
    })
}

fn failure(error: TakeError, arguments: &Arguments) -> Failure {
    let text = error.to_string();
    match error {
        TakeError::Cluster(error) if arguments.folder.join("index.json").exists() => {
            cannot_reach(&error).with_hint("what came is kept: the same command continues from there")
        }
        TakeError::Cluster(error) => cannot_reach(&error),
        TakeError::Files(error) => error.into(),
        TakeError::Occupied(_) | TakeError::Foreign(..) | TakeError::Complete(_) => Failure::usage(text),
    }
}
