//! The repository's own tasks, run with `cargo xtask TASK`.

mod api;

use std::path::{Path, PathBuf};

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
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().task {
        Task::Api(arguments) => api::run(&arguments, &root()),
    }
}

/// The folder of the workspace.
fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}
