//! What people dump, in the forms in which they dump it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fs;
use std::io::Write as _;

use camino::Utf8PathBuf;
use scantling_observed::Observed;
use scantling_snapshot::{Limits, Snapshot, SnapshotError, Why, read};

/// Files in a folder of their own, read.
fn snapshot_of(files: &[(&str, &[u8])]) -> Snapshot {
    with_limits(files, &Limits::default())
}

fn with_limits(files: &[(&str, &[u8])], limits: &Limits) -> Snapshot {
    let folder = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    read(&[root], limits, &mut |_| {}).unwrap()
}

fn pod(name: &str, version: u64) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"{name}","namespace":"a","resourceVersion":"{version}","managedFields":[{{"x":["}}"]}}]}},
        "spec":{{"nodeName":"n","containers":[{{"name":"c","image":"quay.io/x:1"}}]}},"status":{{"phase":"Running"}}}}"#
    )
}

fn without_kind(object: &str) -> String {
    object.replace(r#""apiVersion":"v1","kind":"Pod","#, "")
}

fn pods(observed: &Observed) -> Vec<String> {
    observed.pod_records().map(|pod| pod.unwrap().name.to_string()).collect()
}

fn skipped(snapshot: &Snapshot) -> Vec<String> {
    snapshot.skipped.iter().map(ToString::to_string).collect()
}

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\n  namespace: a\ndata:\n  text: |\n    items:\n    - kind: Pod\n    ---\n";

#[test]
fn json_in_every_form_gives_the_same_pods() {
    let (a, b) = (pod("a", 1), pod("b", 2));
    let (bare_a, bare_b) = (without_kind(&a), without_kind(&b));
    for (what, text) in [
        (
            "kubectl",
            format!(
                r#"{{"apiVersion":"v1","items":[{a},{b}],"kind":"List","metadata":{{"resourceVersion":""}}}}"#
            ),
        ),
        (
            "server",
            format!(r#"{{"kind":"PodList","apiVersion":"v1","metadata":{{}},"items":[{bare_a},{bare_b}]}}"#),
        ),
        ("kind behind", format!(r#"{{"items":[{bare_a},{bare_b}],"apiVersion":"v1","kind":"PodList"}}"#)),
        ("one after the other", format!("{a}\n{b}\n")),
        ("array", format!("[{a},{b}]")),
        ("an empty list", format!("{{\"kind\":\"EventList\",\"apiVersion\":\"v1\",\"items\":null}}{a}{b}")),
        ("marks between", format!("---\n{a}\n---\n{b}\n")),
        ("byte order mark", format!("\u{feff}[{a},{b}]")),
        (
            "lists of lists",
            format!(
                r#"{{"kind":"List","apiVersion":"v1","items":[{{"kind":"PodList","apiVersion":"v1","items":[{bare_a}]}},{{"kind":"List","apiVersion":"v1","items":[{b}]}}]}}"#
            ),
        ),
        (
            "logs between",
            format!(
                "{{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":[{bare_a}]}}\n==== START logs for container c of pod a/a ====\n{{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{{\"name\":\"logged\",\"namespace\":\"a\"}}}}\n==== END logs for container c of pod a/a ====\n{b}"
            ),
        ),
    ] {
        let snapshot = snapshot_of(&[("dump", text.as_bytes())]);
        assert_eq!(pods(&snapshot.observed), ["a", "b"], "{what}: {:?}", skipped(&snapshot));
        assert_eq!(skipped(&snapshot), Vec::<String>::new(), "{what}");
        assert_eq!(snapshot.files, 1, "{what}");
    }
}

#[test]
fn yaml_in_every_form_gives_the_same_objects() {
    let item = |name: &str, indent: &str, kind: bool| {
        let kind =
            if kind { format!("apiVersion: v1\n{indent}  kind: Pod\n{indent}  ") } else { String::new() };
        format!(
            "{indent}- {kind}metadata:\n{indent}    name: {name}\n{indent}    namespace: a\n{indent}    annotations:\n{indent}      text: |\n\n{indent}        - kind: List\n{indent}  spec:\n{indent}    containers:\n{indent}    - name: c\n{indent}      image: quay.io/x:1\n"
        )
    };
    let list = |indent: &str| {
        format!(
            "apiVersion: v1\nitems:\n{}{}kind: List\nmetadata:\n  resourceVersion: \"\"\n",
            item("a", indent, true),
            item("b", indent, true)
        )
    };
    for (what, text) in [
        ("kubectl", list("")),
        ("must-gather", format!("---\n{}", list(""))),
        ("indented", list("  ")),
        ("kind in front", format!("kind: PodList\napiVersion: v1\nitems:\n{}{}", item("a", "", false), item("b", "", false))),
        ("kind behind", format!("apiVersion: v1\nitems:\n{}{}kind: PodList\n", item("a", "", false), item("b", "", false))),
        ("two documents", format!("apiVersion: v1\nitems:\n{}kind: List\n---\n# more\napiVersion: v1\nitems:\n{}kind: List\n...\n", item("a", "", true), item("b", "", true))),
        ("a list without a head", format!("{}{}", item("a", "", true), item("b", "", true))),
        (
            "flow",
            "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: a}}, {apiVersion: v1, kind: Pod, metadata: {name: b, namespace: a}}]\n".to_owned(),
        ),
    ] {
        let text = format!("{text}\n---\n{CONFIG_MAP}");
        let snapshot = snapshot_of(&[("dump.yaml", text.as_bytes())]);
        assert_eq!(pods(&snapshot.observed), ["a", "b"], "{what}: {:?}", skipped(&snapshot));
        assert_eq!(skipped(&snapshot), Vec::<String>::new(), "{what}");
        let map = snapshot.observed.config_maps().next().unwrap();
        assert_eq!(map.get("text"), Some("items:\n- kind: Pod\n---\n"), "{what}");
    }
}

#[test]
fn a_must_gather_with_packed_parts_logs_and_wrong_places() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(pod("packed", 5).as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let (core, single) =
        (format!(r#"{{"kind":"List","apiVersion":"v1","items":[{}]}}"#, pod("a", 7)), pod("a", 9));
    let snapshot = snapshot_of(&[
        ("must-gather/namespaces/a/core/pods.yaml", core.as_bytes()),
        ("must-gather/namespaces/a/pods/a/a.yaml", single.as_bytes()),
        ("must-gather/namespaces/a/pods/a/c/c/logs/current.log", b"{\"kind\":\"Pod\"}"),
        (
            "must-gather/cluster-scoped-resources/core/nodes/node-1.yaml",
            b"---\napiVersion: v1\nkind: Node\nmetadata:\n  name: node-1\n",
        ),
        ("must-gather/namespaces/a/core/configmaps.yaml.gz", &packed[..packed.len() - 9]),
        ("must-gather/b.json.gz", &packed),
        ("must-gather/namespaces/a/core/events.yaml", b"---\napiVersion: v1\nitems: null\nkind: EventList\n"),
        ("must-gather/version", b"openshift/must-gather\n4.16\n"),
        ("must-gather/empty.yaml", b""),
        (".hidden.json", b"{}"),
        ("all.tar.gz", &[0x1f, 0x8b, 9]),
    ]);
    assert_eq!(pods(&snapshot.observed), ["a", "packed"]);
    assert_eq!(snapshot.observed.node_records().count(), 1);
    assert_eq!(snapshot.logs, 1, "{:?}", skipped(&snapshot));
    let repeated: Vec<_> =
        snapshot.repeated.iter().map(|r| (r.key.to_string(), r.kept.as_str(), r.dropped.as_str())).collect();
    assert_eq!(repeated, [("Pod a/a".to_owned(), "9", "7")]);
    let places: Vec<_> = snapshot.skipped.iter().map(|s| s.path.as_str()).collect();
    assert_eq!(
        places,
        [
            ".hidden.json",
            "all.tar.gz",
            "must-gather/empty.yaml",
            "must-gather/namespaces/a/core/configmaps.yaml.gz",
            "must-gather/version"
        ]
    );
}

#[test]
fn what_comes_before_a_cut_counts() {
    let text = format!(
        r#"{{"apiVersion":"v1","items":[{},{},{}],"kind":"List"}}"#,
        pod("a", 1),
        pod("b", 2),
        pod("c", 3)
    );
    let third = text.find("\"name\":\"c\",\"namespace\"").unwrap();
    let snapshot = snapshot_of(&[("pods.json", &text.as_bytes()[..third + 40])]);
    assert_eq!(pods(&snapshot.observed), ["a", "b"]);
    assert_eq!(snapshot.skipped.iter().map(|s| s.why.clone()).collect::<Vec<_>>(), [Why::Cut]);

    let yaml = "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: a\n    namespace: a\n- apiVersion: v1\n  kind: Pod\n  metadata:\n    name: b\n    namespace: a\n";
    let snapshot = snapshot_of(&[("pods.yaml", yaml.as_bytes())]);
    assert_eq!(pods(&snapshot.observed), ["a"], "the last one may lack its other half");
    assert_eq!(snapshot.skipped.iter().map(|s| s.why.clone()).collect::<Vec<_>>(), [Why::Cut]);
}

#[test]
fn one_bad_object_costs_itself() {
    let long = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"l","namespace":"a"}},"data":{{"x":"{}"}}}}"#,
        "y".repeat(3_000_000)
    );
    let bad = [
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","namespace":"a"},"spec":{"containers":5}}"#,
            "does not parse: invalid type",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"../x","namespace":"a"}}"#,
            "its name is none",
        ),
        (
            "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"\\u001b[31mx\",\"namespace\":\"a\"}}",
            "its name is none",
        ),
        (
            r#"{"apiVersion":"v1","kind":"Pod","metadata":{"name":"x","name":"y","namespace":"a"}}"#,
            "duplicate field",
        ),
        (
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"a"}}"#,
            "no Kubernetes object: the field `metadata.name`",
        ),
        (r#"{"just":"data"}"#, "its kind is not written"),
        ("17", "an item that is no mapping"),
        (long.as_str(), "larger than"),
    ];
    for (text, wanted) in bad {
        let list = format!(
            r#"{{"kind":"List","apiVersion":"v1","items":[{},{text},{}]}}"#,
            pod("a", 1),
            pod("b", 2)
        );
        let limits = Limits { object_bytes: 100_000, ..Limits::default() };
        let snapshot = with_limits(&[("x.json", list.as_bytes())], &limits);
        assert_eq!(pods(&snapshot.observed), ["a", "b"], "{wanted}");
        let said = skipped(&snapshot);
        assert!(said.len() == 1 && said[0].contains(wanted), "{said:?} {wanted}");
    }
    // Deep nesting stops neither the splitter nor its stack.
    let deep = format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"d"}},"x":{}{}}}"#,
        "[".repeat(50_000),
        "]".repeat(50_000)
    );
    let snapshot = snapshot_of(&[("deep.json", format!("{deep}{}", pod("a", 1)).as_bytes())]);
    assert_eq!(pods(&snapshot.observed), ["a"]);
    assert!(skipped(&snapshot)[0].contains("recursion limit"), "{:?}", skipped(&snapshot));
}

#[test]
fn bounds_are_kept_and_said() {
    let text = format!("[{},{},{}]", pod("a", 1), pod("b", 2), pod("c", 3));
    let snapshot = with_limits(&[("x.json", text.as_bytes())], &Limits { objects: 2, ..Limits::default() });
    assert_eq!(pods(&snapshot.observed), ["a", "b"]);
    assert_eq!(snapshot.skipped.iter().map(|s| s.why.clone()).collect::<Vec<_>>(), [Why::TooMany(2)]);

    let many = vec![b"{}\n".as_slice(); 50].concat();
    let snapshot = with_limits(&[("x.json", &many)], &Limits { skipped: 10, ..Limits::default() });
    assert_eq!((snapshot.skipped.len(), snapshot.skipped_more), (10, 40));
}

#[test]
fn links_do_not_lead_out_and_a_missing_path_is_an_error() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret.json"), pod("outside", 1)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("in.json"), pod("inside", 1)).unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("out")).unwrap();
    std::os::unix::fs::symlink(folder.path(), folder.path().join("loop")).unwrap();
    std::os::unix::fs::symlink("nothing", folder.path().join("dangling")).unwrap();
    let root = Utf8PathBuf::from_path_buf(folder.path().to_owned()).unwrap();
    let snapshot = read(std::slice::from_ref(&root), &Limits::default(), &mut |_| {}).unwrap();
    assert_eq!(pods(&snapshot.observed), ["inside"]);
    assert_eq!(
        skipped(&snapshot),
        [
            "dangling: a symbolic link to nothing",
            "loop: a symbolic link to a folder that contains it",
            "out: a symbolic link out of the folder"
        ]
    );
    assert!(matches!(
        read(&[root.join("nowhere")], &Limits::default(), &mut |_| {}),
        Err(SnapshotError::Path(_))
    ));
    assert!(matches!(read(&[], &Limits::default(), &mut |_| {}), Err(SnapshotError::NoPath)));
}
