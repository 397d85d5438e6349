//! The one program behind a real cluster: where it is, and what a machine lacks for it. `cargo xtask` shares this file.

use std::fmt::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::process::Command;

use sha2::{Digest as _, Sha256};

/// Its sources; the program's name has their hash, so that a change builds anew.
pub(crate) const SOURCES: [(&str, &str); 3] = [
    ("go.mod", include_str!("../program/go.mod")),
    ("go.sum", include_str!("../program/go.sum")),
    ("main.go", include_str!("../program/main.go")),
];

/// The Debian packages that a cluster needs, each with a program of it.
pub(crate) const PACKAGES: [(&str, &str); 8] = [
    ("containerd", "containerd"),
    ("runc", "runc"),
    ("docker-registry", "docker-registry"),
    ("busybox-static", "busybox"),
    ("containernetworking-plugins", "/usr/lib/cni/bridge"),
    ("iproute2", "ip"),
    ("openssl", "openssl"),
    ("util-linux", "nsenter"),
];

/// The variable that names a program to take instead of the one in the cache: any build of the same components will do.
pub(crate) const VARIABLE: &str = "SCANTLING_TEST_REALKUBE";

/// Where the program is or would be.
pub(crate) fn path() -> PathBuf {
    if let Some(path) = std::env::var_os(VARIABLE) {
        return path.into();
    }
    let mut hash = Sha256::new();
    for (name, text) in SOURCES {
        hash.update(format!("{name} {}\n{text}", text.len()));
    }
    let hash = hash.finalize().iter().take(8).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    cache().join(format!("realkube-{hash}"))
}

/// Where what is dear to make is kept between runs.
fn cache() -> PathBuf {
    let home = || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache");
    std::env::var_os("XDG_CACHE_HOME").map_or_else(home, PathBuf::from).join("scantling")
}

/// The packages that are not installed.
pub(crate) fn missing_packages() -> Vec<&'static str> {
    let missing = |program: &str| which(program).is_none();
    PACKAGES.iter().filter(|(_, program)| missing(program)).map(|(package, _)| *package).collect()
}

/// Why this machine can have no real cluster, however much is installed; none if it can.
pub(crate) fn obstacle() -> Option<String> {
    if !cfg!(target_os = "linux") {
        return Some("a real cluster needs Linux".to_owned());
    }
    if !std::fs::metadata("/proc/self").is_ok_and(|about| about.uid() == 0) {
        return Some("a real cluster needs root".to_owned());
    }
    let namespaces = Command::new("unshare").args(["--mount", "--pid", "--net", "--fork", "true"]).output();
    if !namespaces.is_ok_and(|output| output.status.success()) {
        return Some("a real cluster needs namespaces, and unshare can't make them here".to_owned());
    }
    None
}

/// Whether the program can be built here.
pub(crate) fn has_go() -> bool {
    which("go").is_some()
}

/// Where a program of the system is.
fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Root's PATH has these, a service's often not.
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}
