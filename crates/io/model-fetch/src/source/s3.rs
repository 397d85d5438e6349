//! Models in S3.

use futures::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::path::Path;
use object_store::{Error, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt as _, RetryConfig};

use super::{Access, Item, Opened, Trouble, Uri};
use crate::client::{Web, reason};
use crate::error::FetchError;
use crate::limits::Limits;

/// The region of a server that has none.
const REGION: &str = "us-east-1";

/// The objects of a bucket below a path.
pub(crate) struct Bucket {
    store: AmazonS3,
    path: Path,
    uri: String,
    access: Access,
}

impl Bucket {
    pub(crate) fn new(
        uri: &Uri,
        bucket: &str,
        path: &str,
        access: &Access,
        web: Web,
        limits: &Limits,
    ) -> Result<Self, FetchError> {
        let refuse = |why: String| FetchError::Uri { uri: uri.to_string(), why };
        let bucket = Some(bucket).filter(|bucket| !bucket.is_empty()).or(access.bucket.as_deref());
        let Some(bucket) = bucket else {
            return Err(refuse(
                "no bucket is named: write s3://BUCKET/PATH, or the bucket into the data connection"
                    .to_owned(),
            ));
        };
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(access.region.as_deref().unwrap_or(REGION))
            .with_virtual_hosted_style_request(access.virtual_hosts)
            .with_http_connector(web)
            // Attempts are counted by whoever asks, who also sees what has arrived.
            .with_retry(RetryConfig {
                max_retries: 0,
                retry_timeout: limits.silence,
                ..RetryConfig::default()
            });
        if let Some(endpoint) = &access.endpoint {
            builder = builder
                .with_endpoint(endpoint.trim_end_matches('/'))
                .with_allow_http(endpoint.starts_with("http://"));
        }
        match (&access.key_id, &access.key) {
            (Some(id), Some(key)) if !access.anonymous => {
                builder = builder.with_access_key_id(id).with_secret_access_key(key);
                if let Some(token) = &access.token {
                    builder = builder.with_token(token);
                }
            }
            // Rights of the node are nobody's to use who did not ask for them.
            _ => builder = builder.with_skip_signature(true),
        }
        let store = builder.build().map_err(|error| refuse(access.scrubbed(&reason(&error))))?;
        let path = Path::parse(path).map_err(|error| refuse(error.to_string()))?;
        Ok(Self { store, path, uri: uri.to_string(), access: access.clone() })
    }

    fn trouble(&self, error: &Error) -> Trouble {
        let text = self.access.scrubbed(&reason(error));
        match error {
            Error::NotFound { .. } => FetchError::Missing { uri: self.uri.clone() }.into(),
            Error::Precondition { .. } => Trouble::Changed,
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
                FetchError::Denied { uri: self.uri.clone(), status: text }.into()
            }
            _ => Trouble::Again(text),
        }
    }

    /// The object of this name, else those in the folder of this name.
    pub(crate) async fn list(&self, limits: &Limits) -> Result<Vec<Item>, Trouble> {
        if !self.path.as_ref().is_empty() {
            match self.store.head(&self.path).await {
                Ok(found) if !found.location.as_ref().is_empty() => {
                    let name = found.location.filename().unwrap_or("model").to_owned();
                    return Ok(vec![item(found, name)]);
                }
                Ok(_) | Err(Error::NotFound { .. }) => {}
                Err(error) => return Err(self.trouble(&error)),
            }
        }
        let mut stream = self.store.list(Some(&self.path));
        let mut found: Vec<Item> = Vec::new();
        while let Some(object) = stream.try_next().await.map_err(|error| self.trouble(&error))? {
            if found.len() > limits.files {
                let limit = format!("{} files", limits.files);
                return Err(FetchError::TooMuch { uri: self.uri.clone(), limit }.into());
            }
            let whole = object.location.as_ref();
            let path =
                whole.strip_prefix(self.path.as_ref()).unwrap_or(whole).trim_start_matches('/').to_owned();
            if !path.is_empty() {
                found.push(item(object, path));
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        // Some tools write an empty object for each folder.
        let is_folder = |item: &Item, next: Option<&Item>| {
            item.size == Some(0)
                && next.is_some_and(|next| {
                    next.path.strip_prefix(&item.path).is_some_and(|rest| rest.starts_with('/'))
                })
        };
        let kept: Vec<Item> = (0..found.len())
            .filter_map(|place| Some((found.get(place)?, found.get(place + 1))))
            .filter(|(item, next)| !is_folder(item, *next))
            .map(|(item, _)| item.clone())
            .collect();
        if kept.is_empty() {
            return Err(FetchError::Missing { uri: self.uri.clone() }.into());
        }
        Ok(kept)
    }

    pub(crate) async fn open(&self, item: &Item, from: u64, etag: Option<&str>) -> Result<Opened, Trouble> {
        // The whole of an empty object has no first byte that could be asked for.
        let range = (from > 0).then_some(GetRange::Offset(from));
        let options = GetOptions { range, if_match: etag.map(str::to_owned), ..GetOptions::default() };
        let path = Path::parse(&item.key)
            .map_err(|error| FetchError::Answer { uri: self.uri.clone(), why: error.to_string() })?;
        let got = self.store.get_opts(&path, options).await.map_err(|error| self.trouble(&error))?;
        let (size, etag, from) = (got.meta.size, got.meta.e_tag.clone(), got.range.start);
        let access = self.access.clone();
        let chunks =
            got.into_stream().map(move |chunk| chunk.map_err(|error| access.scrubbed(&reason(&error))));
        Ok(Opened { chunks: Box::pin(chunks), from, size: Some(size), etag })
    }
}

fn item(object: ObjectMeta, path: String) -> Item {
    Item { path, key: object.location.into(), size: Some(object.size), etag: object.e_tag }
}
