//! One image: packages into a layer, layers into a layout.

use std::io::BufWriter;

use camino::{Utf8Path, Utf8PathBuf};
use scantling_contents::{ImageDocuments, ImageSettings, WrittenLayer};
use scantling_image::{Digest, Platform};

use crate::cache::digest_of;
use crate::error::ImagesError;
use crate::images::{Images, Say, Source};
use crate::layout::{self, Built, BuiltLayer, Image, blob, read_if_there, share};
use crate::lock::{DebianPin, PythonPin};
use crate::recipe::Recipe;
use crate::tree::{Entry, Node, Tree};
use crate::{apt, deb, pip, wheel};

/// Changes when the same recipe and lock give another image than before.
const BUILDER: &str = "3";

/// In the value of an environment variable: what is different for images that are made of different things.
const OWN: &str = "${OWN}";

/// So many digits keep a few thousand images apart.
const OWN_DIGITS: usize = 12;

/// What makes programs that recipes ask for.
const PROGRAMS_FROM: &str = "`cargo xtask image` builds it";

/// Bytes of a layer that are kept before they go to disk.
const BUFFER: usize = 1 << 20;

/// Makes the image of the last recipe of a chain, whose others are made already; or finds it made.
pub(crate) fn build(images: &Images, chain: &[Source], say: Say<'_>) -> Result<Image, ImagesError> {
    let [under @ .., own] = chain else {
        return Err(ImagesError::Unknown { wanted: String::new(), known: String::new() });
    };
    let name = &own.name;
    let folder = images.output.join(name.name()).join(name.version());
    let record = images.output.join(name.name()).join(format!("{}.json", name.version()));
    let key = key(chain)?;
    let below = under.last().map(|below| below.name.clone());
    let image = |built: Built, reused: bool| Image {
        name: name.clone(),
        digest: built.digest,
        folder: folder.clone(),
        layers: built
            .layers
            .into_iter()
            .map(|layer| (layer.digest, layer.size, layer.archive_size))
            .collect(),
        below: below.clone(),
        reused,
    };
    if let Some(built) = whole(&folder, &record).filter(|built| built.key == key) {
        return Ok(image(built, true));
    }
    say(&format!("{name}: fetching what is not there yet"));
    apt::fetch(&images.cache, name, &own.lock.debian)?;
    pip::fetch(&images.cache, name, &own.lock.python)?;
    say(&format!(
        "{name}: making a layer of {} Debian and {} Python packages",
        own.lock.debian.len(),
        own.lock.python.len()
    ));
    let _ = std::fs::remove_file(&record);
    let _ = std::fs::remove_dir_all(&folder);
    let blobs = folder.join("blobs").join("sha256");
    std::fs::create_dir_all(&blobs).map_err(ImagesError::file(&blobs))?;
    let mut layers: Vec<BuiltLayer> = Vec::new();
    if let Some(below) = &below {
        let below_folder = images.output.join(below.name()).join(below.version());
        let record = images.output.join(below.name()).join(format!("{}.json", below.version()));
        let built = whole(&below_folder, &record).ok_or_else(|| ImagesError::Recipe {
            path: record.clone(),
            problem: "the image below vanished while this one was made".to_owned(),
        })?;
        for layer in built.layers {
            share(&below_folder, &folder, &layer.digest)?;
            layers.push(layer);
        }
    }
    let (layer, replaced) = write_layer(images, own, &folder)?;
    for path in replaced {
        say(&format!("{name}: /{path} comes from several packages with different content; the last stays"));
    }
    layers.push(BuiltLayer::new(layer, made_by(own)));
    let written: Vec<(WrittenLayer, String)> = layers.iter().map(BuiltLayer::written).collect();
    let documents = ImageDocuments::new(&Platform::linux_amd64(), &settings(chain, &key), &written)?;
    layout::write(&folder, name, &documents)?;
    let built =
        Built { key, digest: Digest::of(&documents.manifest), config: Digest::of(&documents.config), layers };
    let text = serde_json::to_vec(&built)
        .map_err(|error| ImagesError::Recipe { path: record.clone(), problem: error.to_string() })?;
    std::fs::write(&record, text).map_err(ImagesError::file(&record))?;
    Ok(image(built, false))
}

/// Everything that the image depends on, as one digest.
fn key(chain: &[Source]) -> Result<Digest, ImagesError> {
    let mut hasher = Digest::hasher();
    hasher.update(BUILDER.as_bytes());
    for source in chain {
        hasher.update(source.name.to_string().as_bytes());
        hasher.update(source.recipe_digest.as_str().as_bytes());
        hasher.update(source.lock_digest.as_str().as_bytes());
        for path in &source.recipe.programs {
            let file = source.programs.get(path).ok_or_else(|| ImagesError::NotGiven {
                image: source.name.clone(),
                path: path.clone(),
                how: PROGRAMS_FROM,
            })?;
            hasher.update(digest_of(file)?.as_str().as_bytes());
        }
    }
    Ok(hasher.finish())
}

/// What was built in a folder, if all of it is there.
fn whole(folder: &Utf8Path, record: &Utf8Path) -> Option<Built> {
    let built: Built = serde_json::from_slice(&read_if_there(record)?).ok()?;
    let size = |digest: &Digest| std::fs::metadata(blob(folder, digest)).ok().map(|metadata| metadata.len());
    let is_whole = built.layers.iter().all(|layer| size(&layer.digest) == Some(layer.size))
        && size(&built.digest).is_some()
        && size(&built.config).is_some()
        && folder.join("index.json").is_file();
    is_whole.then_some(built)
}

fn made_by(source: &Source) -> String {
    format!("recipe {} {}", source.name, source.recipe_digest.short())
}

/// Gathers the files of a recipe's layer and writes it to the layout. Also gives the paths that packages disagree about.
fn write_layer(
    images: &Images,
    source: &Source,
    folder: &Utf8Path,
) -> Result<(WrittenLayer, Vec<String>), ImagesError> {
    let spool_path = folder.join("spool");
    let spool = std::fs::File::options()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .open(&spool_path)
        .map_err(ImagesError::file(&spool_path))?;
    // It has no name any more, so nothing is left of it whatever happens.
    std::fs::remove_file(&spool_path).map_err(ImagesError::file(&spool_path))?;
    let mut tree = Tree::new(spool);
    for pin in &source.lock.debian {
        let DebianPin { digest, .. } = pin;
        deb::unpack(&mut tree, &source.recipe, pin, &images.cache.path(digest))?;
    }
    for pin in &source.lock.python {
        let PythonPin { digest, .. } = pin;
        wheel::install(&mut tree, pin, &images.cache.path(digest))?;
    }
    let replaced = tree.replaced().to_vec();
    own_files(&mut tree, source, &spool_path)?;
    let path = folder.join("layer");
    let file = std::fs::File::create(&path).map_err(ImagesError::file(&path))?;
    let (layer, _) = tree.write(BufWriter::with_capacity(BUFFER, file)).map_err(ImagesError::file(&path))?;
    let place = blob(folder, &layer.digest);
    std::fs::rename(&path, &place).map_err(ImagesError::file(&place))?;
    Ok((layer, replaced))
}

/// What the recipe itself puts into the layer, over what packages brought.
fn own_files(
    tree: &mut Tree<std::fs::File>,
    source: &Source,
    spool: &Utf8PathBuf,
) -> Result<(), ImagesError> {
    let Recipe { concatenate, links, folders, files, .. } = &source.recipe;
    for (path, folder) in concatenate {
        let parts: Vec<String> = tree.files_below(folder).map(str::to_owned).collect();
        let mut whole = Vec::new();
        for part in parts {
            whole.extend(tree.read(&part).map_err(ImagesError::file(spool))?);
        }
        tree.put_file(path, (0o644, 0, 0), whole.as_slice()).map_err(ImagesError::file(spool))?;
    }
    for (path, target) in links {
        tree.put(path, Entry { mode: 0o777, user: 0, group: 0, node: Node::Link(target.clone()) });
    }
    for (path, folder) in folders {
        tree.set_folder(path, folder.mode, folder.user, folder.group);
    }
    for (path, file) in files {
        tree.put_file(path, (file.mode, 0, 0), file.text.as_bytes()).map_err(ImagesError::file(spool))?;
    }
    for (path, file) in &source.programs {
        let program = std::fs::File::open(file).map_err(ImagesError::file(file))?;
        tree.put_file(path, (0o755, 0, 0), program).map_err(ImagesError::file(file))?;
    }
    Ok(())
}

/// How an image is run: what its recipe says, over what those below say.
fn settings(chain: &[Source], key: &Digest) -> ImageSettings {
    let mut settings = ImageSettings::default();
    for Source { name, recipe, .. } in chain {
        let over = |lower: &mut String, upper: &String| {
            if !upper.is_empty() {
                lower.clone_from(upper);
            }
        };
        let over_list = |lower: &mut Vec<String>, upper: &Vec<String>| {
            if !upper.is_empty() {
                lower.clone_from(upper);
            }
        };
        over(&mut settings.user, &recipe.user);
        over(&mut settings.working_dir, &recipe.working_dir);
        over_list(&mut settings.cmd, &recipe.cmd);
        if !recipe.entrypoint.is_empty() {
            settings.entrypoint.clone_from(&recipe.entrypoint);
            // What followed the entrypoint below means nothing to another program.
            settings.cmd.clone_from(&recipe.cmd);
        }
        over_list(&mut settings.ports, &recipe.ports);
        settings.env.extend(recipe.env.clone());
        settings.labels.extend(recipe.labels.clone());
        let standard = [("title", name.name()), ("version", name.version()), ("description", &recipe.about)];
        for (key, value) in standard {
            settings.labels.insert(format!("org.opencontainers.image.{key}"), value.to_owned());
        }
    }
    let own = key.hex().get(..OWN_DIGITS).unwrap_or(key.hex());
    for value in settings.env.values_mut() {
        *value = value.replace(OWN, own);
    }
    settings
}
