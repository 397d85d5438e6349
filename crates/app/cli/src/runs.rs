//! What upgrades, the way back and removals have in common: they are planned, asked about, watched and reported.

use std::io::IsTerminal as _;

use clap::Args;
use scantling_finding::Severity;
use scantling_image::Digest;
use scantling_plan::Plan;
use scantling_report::json;
use scantling_report::objects::Detail;
use scantling_report::run::{End, Frame, Purpose};
use scantling_run::{Action, Options, RunError, RunEvent, RunReport};
use tokio::runtime::Runtime;

use crate::commands::Format;
use crate::outcome::{Failure, Outcome};
use crate::terminal;
use crate::waits::WaitArguments;
use crate::watch::{Audience, Display, interrupts};

/// How a run is shown.
#[derive(Debug, Args)]
pub(crate) struct ShownArguments {
    /// Show every object and field.
    #[arg(long, short)]
    verbose: bool,
    /// How the report is written.
    #[arg(long, value_enum, default_value_t = Format::Terminal)]
    output: Format,
}

impl ShownArguments {
    pub(crate) fn detail(&self) -> Detail {
        if self.verbose { Detail::All } else { Detail::Summary }
    }
}

/// Whether a run asks first.
#[derive(Debug, Args)]
pub(crate) struct AskArguments {
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Say what would happen, and write nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    #[command(flatten)]
    waits: WaitArguments,
}

/// A run, from the question to the report. It is done by a function of options and of where events go.
pub(crate) struct Job<'a> {
    pub(crate) frame: Frame<'a>,
    pub(crate) options: Options,
    pub(crate) shown: &'a ShownArguments,
}

impl Job<'_> {
    /// Only says what would happen.
    pub(crate) async fn plan(
        &self,
        run: &impl AsyncFn(&Options, &mut dyn FnMut(RunEvent)) -> Result<RunReport, RunError>,
    ) -> Result<Outcome, Failure> {
        let (_, outcome) = self.foresee(Purpose::Plan, run).await?;
        Ok(outcome)
    }

    /// Does it, if nobody who could be asked is against it.
    pub(crate) async fn carry_out(
        &self,
        ask: &AskArguments,
        run: &impl AsyncFn(&Options, &mut dyn FnMut(RunEvent)) -> Result<RunReport, RunError>,
    ) -> Result<Outcome, Failure> {
        if ask.dry_run {
            return self.plan(run).await;
        }
        let somebody_is_there = self.shown.output == Format::Terminal
            && std::io::stdin().is_terminal()
            && std::io::stderr().is_terminal();
        let removes = self.frame.action == Action::Uninstall;
        if !ask.yes && !somebody_is_there && removes {
            return Err(Failure::usage("nobody is there to be asked whether the platform may be removed")
                .with_hint("--yes removes it, --dry-run says what would be removed"));
        }
        let mut options = Options { waits: ask.waits.waits(), ..self.options.clone() };
        if !ask.yes && somebody_is_there {
            let (approved, outcome) = self.foresee(Purpose::Question, run).await?;
            if outcome != Outcome::Fine {
                return Ok(outcome);
            }
            let question =
                format!("{} {}?", if removes { "remove it from" } else { "write it to" }, self.frame.place);
            if !asked(&question).await? {
                terminal::complain("nothing was written\n");
                return Ok(Outcome::Faults);
            }
            options.approved = approved;
        }
        options.stop = Some(interrupts()?);
        let mut display = Display::new(Audience::Whole);
        let result = run(&options, &mut |event| display.show(&event)).await;
        drop(display);
        self.report(&result, Purpose::Change)
    }

    /// Finds out what would happen and shows it.
    async fn foresee(
        &self,
        purpose: Purpose,
        run: &impl AsyncFn(&Options, &mut dyn FnMut(RunEvent)) -> Result<RunReport, RunError>,
    ) -> Result<(Option<Digest>, Outcome), Failure> {
        let options = Options { dry_run: true, ..self.options.clone() };
        let mut display = Display::new(Audience::Soon);
        let result = run(&options, &mut |event| display.show(&event)).await;
        drop(display);
        let plan = result.as_ref().ok().and_then(|report| report.plan.as_ref()).map(Plan::digest);
        Ok((plan, self.report(&result, purpose)?))
    }

    /// Shows a report and says what the shell is told.
    fn report(&self, result: &Result<RunReport, RunError>, purpose: Purpose) -> Result<Outcome, Failure> {
        let frame = Frame { purpose, ..self.frame };
        terminal::print(&match self.shown.output {
            Format::Json => json::run(result, &frame)? + "\n",
            Format::Terminal => scantling_report::run::run(result, &frame),
        })?;
        let (end, report) = End::of(result);
        let is_error = report.findings.iter().any(|finding| finding.severity == Severity::Error);
        Ok(match end {
            End::Done if !is_error => Outcome::Fine,
            End::Refused(_) | End::Stopped(..) if report.cut_off.is_some() => Outcome::CutOff,
            _ => Outcome::Faults,
        })
    }
}

/// The runtime of a command that talks to a cluster. Signals are answered while a thread computes.
pub(crate) fn runtime() -> Result<Runtime, Failure> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}

/// What is stored in the cluster, or the cluster, cannot be read.
pub(crate) fn unread(error: RunError) -> Failure {
    match error {
        RunError::Refused { why, .. } | RunError::Stopped { why, .. } => Failure::failed(why),
    }
}

/// Asks a question that only `y` or `yes` answers with yes.
async fn asked(question: &str) -> Result<bool, Failure> {
    terminal::complain(&format!("{question} [y/N] "));
    let answer = tokio::task::spawn_blocking(|| {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).map(|_| line)
    });
    let line = answer.await.map_err(|error| Failure::failed(error.to_string()))??;
    Ok(matches!(line.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The command that was given, as another subcommand and without what is only about how it is shown and asked: what to run
/// next.
pub(crate) fn again(subcommand: &str) -> String {
    again_of(subcommand, std::env::args().skip(1))
}

fn again_of(subcommand: &str, arguments: impl Iterator<Item = String>) -> String {
    let mut words = vec!["scantling".to_owned()];
    let mut arguments = arguments;
    let mut named = false;
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--yes" | "-y" | "--verbose" | "-v" | "--dry-run" => {}
            "--output" | "--color" => {
                arguments.next();
            }
            other if other.starts_with("--output=") || other.starts_with("--color=") => {}
            other if !named && !other.starts_with('-') => {
                named = true;
                words.push(subcommand.to_owned());
            }
            other => words.push(quoted(other)),
        }
    }
    words.join(" ")
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::again_of;

    #[test]
    fn the_next_command_has_what_matters() {
        let again = |text: &str| again_of("upgrade", text.split(' ').map(ToOwned::to_owned));
        for (given, next) in [
            (
                "plan releases/2026.1 --registry 10.0.0.1:5000",
                "scantling upgrade releases/2026.1 --registry 10.0.0.1:5000",
            ),
            (
                "--color always plan -v --output json a --output=json --context b",
                "scantling upgrade a --context b",
            ),
            ("upgrade it's --yes", "scantling upgrade 'it'\\''s'"),
        ] {
            assert_eq!(again(given), next);
        }
    }
}
