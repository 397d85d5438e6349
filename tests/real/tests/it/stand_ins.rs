//! Small images in place of the platform's own.

use std::collections::BTreeMap;

use scantling_contents::{ImageDescription, LayerDescription, build};
use scantling_real_tests::{File, RealCluster, image};

use crate::common::push_image;

/// Where a stand-in for a model server says which release it is of.
pub(crate) const MODEL: &str = "v2/models/iris";

/// Packages of the images of a release: what a catalogue shows of them is read from there.
fn packages(release: &str) -> Vec<(&'static str, BTreeMap<String, String>)> {
    let of = |list: &[(&str, &str)]| list.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
    let newer = release == "2026.2";
    let lab = ("jupyterlab", if newer { "4.5.1" } else { "4.4.9" });
    let learn = ("scikit-learn", if newer { "1.8.0" } else { "1.7.2" });
    vec![
        ("minimal", of(&[lab])),
        ("datascience", of(&[lab, learn, ("pandas", "2.3.3"), ("matplotlib", "3.10.7")])),
        ("mlserver", of(&[("mlserver", "1.7.1"), learn])),
    ]
}

/// Pushes an image of each name of a release, but for the operator's, that has its packages and answers as a notebook of Anna's and as
/// her model.
pub(crate) fn push_stand_ins(cluster: &RealCluster, release: &str) {
    let answers =
        ["notebook/anna/old/api", "notebook/anna/new/api", "v2/health/ready", "v2/health/live", MODEL];
    let files = answers.map(|path| (format!("/www/{path}"), File::text(release)));
    let script = "trap 'exit 0' TERM; for port in 8080 8888; do httpd -f -p $port -h /www & done; wait";
    let base = image(&BTreeMap::from(files), &["/bin/sh", "-c", script]).unwrap();
    for (name, packages) in packages(release) {
        let path = "/usr/lib/python3.11/site-packages".to_owned();
        let layers = vec![LayerDescription::Python { path, packages }];
        let image = build(&ImageDescription { layers, ..Default::default() }, Some(&base)).unwrap();
        push_image(cluster, &image, &format!("{name}:{release}"));
    }
}
