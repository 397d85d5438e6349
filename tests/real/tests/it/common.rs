//! What several tests do with a real cluster.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use scantling_cluster::{Clock, Cluster};
use scantling_contents::BuiltImage;
use scantling_image::{Digest, Reference};
use scantling_images::{Image, Images, OPERATOR, OPERATOR_PROGRAM, operator_program, plain_http, push_all};
use scantling_real_tests::{File, RealCluster, image, pusher, why_not};
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

/// The recipes of this repository.
pub(crate) fn recipes() -> Images {
    let root = Utf8PathBuf::from_path_buf(repository()).unwrap();
    let cache = std::env::var("XDG_CACHE_HOME")
        .unwrap_or_else(|_| format!("{}/.cache", std::env::var("HOME").unwrap()));
    let cache = Utf8Path::new(&cache).join("scantling/images");
    Images::new(root.join("releases/images"), root.join("target/images"), &cache)
}

/// Images of recipes, or none and why on the screen: packages come from outside.
pub(crate) fn made(images: &Images, names: &[&str]) -> Option<Vec<Image>> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    match images.build(&images.select(&names).unwrap(), &|line| println!("{line}")) {
        Ok(built) => Some(built),
        Err(error) if error.is_unavailable() => {
            println!("skipped: the images can't be made here: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// The operator's images, one for each release, made as `cargo xtask image` makes them but for the time that is spent on speed. Call it
/// first in the network of this machine, where packages and crates can be fetched.
pub(crate) fn operators() -> Option<&'static [Image]> {
    static OPERATORS: OnceLock<Option<Vec<Image>>> = OnceLock::new();
    let built = OPERATORS.get_or_init(|| {
        // Without a cluster nobody wants them.
        if let Some(why) = why_not() {
            println!("skipped: {why}");
            return None;
        }
        let root = Utf8PathBuf::from_path_buf(repository().canonicalize().unwrap()).unwrap();
        let target = Utf8PathBuf::from_path_buf(target()).unwrap();
        let program = operator_program(cargo(), &root, &target, "dev").unwrap();
        made(&recipes().with_program(OPERATOR_PROGRAM, program), &[OPERATOR])
    });
    built.as_deref()
}

/// Pushes images under their own names.
pub(crate) fn push_made(cluster: &RealCluster, images: &[Image]) {
    let registry = cluster.registry();
    block_on(async { push_all(&plain_http(registry).unwrap(), images, registry).await.unwrap() });
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

/// Where this test was built, and what it builds goes.
fn target() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    program.ancestors().nth(3).unwrap().to_owned()
}

/// Cargo, without what it tells this test about its package: crates would be built anew that look at it.
fn cargo() -> Command {
    let mut cargo = Command::new(env!("CARGO"));
    let about = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_CRATE_", "CARGO_PRIMARY_", "CARGO_TARGET_TMPDIR"];
    for (name, _) in std::env::vars() {
        if about.iter().any(|start| name.starts_with(start)) {
            cargo.env_remove(name);
        }
    }
    cargo
}

/// The command, built. Call it first in the network of this machine: cargo may have to fetch something.
pub(crate) fn binary() -> &'static Path {
    static BINARY: OnceLock<PathBuf> = OnceLock::new();
    BINARY.get_or_init(|| {
        // Whoever runs all tests has built it with them.
        if let Some(built) = std::env::var_os("SCANTLING_TEST_BINARY") {
            return built.into();
        }
        let mut cargo = cargo();
        cargo.args(["build", "--quiet", "--package", "scantling-cli", "--target-dir"]);
        cargo.arg(target()).current_dir(repository());
        assert!(cargo.status().unwrap().success(), "the command does not build");
        target().join("debug/scantling")
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
