//! A cluster: up, used, down.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use scantling_image::Reference;
use serde_json::json;

use crate::audit::Request;
use crate::files::{self, CONTROL, LOCKED, PAUSE, REGISTRY, SERVICE};
use crate::namespaces::{Namespaces, wait};
use crate::node::Node;
use crate::{image, program, sweep};

/// Two clusters at once would take the memory of a small machine, and say little about either's speed.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
static COUNT: AtomicU64 = AtomicU64::new(0);

/// Volumes that every cluster has, each for one claim.
const VOLUMES: usize = 12;
/// How long each program may take to answer on a machine that builds at the same time.
const PATIENCE: Duration = Duration::from_mins(2);

/// A bearer token of somebody.
pub(crate) struct Token {
    pub(crate) user: String,
    pub(crate) group: &'static str,
    pub(crate) secret: String,
}

impl Token {
    fn new(user: impl Into<String>, group: &'static str) -> anyhow::Result<Self> {
        let mut bytes = [0u8; 16];
        std::io::Read::read_exact(&mut File::open("/dev/urandom")?, &mut bytes)?;
        let secret = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes);
        Ok(Self { user: user.into(), group, secret })
    }
}

/// A real cluster. The thread that brought it up is in its network until it is dropped.
pub struct RealCluster {
    pub(crate) folder: PathBuf,
    program: PathBuf,
    // Nodes end before what they speak to.
    nodes: Vec<Node>,
    pub(crate) control: Option<Namespaces>,
    /// The network that the thread came from.
    home: File,
    admin: Token,
    _one: MutexGuard<'static, ()>,
}

impl RealCluster {
    /// Brings a cluster up with so many nodes; with none it is a control plane alone. Where this machine can have none,
    /// says `skipped: why` and gives none.
    ///
    /// # Errors
    /// A program doesn't start or answer; its logs are kept, and where is printed.
    pub fn up(nodes: usize) -> anyhow::Result<Option<Self>> {
        if let Some(why) = why_not() {
            say(&format!("skipped: {why}"));
            return Ok(None);
        }
        let one = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = sweep::new_folder(COUNT.fetch_add(1, Ordering::Relaxed))?;
        let mut cluster = Self {
            folder,
            program: program::path(),
            nodes: Vec::new(),
            control: None,
            home: network(std::process::id())?,
            admin: Token::new("admin", "system:masters")?,
            _one: one,
        };
        match cluster.start(nodes) {
            Ok(()) => Ok(Some(cluster)),
            Err(error) => {
                cluster.keep_logs();
                Err(error)
            }
        }
    }

    fn start(&mut self, nodes: usize) -> anyhow::Result<()> {
        let names: Vec<String> = (1..=nodes).map(|number| format!("node-{number}")).collect();
        self.write_files(&names)?;
        let control = self.control.insert(Namespaces::new(&self.folder.join("control/log"))?);
        control.script(&format!(
            "mount --bind {}/resolv.conf \"$(readlink -f /etc/resolv.conf)\"
             ip link set lo up
             ip link add pods address 0a:00:0a:f4:00:00 type bridge
             ip address add {CONTROL}/16 dev pods
             ip address add {SERVICE}/32 dev pods
             ip link set pods up
             # Whatever asks for an address outside is told at once that there is none.
             echo 1 >/proc/sys/net/ipv4/ip_forward || true",
            self.folder.display()
        ))?;
        self.start_control()?;
        for number in 1..=nodes {
            let control = self.control.as_ref().context("the control plane is up")?;
            self.nodes.push(Node::new(number, control, &self.folder, &sweep::name(&self.folder))?);
        }
        self.enter()?;
        self.answers("the API server", |cluster| succeeds(cluster.kubectl(&["get", "--raw", "/readyz"])))?;
        self.start_controllers()?;
        for node in &mut self.nodes {
            node.join(&self.program, &self.folder.join(format!("{}.json", node.name)))?;
        }
        self.answers("the registry", |_| std::net::TcpStream::connect(REGISTRY).is_ok())?;
        if nodes > 0 {
            push_pause()?;
        }
        self.answers("the default service account", |cluster| {
            succeeds(cluster.kubectl(&["get", "serviceaccount", "default"]))
        })?;
        self.make_volumes()?;
        self.answers("nodes", |cluster| {
            let ready = "jsonpath={.items[*].status.conditions[?(@.type==\"Ready\")].status}";
            let output = cluster.kubectl(&["get", "nodes", "-o", ready]).output();
            output.is_ok_and(|output| {
                let text = String::from_utf8_lossy(&output.stdout).into_owned();
                text.split_whitespace().filter(|word| *word == "True").count() == nodes
            })
        })
    }

    fn write_files(&self, nodes: &[String]) -> anyhow::Result<()> {
        let keys = self.folder.join("keys");
        for folder in [&keys, &self.folder.join("volumes"), &self.folder.join("registry")] {
            std::fs::create_dir(folder)?;
        }
        files::keys(&keys)?;
        let ca = std::fs::read(keys.join("ca.crt"))?;
        let mut tokens =
            vec![Token::new("system:kube-controller-manager", "")?, Token::new("system:kube-scheduler", "")?];
        for node in nodes {
            tokens.push(Token::new(format!("system:node:{node}"), "system:nodes")?);
        }
        let files_of = ["manager", "scheduler"].into_iter().chain(nodes.iter().map(String::as_str));
        for (name, token) in files_of.zip(&tokens) {
            let text = files::kubeconfig(&ca, token, None).to_string();
            std::fs::write(self.folder.join(format!("{name}.json")), text)?;
        }
        let admin = files::kubeconfig(&ca, &self.admin, None).to_string();
        std::fs::write(self.kubeconfig(), admin)?;
        let all: Vec<&Token> = tokens.iter().chain([&self.admin]).collect();
        std::fs::write(keys.join("tokens.csv"), files::tokens(&all))?;
        std::fs::write(self.folder.join("audit.json"), files::audit_policy().to_string())?;
        std::fs::write(self.folder.join("registry.yml"), files::registry(&self.folder, REGISTRY))?;
        // No name can be looked up; this fails at once, and not after seconds.
        std::fs::write(self.folder.join("resolv.conf"), "nameserver 127.0.0.1\n")?;
        let endpoints = [REGISTRY, LOCKED]
            .map(|registry| json!({"registry": registry, "address": registry, "insecure": true}));
        std::fs::write(self.endpoints(), json!({"version": 1, "endpoints": endpoints}).to_string())?;
        Ok(())
    }

    fn start_control(&mut self) -> anyhow::Result<()> {
        let (keys, program) = (self.folder.join("keys"), self.program.clone());
        let (keys, folder) = (keys.display().to_string(), self.folder.display().to_string());
        let control = self.control.as_mut().context("there is a control plane")?;
        let registry = ["serve".to_owned(), format!("{folder}/registry.yml")];
        control.start("registry", "docker-registry", &registry)?;
        // It is thrown away: what a crash of the machine would lose is lost anyway.
        let etcd = ["etcd".to_owned(), format!("--data-dir={folder}/etcd"), "--unsafe-no-fsync".to_owned()];
        control.start("etcd", &program, &etcd)?;
        let server = [
            "kube-apiserver".to_owned(),
            "--etcd-servers=http://127.0.0.1:2379".to_owned(),
            "--secure-port=443".to_owned(),
            format!("--advertise-address={CONTROL}"),
            format!("--cert-dir={keys}"),
            format!("--tls-cert-file={keys}/server.crt"),
            format!("--tls-private-key-file={keys}/server.key"),
            format!("--token-auth-file={keys}/tokens.csv"),
            "--authorization-mode=Node,RBAC".to_owned(),
            "--enable-admission-plugins=NodeRestriction".to_owned(),
            "--allow-privileged".to_owned(),
            "--service-cluster-ip-range=10.96.0.0/16".to_owned(),
            "--service-account-issuer=https://kubernetes.default.svc".to_owned(),
            format!("--service-account-key-file={keys}/accounts.key"),
            format!("--service-account-signing-key-file={keys}/accounts.key"),
            // Nobody looks up names, and no proxy stands before Services.
            "--kubelet-preferred-address-types=InternalIP".to_owned(),
            "--enable-aggregator-routing".to_owned(),
            format!("--audit-policy-file={folder}/audit.json"),
            format!("--audit-log-path={folder}/control/log/audit.jsonl"),
        ];
        control.start("api-server", &program, &server)
    }

    fn start_controllers(&mut self) -> anyhow::Result<()> {
        let folder = self.folder.display().to_string();
        let control = self.control.as_mut().context("there is a control plane")?;
        let manager = [
            "kube-controller-manager".to_owned(),
            "--leader-elect=false".to_owned(),
            format!("--kubeconfig={folder}/manager.json"),
            "--use-service-account-credentials".to_owned(),
            format!("--root-ca-file={folder}/keys/ca.crt"),
            format!("--service-account-private-key-file={folder}/keys/accounts.key"),
        ];
        control.start("controller-manager", &self.program, &manager)?;
        let scheduler = [
            "kube-scheduler".to_owned(),
            "--leader-elect=false".to_owned(),
            format!("--kubeconfig={folder}/scheduler.json"),
        ];
        control.start("scheduler", &self.program, &scheduler)
    }

    /// Volumes that nodes share, of the class that a claim gets if it names none.
    fn make_volumes(&self) -> anyhow::Result<()> {
        let class = json!({
            "apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "provisioner": "kubernetes.io/no-provisioner",
            "metadata": {"name": "shared", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
        });
        let mut items = vec![class];
        for number in 1..=VOLUMES {
            let path = self.folder.join(format!("volumes/{number}"));
            std::fs::create_dir(&path)?;
            // Whoever the container runs as writes to it.
            std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777))?;
            items.push(json!({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": format!("shared-{number}")},
                "spec": {
                    "capacity": {"storage": "100Gi"}, "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
                    "storageClassName": "shared", "persistentVolumeReclaimPolicy": "Retain",
                    "hostPath": {"path": path},
                },
            }));
        }
        let list = self.folder.join("volumes.json");
        std::fs::write(&list, json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string())?;
        self.run(&["create", "-f", &list.display().to_string()]).map(drop)
    }

    pub(crate) fn answers(&self, what: &str, mut does: impl FnMut(&Self) -> bool) -> anyhow::Result<()> {
        if !wait(PATIENCE, || does(self)) {
            bail!("{what} did not answer in {} s", PATIENCE.as_secs());
        }
        Ok(())
    }

    /// Moves the calling thread into the cluster's network. The thread that brought it up is there already.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn enter(&self) -> anyhow::Result<()> {
        let control = self.control.as_ref().context("there is a control plane")?;
        move_to(&network(control.first())?)
    }

    /// The kubeconfig of a cluster admin.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// A kubeconfig by which the admin speaks as somebody else, who has no right but those that are given to them.
    ///
    /// # Errors
    /// The file can't be written.
    pub fn kubeconfig_of(&self, person: &str) -> anyhow::Result<PathBuf> {
        let ca = std::fs::read(self.folder.join("keys/ca.crt"))?;
        let path = self.folder.join(format!("kubeconfig-{}", person.replace([':', '/'], "-")));
        std::fs::write(&path, files::kubeconfig(&ca, &self.admin, Some(person)).to_string())?;
        Ok(path)
    }

    /// The registry: plain HTTP, and the same name for tests, nodes and pods.
    pub fn registry(&self) -> &'static str {
        REGISTRY
    }

    /// A file for `--mirrors`: it says that the registry speaks plain HTTP.
    pub fn endpoints(&self) -> PathBuf {
        self.folder.join("endpoints.json")
    }

    /// A folder for a test's own files, which goes with the cluster.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The names of the nodes.
    pub fn nodes(&self) -> Vec<&str> {
        self.nodes.iter().map(|node| node.name.as_str()).collect()
    }

    /// A folder with `kubectl`, and `on NODE COMMAND` to run something on a node.
    ///
    /// # Errors
    /// The folder can't be written.
    pub fn tools(&self) -> anyhow::Result<PathBuf> {
        let folder = self.folder.join("tools");
        std::fs::create_dir_all(&folder)?;
        let program = self.program.display();
        let mut on = "#!/bin/bash\nnode=$1; shift\ncase $node in\n".to_owned();
        for node in &self.nodes {
            let enter = "nsenter --mount --pid --net --uts --ipc --target";
            let _ = writeln!(on, "{}) exec {enter} {} -- \"$@\";;", node.name, node.namespaces.first());
        }
        on.push_str("esac\necho \"no node $node\" >&2; exit 2\n");
        let kubectl = format!("#!/bin/bash\nexec {program} kubectl \"$@\"\n");
        for (name, text) in [("kubectl", kubectl), ("on", on)] {
            std::fs::write(folder.join(name), text)?;
            std::fs::set_permissions(folder.join(name), PermissionsExt::from_mode(0o755))?;
        }
        Ok(folder)
    }

    /// kubectl as a cluster admin.
    pub fn kubectl(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.arg("kubectl").arg("--kubeconfig").arg(self.kubeconfig()).args(arguments);
        command
    }

    /// What kubectl prints.
    ///
    /// # Errors
    /// kubectl fails; its words are in the error.
    pub fn run(&self, arguments: &[&str]) -> anyhow::Result<String> {
        let output = self.kubectl(arguments).output().context("failed to run kubectl")?;
        if !output.status.success() {
            bail!(
                "kubectl {} failed: {}",
                arguments.join(" "),
                String::from_utf8_lossy(&output.stderr).trim()
            );
        }
        Ok(String::from_utf8(output.stdout)?)
    }

    /// Runs a script of bash on a node, and gives what it prints.
    ///
    /// # Errors
    /// There is no such node, or the script fails.
    pub fn node_run(&self, node: &str, script: &str) -> anyhow::Result<String> {
        let node = self.nodes.iter().find(|each| each.name == node).context("there is no such node")?;
        Ok(String::from_utf8(node.namespaces.script(script)?.stdout)?)
    }

    /// Every request so far of whoever is no part of Kubernetes itself.
    ///
    /// # Errors
    /// The audit log can't be read.
    pub fn requests(&self) -> anyhow::Result<Vec<Request>> {
        let path = self.folder.join("control/log/audit.jsonl");
        Ok(Request::read(&std::fs::read_to_string(path)?))
    }

    /// Keeps all logs, and says where.
    fn keep_logs(&self) {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/real-logs");
        let kept = kept.join(sweep::name(&self.folder));
        for entry in std::fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let to = kept.join(entry.file_name());
            for log in std::fs::read_dir(entry.path().join("log")).into_iter().flatten().flatten() {
                if log.path().is_file() {
                    let copied = std::fs::create_dir_all(&to)
                        .and_then(|()| std::fs::copy(log.path(), to.join(log.file_name())));
                    if let Err(error) = copied {
                        say(&format!("{} is not kept: {error}", log.path().display()));
                    }
                }
            }
        }
        // What nodes say of pods is in no log.
        let asked: [&[&str]; 3] = [
            &["get", "pods", "--all-namespaces", "-o", "yaml"],
            &["get", "events", "--all-namespaces", "--sort-by=.lastTimestamp"],
            &["get", "notebooks,inferenceservices", "--all-namespaces", "-o", "yaml"],
        ];
        let text: Vec<String> = asked.iter().filter_map(|words| self.run(words).ok()).collect();
        let _ = std::fs::create_dir_all(&kept)
            .and_then(|()| std::fs::write(kept.join("objects.txt"), text.join("\n")));
        say(&format!("the logs of the cluster are in {}", kept.display()));
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.keep_logs();
        }
        // A thread that stayed would hold the network.
        let _ = move_to(&self.home);
        self.nodes.clear();
        self.control = None;
        if let Err(error) = sweep::remove(&self.folder) {
            say(&format!("the cluster left something: {error:#}"));
        }
    }
}

/// Why there can be no cluster here and now; none if there can.
pub fn why_not() -> Option<String> {
    if let Some(obstacle) = program::obstacle() {
        return Some(obstacle);
    }
    let missing = program::missing_packages();
    if !missing.is_empty() {
        return Some(format!("a real cluster needs the packages {}", missing.join(", ")));
    }
    let lacks_go = if program::has_go() { "" } else { ", which needs Go" };
    (!program::path().is_file())
        .then(|| format!("a real cluster needs Kubernetes; `cargo xtask test --install` builds it{lacks_go}"))
}

/// Pushes the image whose process holds a pod's network.
fn push_pause() -> anyhow::Result<()> {
    let pause = image::image(
        &BTreeMap::new(),
        &["/bin/sh", "-c", "trap 'exit 0' TERM; while :; do sleep 3600 & wait; done"],
    )?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(image::pusher()?.push(&pause, &Reference::parse(PAUSE)?))?;
    Ok(())
}

/// Tells whoever reads what a test prints.
#[expect(clippy::print_stdout, reason = "tests are read there")]
fn say(line: &str) {
    println!("{line}");
}

fn succeeds(mut command: Command) -> bool {
    command.output().is_ok_and(|output| output.status.success())
}

fn network(pid: u32) -> anyhow::Result<File> {
    // Of this thread, if it is this process: others may be elsewhere.
    let who = if pid == std::process::id() { "thread-self".to_owned() } else { pid.to_string() };
    let path = format!("/proc/{who}/ns/net");
    File::open(&path).with_context(|| format!("failed to open {path}"))
}

fn move_to(network: &File) -> anyhow::Result<()> {
    move_into_link_name_space(network.as_fd(), Some(LinkNameSpaceType::Network))
        .context("failed to move to another network")
}
