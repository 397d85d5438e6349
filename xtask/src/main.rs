//! The repository's own tasks, run with `cargo xtask TASK`.

#![allow(clippy::print_stdout, reason = "a task speaks to whoever runs it")]

mod api;
mod crds;
mod docs;
mod fuzz;
mod images;
mod real;
mod record;
mod test;
mod tidy;
mod tools;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Tasks of this repository.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write the facts about Kubernetes' API from the Go modules of a Kubernetes release (needs `go`).
    Api(api::Arguments),
    /// Write the definitions of our kinds from their types.
    Crds(crds::Arguments),
    /// Write a real API server's answers to the requests that the sandbox is held against (needs `curl`).
    Record(record::Arguments),
    /// Write the reference pages under docs/reference from the program and its code.
    Docs(docs::Arguments),
    /// Look for bytes that make a target of `fuzz/` fail (needs a C++ compiler).
    Fuzz(fuzz::Arguments),
    /// Build the program and make the operator's image of it, one for each release.
    Image(images::operator::Arguments),
    /// Make images from the recipes in `releases/images`, and push them (needs apt, dpkg and pip).
    Images(images::Arguments),
    /// Run everything that must hold before a change lands.
    Test(test::Arguments),
    /// Check the rules about the tree: which crate may use which, where time, chance and files come from.
    Tidy,
}

fn main() -> anyhow::Result<ExitCode> {
    match Arguments::parse().task {
        Task::Api(arguments) => api::run(&arguments, &root())?,
        Task::Crds(arguments) => crds::run(&arguments, &root())?,
        Task::Record(arguments) => record::run(&arguments, &root())?,
        Task::Docs(arguments) => docs::run(&arguments, &root())?,
        Task::Fuzz(arguments) => fuzz::run(&arguments, &root())?,
        Task::Image(arguments) => images::operator::run(&arguments, &root())?,
        Task::Images(arguments) => images::run(&arguments, &root())?,
        Task::Test(arguments) => return Ok(test::run(&arguments, &root())),
        Task::Tidy => tidy::run(&root())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
