//! Whole images from recipes, with packages that the tests make themselves. Nothing is fetched.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::io::Write as _;
use std::process::Command;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use camino::{Utf8Path, Utf8PathBuf};
use http::Request;
use scantling_contents::Ecosystem;
use scantling_endpoint::{Keyring, Mirrors};
use scantling_image::{Digest, Platform, Reference};
use scantling_images::{Image, ImageName, Images, ImagesError, push_all};
use scantling_registry::{BoxError, Options, RegistryClient, transport_from_fn};
use scantling_registry_server::RegistryServer;

const HEAD: &str = "apiVersion: scantling.dev/v1alpha1\nkind: ImageRecipe\nabout: A test\n";

/// A folder with recipes and packages in the cache.
struct Workshop {
    folder: tempfile::TempDir,
}

impl Workshop {
    /// Two images, the second on the first; `None` where Debian's tools are missing.
    fn new() -> Option<Self> {
        let workshop = Self { folder: tempfile::tempdir().unwrap() };
        let Some(tool) = workshop.debian("tool", "2.0-1") else {
            println!("skipped: dpkg-deb is not installed");
            return None;
        };
        let below = "debian: [tool]\nlinks: {bin: usr/bin}\nfolders: {home/me: {user: 7, mode: 0775}}\n\
                     env: {A: base, B: \"of ${OWN}\"}\ncmd: [tool]\nuser: '7'\n\
                     concatenate: {etc/all: usr/share/parts}\n";
        let lock = format!(
            "version: 1\ndebianAsked: [tool]\ndebian:\n- {{name: tool, version: 2.0-1, architecture: all, digest: '{tool}'}}\n"
        );
        workshop.recipe("base:1", below, &lock);
        workshop.above("1.2.0");
        Some(workshop)
    }

    /// The image on the first, with this version of a Python package.
    fn above(&self, version: &str) {
        let below = Digest::of(&std::fs::read(self.path("recipes/base/1/recipe.lock")).unwrap());
        let wheel = self.wheel(version);
        let recipe = format!(
            "from: base:1\npython: ['my-tool=={version}']\nentrypoint: [my-tool]\nenv: {{A: app}}\nports: [8888/tcp]\n\
             files: {{opt/app/bin/start: {{mode: 0755, text: \"#!/bin/sh\\n\"}}}}\n"
        );
        let lock = format!(
            "version: 1\nbelow: {below}\npythonAsked: ['my-tool=={version}']\npython:\n- {{name: my-tool, version: {version}, digest: '{wheel}'}}\n"
        );
        self.recipe("app:1", &recipe, &lock);
    }

    fn path(&self, path: &str) -> Utf8PathBuf {
        Utf8Path::from_path(self.folder.path()).unwrap().join(path)
    }

    fn images(&self, output: &str) -> Images {
        Images::new(self.path("recipes"), self.path(output), self.path("cache"))
    }

    fn recipe(&self, name: &str, recipe: &str, lock: &str) {
        let name = ImageName::parse(name).unwrap();
        let folder = self.path("recipes").join(name.name()).join(name.version());
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("recipe.yaml"), format!("{HEAD}{recipe}")).unwrap();
        std::fs::write(folder.join("recipe.lock"), lock).unwrap();
    }

    fn cached(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        std::fs::create_dir_all(self.path("cache/packages")).unwrap();
        std::fs::write(self.path("cache/packages").join(digest.hex()), bytes).unwrap();
        digest
    }

    fn debian(&self, name: &str, version: &str) -> Option<Digest> {
        let root = self.path("deb");
        let files = [
            (
                "DEBIAN/control",
                format!(
                    "Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: T <t@example.com>\nDescription: a tool\n"
                ),
            ),
            ("bin/tool", "#!/bin/sh\necho tool\n".to_owned()),
            ("usr/share/parts/b", "two\n".to_owned()),
            ("usr/share/parts/a", "one\n".to_owned()),
        ];
        for (path, text) in files {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let file = self.path("tool.deb");
        let build =
            Command::new("dpkg-deb").args(["--root-owner-group", "--build"]).arg(&root).arg(&file).output();
        let output = build.ok()?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(self.cached(&std::fs::read(file).unwrap()))
    }

    fn wheel(&self, version: &str) -> Digest {
        let mut writer = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
        let folder = format!("my_tool-{version}.dist-info");
        let files = [
            ("my_tool/__init__.py".to_owned(), "def main(): pass\n".to_owned()),
            (format!("{folder}/WHEEL"), "Wheel-Version: 1.0\n".to_owned()),
            (
                format!("{folder}/METADATA"),
                format!("Metadata-Version: 2.1\nName: my-tool\nVersion: {version}\n"),
            ),
            (format!("{folder}/entry_points.txt"), "[console_scripts]\nmy-tool = my_tool:main\n".to_owned()),
        ];
        for (path, text) in files {
            writer.start_file(path, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(text.as_bytes()).unwrap();
        }
        self.cached(&writer.finish().unwrap().into_inner())
    }
}

fn names(names: &[&str]) -> Vec<ImageName> {
    names.iter().map(|name| ImageName::parse(name).unwrap()).collect()
}

fn build(images: &Images) -> Result<Vec<Image>, ImagesError> {
    images.build(&names(&["app:1", "base:1"]), &|_| ())
}

#[test]
fn built_twice_is_the_same_image() {
    let Some(workshop) = Workshop::new() else { return };
    let one = build(&workshop.images("one")).unwrap();
    let [app, base] = one.as_slice() else { panic!("{one:?}") };
    let other = build(&workshop.images("other")).unwrap();
    for (one, other) in one.iter().zip(&other) {
        assert_eq!((&one.digest, &one.layers), (&other.digest, &other.layers));
        assert!(!one.reused && !other.reused);
    }
    assert_eq!(app.layers.first(), base.layers.first(), "the layer of the image below is shared");
    assert_eq!((app.layers.len(), base.layers.len()), (2, 1));

    let contents = app.contents().unwrap();
    let found: Vec<(Ecosystem, &str, &str)> = contents
        .packages
        .iter()
        .map(|package| (package.ecosystem, package.name.as_str(), package.version.as_str()))
        .collect();
    assert_eq!(found, [(Ecosystem::Python, "my-tool", "1.2.0"), (Ecosystem::Dpkg, "tool", "2.0-1")]);
    assert_eq!(contents.env["A"], "app");
    assert!(contents.env["B"].starts_with("of ") && !contents.env["B"].contains('$'));
    assert_ne!(contents.env["B"], base.contents().unwrap().env["B"]);
}

#[test]
fn the_configuration_says_how_the_image_is_run() {
    let Some(workshop) = Workshop::new() else { return };
    let built = build(&workshop.images("out")).unwrap();
    let config = |image: &Image| -> serde_json::Value {
        let blob = |digest: &str| {
            let hex = digest.strip_prefix("sha256:").unwrap();
            let bytes = std::fs::read(image.folder.join("blobs/sha256").join(hex)).unwrap();
            serde_json::from_slice::<serde_json::Value>(&bytes).unwrap()
        };
        blob(blob(image.digest.as_str())["config"]["digest"].as_str().unwrap())
    };
    let (app, base) = (config(&built[0]), config(&built[1]));
    assert_eq!(
        (&base["config"]["Cmd"], &base["config"]["Entrypoint"]),
        (&serde_json::json!(["tool"]), &serde_json::Value::Null)
    );
    assert_eq!(app["config"]["Entrypoint"], serde_json::json!(["my-tool"]));
    assert_eq!(
        app["config"]["Cmd"],
        serde_json::Value::Null,
        "another entrypoint has no use for the command below"
    );
    assert_eq!(app["config"]["User"], "7");
    assert_eq!(app["config"]["ExposedPorts"], serde_json::json!({"8888/tcp": {}}));
    assert_eq!(app["config"]["Labels"]["org.opencontainers.image.title"], "app");
    assert_eq!(app["rootfs"]["diff_ids"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_there_is_not_made_again_and_what_changed_is() {
    let Some(workshop) = Workshop::new() else { return };
    let images = workshop.images("out");
    let first = build(&images).unwrap();
    let again = build(&images).unwrap();
    assert!(again.iter().all(|image| image.reused));
    assert_eq!(first[0].digest, again[0].digest);
    // A layer that is broken off is made again.
    let layer = first[1].folder.join("blobs/sha256").join(first[1].layers[0].0.hex());
    std::fs::remove_file(&layer).unwrap();
    std::fs::write(&layer, "x").unwrap();
    let mended = build(&images).unwrap();
    assert_eq!((mended[1].reused, &mended[1].digest), (false, &first[1].digest));
    assert!(mended[0].reused, "the image above has its own");
    workshop.above("1.3.0");
    let moved = build(&images).unwrap();
    assert_eq!((moved[0].reused, moved[1].reused), (false, true));
    assert_ne!(moved[0].digest, first[0].digest);
    assert_eq!(moved[0].contents().unwrap().version_of("my-tool"), Some("1.3.0"));
}

#[test]
fn a_lock_that_does_not_fit_is_refused() {
    let Some(workshop) = Workshop::new() else { return };
    let images = workshop.images("out");
    let path = workshop.path("recipes/app/1/recipe.yaml");
    let recipe = std::fs::read_to_string(&path).unwrap();
    let check = |expected: &str| {
        let error = build(&images).unwrap_err();
        assert!(!error.is_unavailable());
        let error = error.to_string();
        assert!(error.contains(expected), "{error}");
    };
    std::fs::write(&path, recipe.replace("my-tool==1.2.0", "my-tool")).unwrap();
    check(
        "made for other packages than the recipe asks for; `cargo xtask images --update app:1` resolves it anew",
    );
    std::fs::write(&path, &recipe).unwrap();
    let below = workshop.path("recipes/base/1/recipe.lock");
    let lock = std::fs::read_to_string(&below).unwrap();
    std::fs::write(&below, format!("# moved\n{lock}")).unwrap();
    check("made on another image than the recipe stands on now");
    std::fs::write(&below, lock.replace("version: 2.0-1", "version: 3.0-1")).unwrap();
    let error = images.build(&names(&["base:1"]), &|_| ()).unwrap_err().to_string();
    assert!(error.contains("another package than the lock says"), "{error}");
    std::fs::write(&path, recipe.replace("from: base:1", "from: app:1")).unwrap();
    check("stand on each other, perhaps in a circle");
    let error = images.select(&["nothing".to_owned()]).unwrap_err().to_string();
    assert_eq!(error, "there is no recipe for nothing; there are app:1, base:1");
}

#[test]
fn programs_are_handed_over() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.recipe("op:1", "programs: [usr/bin/op]\nonRequest: true\n", "version: 1\n");
    let images = workshop.images("out");
    assert_eq!(images.select(&[]).unwrap(), names(&["app:1", "base:1"]), "only on request");
    let error = images.build(&names(&["op:1"]), &|_| ()).unwrap_err().to_string();
    assert!(error.contains("/usr/bin/op is made before the image and was not handed over"), "{error}");
    let program = workshop.path("op");
    let mut digests = Vec::new();
    for text in ["one", "two"] {
        std::fs::write(&program, text).unwrap();
        let images = workshop.images("out").with_program("usr/bin/op", &program);
        digests.push(images.build(&names(&["op:1"]), &|_| ()).unwrap()[0].digest.clone());
    }
    assert_ne!(digests[0], digests[1]);
}

#[tokio::test]
async fn shared_layers_are_pushed_once() {
    let Some(workshop) = Workshop::new() else { return };
    let mut built = build(&workshop.images("out")).unwrap();
    built.reverse();
    let server: Arc<Mutex<RegistryServer>> = Arc::default();
    server.lock().unwrap().add_host("registry.example");
    let answering = Arc::clone(&server);
    let transport = transport_from_fn(move |host: &str, request: &Request<Bytes>| {
        Ok::<_, BoxError>(answering.lock().unwrap().handle(host, request))
    });
    let client = RegistryClient::new(transport, Mirrors::new(), Keyring::new(), Options::default());
    let pushed = push_all(&client, &built, "registry.example/team").await.unwrap();
    assert_eq!(pushed[0].tagged.written(), "registry.example/team/base:1");
    assert_eq!((pushed[0].copied.sent, pushed[0].copied.present), (2, 0), "a layer and the configuration");
    assert_eq!((pushed[1].copied.sent, pushed[1].copied.present), (2, 1), "the layer below is there");
    for (image, pushed) in built.iter().zip(&pushed) {
        let resolved = client.resolve(&pushed.tagged).await.unwrap();
        assert_eq!(resolved.digest, image.digest);
        assert_eq!(pushed.pinned.digest(), Some(&image.digest));
        let contents = client.contents(&pushed.pinned, &Platform::linux_amd64()).await.unwrap();
        assert_eq!(contents, image.contents().unwrap());
    }
    let again = push_all(&client, &built, "registry.example/team").await.unwrap();
    assert!(again.iter().all(|pushed| pushed.copied.sent == 0));
    assert!(Reference::parse(pushed[1].pinned.written()).unwrap().is_pinned());
}
