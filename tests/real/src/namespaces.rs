//! Namespaces that end with this process.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Pid, Signal, kill_process};

/// Namespaces of processes, mounts, network, host name and IPC, with everything that runs in them.
///
/// Their first process waits for the end of a pipe that only this process holds open. It is a shell because it must also
/// bury the orphans that containerd leaves.
pub(crate) struct Namespaces {
    outer: Child,
    first: u32,
    /// Programs that were started in them, as far as they must be waited for.
    children: Vec<Child>,
    log: PathBuf,
}

impl Namespaces {
    /// Makes them. What programs print goes to `log`, a folder.
    pub(crate) fn new(log: &Path) -> anyhow::Result<Self> {
        std::fs::create_dir_all(log)?;
        let output = File::create(log.join("namespaces.log"))?;
        let mut outer = Command::new("unshare")
            .args(["--mount", "--pid", "--net", "--uts", "--ipc", "--fork", "--kill-child", "--mount-proc"])
            .args(["bash", "-c", "read -r _"])
            .stdin(Stdio::piped())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("failed to run unshare")?;
        let path = format!("/proc/{0}/task/{0}/children", outer.id());
        let mut first = None;
        let found = wait(Duration::from_secs(10), || {
            let pid = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<u32>().ok());
            // It is in its place when it has become the shell: the mount of /proc comes before that.
            first = pid.filter(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(b"bash"))
            });
            first.is_some()
        });
        let Some(first) = first.filter(|_| found) else {
            let _ = outer.kill();
            let _ = outer.wait();
            bail!("unshare made no namespaces; see {}", log.display());
        };
        Ok(Self { outer, first, children: Vec::new(), log: log.to_owned() })
    }

    /// The first process, as this machine counts.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }

    /// A command that runs in them.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.arg("--target").arg(self.first.to_string());
        command.args(["--mount", "--pid", "--net", "--uts", "--ipc", "--"]).arg(program);
        command
    }

    /// Runs a script of bash in them to its end.
    pub(crate) fn script(&self, script: &str) -> anyhow::Result<Output> {
        let output = self.command("bash").args(["-euc", script]).output().context("failed to run nsenter")?;
        if !output.status.success() {
            bail!("{script}\nfailed: {}", String::from_utf8_lossy(&output.stderr).trim());
        }
        Ok(output)
    }

    /// Starts a program in them; it ends with them. What it prints is in `NAME.log`.
    pub(crate) fn start(
        &mut self,
        name: &str,
        program: impl AsRef<std::ffi::OsStr>,
        arguments: &[String],
    ) -> anyhow::Result<()> {
        let output = File::create(self.log.join(format!("{name}.log")))?;
        let child = self
            .command(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("failed to start {name}"))?;
        self.children.push(child);
        Ok(())
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        // With the first process all others end, and with them mounts and network.
        drop(self.outer.stdin.take());
        // Its number is nobody else's as long as its parent has not ended.
        if matches!(self.outer.try_wait(), Ok(None))
            && let Some(first) = Pid::from_raw(i32::try_from(self.first).unwrap_or_default())
        {
            let _ = kill_process(first, Signal::KILL);
        }
        let _ = self.outer.wait();
        for child in &mut self.children {
            let _ = child.wait();
        }
    }
}

/// Waits until something is so; whether it came to be.
pub(crate) fn wait(at_most: Duration, mut is_so: impl FnMut() -> bool) -> bool {
    #[expect(clippy::disallowed_methods, reason = "a real cluster runs in real time")]
    let now = Instant::now;
    let start = now();
    loop {
        if is_so() {
            return true;
        }
        if now().duration_since(start) > at_most {
            return false;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}
