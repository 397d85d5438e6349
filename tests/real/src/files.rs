//! What the programs of a cluster read: keys, tokens, settings.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use serde_json::{Value, json};

use crate::cluster::Token;

/// The address of the cluster's own network space: the API server, the registry, the pods' way out.
pub(crate) const CONTROL: &str = "10.244.0.1";
/// The address of the service `kubernetes`, the first of its range.
pub(crate) const SERVICE: &str = "10.96.0.1";
/// Where the registry is, for nodes, pods and tests alike.
pub(crate) const REGISTRY: &str = "10.244.0.1:5000";
/// Where the same registry asks for a password, once a test has set one.
pub(crate) const LOCKED: &str = "10.244.0.1:5001";
/// The image of the process that holds a pod's network.
pub(crate) const PAUSE: &str = "10.244.0.1:5000/pause:1";

/// Runs openssl with words, of which `{}` is the folder.
fn openssl(folder: &Path, words: &str) -> anyhow::Result<()> {
    let output = Command::new("openssl")
        .args(words.split_whitespace())
        .current_dir(folder)
        .output()
        .context("failed to run openssl")?;
    if !output.status.success() {
        bail!("openssl {words} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// Writes the authority, the API server's certificate and the key of service accounts.
pub(crate) fn keys(folder: &Path) -> anyhow::Result<()> {
    // Clients in Rust take no certificate of an authority for a server's: the server has one of its own.
    let extensions = format!(
        "basicConstraints=critical,CA:FALSE\nextendedKeyUsage=serverAuth\nsubjectAltName=IP:{CONTROL},IP:{SERVICE},\
         IP:127.0.0.1,DNS:localhost,DNS:kubernetes.default.svc\n"
    );
    std::fs::write(folder.join("server.ext"), extensions)?;
    let key = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes";
    openssl(folder, &format!("req -x509 {key} -days 2 -keyout ca.key -out ca.crt -subj /CN=test-authority"))?;
    openssl(folder, &format!("req {key} -keyout server.key -out server.csr -subj /CN=api-server"))?;
    openssl(
        folder,
        "x509 -req -days 2 -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out server.crt -extfile server.ext",
    )?;
    openssl(folder, "genrsa -out accounts.key 2048")
}

/// The API server's list of bearer tokens.
pub(crate) fn tokens(tokens: &[&Token]) -> String {
    tokens.iter().fold(String::new(), |mut text, token| {
        let _ = writeln!(text, "{},{},{},{}", token.secret, token.user, token.user, token.group);
        text
    })
}

/// A kubeconfig for a token, speaking as somebody else if `person` is given.
pub(crate) fn kubeconfig(ca: &[u8], token: &Token, person: Option<&str>) -> Value {
    let mut user = json!({"token": token.secret});
    if let Some(person) = person {
        user["as"] = json!(person);
    }
    json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "real",
        "contexts": [{"name": "real", "context": {"cluster": "real", "user": "user"}}],
        "users": [{"name": "user", "user": user}],
        "clusters": [{"name": "real", "cluster": {
            "server": format!("https://{CONTROL}:443"),
            "certificate-authority-data": base64::engine::general_purpose::STANDARD.encode(ca),
        }}],
    })
}

/// The registry's settings, for an address.
pub(crate) fn registry(folder: &Path, address: &str) -> String {
    format!(
        "version: 0.1\nlog: {{level: warn, accesslog: {{disabled: true}}}}\nstorage: {{filesystem: {{rootdirectory: \
         {}}}, delete: {{enabled: true}}}}\nhttp: {{addr: '{address}'}}\n",
        folder.join("registry").display()
    )
}

/// What the API server writes down: every request of whoever is not part of Kubernetes itself.
pub(crate) fn audit_policy() -> Value {
    json!({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "None", "users": [
                "system:apiserver", "system:kube-controller-manager", "system:kube-scheduler", "system:anonymous",
            ]},
            {"level": "None", "userGroups": ["system:nodes", "system:serviceaccounts:kube-system"]},
            {"level": "None", "nonResourceURLs": ["/readyz", "/livez", "/healthz"]},
            {"level": "Metadata"},
        ],
    })
}

/// containerd's settings on a node.
pub(crate) fn containerd(node: &Path) -> String {
    // Without CAP_SYS_RESOURCE, which root has not everywhere, no process may lower its badness for the OOM killer.
    format!(
        "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\"]\nrestrict_oom_score_adj = true\nsandbox_image = \
         \"{PAUSE}\"\n[plugins.\"io.containerd.grpc.v1.cri\".registry]\nconfig_path = \"{0}/hosts\"\n\
         [plugins.\"io.containerd.grpc.v1.cri\".cni]\nbin_dir = \"/usr/lib/cni\"\nconf_dir = \"{0}/cni\"\n",
        node.display()
    )
}

/// What containerd is told of the registry: that it speaks plain HTTP.
pub(crate) fn containerd_hosts(registry: &str) -> String {
    format!(
        "server = \"http://{registry}\"\n[host.\"http://{registry}\"]\ncapabilities = [\"pull\", \"resolve\"]\n"
    )
}

/// The pods' network on a node: all nodes' pods are neighbours on one bridge, each node gives out addresses of its own.
pub(crate) fn cni(number: usize) -> Value {
    json!({
        "cniVersion": "1.0.0", "name": "pods",
        "plugins": [{
            "type": "bridge", "bridge": "cni0",
            "ipam": {
                "type": "host-local",
                "ranges": [[{
                    "subnet": "10.244.0.0/16", "gateway": CONTROL,
                    "rangeStart": format!("10.244.{number}.1"), "rangeEnd": format!("10.244.{number}.250"),
                }]],
                "routes": [{"dst": "0.0.0.0/0", "gw": CONTROL}],
            },
        }],
    })
}

/// The kubelet's settings.
pub(crate) fn kubelet(cgroup: &str) -> Value {
    json!({
        "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
        "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
        "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        // Only the cluster's own network reaches its port.
        "authentication": {"anonymous": {"enabled": true}, "webhook": {"enabled": false}},
        "authorization": {"mode": "AlwaysAllow"},
        "failCgroupV1": false, "cgroupDriver": "cgroupfs", "cgroupRoot": cgroup,
        "makeIPTablesUtilChains": false,
        // Nobody answers there: without an address every pod gets an event that says so.
        "clusterDNS": ["10.96.0.1"], "clusterDomain": "cluster.local",
        // The machine's disk may be nearly full: pods and images stay.
        "evictionHard": {
            "memory.available": "0%", "nodefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.available": "0%",
        },
        "imageGCHighThresholdPercent": 100,
        // Two nodes share a machine that builds at the same time.
        "maxParallelImagePulls": 3, "serializeImagePulls": false,
        "nodeStatusUpdateFrequency": "5s",
    })
}
