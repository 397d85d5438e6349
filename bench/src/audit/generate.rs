//! A big cluster's dump, the same for the same seed.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context as _;
use fastrand::Rng;

/// How big.
#[derive(Clone, Copy)]
pub(crate) struct Size {
    pub(crate) nodes: usize,
    pub(crate) pods: usize,
}

/// Images that each node's status shows: the kubelet's default limit.
const IMAGES_OF_A_NODE: usize = 50;
/// Different images in the cluster.
const IMAGES: usize = 3_000;
/// Namespaces of the must-gather.
const NAMESPACES: usize = 40;
/// One pod in so many runs something else than its tag means now.
const STALE: usize = 200;

struct Image {
    repository: String,
    tag: String,
    digest: String,
}

/// Writes `nodes.json` and `pods.json` as `kubectl get -A -o json` does.
pub(crate) fn lists(folder: &Path, size: Size, seed: u64) -> anyhow::Result<()> {
    let mut rng = Rng::with_seed(seed);
    let images = images(&mut rng);
    let mut nodes = writer(&folder.join("nodes.json"))?;
    list(&mut nodes, size.nodes, |out, index| node(out, index, &images, &mut rng))?;
    let mut pods = writer(&folder.join("pods.json"))?;
    list(&mut pods, size.pods, |out, index| pod(out, index, size.nodes, &images, &mut rng))
}

/// Writes a must-gather of so many pods: a list for each namespace and a file for each pod, in YAML.
pub(crate) fn must_gather(folder: &Path, size: Size, seed: u64) -> anyhow::Result<()> {
    let mut rng = Rng::with_seed(seed);
    let images = images(&mut rng);
    let root = folder.join("must-gather");
    let each = size.pods / NAMESPACES;
    for namespace in 0..NAMESPACES {
        let core = root.join(format!("namespaces/team-{namespace}/core"));
        std::fs::create_dir_all(&core)?;
        let mut items = Vec::new();
        for index in 0..each {
            let mut text = Vec::new();
            pod(&mut text, index * NAMESPACES + namespace, size.nodes, &images, &mut rng)?;
            let object: serde_json::Value = serde_json::from_slice(&text).context("a pod is no JSON")?;
            let name = object
                .pointer("/metadata/name")
                .and_then(|name| name.as_str())
                .unwrap_or_default()
                .to_owned();
            let yaml = scantling_yaml::to_yaml(&object);
            let own = root.join(format!("namespaces/team-{namespace}/pods/{name}"));
            std::fs::create_dir_all(&own)?;
            std::fs::write(own.join(format!("{name}.yaml")), format!("---\n{yaml}"))?;
            items.push(object);
        }
        let list = serde_json::json!({"apiVersion": "v1", "items": items, "kind": "PodList", "metadata": {}});
        std::fs::write(core.join("pods.yaml"), format!("---\n{}", scantling_yaml::to_yaml(&list)))?;
    }
    Ok(())
}

fn writer(path: &Path) -> anyhow::Result<BufWriter<File>> {
    let file = File::create(path).with_context(|| format!("failed to write {}", path.display()))?;
    Ok(BufWriter::with_capacity(1 << 20, file))
}

fn list<W: Write>(
    out: &mut W,
    count: usize,
    mut item: impl FnMut(&mut W, usize) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    write!(out, "{{\n    \"apiVersion\": \"v1\",\n    \"items\": [\n")?;
    for index in 0..count {
        item(out, index)?;
        out.write_all(if index + 1 < count { b",\n" } else { b"\n" })?;
    }
    write!(
        out,
        "    ],\n    \"kind\": \"List\",\n    \"metadata\": {{\n        \"resourceVersion\": \"\"\n    }}\n}}\n"
    )?;
    out.flush()?;
    Ok(())
}

fn images(rng: &mut Rng) -> Vec<Image> {
    let image = |index: usize| Image {
        repository: format!("registry.example.com/team-{}/service-{index}", index % 97),
        tag: format!("{}.{}", rng.u8(1..9), rng.u8(..)),
        digest: digest(rng),
    };
    (0..IMAGES).map(image).collect()
}

fn digest(rng: &mut Rng) -> String {
    format!("sha256:{:032x}{:032x}", rng.u128(..), rng.u128(..))
}

fn uid(rng: &mut Rng) -> String {
    let bits = rng.u128(..);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        bits & 0xffff_ffff,
        (bits >> 32) & 0xffff,
        (bits >> 48) & 0xfff,
        (bits >> 60) & 0xfff,
        (bits >> 72) & 0xffff_ffff_ffff
    )
}

fn node(out: &mut impl Write, index: usize, images: &[Image], rng: &mut Rng) -> std::io::Result<()> {
    let (uid, version, zone) = (uid(rng), rng.u32(1..), index % 3);
    write!(
        out,
        r#"        {{
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {{
                "annotations": {{
                    "node.alpha.kubernetes.io/ttl": "0",
                    "volumes.kubernetes.io/controller-managed-attach-detach": "true"
                }},
                "creationTimestamp": "2026-10-01T08:00:00Z",
                "labels": {{
                    "kubernetes.io/arch": "amd64",
                    "kubernetes.io/hostname": "node-{index}",
                    "kubernetes.io/os": "linux",
                    "topology.kubernetes.io/zone": "zone-{zone}"
                }},
                "name": "node-{index}",
                "resourceVersion": "{version}",
                "uid": "{uid}"
            }},
            "spec": {{
                "podCIDR": "10.{zone}.0.0/24",
                "providerID": "example:///{uid}"
            }},
            "status": {{
                "addresses": [
                    {{
                        "address": "node-{index}",
                        "type": "Hostname"
                    }}
                ],
                "allocatable": {{
                    "cpu": "31850m",
                    "memory": "128900Mi",
                    "pods": "250"
                }},
                "conditions": [
"#
    )?;
    for (at, (kind, status)) in
        [("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True")]
            .iter()
            .enumerate()
    {
        let comma = if at < 3 { "," } else { "" };
        write!(
            out,
            r#"                    {{
                        "lastHeartbeatTime": "2026-11-30T09:00:00Z",
                        "lastTransitionTime": "2026-10-01T08:01:00Z",
                        "message": "kubelet has no {kind} to tell of",
                        "reason": "Kubelet{kind}",
                        "status": "{status}",
                        "type": "{kind}"
                    }}{comma}
"#
        )?;
    }
    out.write_all(b"                ],\n                \"images\": [\n")?;
    for at in 0..IMAGES_OF_A_NODE {
        let Some(image) = images.get((index * 7 + at * 61) % images.len()) else { continue };
        let comma = if at + 1 < IMAGES_OF_A_NODE { "," } else { "" };
        let (repository, tag, digest) = (&image.repository, &image.tag, &image.digest);
        let size = rng.u32(1_000_000..);
        write!(
            out,
            r#"                    {{
                        "names": [
                            "{repository}@{digest}",
                            "{repository}:{tag}"
                        ],
                        "sizeBytes": {size}
                    }}{comma}
"#
        )?;
    }
    write!(
        out,
        r#"                ],
                "nodeInfo": {{
                    "architecture": "amd64",
                    "bootID": "{uid}",
                    "containerRuntimeVersion": "containerd://2.1.4",
                    "kernelVersion": "6.12.0",
                    "kubeletVersion": "v1.35.1",
                    "operatingSystem": "linux",
                    "osImage": "Example Linux"
                }}
            }}
        }}"#
    )
}

#[expect(clippy::too_many_lines, reason = "one object as it is written, from its first line to its last")]
fn pod(
    out: &mut impl Write,
    index: usize,
    nodes: usize,
    images: &[Image],
    rng: &mut Rng,
) -> std::io::Result<()> {
    let workload = index / 5;
    let (Some(main), Some(side)) = (images.get(workload % images.len()), images.get(workload % 7)) else {
        return Ok(());
    };
    let running = if index.is_multiple_of(STALE) { digest(rng) } else { main.digest.clone() };
    let hash = format!("{:010x}", workload as u64 * 0x9e37_79b9 % 0xff_ffff_ffff);
    let (namespace, node) = (workload % NAMESPACES, rng.usize(..nodes.max(1)));
    let name = format!("service-{workload}-{hash}-{:05x}", rng.u32(..0xf_ffff));
    let (own, owner, version) = (uid(rng), uid(&mut Rng::with_seed(workload as u64)), rng.u32(1..));
    write!(
        out,
        r#"        {{
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {{
                "annotations": {{
                    "k8s.v1.cni.cncf.io/network-status": "[{{\n    \"name\": \"cluster\",\n    \"interface\": \"eth0\",\n    \"ips\": [\n        \"10.1.2.{ip}\"\n    ],\n    \"default\": true\n}}]",
                    "openshift.io/scc": "restricted-v2",
                    "seccomp.security.alpha.kubernetes.io/pod": "runtime/default"
                }},
                "creationTimestamp": "2026-11-29T10:11:12Z",
                "generateName": "service-{workload}-{hash}-",
                "labels": {{
                    "app": "service-{workload}",
                    "app.kubernetes.io/part-of": "team-{namespace}",
                    "pod-template-hash": "{hash}"
                }},
                "name": "{name}",
                "namespace": "team-{namespace}",
                "ownerReferences": [
                    {{
                        "apiVersion": "apps/v1",
                        "blockOwnerDeletion": true,
                        "controller": true,
                        "kind": "ReplicaSet",
                        "name": "service-{workload}-{hash}",
                        "uid": "{owner}"
                    }}
                ],
                "resourceVersion": "{version}",
                "uid": "{own}"
            }},
            "spec": {{
                "containers": [
"#,
        ip = index % 250
    )?;
    for (at, image) in [main, side].iter().enumerate() {
        let comma = if at == 0 { "," } else { "" };
        let (repository, tag) = (&image.repository, &image.tag);
        write!(
            out,
            r#"                    {{
                        "env": [
                            {{
                                "name": "SETTINGS",
                                "value": "level={at}"
                            }},
                            {{
                                "name": "NAMESPACE",
                                "valueFrom": {{
                                    "fieldRef": {{
                                        "apiVersion": "v1",
                                        "fieldPath": "metadata.namespace"
                                    }}
                                }}
                            }}
                        ],
                        "image": "{repository}:{tag}",
                        "imagePullPolicy": "IfNotPresent",
                        "livenessProbe": {{
                            "failureThreshold": 3,
                            "httpGet": {{
                                "path": "/healthz",
                                "port": 8080,
                                "scheme": "HTTP"
                            }},
                            "periodSeconds": 10
                        }},
                        "name": "container-{at}",
                        "resources": {{
                            "limits": {{
                                "cpu": "1",
                                "memory": "1Gi"
                            }},
                            "requests": {{
                                "cpu": "100m",
                                "memory": "256Mi"
                            }}
                        }},
                        "terminationMessagePath": "/dev/termination-log",
                        "terminationMessagePolicy": "File",
                        "volumeMounts": [
                            {{
                                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
                                "name": "kube-api-access",
                                "readOnly": true
                            }}
                        ]
                    }}{comma}
"#
        )?;
    }
    write!(
        out,
        r#"                ],
                "dnsPolicy": "ClusterFirst",
                "nodeName": "node-{node}",
                "restartPolicy": "Always",
                "schedulerName": "default-scheduler",
                "securityContext": {{
                    "runAsNonRoot": true,
                    "seccompProfile": {{
                        "type": "RuntimeDefault"
                    }}
                }},
                "serviceAccountName": "default",
                "tolerations": [
                    {{
                        "effect": "NoExecute",
                        "key": "node.kubernetes.io/not-ready",
                        "operator": "Exists",
                        "tolerationSeconds": 300
                    }}
                ],
                "volumes": [
                    {{
                        "name": "kube-api-access",
                        "projected": {{
                            "defaultMode": 420,
                            "sources": [
                                {{
                                    "serviceAccountToken": {{
                                        "expirationSeconds": 3607,
                                        "path": "token"
                                    }}
                                }}
                            ]
                        }}
                    }}
                ]
            }},
            "status": {{
                "conditions": [
"#
    )?;
    let conditions = ["PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"];
    for (at, kind) in conditions.iter().enumerate() {
        let comma = if at + 1 < conditions.len() { "," } else { "" };
        write!(
            out,
            r#"                    {{
                        "lastProbeTime": null,
                        "lastTransitionTime": "2026-11-29T10:11:20Z",
                        "status": "True",
                        "type": "{kind}"
                    }}{comma}
"#
        )?;
    }
    out.write_all(b"                ],\n                \"containerStatuses\": [\n")?;
    for (at, (image, digest)) in [(main, &running), (side, &side.digest)].iter().enumerate() {
        let comma = if at == 0 { "," } else { "" };
        let (repository, tag, id) = (&image.repository, &image.tag, rng.u128(..));
        write!(
            out,
            r#"                    {{
                        "containerID": "containerd://{id:032x}{id:032x}",
                        "image": "{repository}:{tag}",
                        "imageID": "{repository}@{digest}",
                        "lastState": {{}},
                        "name": "container-{at}",
                        "ready": true,
                        "restartCount": 0,
                        "started": true,
                        "state": {{
                            "running": {{
                                "startedAt": "2026-11-29T10:11:{second:02}Z"
                            }}
                        }}
                    }}{comma}
"#,
            second = index % 60
        )?;
    }
    write!(
        out,
        r#"                ],
                "hostIP": "10.0.{zone}.{ip}",
                "phase": "Running",
                "podIP": "10.1.2.{ip}",
                "qosClass": "Burstable",
                "startTime": "2026-11-29T10:11:12Z"
            }}
        }}"#,
        zone = node % 3,
        ip = index % 250
    )
}
