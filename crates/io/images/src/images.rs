//! A folder of recipes, and what is made of it.

use std::collections::{BTreeMap, BTreeSet};

use camino::{Utf8Path, Utf8PathBuf};
use scantling_files::{Limits, read_file};
use scantling_image::Digest;

use crate::build::build;
use crate::cache::Cache;
use crate::error::ImagesError;
use crate::layout::Image;
use crate::lock::{DebianPin, PythonPin, RecipeLock, VERSION};
use crate::name::ImageName;
use crate::recipe::Recipe;
use crate::{apt, pip};

/// Most images that one may stand on, one above the other.
const DEPTH_MAX: usize = 16;

/// Images that are made at the same time: each keeps one processor busy with compression.
const PARALLEL: usize = 2;

/// Takes lines about what is being done.
pub type Say<'a> = &'a (dyn Fn(&str) + Sync);

/// A folder of recipes, with the place for what is made of them.
#[derive(Debug, Clone)]
pub struct Images {
    recipes: Utf8PathBuf,
    pub(crate) output: Utf8PathBuf,
    pub(crate) cache: Cache,
    given: BTreeMap<String, Utf8PathBuf>,
}

/// One recipe with its lock.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) name: ImageName,
    pub(crate) recipe: Recipe,
    pub(crate) recipe_digest: Digest,
    pub(crate) lock: RecipeLock,
    pub(crate) lock_digest: Digest,
    /// Programs that were handed over: path in the image → file.
    pub(crate) programs: BTreeMap<String, Utf8PathBuf>,
}

impl Images {
    /// Recipes in `recipes/NAME/VERSION`, layouts to `output/NAME/VERSION`, fetched packages in `cache`.
    pub fn new(
        recipes: impl Into<Utf8PathBuf>,
        output: impl Into<Utf8PathBuf>,
        cache: impl AsRef<Utf8Path>,
    ) -> Self {
        Self {
            recipes: recipes.into(),
            output: output.into(),
            cache: Cache::new(cache.as_ref()),
            given: BTreeMap::new(),
        }
    }

    /// Hands over a program that a recipe asks for: its path in the image, and the file.
    #[must_use]
    pub fn with_program(mut self, path: impl Into<String>, file: impl Into<Utf8PathBuf>) -> Self {
        self.given.insert(path.into(), file.into());
        self
    }

    /// Every recipe, sorted.
    pub fn all(&self) -> Result<Vec<ImageName>, ImagesError> {
        let mut found = Vec::new();
        for (name, folder) in folders(&self.recipes)? {
            for (version, folder) in folders(&folder)? {
                if folder.join("recipe.yaml").is_file()
                    && let Some(name) = ImageName::new(&name, &version)
                {
                    found.push(name);
                }
            }
        }
        found.sort();
        Ok(found)
    }

    /// The images that are meant: `NAME:VERSION`, or `NAME` for every version; with none, all that are not made on request only.
    pub fn select(&self, wanted: &[String]) -> Result<Vec<ImageName>, ImagesError> {
        let all = self.all()?;
        if wanted.is_empty() {
            let mut selected = Vec::new();
            for name in all {
                if !self.recipe(&name)?.0.on_request {
                    selected.push(name);
                }
            }
            return Ok(selected);
        }
        let mut selected = BTreeSet::new();
        for wanted in wanted {
            let meant: Vec<&ImageName> =
                all.iter().filter(|name| name.name() == wanted || name.to_string() == *wanted).collect();
            if meant.is_empty() {
                let known: Vec<String> = all.iter().map(ToString::to_string).collect();
                return Err(ImagesError::Unknown { wanted: wanted.clone(), known: known.join(", ") });
            }
            selected.extend(meant.into_iter().cloned());
        }
        Ok(selected.into_iter().collect())
    }

    /// Makes images, and those that they stand on, unless they are there already; gives those that were asked for, in that order.
    pub fn build(&self, wanted: &[ImageName], say: Say<'_>) -> Result<Vec<Image>, ImagesError> {
        let mut chains = BTreeMap::new();
        for name in wanted {
            let chain = self.chain(name)?;
            for at in 0..chain.len() {
                if let (Some(source), Some(part)) = (chain.get(at), chain.get(..=at)) {
                    chains.insert((at, source.name.clone()), part.to_vec());
                }
            }
        }
        std::fs::create_dir_all(&self.output).map_err(ImagesError::file(&self.output))?;
        // Two builds into one folder would write the same files.
        let path = self.output.join(".lock");
        let lock = std::fs::File::create(&path).map_err(ImagesError::file(&path))?;
        lock.lock().map_err(ImagesError::file(&path))?;
        let mut built = BTreeMap::new();
        let mut chains = chains.into_iter().peekable();
        while let Some(((depth, name), chain)) = chains.next() {
            // Images of one depth do not stand on each other.
            let mut together = vec![(name, chain)];
            while together.len() < PARALLEL
                && let Some(((_, name), chain)) = chains.next_if(|((other, _), _)| *other == depth)
            {
                together.push((name, chain));
            }
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = together
                    .iter()
                    .map(|(name, chain)| (name, scope.spawn(|| build(self, chain, say))))
                    .collect();
                threads.into_iter().map(|(name, thread)| (name.clone(), thread.join())).collect()
            });
            for (name, result) in results {
                let image = result.map_err(|_| ImagesError::Program {
                    command: format!("the build of {name}"),
                    problem: "it broke off".to_owned(),
                })??;
                built.insert(name, image);
            }
        }
        Ok(wanted.iter().filter_map(|name| built.get(name).cloned()).collect())
    }

    /// Writes the locks of recipes anew, with what the archives have now. What an image stands on is not written, so name it too if
    /// it is to move.
    pub fn update(&self, wanted: &[ImageName], say: Say<'_>) -> Result<(), ImagesError> {
        let mut ordered = Vec::new();
        for name in wanted {
            ordered.push((self.recipes_of(name)?.len(), name));
        }
        // What others stand on comes first.
        ordered.sort();
        for (_, name) in ordered {
            self.update_one(name, say)?;
        }
        Ok(())
    }

    fn update_one(&self, name: &ImageName, say: Say<'_>) -> Result<(), ImagesError> {
        say(&format!("{name}: asking what its packages depend on"));
        let mut recipes = self.recipes_of(name)?;
        let Some((_, recipe, _)) = recipes.pop() else { return Ok(()) };
        let mut asked: Vec<String> = Vec::new();
        let (mut debian_below, mut python_below) = (Vec::<DebianPin>::new(), Vec::<PythonPin>::new());
        let mut below = None;
        for (name, recipe, _) in &recipes {
            let (lock, digest) = self.lock(name)?;
            asked.extend(recipe.debian.clone());
            debian_below.extend(lock.debian);
            python_below.extend(lock.python);
            below = Some(digest);
        }
        let incoming = self.cache.incoming()?;
        let work = incoming.folder();
        let mut debian = Vec::new();
        if !recipe.debian.is_empty() {
            asked.extend(recipe.debian.clone());
            debian = apt::resolve(&asked, work)?;
            let moved: Vec<String> = debian_below
                .iter()
                .filter(|below| !debian.contains(below))
                .map(|below| format!("{} {}", below.name, below.version))
                .collect();
            if let Some((under, _, _)) = recipes.last()
                && !moved.is_empty()
            {
                return Err(ImagesError::Lock {
                    path: self.folder(under).join("recipe.lock"),
                    image: under.clone(),
                    problem: format!("the archive no longer has {}", moved.join(", ")),
                });
            }
            debian.retain(|pin| !debian_below.contains(pin));
        }
        let python = pip::resolve(&recipe.python, &python_below, work)?;
        let lock = RecipeLock {
            version: VERSION,
            below,
            debian_asked: recipe.debian,
            python_asked: recipe.python,
            debian,
            python,
        };
        let path = self.folder(name).join("recipe.lock");
        let broken =
            |error: serde_json::Error| ImagesError::Recipe { path: path.clone(), problem: error.to_string() };
        std::fs::write(&path, lock.write().map_err(broken)?).map_err(ImagesError::file(&path))?;
        say(&format!("{name}: {} Debian and {} Python packages", lock.debian.len(), lock.python.len()));
        Ok(())
    }

    fn folder(&self, name: &ImageName) -> Utf8PathBuf {
        self.recipes.join(name.name()).join(name.version())
    }

    fn recipe(&self, name: &ImageName) -> Result<(Recipe, Digest), ImagesError> {
        let path = self.folder(name).join("recipe.yaml");
        if !path.is_file() {
            let known: Vec<String> = self.all()?.iter().map(ToString::to_string).collect();
            return Err(ImagesError::Unknown { wanted: name.to_string(), known: known.join(", ") });
        }
        let bytes = read_file(&path, &Limits::default())?;
        let recipe = Recipe::read(&bytes).map_err(|problem| ImagesError::Recipe { path, problem })?;
        Ok((recipe, Digest::of(&bytes)))
    }

    fn lock(&self, name: &ImageName) -> Result<(RecipeLock, Digest), ImagesError> {
        let path = self.folder(name).join("recipe.lock");
        let failed = |problem: String| ImagesError::Lock { path: path.clone(), image: name.clone(), problem };
        if !path.is_file() {
            return Err(failed("it is not there".to_owned()));
        }
        let bytes = read_file(&path, &Limits::default())?;
        Ok((RecipeLock::read(&bytes).map_err(failed)?, Digest::of(&bytes)))
    }

    /// The recipes of an image, from the lowest to its own.
    fn recipes_of(&self, name: &ImageName) -> Result<Vec<(ImageName, Recipe, Digest)>, ImagesError> {
        let mut recipes = Vec::new();
        let mut next = Some(name.clone());
        while let Some(name) = next.take() {
            if recipes.len() == DEPTH_MAX {
                return Err(ImagesError::Recipe {
                    path: self.folder(&name).join("recipe.yaml"),
                    problem: format!("more than {DEPTH_MAX} images stand on each other, perhaps in a circle"),
                });
            }
            let (recipe, digest) = self.recipe(&name)?;
            next.clone_from(&recipe.from);
            recipes.push((name, recipe, digest));
        }
        recipes.reverse();
        Ok(recipes)
    }

    /// The recipes of an image with their locks, from the lowest to its own, each fitting the one below.
    fn chain(&self, name: &ImageName) -> Result<Vec<Source>, ImagesError> {
        let mut chain: Vec<Source> = Vec::new();
        for (name, recipe, recipe_digest) in self.recipes_of(name)? {
            let (lock, lock_digest) = self.lock(&name)?;
            let failed = |problem: &str| ImagesError::Lock {
                path: self.folder(&name).join("recipe.lock"),
                image: name.clone(),
                problem: problem.to_owned(),
            };
            if lock.debian_asked != recipe.debian || lock.python_asked != recipe.python {
                return Err(failed("it was made for other packages than the recipe asks for"));
            }
            if lock.below.as_ref() != chain.last().map(|below| &below.lock_digest) {
                return Err(failed("it was made on another image than the recipe stands on now"));
            }
            let mut programs = BTreeMap::new();
            for path in &recipe.programs {
                if let Some(file) = self.given.get(path) {
                    programs.insert(path.clone(), file.clone());
                }
            }
            chain.push(Source { name, recipe, recipe_digest, lock, lock_digest, programs });
        }
        Ok(chain)
    }
}

/// The folders in a folder, with their names, sorted.
fn folders(folder: &Utf8Path) -> Result<Vec<(String, Utf8PathBuf)>, ImagesError> {
    let list = || -> std::io::Result<Vec<(String, Utf8PathBuf)>> {
        let mut found = Vec::new();
        for entry in folder.read_dir_utf8()? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                found.push((entry.file_name().to_owned(), entry.into_path()));
            }
        }
        found.sort();
        Ok(found)
    };
    list().map_err(ImagesError::file(folder))
}
