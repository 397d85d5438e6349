//! Both incidents, as they happened and as they do not happen.

use scantling_rehearse::Options;
use scantling_rehearse::people::{NotebookOutcome, Spawner};
use scantling_rehearse::promises::{Promise, Verdict};

use crate::support::{
    STALE, UNPUBLISHED, broken, example, model, notebook, play, promise, runs, scantling, screen, shipped,
};

#[test]
fn shipped_upgrade_leaves_old_images_where_they_are_cached() {
    let seen = play(&example(STALE), &shipped());
    assert!(!seen.ended_well());

    let farah = notebook(&seen, "farah");
    assert_eq!(farah.outcome, NotebookOutcome::Stale);
    assert_eq!((screen(farah, "TensorFlow"), runs(farah, "TensorFlow")), ("2.7", "2.4.1"));
    assert_eq!((screen(farah, "Tensorboard"), runs(farah, "Tensorboard")), ("2.6", "2.4.1"));
    assert_ne!(farah.wanted, farah.running);
    let known: Vec<_> =
        farah.advisories.iter().map(|it| (it.package.as_str(), it.version.as_str())).collect();
    assert_eq!(known, [("jupyterlab", "3.0.16"), ("notebook", "6.4.4")]);

    for person in ["ben", "chloe", "dmitri", "emre"] {
        assert_eq!(notebook(&seen, person).outcome, NotebookOutcome::Stale, "{person}");
    }
    // worker-c never had the image, so it pulls the new one.
    let grace = notebook(&seen, "grace");
    assert_eq!((grace.outcome, runs(grace, "TensorFlow")), (NotebookOutcome::AsPromised, "2.7.0"));
    assert_eq!(notebook(&seen, "anna").outcome, NotebookOutcome::KeptUnmarked);

    for promise in [Promise::Pinned, Promise::Converged, Promise::Truthful, Promise::People] {
        assert!(broken(&seen).contains(&promise), "{promise:?}");
    }
}

#[test]
fn removing_cached_images_gets_people_the_new_ones() {
    let options = Options { variant: Some("remove-cached-images".to_owned()), ..shipped() };
    let seen = play(&example(STALE), &options);
    for person in ["ben", "chloe", "dmitri", "emre", "farah", "grace"] {
        assert_eq!(notebook(&seen, person).outcome, NotebookOutcome::AsPromised, "{person}");
    }
    assert!(promise(&seen, Promise::Truthful).verdict == Verdict::Held);
    assert!(seen.ended_well(), "{:?}", broken(&seen));
}

#[test]
fn scantling_gives_everybody_what_the_screen_says() {
    let seen = play(&example(STALE), &scantling());
    for person in ["ben", "chloe", "dmitri", "emre", "farah", "grace"] {
        let notebook = notebook(&seen, person);
        assert_eq!(notebook.outcome, NotebookOutcome::AsPromised, "{person}: {notebook:#?}");
        assert_eq!(notebook.spawner, Spawner::Scantling, "{person}");
        assert!(notebook.written.contains("@sha256:"), "{person}: {}", notebook.written);
        assert_eq!(notebook.as_wanted, Some(true), "{person}");
    }
    assert_eq!(runs(notebook(&seen, "farah"), "tensorflow"), "2.7.0");
    let anna = notebook(&seen, "anna");
    assert_eq!(anna.outcome, NotebookOutcome::KeptAndMarked);
    let mark = anna.update_pending.as_deref().unwrap();
    assert!(mark.contains("TensorFlow 2.4.1 → 2.7.0"), "{mark}");
    assert_eq!(broken(&seen), []);
    assert!(seen.ended_well());
}

#[test]
fn scantling_brings_images_to_nodes_before_people_can_ask_for_them() {
    let seen = play(&example(STALE), &scantling());
    let position = |text: &str| seen.story.iter().position(|line| line.text.contains(text)).unwrap();
    assert!(position("prepull:") < position("offered as"));
    let last_pull = seen.story.iter().rposition(|line| line.text.starts_with("prepull:")).unwrap();
    let first_open = seen.story.iter().rposition(|line| line.text.contains("opens pytorch")).unwrap();
    assert!(last_pull < first_open);
}

#[test]
fn shipped_upgrade_makes_the_unpublished_fallback_live() {
    let seen = play(&example(UNPUBLISHED), &shipped());
    let model = model(&seen);
    assert!(!model.serves);
    assert!(model.trouble.as_deref().unwrap().starts_with("ImagePullBackOff"), "{:?}", model.trouble);
    let warned =
        seen.story.iter().filter(|line| line.text.contains("AlreadyExists") || line.text.starts_with("WARN"));
    assert_eq!(warned.count(), 4, "the four lines of the report");
    assert!(seen.story.iter().any(|line| line.text.contains("exit code 0")));
    for promise in [Promise::Pullable, Promise::Converged, Promise::NothingSilent, Promise::People] {
        assert!(broken(&seen).contains(&promise), "{promise:?}");
    }
    assert!(!seen.ended_well());
}

#[test]
fn nobody_saw_it_on_a_fresh_cluster() {
    let seen = play(&example(UNPUBLISHED), &Options { fresh: true, ..shipped() });
    assert!(model(&seen).serves);
    assert_eq!(promise(&seen, Promise::Pullable).verdict, Verdict::AtRisk);
    assert!(seen.ended_well(), "{:?}", broken(&seen));
}

#[test]
fn each_workaround_serves_the_model() {
    for variant in ["a-write-the-right-image", "b-delete-the-config-map", "c-promote-the-image"] {
        let seen = play(&example(UNPUBLISHED), &Options { variant: Some(variant.to_owned()), ..shipped() });
        assert!(model(&seen).serves, "{variant}: {:?}", model(&seen).trouble);
        assert!(seen.ended_well(), "{variant}: {:?}", broken(&seen));
    }
}

#[test]
fn scantling_refuses_the_release_and_then_converges_with_the_corrected_one() {
    let seen = play(&example(UNPUBLISHED), &scantling());
    let [refused, done] = seen.attempts.as_slice() else { panic!("{} attempts", seen.attempts.len()) };
    assert!(refused.refused);
    assert_eq!(refused.writes, 0);
    let finding =
        refused.report.as_ref().unwrap().findings.iter().find(|it| it.code.as_str() == "SCN0401").unwrap();
    let place = finding.place.file.as_ref().unwrap();
    assert!(place.path.ends_with("dashboard/const.ts"));
    assert_eq!((place.line, place.column), (23, 14));

    assert_eq!(done.failure, None);
    assert!(model(&seen).serves);
    assert_eq!(broken(&seen), []);
    let comparison = seen.comparison.as_ref().unwrap();
    assert!(comparison.objects > 10);
    let left: Vec<_> = comparison.differences.iter().filter(|it| it.field.is_some()).collect();
    let [notes] = left.as_slice() else { panic!("{left:#?}") };
    assert_eq!(notes.field.as_deref(), Some(".data[\"team-notes\"]"));
    assert!(notes.owner.starts_with("dana"), "{}", notes.owner);
}
