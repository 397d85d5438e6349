//! A real Kubernetes for tests: etcd, API server, controller manager, scheduler, a registry and up to a few nodes, each
//! with a containerd and a kubelet of its own.
//!
//! ```text
//!  this machine ── the test's thread stands in ──▶ network of the cluster: bridge 10.244.0.1, also 10.96.0.1
//!                                                    API server :443   registry :5000   etcd, controllers
//!                                                      │ veth            │ veth
//!                                                    node-1 10.244.0.11  node-2 10.244.0.12
//!                                                    containerd, kubelet; pods 10.244.1.x, 10.244.2.x
//! ```
//!
//! # Flow
//! [`RealCluster::up`] makes namespaces (processes, mounts, network), starts the programs in them and moves the calling
//! thread into the cluster's network. From then on that thread, and every process and thread that it starts, sees what a
//! node and a pod see: one address of the API server, one name of the registry. Dropping the cluster moves the thread back.
//!
//! # Guarantees
//! - Nothing is left: the first process of every namespace waits for this process's end of a pipe, so everything ends with
//!   it, however it ends; cgroups and files are removed when the cluster is dropped, or by the next one that comes up.
//! - Nothing outside is changed: no address, route, mount or kernel setting of the machine, no file outside the folder.
//! - One cluster at a time in a process; another one waits.
//!
//! # Assumptions
//! Linux, root, and some Debian packages and the program that `cargo xtask test --install` builds; [`RealCluster::up`] says what is missing.
//!
//! # Caveats
//! No kube-proxy: a Service has an address and endpoints, but pods reach only `kubernetes` by it. No DNS, no network
//! policies in force, no `LoadBalancer`. Volumes are one shared folder (class `shared`), as a network file system would be.

#![cfg(target_os = "linux")]

mod audit;
mod cluster;
mod files;
mod image;
mod locked;
mod namespaces;
mod node;
mod program;
mod sweep;

pub use audit::Request;
pub use cluster::{RealCluster, why_not};
pub use image::{File, image, puller, pusher};
pub use locked::{PASSWORDS, Password};
