//! What must hold for every text, however it comes.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::io::Cursor;

use proptest::prelude::*;
use scantling_snapshot::{Limits, Snapshot, read_text};
use serde_json::{Value, json};

fn snapshot(text: &str, block: u64) -> Snapshot {
    let limits = Limits { block_bytes: block, ..Limits::default() };
    read_text("text", Cursor::new(text.as_bytes().to_vec()), &limits)
}

/// Texts that look like what surrounds them.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z{}\\[\\]\"\\\\:,#|> \n\u{e9}-]{0,20}",
        Just("items:\n- apiVersion: v1\n  kind: Pod\n---\n".to_owned()),
        Just("]}\",\"items\":[{\"kind\":\"Pod\"".to_owned()),
        Just("==== START logs for container a ====\n".to_owned()),
    ]
}

fn config_maps() -> impl Strategy<Value = Vec<Value>> {
    let map = prop::collection::btree_map("[a-z]{1,6}", text(), 0..4);
    prop::collection::vec(map, 0..6).prop_map(|maps: Vec<BTreeMap<String, String>>| {
        let object = |(index, data): (usize, BTreeMap<String, String>)| {
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("c{index}"), "namespace": "a"}, "data": data})
        };
        maps.into_iter().enumerate().map(object).collect()
    })
}

fn held(snapshot: &Snapshot) -> Vec<Value> {
    snapshot.observed.iter().map(|(_, object)| object.clone()).collect()
}

fn list(objects: &[Value]) -> Value {
    json!({"apiVersion": "v1", "items": objects, "kind": "List", "metadata": {"resourceVersion": ""}})
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn json_comes_out_as_it_went_in(objects in config_maps(), block in 1u64..200, pretty: bool, alone: bool) {
        let text = match (alone, pretty) {
            (true, _) => objects.iter().map(Value::to_string).collect::<Vec<_>>().join("\n"),
            (false, true) => serde_json::to_string_pretty(&list(&objects)).unwrap(),
            (false, false) => list(&objects).to_string(),
        };
        let snapshot = snapshot(&text, block);
        prop_assert_eq!(held(&snapshot), objects.clone());
        prop_assert!(snapshot.skipped.is_empty() || objects.is_empty(), "{:?}", snapshot.skipped);
    }

    #[test]
    fn yaml_comes_out_as_it_went_in(objects in config_maps(), block in 1u64..200, alone: bool) {
        let text = if alone {
            objects.iter().map(scantling_yaml::to_yaml).collect::<Vec<_>>().join("---\n")
        } else {
            scantling_yaml::to_yaml(&list(&objects))
        };
        let snapshot = snapshot(&text, block);
        prop_assert_eq!(held(&snapshot), objects.clone(), "{}", text);
        prop_assert!(snapshot.skipped.is_empty() || objects.is_empty(), "{:?}", snapshot.skipped);
    }

    #[test]
    fn a_cut_list_gives_its_beginning_and_says_so(objects in config_maps(), at in 0.0f64..1.0, block in 1u64..200) {
        let text = list(&objects).to_string();
        #[expect(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "any place will do")]
        let mut end = (text.len() as f64 * at) as usize;
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let snapshot = snapshot(&text[..end], block);
        let held = held(&snapshot);
        prop_assert_eq!(&held[..], &objects[..held.len()]);
        prop_assert_eq!(snapshot.skipped.len(), 1, "{:?}", snapshot.skipped);
    }

    #[test]
    fn what_is_read_does_not_depend_on_blocks(text in "[a-z{}\\[\\]\":,\\\\ \n#-]{0,80}|(\\{\"(items|kind)\": ?[\\[{\"]?)?[{}\\[\\],:\"a]{0,30}", block in 1u64..50) {
        let whole = snapshot(&text, 1 << 20);
        let parts = snapshot(&text, block);
        // What a text looks like is told from its first block.
        if whole.skipped.iter().all(|it| it.why != scantling_snapshot::Why::NotObjects)
            && parts.skipped.iter().all(|it| it.why != scantling_snapshot::Why::NotObjects)
        {
            prop_assert_eq!(held(&whole), held(&parts));
            prop_assert_eq!(whole.skipped, parts.skipped);
        }
    }
}
