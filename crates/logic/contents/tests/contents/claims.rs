//! Claims as a catalogue writes them.

use std::collections::BTreeMap;

use proptest::prelude::*;
use scantling_contents::{
    Claim, ClaimVerdict, Contents, Ecosystem, Package, Runtime, check_claim, normalised, shown_version,
};

fn package(ecosystem: Ecosystem, name: &str, version: &str, layer: usize) -> Package {
    let path = format!("{ecosystem}/{name}-{version}/{layer}");
    Package { ecosystem, name: name.to_owned(), version: version.to_owned(), path, layer }
}

fn contents(packages: &[(&str, &str)]) -> Contents {
    let packages =
        packages.iter().map(|(name, version)| package(Ecosystem::Python, name, version, 0)).collect();
    Contents { packages, ..Contents::default() }
}

fn check(contents: &Contents, name: &str, version: &str) -> String {
    let claim = Claim { name: name.to_owned(), version: version.to_owned() };
    match check_claim(contents, &claim) {
        ClaimVerdict::Holds => "holds".to_owned(),
        ClaimVerdict::Differs { found } => found,
        ClaimVerdict::Absent => "absent".to_owned(),
    }
}

#[test]
fn versions_are_prefixes_by_components() {
    for (found, claimed, verdict) in [
        ("2.7.0", "2.7", "holds"),
        ("2.7.0", "2.7.0", "holds"),
        ("2.70", "2.7", "2.70"),
        ("2.4", "2.4.1", "2.4"),
        ("2.4.1", "2.7", "2.4.1"),
        ("3.8.13", "v3.8", "holds"),
        ("3.8.13", "V3.8", "holds"),
        ("v3.8.13", "3.8", "holds"),
        ("1.8.1+cu111", "1.8.1", "holds"),
        ("1.8.1+cu111", "1.8.1+cu111", "holds"),
        ("1.8.1+cu111", "1.8.1+cpu", "1.8.1+cu111"),
        ("1.8.1", "1.8.1+cpu", "1.8.1"),
        ("2.0.0rc1", "2.0.0", "holds"),
        ("2.0.0", "2.0.0rc1", "2.0.0"),
        ("2.0.0rc1", "2.0.0-rc.1", "holds"),
        ("3.08", "3.8", "holds"),
        ("1:2.3-4", "2.3", "holds"),
        ("1:2.3-4", "1:2.3", "holds"),
        ("1:2.3-4", "1", "1:2.3-4"),
        ("2", "2", "holds"),
        ("2", "", "2"),
        ("2", "v", "2"),
        ("10.0", "1", "10.0"),
        ("99999999999999999999999.1", "99999999999999999999999", "holds"),
    ] {
        assert_eq!(check(&contents(&[("x", found)]), "x", claimed), verdict, "{claimed} of {found}");
    }
}

#[test]
fn names_of_products_and_packages() {
    let image = contents(&[
        ("torch", "1.8.1"),
        ("scikit_learn", "0.24.1"),
        ("kafka-python", "2.0.2"),
        ("jupyterlab", "3.2.4"),
        ("notebook", "6.4.6"),
        ("numpy", "1.19.2"),
    ]);
    for (name, version, verdict) in [
        ("PyTorch", "1.8", "holds"),
        ("Scikit-learn", "0.24", "holds"),
        ("sklearn", "0.24", "holds"),
        ("Kafka-Python", "2.0", "holds"),
        ("JupyterLab", "3.2.4", "holds"),
        ("JupyterLab", "3.0.16", "3.2.4"),
        ("Notebook", "6.4", "holds"),
        ("Jupyter Notebook", "6.4", "holds"),
        ("Numpy", "1.19", "holds"),
        ("TensorFlow", "2.7", "absent"),
        ("", "1", "absent"),
    ] {
        assert_eq!(check(&image, name, version), verdict, "{name} {version}");
    }
    assert_eq!(shown_version(&image, "PyTorch").as_deref(), Some("1.8.1"));
    assert_eq!(check(&contents(&[("tensorflow-cpu", "2.7.1")]), "TensorFlow", "2.7"), "holds");
}

#[test]
fn which_copy_counts() {
    let packages = vec![
        package(Ecosystem::Dpkg, "numpy", "1.0", 9),
        package(Ecosystem::Conda, "numpy", "1.1", 9),
        package(Ecosystem::Python, "numpy", "1.2", 0),
        package(Ecosystem::Python, "Numpy", "1.3", 3),
    ];
    let mut image = Contents { packages, ..Contents::default() };
    assert_eq!(image.version_of("numpy"), Some("1.3"));
    assert_eq!(check(&image, "NumPy", "1.2"), "1.3");
    image.packages.retain(|package| package.ecosystem != Ecosystem::Python);
    assert_eq!(image.version_of("numpy"), Some("1.1"));
}

fn runtime(name: &str, version: &str) -> Runtime {
    Runtime {
        name: name.to_owned(),
        version: version.to_owned(),
        exact: false,
        path: format!("usr/lib/{name}{version}"),
    }
}

#[test]
fn interpreters_and_toolkits() {
    type Case<'a> = (&'a [(&'a str, &'a str)], &'a [(&'a str, &'a str)], &'a str, &'a str, &'a str);
    let cases: &[Case<'_>] = &[
        (&[("PYTHON_VERSION", "3.8.6")], &[("python", "3.8")], "Python", "v3.8", "holds"),
        (&[("PYTHON_VERSION", "3.8.6")], &[("python", "3.8")], "Python", "3.8.7", "3.8.6"),
        (&[("PYTHON_VERSION", "3.8.6")], &[], "Python", "v3.8", "holds"),
        // The files win where the variable was left behind.
        (&[("PYTHON_VERSION", "3.8.6")], &[("python", "3.9")], "Python", "v3.8", "3.9"),
        (&[("PYTHON_VERSION", "3.8.6")], &[("python", "3.6"), ("python", "3.8")], "Python", "v3.8", "holds"),
        (&[], &[("python", "3.8")], "Python", "v3.8", "holds"),
        (&[], &[("python", "3.8")], "Python", "3", "holds"),
        (&[], &[("python", "3.8")], "Python", "3.9", "3.8"),
        // A folder does not tell the third component.
        (&[], &[("python", "3.8")], "Python", "3.8.6", "absent"),
        (&[], &[("python", "3.6"), ("python", "3.11")], "Python", "3.11", "holds"),
        (&[("PYTHON_VERSION", " ")], &[], "Python", "3.8", "absent"),
        (&[("CUDA_VERSION", "11.0.3")], &[], "CUDA", "11.0", "holds"),
        (&[("CUDA_VERSION", "11.0.3")], &[("cuda", "11.0")], "CUDA", "11.0.3", "holds"),
        (&[("CUDA_VERSION", "11.0.3")], &[], "CUDA", "11.2", "11.0.3"),
        (&[], &[("cuda", "11.0")], "CUDA", "11.0", "holds"),
        (&[], &[], "CUDA", "11.0", "absent"),
        (&[("R_VERSION", "4.1.0")], &[], "R", "4.1", "holds"),
    ];
    for (env, runtimes, name, version, verdict) in cases {
        let image = Contents {
            env: env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect::<BTreeMap<_, _>>(),
            runtimes: runtimes.iter().map(|(name, version)| runtime(name, version)).collect(),
            ..Contents::default()
        };
        assert_eq!(check(&image, name, version), *verdict, "{name} {version} with {env:?} {runtimes:?}");
    }
}

proptest! {
    #[test]
    fn a_version_holds_for_itself_and_its_prefixes(parts in proptest::collection::vec(0u32..1000, 1..6), cut in 1usize..6) {
        let text: Vec<String> = parts.iter().map(u32::to_string).collect();
        let image = contents(&[("x", &text.join("."))]);
        let claimed = text[..cut.min(text.len())].join(".");
        prop_assert_eq!(check(&image, "X", &claimed), "holds");
        prop_assert_eq!(check(&image, "X", &format!("v{claimed}")), "holds");
        prop_assert_eq!(check(&image, "X", &format!("{}.1", text.join("."))), text.join("."));
    }

    #[test]
    fn any_texts_can_be_compared(found in "\\PC{0,20}", claimed in "\\PC{0,20}", name in "\\PC{0,20}") {
        let image = contents(&[(&name, &found)]);
        let verdict = check(&image, &name, &claimed);
        prop_assert!(verdict == "holds" || verdict == found || verdict == "absent");
        prop_assert_eq!(normalised(&normalised(&name)), normalised(&name));
    }
}
