//! Takes a snapshot of a live cluster: list by list and page by page, each page a file, so that a run that was ended continues.

mod secrets;

use camino::{Utf8Path, Utf8PathBuf};
use scantling_api::object;
use scantling_cluster::{Clock, Cluster, ClusterError, Page, Resource, Served};
use scantling_files::{FilesError, is_vacant, make_folder, read_file, remove_file, write_file};
use serde::de::DeserializeSeed as _;
use serde_json::{Value, json};

use crate::index::{INDEX_FILE, INDEX_KIND, INDEX_VERSION, Index, IndexedResource};
use crate::rules::{Keep, OBJECT, is_passed_over};

pub use secrets::TokenKey;

/// Objects in one page, as kubectl asks for them.
const PAGE: u32 = 500;
/// Pages of one kind, so that a server that always says "continue" cannot fill the disk: five million objects.
const PAGES: usize = 10_000;
/// How often a list is begun again because the server has forgotten where it was.
const RESTARTS: usize = 3;
/// Stands for the kinds of a group that the server names and does not describe.
const UNDESCRIBED: &str = "*.";

/// How a snapshot is taken.
#[derive(Debug)]
pub struct TakeSettings {
    /// Where to. The folder is made; one that is there must hold nothing, or a snapshot that was begun.
    pub folder: Utf8PathBuf,
    /// Only this namespace, and the objects of the cluster itself.
    pub namespace: Option<String>,
    /// The server's address, for whoever reads the index.
    pub server: String,
    /// From what tokens for the values of secrets are made. It is in no file: nobody can find a value by trying.
    pub key: TokenKey,
    /// The clock of whoever takes it.
    pub clock: Clock,
}

/// What is told while it is taken.
#[derive(Debug, Clone, Copy)]
pub enum TakeEvent<'a> {
    /// A snapshot that was begun is continued.
    Continued,
    /// A page was written: of which kind, and so many objects of it so far.
    Page(&'a str, usize),
    /// A list was begun again: the server had forgotten where it was.
    Again(&'a str),
    /// A kind cannot be seen.
    NotSeen(&'a IndexedResource),
}

/// Why no snapshot can be taken. What is there is kept; the same command continues.
#[derive(Debug, thiserror::Error)]
pub enum TakeError {
    /// The server cannot be worked with at all.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A file cannot be read or written.
    #[error(transparent)]
    Files(#[from] FilesError),
    /// The folder holds something else.
    #[error("{0} holds something else than a snapshot; name a new folder")]
    Occupied(Utf8PathBuf),
    /// The folder holds the index of another form.
    #[error("{0} cannot be continued: {1}; name a new folder")]
    Foreign(Utf8PathBuf, String),
    /// The folder holds a complete snapshot.
    #[error("{0} holds a snapshot that is complete; name a new folder")]
    Complete(Utf8PathBuf),
}

/// Takes a snapshot, or continues one.
///
/// # Errors
/// When the server cannot be asked or the folder not be written. A kind that may not be read is no error: the index says so.
pub async fn take(
    cluster: &Cluster,
    settings: &TakeSettings,
    tell: &mut dyn FnMut(TakeEvent<'_>),
) -> Result<Index, TakeError> {
    let begun = begun(&settings.folder)?;
    let about = cluster.about().await?;
    let own = settings.clock.now();
    let served = cluster.served().await?;
    let id = cluster_id(cluster, &served).await;
    let mut index = match begun {
        Some(begun) => {
            let same = begun.cluster == id
                && begun.server == settings.server
                && begun.namespace == settings.namespace;
            if !same {
                let of = format!("it was begun of {} in another way", begun.server);
                return Err(TakeError::Foreign(settings.folder.clone(), of));
            }
            tell(TakeEvent::Continued);
            begun
        }
        None => Index {
            api_version: INDEX_VERSION.to_owned(),
            kind: INDEX_KIND.to_owned(),
            written_by: concat!("scantling ", env!("CARGO_PKG_VERSION")).to_owned(),
            server: settings.server.clone(),
            server_version: about.version,
            cluster: id,
            namespace: settings.namespace.clone(),
            taken: rfc3339(about.time.unwrap_or(own)),
            clock_skew_seconds: about.time.map(|time| time.as_second() - own.as_second()),
            ..Index::default()
        },
    };
    make_folder(&settings.folder)?;
    for resource in served.iter().filter(|resource| is_wanted(resource)) {
        kind(cluster, settings, resource, &mut index, tell).await?;
    }
    // What the server could not describe in the last run it may describe now.
    index.resources.retain(|entry| !entry.resource.starts_with(UNDESCRIBED));
    for group in served.undescribed().iter().filter(|group| !is_passed_over(&group.group, "")) {
        let entry = IndexedResource {
            resource: format!("{UNDESCRIBED}{}", group.group),
            version: format!("{}/{}", group.group, group.version),
            not_seen: group.why.clone(),
            done: true,
            ..IndexedResource::default()
        };
        tell(TakeEvent::NotSeen(&entry));
        index.resources.push(entry);
    }
    let skew = index.clock_skew_seconds.unwrap_or_default();
    let now = settings.clock.now();
    index.finished = rfc3339(now.checked_add(jiff::SignedDuration::from_secs(skew)).unwrap_or(now));
    save(&settings.folder, &index)?;
    Ok(index)
}

/// The index of a snapshot that was begun in this folder.
fn begun(folder: &Utf8Path) -> Result<Option<Index>, TakeError> {
    if is_vacant(folder)? {
        return Ok(None);
    }
    let foreign = |why: String| TakeError::Foreign(folder.to_owned(), why);
    let bytes = match read_file(&folder.join(INDEX_FILE), &scantling_files::Limits::default()) {
        Ok(bytes) => bytes,
        Err(FilesError::NotFound { .. }) => return Err(TakeError::Occupied(folder.to_owned())),
        Err(error) => return Err(error.into()),
    };
    let index: Index = serde_json::from_slice(&bytes)
        .map_err(|error| foreign(format!("its index does not parse: {error}")))?;
    if index.api_version != INDEX_VERSION || index.kind != INDEX_KIND {
        return Err(foreign(format!("its form is `{}`, and `{INDEX_VERSION}` is known", index.api_version)));
    }
    if index.finished.is_empty() { Ok(Some(index)) } else { Err(TakeError::Complete(folder.to_owned())) }
}

fn save(folder: &Utf8Path, index: &Index) -> Result<(), TakeError> {
    let mut text = serde_json::to_vec_pretty(index).unwrap_or_default();
    text.push(b'\n');
    Ok(write_file(&folder.join(INDEX_FILE), &text)?)
}

/// Which cluster this is, if that may be read.
async fn cluster_id(cluster: &Cluster, served: &Served) -> String {
    let Some(namespaces) = served.by_kind("", "Namespace") else { return String::new() };
    match cluster.get(namespaces, None, "kube-system").await {
        Ok(Some(namespace)) => object::uid(&namespace).to_owned(),
        _ => String::new(),
    }
}

/// Is a kind in a snapshot? Not what cannot be listed, what says nothing about images or configuration, the same events under another
/// name, and people's tokens.
fn is_wanted(resource: &Resource) -> bool {
    let (group, kind) = (resource.gvk.group.as_str(), resource.gvk.kind.as_str());
    resource.offers("list")
        && !is_passed_over(group, kind)
        && !matches!(
            (group, kind),
            ("events.k8s.io", "Event") | ("oauth.openshift.io" | "user.openshift.io", _)
        )
}

fn full_name(resource: &Resource) -> String {
    match resource.gvk.group.as_str() {
        "" => resource.plural.clone(),
        group => format!("{}.{group}", resource.plural),
    }
}

/// One kind: what is missing of it.
async fn kind(
    cluster: &Cluster,
    settings: &TakeSettings,
    resource: &Resource,
    index: &mut Index,
    tell: &mut dyn FnMut(TakeEvent<'_>),
) -> Result<(), TakeError> {
    let name = full_name(resource);
    let at = index.resources.iter().position(|entry| entry.resource == name);
    let mut entry = match at {
        Some(at) => index.resources.remove(at),
        None => IndexedResource {
            resource: name.clone(),
            version: resource.gvk.api_version(),
            kind: resource.gvk.kind.clone(),
            ..IndexedResource::default()
        },
    };
    let at = at.unwrap_or(index.resources.len());
    let is_secret = resource.gvk.group.is_empty() && resource.gvk.kind == "Secret";
    if !entry.done && is_secret {
        // The key of the tokens is a new one, so that those of the last run compare with nothing.
        clear(&settings.folder, &mut entry)?;
    }
    let namespace = settings.namespace.as_deref().filter(|_| resource.namespaced);
    let mut restarts = 0;
    while !entry.done {
        let next = Some(entry.next.as_str()).filter(|next| !next.is_empty());
        match cluster.page(resource, namespace, None, PAGE, next).await {
            Ok(page) => {
                write_page(settings, resource, page, &mut entry)?;
                tell(TakeEvent::Page(&name, entry.objects));
                if !entry.done && entry.files.len() >= PAGES {
                    entry.not_seen = format!("the list does not end after {PAGES} pages; what came is here");
                    entry.done = true;
                }
            }
            Err(ClusterError::Expired { .. }) if next.is_some() && restarts < RESTARTS => {
                restarts += 1;
                clear(&settings.folder, &mut entry)?;
                tell(TakeEvent::Again(&name));
            }
            Err(error @ (ClusterError::Unreachable { .. } | ClusterError::Unauthenticated { .. })) => {
                index.resources.insert(at, entry);
                save(&settings.folder, index)?;
                return Err(error.into());
            }
            Err(error) => {
                if matches!(error, ClusterError::Forbidden { .. }) {
                    let place = namespace.map(|namespace| format!(" in {namespace}")).unwrap_or_default();
                    entry.missing_right = format!("list {name}{place}");
                }
                entry.not_seen = error.to_string();
                entry.done = true;
                tell(TakeEvent::NotSeen(&entry));
            }
        }
        index.resources.insert(at, entry);
        save(&settings.folder, index)?;
        entry = index.resources.remove(at);
    }
    index.resources.insert(at, entry);
    Ok(())
}

/// Takes back what there is of a kind.
fn clear(folder: &Utf8Path, entry: &mut IndexedResource) -> Result<(), TakeError> {
    for file in std::mem::take(&mut entry.files) {
        remove_file(&folder.join(file))?;
    }
    entry.objects = 0;
    entry.next.clear();
    Ok(())
}

fn write_page(
    settings: &TakeSettings,
    resource: &Resource,
    page: Page,
    entry: &mut IndexedResource,
) -> Result<(), TakeError> {
    let is_secret = resource.gvk.group.is_empty() && resource.gvk.kind == "Secret";
    let objects = page.objects.into_iter().map(|object| {
        // Reading a tree again does not fail.
        let mut object = Keep(&OBJECT).deserialize(object).unwrap_or_default();
        if is_secret {
            settings.key.hide(&mut object);
        }
        object
    });
    let objects: Vec<Value> = objects.collect();
    entry.objects += objects.len();
    entry.resource_version = page.resource_version;
    entry.done = page.next.is_none();
    entry.next = page.next.unwrap_or_default();
    if objects.is_empty() {
        return Ok(());
    }
    let folder = format!("objects/{}", entry.resource);
    let file = format!("{folder}/{:05}.json", entry.files.len() + 1);
    let list = json!({
        "apiVersion": resource.gvk.api_version(),
        "kind": format!("{}List", resource.gvk.kind),
        "metadata": {"resourceVersion": entry.resource_version},
        "items": objects,
    });
    make_folder(&settings.folder.join(&folder))?;
    write_file(&settings.folder.join(&file), &serde_json::to_vec(&list).unwrap_or_default())?;
    entry.files.push(file);
    Ok(())
}

fn rfc3339(time: jiff::Timestamp) -> String {
    jiff::Timestamp::from_second(time.as_second()).unwrap_or(time).to_string()
}
