//! The `scantling` command.

mod bring;
mod cluster;
mod commands;
mod input;
mod outcome;
mod passwords;
mod probes;
mod registries;
mod release_settings;
mod runs;
mod sandbox;
mod terminal;
mod waits;
mod watch;

use std::process::ExitCode;

use clap::{ColorChoice, Parser, Subcommand};

/// Installs and upgrades a data-science platform on Kubernetes and OpenShift so that what the release declares is what
/// every node pulls, what every pod runs, and what every screen says.
#[derive(Debug, Parser)]
#[command(name = "scantling", version, propagate_version = true, max_term_width = 110)]
#[command(
    after_help = "Exit codes: 0 all well, 1 faults were found, 2 the command was used wrongly, 3 it could not be done."
)]
struct Arguments {
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value_t = ColorChoice::Auto, value_name = "WHEN")]
    color: ColorChoice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Plan(commands::plan::Arguments),
    Upgrade(commands::upgrade::Arguments),
    Status(commands::status::Arguments),
    History(commands::history::Arguments),
    Rollback(commands::rollback::Arguments),
    Uninstall(commands::uninstall::Arguments),
    Rbac(commands::rbac::Arguments),
    Operator(commands::operator::Arguments),
    Audit(commands::audit::Arguments),
    Check(commands::check::Arguments),
    Rehearse(commands::rehearse::Arguments),
    Sandbox(commands::sandbox::Arguments),
    Refs(commands::refs::Arguments),
    Snapshot(commands::snapshot::Arguments),
    Lock(commands::lock::Arguments),
    FetchModel(commands::fetch_model::Arguments),
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    terminal::choose_color(arguments.color);
    let outcome = match arguments.command {
        Command::Plan(arguments) => commands::plan::run(&arguments),
        Command::Upgrade(arguments) => commands::upgrade::run(&arguments),
        Command::Status(arguments) => commands::status::run(&arguments),
        Command::History(arguments) => commands::history::run(&arguments),
        Command::Rollback(arguments) => commands::rollback::run(&arguments),
        Command::Uninstall(arguments) => commands::uninstall::run(&arguments),
        Command::Rbac(arguments) => commands::rbac::run(&arguments),
        Command::Operator(arguments) => commands::operator::run(&arguments),
        Command::Audit(arguments) => commands::audit::run(&arguments),
        Command::Check(arguments) => commands::check::run(&arguments),
        Command::Rehearse(arguments) => commands::rehearse::run(&arguments),
        Command::Sandbox(arguments) => commands::sandbox::run(&arguments),
        Command::Refs(arguments) => commands::refs::run(&arguments),
        Command::Snapshot(arguments) => commands::snapshot::run(&arguments),
        Command::Lock(arguments) => commands::lock::run(&arguments),
        Command::FetchModel(arguments) => commands::fetch_model::run(&arguments),
    };
    outcome::exit_code(outcome)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn arguments_do_not_clash() {
        super::Arguments::command().debug_assert();
    }
}
