//! `scantling snapshot` on a sandbox: what an admin sees, and that its folder and kubectl's dump say the same.

use camino::Utf8PathBuf;
use scantling_snapshot::{Limits, Snapshot, read};

use crate::command::{Ran, UNPUBLISHED, scantling};
use crate::sandbox::{Open, tool};

fn snapshot(open: &Open, arguments: &[&str]) -> Ran {
    let mut command = scantling(&[&["snapshot"], arguments].concat());
    Ran::of(command.env("COLUMNS", "100").env("KUBECONFIG", open.kubeconfig()))
}

fn dump(open: &Open, name: &str) -> Utf8PathBuf {
    Utf8PathBuf::from_path_buf(open.home().join(name)).unwrap()
}

fn held(path: &Utf8PathBuf) -> Snapshot {
    read(std::slice::from_ref(path), &Limits::default(), &mut |_| {}).unwrap()
}

#[test]
fn a_cluster_is_written_down_once() {
    let open = Open::new(UNPUBLISHED, &[]);
    let folder = dump(&open, "dump");
    let ran = snapshot(&open, &[folder.as_str()]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("written ") && ran.out.contains("objects of"), "{}", ran.out);
    let snapshot_of_it = held(&folder);
    assert_eq!(snapshot_of_it.skipped, []);
    assert!(snapshot_of_it.taken.is_some());

    let again = snapshot(&open, &[folder.as_str()]);
    assert_eq!(again.code, 2, "{}", again.err);
    assert!(again.err.contains("holds a snapshot that is complete; name a new folder"), "{}", again.err);
    let nowhere = snapshot(&open, &["no-such-context", dump(&open, "other").as_str()]);
    assert_eq!(nowhere.code, 2, "{}", nowhere.err);
    assert!(nowhere.err.contains("no-such-context"), "{}", nowhere.err);

    // What kubectl dumps of the same cluster is the same.
    let Some(kubectl) = tool("kubectl", "SCANTLING_TEST_KUBECTL") else { return };
    for (name, form) in [("dump.json", "json"), ("dump.yaml", "yaml")] {
        let lists =
            open.run(&kubectl, &["get", "nodes,configmaps,deployments,pods,secrets", "-A", "-o", form]);
        let file = dump(&open, name);
        std::fs::write(&file, lists.report(0)).unwrap();
        let theirs = held(&file);
        assert_eq!(theirs.skipped, [], "{form}");
        let count = |snapshot: &Snapshot| {
            let maps = snapshot.observed.config_maps().count();
            let secrets: Vec<_> = snapshot.observed.secrets().map(|secret| format!("{secret:?}")).collect();
            (snapshot.observed.pod_records().count(), snapshot.observed.node_records().count(), maps, secrets)
        };
        assert_eq!(count(&theirs), count(&snapshot_of_it), "{form}");
        assert!(count(&theirs).1 > 0 && count(&theirs).2 > 0, "{form}");
    }
}
