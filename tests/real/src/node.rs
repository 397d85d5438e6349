//! A node: a containerd and a kubelet in namespaces of their own, joined to the cluster's bridge.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, bail};

use crate::files::{self, CONTROL, LOCKED, REGISTRY};
use crate::namespaces::Namespaces;

/// Kernel settings of the whole machine that a kubelet sets: it is shown files that have its values already.
const KERNEL: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

pub(crate) struct Node {
    pub(crate) name: String,
    pub(crate) namespaces: Namespaces,
    address: String,
    folder: PathBuf,
}

impl Node {
    /// Makes a node and starts its containerd. `cgroup` is the cluster's, below which the node's is.
    pub(crate) fn new(
        number: usize,
        control: &Namespaces,
        cluster: &Path,
        cgroup: &str,
    ) -> anyhow::Result<Self> {
        let name = format!("node-{number}");
        let folder = cluster.join(&name);
        let address = format!("10.244.0.{}", 10 + number);
        for each in [folder.join("lib"), folder.join("cni"), folder.join("kernel")] {
            std::fs::create_dir_all(each)?;
        }
        for registry in [REGISTRY, LOCKED] {
            let hosts = folder.join("hosts").join(registry);
            std::fs::create_dir_all(&hosts)?;
            std::fs::write(hosts.join("hosts.toml"), files::containerd_hosts(registry))?;
        }
        std::fs::write(folder.join("containerd.toml"), files::containerd(&folder))?;
        std::fs::write(folder.join("cni/pods.conflist"), files::cni(number).to_string())?;
        let cgroup = format!("/{cgroup}/{name}");
        std::fs::write(folder.join("kubelet.json"), files::kubelet(&cgroup).to_string())?;

        let mut namespaces = Namespaces::new(&folder.join("log"))?;
        let link = format!("to-{name}");
        let joined = Command::new("nsenter")
            .args(["--target", &control.first().to_string(), "--net", "--"])
            .args(["ip", "link", "add", &link, "type", "veth", "peer", "name", "eth0", "netns"])
            .arg(namespaces.first().to_string())
            .output()
            .context("failed to run nsenter")?;
        if !joined.status.success() {
            bail!("no link to {name}: {}", String::from_utf8_lossy(&joined.stderr).trim());
        }
        control.script(&format!("ip link set {link} master pods up"))?;
        namespaces.script(&setup(&name, &address, number, &folder, cluster, &cgroup))?;
        let config = folder.join("containerd.toml").display().to_string();
        namespaces.start("containerd", "containerd", &["--config".to_owned(), config])?;
        Ok(Self { name, namespaces, address, folder })
    }

    /// Starts the kubelet; the API server must answer.
    pub(crate) fn join(&mut self, program: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
        let arguments = [
            "kubelet".to_owned(),
            format!("--config={}", self.folder.join("kubelet.json").display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--hostname-override={}", self.name),
            format!("--node-ip={}", self.address),
        ];
        self.namespaces.start("kubelet", program, &arguments)
    }
}

/// The script that makes namespaces a node.
fn setup(name: &str, address: &str, number: usize, folder: &Path, cluster: &Path, cgroup: &str) -> String {
    let (folder, cluster) = (folder.display(), cluster.display());
    let mut script = format!(
        "hostname {name}
         mount -t tmpfs tmpfs /run
         mount --bind {folder}/lib /var/lib
         mount --bind {folder}/log /var/log
         names=$(readlink -m /etc/resolv.conf)
         mkdir -p \"${{names%/*}}\"
         [ -e \"$names\" ] || : >\"$names\"
         mount --bind {cluster}/resolv.conf \"$names\"
         ip link set lo up
         ip link add cni0 address 0a:00:0a:f4:00:{number:02x} type bridge
         ip link set eth0 master cni0 up
         ip address add {address}/16 dev cni0
         ip link set cni0 up
         ip route add default via {CONTROL}
         if [ -e /sys/fs/cgroup/cgroup.controllers ]; then mkdir -p /sys/fs/cgroup{cgroup}
         else for each in /sys/fs/cgroup/*/; do mkdir -p \"$each{cgroup}\"; done; fi\n"
    );
    for (setting, value) in KERNEL {
        let file = setting.replace('/', ".");
        let _ = write!(
            script,
            "if [ -e /proc/sys/{setting} ]; then echo {value} >{folder}/kernel/{file}
             mount --bind {folder}/kernel/{file} /proc/sys/{setting}; fi\n"
        );
    }
    // Mounts that the kubelet makes must be seen by the containers that it gives them to.
    script.push_str("mount --make-rshared /\n");
    script
}
