//! What holds for every reference.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use proptest::prelude::*;

use super::*;

fn domain() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-zA-Z0-9]{1,8}(-[a-z0-9]{1,4})?\\.[a-z]{2,5}(:[1-9][0-9]{0,3})?",
        Just("localhost".to_owned()),
        "[a-z]{1,9}:[1-9][0-9]{0,3}",
        "\\[[0-9a-f]{1,4}::[0-9a-f]{1,4}\\](:[1-9][0-9]{0,3})?",
        "[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}\\.[0-9]{1,3}",
    ]
}

fn path() -> impl Strategy<Value = String> {
    "[a-z0-9]{1,6}((\\.|_|__|-{1,3})[a-z0-9]{1,5}){0,2}(/[a-z0-9]{1,6}((\\.|_|__|-{1,3})[a-z0-9]{1,5}){0,2}){0,3}"
}

proptest! {
    #[test]
    fn parts_put_together_are_read_back(
        domain in proptest::option::of(domain()),
        path in path(),
        tag in proptest::option::of("[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,20}"),
        content in proptest::option::of(any::<u64>()),
    ) {
        // Without a domain the first component must not look like one.
        prop_assume!(domain.is_some() || !path.split('/').next().unwrap().contains('.') || !path.contains('/'));
        prop_assume!(domain.is_some() || !path.starts_with("localhost/"));
        let digest = content.map(|content| Digest::of(&content.to_le_bytes()));
        let mut text = domain.as_ref().map_or_else(|| path.clone(), |domain| format!("{domain}/{path}"));
        if let Some(tag) = &tag {
            text = format!("{text}:{tag}");
        }
        if let Some(digest) = &digest {
            text = format!("{text}@{digest}");
        }
        prop_assume!(text.len() != 64 || text.contains(|c: char| !c.is_ascii_hexdigit()));
        let reference = Reference::parse(&text).unwrap();
        prop_assert_eq!(reference.written(), &text);
        prop_assert_eq!(reference.domain(), domain.as_deref());
        prop_assert_eq!(reference.tag(), tag.as_deref());
        prop_assert_eq!(reference.digest(), digest.as_ref());
        prop_assert!(reference.repository().ends_with(&path));
    }

    #[test]
    fn nothing_panics_and_what_is_taken_is_kept(text in prop_oneof!["\\PC{0,60}", "[a-zA-Z0-9:@/._\\[\\]-]{0,40}"]) {
        match Reference::parse(&text) {
            Ok(reference) => {
                prop_assert_eq!(reference.to_string(), text);
                // The spelled-out form is a reference, means the same, and is its own spelled-out form.
                let canonical = Reference::parse(&reference.canonical()).unwrap();
                prop_assert_eq!(canonical.canonical(), reference.canonical());
                prop_assert!(canonical.same_repository(&reference));
                let pinned = reference.with_digest(&Digest::of(b""));
                prop_assert_eq!(Reference::parse(pinned.written()).unwrap(), pinned);
                let tagged = reference.with_tag("t").unwrap();
                prop_assert_eq!(Reference::parse(tagged.written()).unwrap(), tagged);
                let json = serde_json::to_string(&reference).unwrap();
                prop_assert_eq!(serde_json::from_str::<Reference>(&json).unwrap(), reference);
            }
            Err(error) => {
                prop_assert!(!error.message().is_empty());
                if let Some(suggestion) = error.suggestion() {
                    prop_assert!(Reference::parse(suggestion).is_ok(), "{}", suggestion);
                }
            }
        }
    }
}
