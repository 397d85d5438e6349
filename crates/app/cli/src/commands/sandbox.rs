//! `scantling sandbox`: an example's cluster for any client.

use std::ffi::OsString;
use std::fmt::Write as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use rustix::process::{Pid, kill_process};
use scantling_files::write_file;
use scantling_rehearse::{BuiltImages, cluster_of};
use tokio::process::{Child, Command};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::rehearse;
use crate::outcome::{Failure, Outcome};
use crate::sandbox::{Served, WorldHandle, serve};
use crate::terminal;

/// Open an example's cluster on a loopback port, for kubectl and any other client.
#[derive(Debug, Args)]
#[command(
    after_help = "With a command after `--`, KUBECONFIG and SCANTLING_MIRRORS lead it into the sandbox; its exit code is \
                        this command's. Without one, the sandbox stays open until it is interrupted."
)]
pub(crate) struct Arguments {
    /// A folder with a rehearsal.yaml.
    example: Utf8PathBuf,
    /// Start with nothing installed, instead of just before the upgrade.
    #[arg(long)]
    empty: bool,
    /// Print every image of the example with its digest, and stop.
    #[arg(long, conflicts_with_all = ["empty", "command"])]
    images: bool,
    /// The API server's port; a free one by default.
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
    /// Seconds of virtual time that pass in a real second.
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    speed: u32,
    /// What all chance comes from.
    #[arg(long, default_value_t = 1, value_name = "N")]
    seed: u64,
    /// A command to run, with its arguments.
    #[arg(last = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Failure> {
    let scenario = rehearse::read(&arguments.example)?;
    if arguments.images {
        let images = BuiltImages::build(&scenario.images).map_err(Failure::failed)?;
        let mut text = String::new();
        for (_, name, digest) in images.names() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{digest}  {}", name.written());
        }
        terminal::print(&text)?;
        return Ok(Outcome::Fine);
    }
    let world = cluster_of(&scenario, arguments.seed, !arguments.empty)
        .map_err(|error| Failure::failed(format!("{}: {error}", arguments.example)))?;
    let mut hosts: Vec<String> = scenario.registries();
    hosts.extend(scenario.cluster.internal_registry.clone());
    let world = WorldHandle::start(world, arguments.speed)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let served = runtime.block_on(serve(&world, arguments.port)).map_err(|error| {
        Failure::failed(format!("cannot listen on 127.0.0.1, port {}: {error}", arguments.port))
    })?;

    // Removed when it goes out of scope.
    let temporary = tempfile::Builder::new().prefix("scantling-sandbox-").tempdir()?;
    let folder = Utf8Path::from_path(temporary.path())
        .ok_or_else(|| Failure::failed("the folder for temporary files has a name that is not UTF-8"))?;
    let kubeconfig = folder.join("kubeconfig");
    let mirrors = folder.join("mirrors.yaml");
    write_file(&kubeconfig, kubeconfig_for(served).as_bytes())?;
    write_file(&mirrors, mirrors_for(served, &hosts).as_bytes())?;

    let Some((program, rest)) = arguments.command.split_first() else {
        let mut text = format!("export KUBECONFIG={kubeconfig}\nexport SCANTLING_MIRRORS={mirrors}\n");
        let _ = writeln!(text, "# the sandbox is open at http://{}; interrupt to close it", served.api);
        runtime.block_on(async {
            // Listened for before anybody is told that there is something to interrupt.
            let mut ending = Ending::listen()?;
            terminal::print(&text)?;
            ending.next().await;
            std::io::Result::Ok(())
        })?;
        return Ok(Outcome::Fine);
    };
    let status = runtime
        .block_on(async {
            let mut ending = Ending::listen()?;
            let mut child = Command::new(program)
                .args(rest)
                .env("KUBECONFIG", &kubeconfig)
                .env("SCANTLING_MIRRORS", &mirrors)
                .spawn()?;
            loop {
                tokio::select! {
                    status = child.wait() => return status,
                    signal = ending.next() => pass_on(signal, &child),
                }
            }
        })
        .map_err(|error| Failure::usage(format!("cannot run {}: {error}", program.to_string_lossy())))?;
    Ok(Outcome::Other(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(3)))
}

/// The signals that end a sandbox. Answered, so that nothing is left behind.
struct Ending {
    interrupt: Signal,
    terminate: Signal,
}

impl Ending {
    fn listen() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) -> SignalKind {
        tokio::select! {
            _ = self.interrupt.recv() => SignalKind::interrupt(),
            _ = self.terminate.recv() => SignalKind::terminate(),
        }
    }
}

/// A terminal interrupts the command by itself; who ends this program means the command as well.
fn pass_on(signal: SignalKind, child: &Child) {
    let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(id) = id.filter(|_| signal == SignalKind::terminate()) {
        // It may have ended by itself just now.
        let _ = kill_process(id, rustix::process::Signal::TERM);
    }
}

fn kubeconfig_for(served: Served) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: sandbox\nclusters:\n- name: sandbox\n  cluster:\n    server: http://{}\n\
         contexts:\n- name: sandbox\n  context:\n    cluster: sandbox\n    user: admin\nusers:\n- name: admin\n  user: {{}}\n",
        served.api
    )
}

fn mirrors_for(served: Served, hosts: &[String]) -> String {
    let mut text = "version: 1\nendpoints:\n".to_owned();
    for host in hosts {
        let _ =
            writeln!(text, "- {{registry: \"{host}\", address: \"{}\", insecure: true}}", served.registry);
    }
    text
}
