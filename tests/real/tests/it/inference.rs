//! A client that asks a model all the time, through whatever endpoints its Service has.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use http::Method;
use scantling_cluster::Cluster;
use scantling_real_tests::RealCluster;
use serde_json::{Value, json};

use crate::common::block_on;
use crate::jupyter::try_request;

/// Between two questions.
const PAUSE: Duration = Duration::from_millis(50);

/// Two flowers, and which kinds they are.
pub(crate) fn flowers() -> Value {
    json!({"inputs": [{
        "name": "flowers", "shape": [2, 4], "datatype": "FP64", "data": [5.1, 3.5, 1.4, 0.2, 6.3, 3.3, 6.0, 2.5],
    }]})
}

/// What a model says of them, or what went wrong.
pub(crate) async fn ask(address: SocketAddr, model: &str) -> Result<Vec<i64>, String> {
    let path = format!("/v2/models/{model}/infer");
    let answer = try_request(address, Method::POST, &path, None, &flowers()).await;
    let answer = answer.map_err(|error| format!("{address}: {error}"))?;
    let text = String::from_utf8_lossy(answer.body()).into_owned();
    let body: Value = serde_json::from_str(&text).map_err(|_| format!("{}: {text}", answer.status()))?;
    let data = body.pointer("/outputs/0/data").and_then(Value::as_array);
    let data = data.ok_or_else(|| format!("{}: {text}", answer.status()))?;
    Ok(data.iter().filter_map(Value::as_i64).collect())
}

/// The addresses that a Service of a namespace sends requests to.
pub(crate) async fn endpoints(client: &Cluster, namespace: &str, service: &str) -> Vec<SocketAddr> {
    let served = client.served().await.unwrap();
    let resource = served.by_kind("discovery.k8s.io", "EndpointSlice").unwrap();
    let selector = format!("kubernetes.io/service-name={service}");
    let slices = client.list(resource, Some(namespace), Some(&selector)).await.unwrap();
    let mut addresses = Vec::new();
    for slice in &slices {
        let Some(port) = slice.pointer("/ports/0/port").and_then(Value::as_u64) else { continue };
        for endpoint in slice["endpoints"].as_array().into_iter().flatten() {
            if endpoint.pointer("/conditions/ready") == Some(&Value::Bool(true)) {
                let address = endpoint.pointer("/addresses/0").and_then(Value::as_str).unwrap();
                addresses.push(format!("{address}:{port}").parse().unwrap());
            }
        }
    }
    addresses
}

/// Asks until it is told to stop.
pub(crate) struct Asking {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<(usize, Vec<String>)>,
}

impl Asking {
    /// Starts to ask. The thread is in the cluster's network because its parent is.
    pub(crate) fn start(cluster: &RealCluster, namespace: &str, model: &str) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, kubeconfig) = (stop.clone(), cluster.kubeconfig());
        let (namespace, model) = (namespace.to_owned(), model.to_owned());
        let service = format!("{model}-predictor");
        let thread = std::thread::spawn(move || {
            block_on(async {
                let (client, _) = Cluster::from_kubeconfig(&[kubeconfig], None, 2).await.unwrap();
                let (mut asked, mut failures) = (0, Vec::new());
                while !stopped.load(Ordering::Relaxed) {
                    let there = endpoints(&client, &namespace, &service).await;
                    let answer = match there.get(asked % there.len().max(1)) {
                        Some(address) => ask(*address, &model).await,
                        None => Err("no endpoint is ready".to_owned()),
                    };
                    asked += 1;
                    match answer {
                        Ok(kinds) if kinds == [0, 2] => {}
                        Ok(kinds) => failures.push(format!("wrong numbers: {kinds:?}")),
                        Err(error) => failures.push(error),
                    }
                    tokio::time::sleep(PAUSE).await;
                }
                (asked, failures)
            })
        });
        Self { stop, thread }
    }

    /// Stops, and gives how often it asked and what went wrong.
    pub(crate) fn stop(self) -> (usize, Vec<String>) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}
