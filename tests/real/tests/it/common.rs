//! What several tests do with a real cluster.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use jiff::Timestamp;
use scantling_cluster::{Clock, Cluster};
use scantling_contents::BuiltImage;
use scantling_image::{Digest, Reference};
use scantling_real_tests::{File, RealCluster, image, pusher};
use scantling_release::{Release, Settings};
use scantling_run::{Entropy, Environment};
use serde_json::Value;

/// Pushes an image whose program prints a text and then sleeps.
pub(crate) fn push(to: &str, text: &str) -> Digest {
    let files = BTreeMap::from([("/text".to_owned(), File::text(format!("{text}\n")))]);
    let script = "cat /text; trap 'exit 0' TERM; while :; do sleep 3600 & wait; done";
    let built = image(&files, &["/bin/sh", "-c", script]).unwrap();
    let to = Reference::parse(to).unwrap();
    block_on(async { pusher().unwrap().push(&built, &to).await.unwrap().digest })
}

/// Pushes an image under a name in the cluster's registry.
pub(crate) fn push_image(cluster: &RealCluster, image: &BuiltImage, name: &str) -> Digest {
    let to = Reference::parse(&format!("{}/{name}", cluster.registry())).unwrap();
    block_on(async { pusher().unwrap().push(image, &to).await.unwrap().digest })
}

/// Pushes an image of the operator for a release: the command that was built for this test, with the libraries that it was
/// linked to.
pub(crate) fn push_operator(cluster: &RealCluster, release: &str) {
    let program = cluster.folder().join("scantling");
    let stripped = Command::new("strip").arg("-o").arg(&program).arg(binary()).status();
    if !stripped.is_ok_and(|status| status.success()) {
        std::fs::copy(binary(), &program).unwrap();
    }
    let listed = Command::new("ldd").arg(&program).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    let libraries = listed.split_whitespace().filter(|word| word.starts_with('/'));
    let mut files: BTreeMap<String, File> =
        libraries.map(|path| (path.to_owned(), File::program(Path::new(path)).unwrap())).collect();
    files.insert("/usr/bin/scantling".to_owned(), File::program(&program).unwrap());
    files.insert("/etc/release".to_owned(), File::text(release));
    let built = image(&files, &["/usr/bin/scantling"]).unwrap();
    push_image(cluster, &built, &format!("operator:{release}"));
}

/// Runs a future on this thread, which is in the cluster's network.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// What a run needs, for a real cluster.
pub(crate) async fn environment(cluster: &RealCluster) -> Environment {
    #[expect(clippy::disallowed_methods, reason = "a real cluster has the wall clock's time")]
    let now = Timestamp::now();
    let (client, _) = Cluster::from_kubeconfig(&[cluster.kubeconfig()], None, 1).await.unwrap();
    Environment {
        cluster: client,
        registry: pusher().unwrap(),
        clock: Clock::starting_at(now),
        entropy: Entropy::from_seed(1),
        vantage: "here".to_owned(),
    }
}

/// Files as they are read from a folder.
pub(crate) fn tree(files: &[(&str, String)]) -> BTreeMap<String, Vec<u8>> {
    files.iter().map(|(path, text)| ((*path).to_owned(), text.clone().into_bytes())).collect()
}

/// A release from its files.
pub(crate) fn release(files: &[(&str, String)]) -> Release {
    Release::read(&tree(files), &Settings::default()).unwrap_or_else(|error| panic!("{error:?}"))
}

/// An object or a list, as kubectl sees it.
pub(crate) fn get(cluster: &RealCluster, arguments: &[&str]) -> Value {
    let arguments = [&["get", "-o", "json"], arguments].concat();
    serde_json::from_str(&cluster.run(&arguments).unwrap()).unwrap()
}

/// Gives kubectl a document.
pub(crate) fn kubectl(cluster: &RealCluster, verb: &str, document: &Value) {
    let file = cluster.folder().join("document.json");
    std::fs::write(&file, document.to_string()).unwrap();
    cluster.run(&[verb, "-f", file.to_str().unwrap()]).unwrap();
}

/// What was written since a number of requests, by clients that aren't kubectl, nor the operator in the cluster: it says how
/// the platform is whenever that changes. The lease that a run holds while it looks is nothing that it leaves.
pub(crate) fn writes_since(cluster: &RealCluster, seen: usize) -> Vec<String> {
    let requests = cluster.requests().unwrap();
    let ours = requests.into_iter().skip(seen).filter(|it| it.is_write() && !it.agent.contains("kubectl"));
    let ours = ours.filter(|it| !it.uri.contains("/namespaces/scantling-system/leases"));
    let ours = ours.filter(|it| !it.user.ends_with(":scantling-operator"));
    ours.map(|it| format!("{} {} ({})", it.verb, it.uri.split('?').next().unwrap_or_default(), it.code))
        .collect()
}

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The command, built. Call it first in the network of this machine: cargo may have to fetch something.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // Whoever runs all tests has built it with them.
        if let Some(built) = std::env::var_os("SCANTLING_TEST_BINARY") {
            return built.into();
        }
        let program = std::env::current_exe().unwrap();
        let profile = program.parent().and_then(Path::parent).unwrap();
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--package", "scantling-cli", "--target-dir"]);
        cargo.arg(profile.parent().unwrap()).current_dir(repository());
        // What cargo tells this test about its package would make crates build anew that look at it.
        let about =
            ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_PRIMARY_", "CARGO_TARGET_TMPDIR"];
        for (name, _) in std::env::vars() {
            if about.iter().any(|start| name.starts_with(start)) {
                cargo.env_remove(name);
            }
        }
        assert!(cargo.status().unwrap().success(), "the command does not build");
        profile.join("scantling")
    })
}

/// The command, on the cluster, without colours.
pub(crate) fn scantling(cluster: &RealCluster, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command
        .args(arguments)
        .current_dir(repository())
        .env("KUBECONFIG", cluster.kubeconfig())
        .env("SCANTLING_MIRRORS", cluster.endpoints())
        .env("NO_COLOR", "1")
        .stdin(Stdio::null());
    command
}

/// What the command prints and its exit code.
pub(crate) fn said(mut command: Command) -> (String, i32) {
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (String::from_utf8(text).unwrap(), output.status.code().unwrap_or(-1))
}

/// What the command prints when it ends well.
pub(crate) fn done(cluster: &RealCluster, arguments: &[&str]) -> String {
    let (text, code) = said(scantling(cluster, arguments));
    assert_eq!(code, 0, "scantling {}:\n{text}", arguments.join(" "));
    text
}

/// Waits for something to be there.
pub(crate) fn soon<T>(what: &str, seconds: u64, mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..seconds * 4 {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(Duration::from_millis(250));
    }
    panic!("{what} did not come in {seconds} s");
}
