//! URIs of models.

use std::fmt;
use std::path::PathBuf;

use crate::error::FetchError;

/// Where a model is. `Display` leaves out what may be secret.
#[derive(Clone, PartialEq, Eq)]
pub enum Uri {
    /// A file or folder that is mounted here.
    File(PathBuf),
    /// On a web server.
    Web(http::Uri),
    /// In S3.
    S3 {
        /// The bucket; empty for the one that the data connection names.
        bucket: String,
        /// The object, or the beginning of the names of several, without slashes at its ends.
        path: String,
    },
}

impl Uri {
    /// Reads a URI.
    ///
    /// # Errors
    /// What is not supported, and what to write instead.
    pub fn parse(text: &str) -> Result<Self, FetchError> {
        // A query may be a signature, and what stands before an @ a password.
        let shown = text.split(['?', '#']).next().unwrap_or_default();
        let shown = match shown.split_once("://") {
            Some((scheme, rest)) if rest.split('/').next().is_some_and(|host| host.contains('@')) => {
                format!("{scheme}://…")
            }
            _ => shown.to_owned(),
        };
        let refuse = |why: &str| Err(FetchError::Uri { uri: shown.clone(), why: why.to_owned() });
        match text.split_once("://") {
            None if text.starts_with('/') => Ok(Self::File(PathBuf::from(text))),
            None => refuse("it has no scheme: write file:///PATH, https://HOST/PATH or s3://BUCKET/PATH"),
            Some(("file", path)) if path.starts_with('/') => Ok(Self::File(PathBuf::from(path))),
            Some(("file", _)) => refuse("a file has no host: write file:///PATH"),
            Some(("http" | "https", _)) => {
                let Ok(url) = text.split('#').next().unwrap_or_default().parse::<http::Uri>() else {
                    return refuse(
                        "it is no URL: spaces and other characters must be written as %20 and so on",
                    );
                };
                match url.authority() {
                    Some(authority) if authority.as_str().contains('@') => refuse(
                        "it has a user or a password in it, which everybody can read: put the model into S3 or a volume",
                    ),
                    Some(authority) if !authority.host().is_empty() => Ok(Self::Web(url)),
                    _ => refuse("it has no host"),
                }
            }
            Some(("s3", rest)) => {
                let (bucket, path) = rest.split_once('/').unwrap_or((rest, ""));
                if bucket.len() > 255
                    || !bucket.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
                {
                    return refuse("its bucket has characters that buckets cannot have");
                }
                Ok(Self::S3 { bucket: bucket.to_owned(), path: path.trim_matches('/').to_owned() })
            }
            Some((_, _)) => refuse(
                "its scheme is not supported: copy the model to S3 (s3://), to a web server (https://) or to a volume",
            ),
        }
    }
}

impl fmt::Display for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "file://{}", path.display()),
            Self::Web(url) => {
                let authority = url.authority().map(http::uri::Authority::as_str).unwrap_or_default();
                write!(f, "{}://{authority}{}", url.scheme_str().unwrap_or("http"), url.path())
            }
            Self::S3 { bucket, path } => write!(f, "s3://{bucket}/{path}"),
        }
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Uri({self})")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    #[test]
    fn uris_are_read_and_shown_without_secrets() {
        for (text, shown) in [
            ("/mnt/pvc/iris", "file:///mnt/pvc/iris"),
            ("file:///mnt/pvc/iris", "file:///mnt/pvc/iris"),
            ("https://h:1/a/b.joblib?sig=abc#x", "https://h:1/a/b.joblib"),
            ("http://h", "http://h/"),
            ("s3://models/iris/v1/", "s3://models/iris/v1"),
            ("s3:///iris", "s3:///iris"),
        ] {
            assert_eq!(Uri::parse(text).unwrap().to_string(), shown);
        }
        for (text, why) in [
            ("iris", "has no scheme"),
            ("gs://b/x", "not supported"),
            ("file://h/x", "has no host"),
            ("https://u:geheim@h/x?geheim", "has a user"),
            ("https:///x", "no"),
            ("http://a b/", "no URL"),
            ("s3://a b/x", "bucket"),
        ] {
            let error = Uri::parse(text).unwrap_err().to_string();
            assert!(error.contains(why) && !error.contains("geheim"), "{text}: {error}");
        }
    }
}
