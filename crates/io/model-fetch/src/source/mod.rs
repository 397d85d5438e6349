//! Where models are.

mod access;
mod file;
mod s3;
mod uri;
mod web;

use std::pin::Pin;

use bytes::Bytes;
use futures::Stream;

pub use access::{Access, AccessError};
pub use uri::Uri;

use crate::client::Web;
use crate::error::FetchError;
use crate::limits::Limits;

/// A file that is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Item {
    /// Its path in the folder that it goes to.
    pub(crate) path: String,
    /// Its name where it is.
    pub(crate) key: String,
    pub(crate) size: Option<u64>,
    pub(crate) etag: Option<String>,
}

/// The bytes of a file as they come.
pub(crate) type Chunks = Pin<Box<dyn Stream<Item = Result<Bytes, String>> + Send>>;

/// A file that is being read.
pub(crate) struct Opened {
    pub(crate) chunks: Chunks,
    /// At which byte it begins.
    pub(crate) from: u64,
    /// Its whole size.
    pub(crate) size: Option<u64>,
    pub(crate) etag: Option<String>,
}

/// Why a file could not be opened.
pub(crate) enum Trouble {
    /// It may be different in a moment.
    Again(String),
    /// The part that we have is of another version.
    Changed,
    /// It will not.
    Final(FetchError),
}

impl From<FetchError> for Trouble {
    fn from(error: FetchError) -> Self {
        Self::Final(error)
    }
}

/// Where a model is.
pub(crate) enum Source {
    File(file::Folder),
    Web(Box<web::Page>),
    S3(Box<s3::Bucket>),
}

impl Source {
    pub(crate) fn new(uri: &Uri, access: &Access, limits: &Limits) -> Result<Self, FetchError> {
        Ok(match uri {
            Uri::File(path) => Self::File(file::Folder::new(path)),
            Uri::Web(url) => Self::Web(Box::new(web::Page::new(url.clone(), Web::new(&access.roots)?))),
            Uri::S3 { bucket, path } => Self::S3(Box::new(s3::Bucket::new(
                uri,
                bucket,
                path,
                access,
                Web::new(&access.roots)?,
                limits,
            )?)),
        })
    }

    /// What is there. Sizes and tags may be known only when a file is opened.
    pub(crate) async fn list(&self, limits: &Limits) -> Result<Vec<Item>, Trouble> {
        match self {
            Self::File(folder) => Ok(folder.list(limits)?),
            Self::Web(page) => Ok(vec![page.item()]),
            Self::S3(bucket) => bucket.list(limits).await,
        }
    }

    /// Opens a file at a byte, if it is still the version of this tag; else at its beginning.
    pub(crate) async fn open(&self, item: &Item, from: u64, etag: Option<&str>) -> Result<Opened, Trouble> {
        match self {
            Self::File(folder) => Ok(folder.open(item, from)?),
            Self::Web(page) => page.open(from, etag).await,
            Self::S3(bucket) => bucket.open(item, from, etag).await,
        }
    }
}

/// The files at a path that is mounted here.
pub(crate) fn list_folder(path: &std::path::Path, limits: &Limits) -> Result<Vec<Item>, FetchError> {
    file::Folder::new(path).list(limits)
}
