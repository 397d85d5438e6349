//! Whatever happens to a notebook, in whatever order.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::small_cluster::*;

#[derive(Debug, Clone, Copy)]
enum Happens {
    Catalogue(u8),
    Withdrawn,
    Stop,
    Start,
    Restart,
    Drain,
    Edit(u8),
    Scale,
    SetDeleted,
    ServiceDeleted,
    StatusLost,
}

fn happens() -> impl Strategy<Value = Happens> {
    prop_oneof![
        4 => (0u8..3).prop_map(Happens::Catalogue),
        1 => Just(Happens::Withdrawn),
        2 => Just(Happens::Stop),
        3 => Just(Happens::Start),
        2 => Just(Happens::Restart),
        3 => Just(Happens::Drain),
        2 => (0u8..3).prop_map(Happens::Edit),
        1 => Just(Happens::Scale),
        1 => Just(Happens::SetDeleted),
        1 => Just(Happens::ServiceDeleted),
        1 => Just(Happens::StatusLost),
    ]
}

fn template(cluster: &Cluster) -> Option<Value> {
    let set = cluster.get("apps", "StatefulSet", "anna", "nb")?;
    Some(set["spec"]["template"].clone())
}

fn is_running(cluster: &Cluster) -> bool {
    let pod = cluster.get("", "Pod", "anna", "nb-0");
    pod.is_some_and(|pod| !pod["status"]["containerStatuses"][0]["state"]["running"].is_null())
}

/// What happens is that the owner's decision, after which another template may come?
fn is_decision(what: Happens) -> bool {
    matches!(what, Happens::Stop | Happens::Restart)
}

fn let_happen(cluster: &mut Cluster, what: Happens) {
    let names = ["a", "b", "c"];
    match what {
        Happens::Catalogue(n) => {
            cluster.catalogue(names[usize::from(n)], &[("tensorflow", &format!("2.{n}"))]);
        }
        Happens::Withdrawn => {
            let key = scantling_api::ObjectKey::namespaced(
                "scantling.dev",
                "NotebookImage",
                PLATFORM,
                "tensorflow-py3.8-cuda-11.0.3",
            );
            cluster.observed.remove(&key);
        }
        Happens::Stop => cluster.annotate("nb", "kubeflow-resource-stopped", &json!("now")),
        Happens::Start => cluster.annotate("nb", "kubeflow-resource-stopped", &Value::Null),
        Happens::Restart => {
            cluster.annotate("nb", "notebooks.opendatahub.io/notebook-restart", &json!("true"));
        }
        Happens::Drain => {
            cluster.observed.remove(&scantling_api::ObjectKey::namespaced("", "Pod", "anna", "nb-0"));
        }
        Happens::Edit(n) => {
            let edit = json!({"spec": {"template": {"spec": {"serviceAccountName": names[usize::from(n)]}}}});
            cluster.edit("kubeflow.org", "Notebook", "anna", "nb", &edit);
        }
        // By somebody who may write to stateful sets; the pod goes, so the owner lost it already.
        Happens::Scale => {
            if template(cluster).is_some() {
                cluster.edit("apps", "StatefulSet", "anna", "nb", &json!({"spec": {"replicas": 0}}));
            }
        }
        // By somebody who may delete; the cluster takes the pod along.
        Happens::SetDeleted => {
            for (group, kind, name) in [("apps", "StatefulSet", "nb"), ("", "Pod", "nb-0")] {
                cluster.observed.remove(&scantling_api::ObjectKey::namespaced(group, kind, "anna", name));
            }
        }
        Happens::ServiceDeleted => {
            cluster.observed.remove(&scantling_api::ObjectKey::namespaced("", "Service", "anna", "nb"));
        }
        // By somebody who may write the status; a pod that runs says by itself what has started.
        Happens::StatusLost => {
            cluster.edit("kubeflow.org", "Notebook", "anna", "nb", &json!({"status": null}));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn it_comes_to_rest_and_moves_only_when_its_owner_says_so(story in proptest::collection::vec(happens(), 1..14)) {
        let mut cluster = Cluster::new();
        cluster.catalogue("a", &[("tensorflow", "2.0")]);
        cluster.notebook("nb", Some(SELECTION));
        cluster.settle();
        for what in story {
            let before = (is_running(&cluster), template(&cluster), cluster.restarts.len());
            let_happen(&mut cluster, what);
            cluster.settle();
            prop_assert_eq!(cluster.settle(), 0);
            let ran = before.0 && !is_decision(what);
            if ran && matches!(what, Happens::SetDeleted) {
                let image = |template: &Option<Value>| template.as_ref().map(|t| t["spec"]["containers"][0]["image"].clone());
                prop_assert_eq!(image(&template(&cluster)), image(&before.1), "another image");
            }
            if ran && !matches!(what, Happens::Scale | Happens::SetDeleted) {
                prop_assert_eq!(template(&cluster), before.1, "moved by {:?}", what);
                prop_assert_eq!(cluster.restarts.len(), before.2);
            }
            // At most one restart for one request.
            prop_assert!(cluster.restarts.len() <= before.2 + 1);
            // What runs is what the pod was told, by digest.
            if let Some(pod) = cluster.get("", "Pod", "anna", "nb-0") {
                prop_assert!(pod["spec"]["containers"][0]["image"].as_str().unwrap().contains("@sha256:"));
            }
        }
        // In the end the owner restarts it, and it is what the catalogue says.
        let_happen(&mut cluster, Happens::Catalogue(2));
        let_happen(&mut cluster, Happens::Start);
        let_happen(&mut cluster, Happens::Restart);
        cluster.settle();
        let pod = cluster.get("", "Pod", "anna", "nb-0").unwrap();
        prop_assert_eq!(&pod["spec"]["containers"][0]["image"], &json!(image("c")));
        prop_assert_eq!(condition(&cluster, "nb", "UpdatePending").0, "False");
    }
}
