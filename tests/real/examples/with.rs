//! Brings a real cluster up, runs a command in its network, and takes it down:
//! `cargo run -p scantling-real-tests --example with -- 2 bash`.
//!
//! The command finds `KUBECONFIG`, `REGISTRY` and `SCANTLING_MIRRORS` in its environment, and `kubectl` in its path.

use std::process::{Command, ExitCode};

use anyhow::Context as _;
use scantling_real_tests::RealCluster;

fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let nodes = arguments.next().context("how many nodes?")?.parse().context("how many nodes?")?;
    let program = arguments.next().unwrap_or_else(|| "bash".to_owned());
    let Some(cluster) = RealCluster::up(nodes)? else { return Ok(ExitCode::FAILURE) };
    let tools = cluster.tools()?;
    let path = std::env::var("PATH").unwrap_or_default();
    let status = Command::new(program)
        .args(arguments)
        .env("PATH", format!("{}:{path}", tools.display()))
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("REGISTRY", cluster.registry())
        .env("SCANTLING_MIRRORS", cluster.endpoints())
        .status()?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
