//! Releases in which something is wrong: nothing of them reaches a cluster.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::platform::{brought, comparable, one, options, sandbox, tree};
use scantling_release::{Release, Settings};
use scantling_run::{RunError, plan};

const POD: &str =
    "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c, image: 'IMAGE'}]}\n";

/// What is wrong, and what is found.
fn mistakes() -> Vec<(&'static str, String, &'static str)> {
    let image = |text: &str| POD.replace("IMAGE", text);
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: more}\ndata: {a: b}\n";
    let config = map.replace("more", "config");
    vec![
        ("manifests/x.yaml", image("registry.example.com/Team/x:1"), "SCN0101"),
        ("manifests/x.yaml", image("$(MLSERVER_IMAGE)"), "SCN0102"),
        ("manifests/x.yaml", image(""), "SCN0103"),
        ("manifests/x.yaml", map.replace("b}", "'${HOST:-}'}"), "SCN0706"),
        ("manifests/x.yaml", map.replace("b}", "<HOST>}"), "SCN0102"),
        // An object of the release before, in which a word is mistyped: it has not gone from the release.
        ("manifests/config.yaml", config.replace("name:", "nmae:"), "SCN0702"),
        ("manifests/config.yaml", config.replace("kind:", "knid:"), "SCN0702"),
        ("manifests/x.yaml", config, "SCN0703"),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_release_with_an_error_is_refused_before_anything_is_written() {
    let sandbox = sandbox();
    brought(&sandbox, &one()).await;
    let before = comparable(&sandbox);
    sandbox.take_all_writes();
    for (path, text, code) in mistakes() {
        let tree = tree("2.0.0", "1.0.0", &[(path, &text)]);
        let release = match Release::read(&tree, &Settings::default()) {
            Ok(release) => release,
            Err(unreadable) => panic!("{path} {text}: {unreadable}"),
        };
        let environment = sandbox.environment(1);
        let planned = plan(&environment, &release, &options(&tree), &mut |_| {}).await;
        let (ended, _) = sandbox.upgrade(&release, &options(&tree), 1).await.unwrap();
        for ended in [planned, ended] {
            let Err(RunError::Refused { why, report }) = ended else { panic!("{text}") };
            assert!(why.contains("not sound"), "{text}: {why}");
            assert!(report.findings.iter().any(|finding| finding.code.as_str() == code), "{text}");
        }
    }
    assert_eq!(sandbox.take_all_writes(), Vec::<String>::new());
    assert_eq!(comparable(&sandbox), before);
}
