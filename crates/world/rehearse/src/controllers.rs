//! Scantling's operator, as it runs in a cluster, without the election: there is one.

use scantling_cluster::{Clock, Cluster, Driven};
use scantling_operator::{Line, Operator, Parts, Told};
use scantling_registry::RegistryClient;
use scantling_run::Entropy;
use tokio::sync::watch;

use crate::record::{Actor, Recorder};

/// What the operator needs.
pub(crate) struct Controllers {
    /// The cluster.
    pub cluster: Cluster,
    /// Where contents of images are read.
    pub registry: RegistryClient,
    /// The platform's namespace.
    pub namespace: String,
    /// The present time.
    pub clock: Clock,
    /// Where writes are told.
    pub recorder: Recorder,
    /// Where generated passwords come from.
    pub entropy: Entropy,
}

impl Controllers {
    /// Runs for as long as it is polled; returns why it can't go on.
    pub(crate) async fn run(self) -> String {
        let (registry, recorder) = (self.registry, self.recorder);
        let operator = Operator::new(Parts {
            cluster: self.cluster,
            clock: self.clock,
            registries: Box::new(move || Box::pin(std::future::ready(Ok((registry.clone(), Vec::new()))))),
            entropy: self.entropy,
            ask: Box::new(|_| Box::pin(std::future::ready(Err("notebooks here only sleep".to_owned())))),
            identity: "operator/rehearsal".to_owned(),
            namespace: self.namespace,
            vantage: "a pod in the cluster".to_owned(),
            lines: Box::new(move |line: &Line| match &line.told {
                Told::Driver { what: Driven::Wrote { write } } => {
                    recorder.write(write);
                }
                Told::Driver { what: Driven::Failed { write, why, .. } } => {
                    recorder.say(&Actor::Scantling, format!("controllers: {write} failed: {why}"));
                }
                Told::DriverFailed { why } => {
                    recorder.say(&Actor::Scantling, format!("controllers: failed: {why}"));
                }
                _ => {}
            }),
        });
        let (_goes_on, end) = watch::channel(false);
        operator.work(end).await;
        "they were told to".to_owned()
    }
}
