//! From folders that are mounted.

use std::fs;
use std::os::unix::fs::symlink;

use scantling_model_fetch::{Limits, Uri, check};

use crate::{files, get, limits};

#[tokio::test]
async fn a_folder_is_copied_and_links_stay_inside() {
    let from = tempfile::tempdir().unwrap();
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "geheim").unwrap();
    fs::create_dir_all(from.path().join("1/variables")).unwrap();
    fs::write(from.path().join("1/model.pb"), "graph").unwrap();
    fs::write(from.path().join("1/variables/v"), "numbers").unwrap();
    symlink("model.pb", from.path().join("1/link.pb")).unwrap();
    symlink(outside.path().join("secret"), from.path().join("1/out")).unwrap();
    let to = tempfile::tempdir().unwrap();
    let uri = format!("file://{}", from.path().display());
    let done = get(&uri, to.path(), None, &limits()).await.unwrap();
    assert_eq!(done.files, 3);
    let found = files(to.path());
    assert_eq!(found.keys().collect::<Vec<_>>(), ["1/link.pb", "1/model.pb", "1/variables/v"]);
    // What goes there goes here, what is there already is not copied again, and files of others stay.
    fs::write(to.path().join("mine"), "mine").unwrap();
    fs::remove_file(from.path().join("1/link.pb")).unwrap();
    let again = get(&uri, to.path(), None, &limits()).await.unwrap();
    assert_eq!((again.files, again.reused), (2, 2));
    assert_eq!(files(to.path()).keys().collect::<Vec<_>>(), ["1/model.pb", "1/variables/v", "mine"]);
    let error = get(&uri, to.path(), None, &Limits { files: 1, ..limits() }).await.unwrap_err();
    assert!(error.to_string().contains("more than 1 files"), "{error}");
}

#[test]
fn a_look_tells_whether_there_is_a_model() {
    let folder = tempfile::tempdir().unwrap();
    let look = |path: &str| {
        let uri = Uri::parse(&format!("file://{}/{path}", folder.path().display())).unwrap();
        check(&uri, &limits()).map(|found| found.files)
    };
    assert!(look("").is_err(), "an empty folder");
    assert!(look("iris").unwrap_err().to_string().contains("there is nothing at"));
    fs::create_dir(folder.path().join("iris")).unwrap();
    fs::write(folder.path().join("iris/model.joblib"), "").unwrap();
    assert!(look("iris").is_err(), "only empty files");
    fs::write(folder.path().join("iris/model.joblib"), "x").unwrap();
    assert_eq!(look("iris").unwrap(), 1);
    assert_eq!(look("iris/model.joblib").unwrap(), 1);
    assert!(check(&Uri::parse("https://h/x").unwrap(), &limits()).is_err());
}
