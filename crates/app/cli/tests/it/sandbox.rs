//! `scantling sandbox`: opening, closing, and running commands in it.

use std::ffi::OsString;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use crate::command::{BINARY, Ran, UNPUBLISHED, repository, run, scantling};

/// A sandbox that stays open until it goes out of scope.
pub(crate) struct Open {
    child: Child,
    home: TempDir,
    kubeconfig: PathBuf,
    mirrors: PathBuf,
    url: String,
}

impl Open {
    /// Opens an example's cluster, in which time passes quickly.
    pub(crate) fn new(example: &str, options: &[&str]) -> Self {
        let home = TempDir::new().unwrap();
        let mut child = Command::new(BINARY)
            .args(["sandbox", example, "--speed", "50"])
            .args(options)
            .current_dir(repository())
            .env("TMPDIR", home.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut next = || lines.next().expect("a line").unwrap();
        let kubeconfig = next().strip_prefix("export KUBECONFIG=").expect("a kubeconfig").into();
        let mirrors = next().strip_prefix("export SCANTLING_MIRRORS=").expect("mirrors").into();
        let last = next();
        let (_, url) = last.split_once("open at ").expect("an address");
        let url = url.split(';').next().unwrap().to_owned();
        Self { child, home, kubeconfig, mirrors, url }
    }

    /// The file that leads to its API server.
    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The file that leads to its registries.
    pub(crate) fn mirrors(&self) -> &Path {
        &self.mirrors
    }

    /// Where its API server is.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// A folder for whatever a test needs.
    pub(crate) fn home(&self) -> &Path {
        self.home.path()
    }

    /// A client's command in the repository, with nothing of whoever runs the tests.
    pub(crate) fn client(&self, program: &Path, arguments: &[&str]) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(repository())
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.home.path())
            .env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// Runs a client to its end.
    pub(crate) fn run(&self, program: &Path, arguments: &[&str]) -> Ran {
        Ran::of(&mut assert_cmd::Command::from_std(self.client(program, arguments)))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // It may have been closed by its test.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A program that tests run if there is one; says so if there is none.
pub(crate) fn tool(name: &str, variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).filter(|path: &OsString| !path.is_empty()).map(PathBuf::from);
    let path = path.filter(|path| path.is_file());
    if path.is_none() {
        println!("skipped: {name} is not installed");
    }
    path
}

#[test]
fn a_commands_exit_code_and_outputs_are_passed_on() {
    let ran = run(&["sandbox", UNPUBLISHED, "--", "sh", "-c", "echo out; echo err >&2; exit 7"]);
    assert_eq!(ran, Ran { out: "out\n".to_owned(), err: "err\n".to_owned(), code: 7 });
    let ran = Ran::of(scantling(&["sandbox", UNPUBLISHED, "--", "cat", "-"]).write_stdin("typed\n"));
    assert_eq!(ran.report(0), "typed\n");
}

#[test]
fn a_command_finds_the_cluster_and_the_registries() {
    let script = "cat \"$KUBECONFIG\" \"$SCANTLING_MIRRORS\"; dirname \"$KUBECONFIG\" >&2";
    let ran = run(&["sandbox", UNPUBLISHED, "--", "sh", "-c", script]);
    assert_eq!(ran.code, 0);
    ran.says(&[
        "kind: Config",
        "server: http://127.0.0.1:",
        "{registry: \"registry.redhat.io\", address: \"127.0.0.1:",
    ]);
    let folder = Path::new(ran.err.trim_end());
    assert!(folder.is_absolute() && !folder.exists(), "{}: nothing is left behind", folder.display());
}

#[test]
fn an_open_sandbox_answers_until_it_is_interrupted() {
    let mut open = Open::new(UNPUBLISHED, &[]);
    let host = open.url.strip_prefix("http://").expect("plain HTTP on the loopback interface").to_owned();
    assert!(host.starts_with("127.0.0.1:"), "{host}");
    let version = get(&host, "/version");
    assert!(version.starts_with("HTTP/1.1 200 ") && version.contains("\"gitVersion\""), "{version}");
    let missing = get(&host, "/api/v1/namespaces/nowhere");
    assert!(missing.starts_with("HTTP/1.1 404 ") && missing.contains("\"reason\":\"NotFound\""), "{missing}");

    let interrupt = Command::new("kill").args(["-INT", &open.child.id().to_string()]).status().unwrap();
    assert!(interrupt.success());
    assert_eq!(open.child.wait().unwrap().code(), Some(0));
    assert!(!open.kubeconfig.exists(), "nothing is left behind");
    assert!(TcpStream::connect(&host).is_err(), "nobody listens any more");
}

#[test]
fn a_sandbox_that_is_ended_leaves_nothing_behind_and_ends_its_command() {
    let mut open = Open::new(UNPUBLISHED, &[]);
    let ended = Command::new("kill").args(["-TERM", &open.child.id().to_string()]).status().unwrap();
    assert!(ended.success());
    assert_eq!(open.child.wait().unwrap().code(), Some(0));
    assert!(!open.kubeconfig.parent().unwrap().exists());

    let home = TempDir::new().unwrap();
    let mut child = Command::new(BINARY)
        .args(["sandbox", UNPUBLISHED, "--", "sh", "-c", "echo $$; exec sleep 600"])
        .current_dir(repository())
        .env("TMPDIR", home.path())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let inner = BufReader::new(child.stdout.take().unwrap()).lines().next().unwrap().unwrap();
    assert_eq!(home.path().read_dir().unwrap().count(), 1);
    let ended = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap();
    assert!(ended.success());
    assert_eq!(child.wait().unwrap().code(), Some(3), "its command was ended by a signal");
    assert_eq!(home.path().read_dir().unwrap().count(), 0, "nothing is left behind");
    assert!(!Path::new("/proc").join(inner).exists(), "nobody sleeps on");
}

fn get(host: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_port_that_is_taken_is_told() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let complaint = run(&["sandbox", UNPUBLISHED, "--port", &port, "--", "true"]).complaint(3);
    assert!(complaint.starts_with("error: ") && complaint.contains("in use"), "{complaint}");
    assert!(complaint.contains(&port), "which port: {complaint}");
    drop(taken);
    run(&[
        "sandbox",
        UNPUBLISHED,
        "--port",
        &port,
        "--",
        "sh",
        "-c",
        &format!("grep -q 127.0.0.1:{port} $KUBECONFIG"),
    ])
    .report(0);
}

#[test]
fn flags_that_exclude_each_other_are_refused() {
    for arguments in [
        &["sandbox", UNPUBLISHED, "--images", "--empty"][..],
        &["sandbox", UNPUBLISHED, "--images", "--", "true"],
        &["sandbox", UNPUBLISHED, "--speed", "0", "--", "true"],
    ] {
        let complaint = run(arguments).complaint(2);
        assert!(complaint.contains(arguments[2]), "{complaint}");
    }
}
