//! Removing what a cluster leaves: its folder and its cgroups.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;

use crate::namespaces::wait;

/// What the folders and cgroups of all clusters begin with; the number of their process follows.
const PREFIX: &str = "scantling-real-";

/// Where clusters have their folders. Their nodes cover /run, /var/lib and /var/log, so it is below none of these.
fn base() -> PathBuf {
    PathBuf::from("/var/tmp")
}

/// A new folder for the `count`th cluster of this process, after what dead processes left has been removed.
pub(crate) fn new_folder(count: u64) -> anyhow::Result<PathBuf> {
    for entry in std::fs::read_dir(base())? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let of = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if of.is_some_and(|pid| !Path::new(&format!("/proc/{pid}")).exists()) {
            remove(&entry.path())?;
        }
    }
    let folder = base().join(format!("{PREFIX}{}-{count}", std::process::id()));
    std::fs::create_dir(&folder).with_context(|| format!("failed to make {}", folder.display()))?;
    Ok(folder)
}

/// The name of a cluster: that of its folder and of its cgroup.
pub(crate) fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The cgroups of a cluster: one in each hierarchy, or the one.
pub(crate) fn cgroups(folder: &Path) -> Vec<PathBuf> {
    let root = Path::new("/sys/fs/cgroup");
    let mut roots = vec![root.to_owned()];
    roots.extend(std::fs::read_dir(root).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path())));
    roots.into_iter().map(|root| root.join(name(folder))).filter(|path| path.is_dir()).collect()
}

/// Removes a cluster's cgroups, whose processes have been killed, and its folder.
pub(crate) fn remove(folder: &Path) -> anyhow::Result<()> {
    for cgroup in cgroups(folder) {
        // A killed process is in its cgroup until the kernel is done with it.
        let gone = wait(Duration::from_secs(20), || remove_cgroup(&cgroup).is_ok());
        anyhow::ensure!(gone, "{} can't be removed", cgroup.display());
    }
    std::fs::remove_dir_all(folder).with_context(|| format!("failed to remove {}", folder.display()))
}

fn remove_cgroup(path: &Path) -> std::io::Result<()> {
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            remove_cgroup(&entry.path())?;
        }
    }
    std::fs::remove_dir(path)
}
