//! With what a model is fetched.

use std::fmt;

use serde::Deserialize;

/// Keys and addresses of a data connection. `Debug` shows no keys.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Access {
    pub(crate) key_id: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) token: Option<String>,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    pub(crate) bucket: Option<String>,
    pub(crate) anonymous: bool,
    pub(crate) virtual_hosts: bool,
    pub(crate) roots: Vec<u8>,
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("endpoint", &self.endpoint)
            .field("region", &self.region)
            .field("bucket", &self.bucket)
            .field("anonymous", &self.anonymous)
            .field("has_key", &self.key.is_some())
            .finish_non_exhaustive()
    }
}

/// What is wrong with the environment. It has no values.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessError {
    /// The data connection is no JSON object.
    #[error(
        "STORAGE_CONFIG is no data connection: write it as a JSON object with type, access_key_id, secret_access_key, endpoint_url and bucket"
    )]
    NotJson,
    /// The data connection is of another type.
    #[error("STORAGE_CONFIG has a type that is not supported: only s3 is")]
    Type,
    /// One half of a key.
    #[error("{present} is given without {missing}: give both, or neither")]
    Half {
        /// What is there.
        present: &'static str,
        /// What is not.
        missing: &'static str,
    },
    /// Somebody asked not to check who answers.
    #[error(
        "certificates are always checked: name the authority's certificate by AWS_CA_BUNDLE, or use http:// inside the cluster"
    )]
    Unverified,
}

/// A data connection as KServe's secret `storage-config` has it. Fields that are not here change nothing for S3.
#[derive(Deserialize)]
struct Connection {
    #[serde(default)]
    r#type: String,
    access_key_id: Option<String>,
    secret_access_key: Option<String>,
    session_token: Option<String>,
    endpoint_url: Option<String>,
    region: Option<String>,
    bucket: Option<String>,
    default_bucket: Option<String>,
    anonymous: Option<serde_json::Value>,
    verify_ssl: Option<serde_json::Value>,
    certificate: Option<String>,
}

impl Access {
    /// From environment variables, as KServe's clients and data connections write them: `STORAGE_CONFIG`, else `AWS_ACCESS_KEY_ID`,
    /// `AWS_SECRET_ACCESS_KEY`, `AWS_SESSION_TOKEN`, `AWS_DEFAULT_REGION`, `AWS_ENDPOINT_URL` (or `AWS_S3_ENDPOINT`), `AWS_S3_BUCKET`,
    /// `AWS_ANONYMOUS_CREDENTIAL`, `S3_USER_VIRTUAL_BUCKET`. `roots` are certificates (PEM) to trust beside the public ones.
    ///
    /// # Errors
    /// What is wrong, without values.
    pub fn read(variable: impl Fn(&str) -> Option<String>, roots: Vec<u8>) -> Result<Self, AccessError> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let is_true = |value: &str| matches!(value, "true" | "True" | "1");
        let is_false = |value: &str| matches!(value, "false" | "False" | "0");
        let mut access = if let Some(text) = variable("STORAGE_CONFIG") {
            let connection: Connection = serde_json::from_str(&text).map_err(|_| AccessError::NotJson)?;
            if connection.r#type != "s3" {
                return Err(AccessError::Type);
            }
            let flag = |value: &Option<serde_json::Value>, is: &dyn Fn(&str) -> bool| {
                value.as_ref().is_some_and(|value| is(value.to_string().trim_matches('"')))
            };
            if flag(&connection.verify_ssl, &is_false) {
                return Err(AccessError::Unverified);
            }
            Self {
                anonymous: flag(&connection.anonymous, &is_true),
                key_id: connection.access_key_id,
                key: connection.secret_access_key,
                token: connection.session_token,
                endpoint: connection.endpoint_url,
                region: connection.region,
                bucket: connection.bucket.or(connection.default_bucket),
                virtual_hosts: false,
                roots: connection.certificate.map(String::into_bytes).unwrap_or_default(),
            }
        } else {
            Self {
                key_id: variable("AWS_ACCESS_KEY_ID"),
                key: variable("AWS_SECRET_ACCESS_KEY"),
                token: variable("AWS_SESSION_TOKEN"),
                endpoint: variable("AWS_ENDPOINT_URL").or_else(|| variable("AWS_S3_ENDPOINT")),
                region: variable("AWS_DEFAULT_REGION").or_else(|| variable("AWS_REGION")),
                bucket: variable("AWS_S3_BUCKET"),
                anonymous: variable("AWS_ANONYMOUS_CREDENTIAL").is_some_and(|value| is_true(&value)),
                virtual_hosts: variable("S3_USER_VIRTUAL_BUCKET").is_some_and(|value| is_true(&value)),
                roots: Vec::new(),
            }
        };
        if variable("S3_VERIFY_SSL").is_some_and(|value| is_false(&value)) {
            return Err(AccessError::Unverified);
        }
        for field in [
            &mut access.endpoint,
            &mut access.region,
            &mut access.bucket,
            &mut access.key_id,
            &mut access.key,
        ] {
            *field = field.take().map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        }
        // Without a scheme a host is meant.
        access.endpoint = access
            .endpoint
            .map(|endpoint| if endpoint.contains("://") { endpoint } else { format!("https://{endpoint}") });
        match (&access.key_id, &access.key) {
            (Some(_), None) => {
                return Err(AccessError::Half {
                    present: "AWS_ACCESS_KEY_ID",
                    missing: "AWS_SECRET_ACCESS_KEY",
                });
            }
            (None, Some(_)) => {
                return Err(AccessError::Half {
                    present: "AWS_SECRET_ACCESS_KEY",
                    missing: "AWS_ACCESS_KEY_ID",
                });
            }
            _ => {}
        }
        access.roots.push(b'\n');
        access.roots.extend(roots);
        Ok(access)
    }

    /// A text of others without our keys.
    pub(crate) fn scrubbed(&self, text: &str) -> String {
        let secrets = [&self.key_id, &self.key, &self.token].into_iter().flatten();
        secrets
            .filter(|secret| !secret.is_empty())
            .fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Access, AccessError> {
        let find =
            |name: &str| variables.iter().find(|(own, _)| *own == name).map(|(_, value)| (*value).to_owned());
        Access::read(find, Vec::new())
    }

    #[test]
    fn both_ways_to_write_a_connection_mean_the_same() {
        let by_variables = read(&[
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "geheim"),
            ("AWS_S3_ENDPOINT", "http://minio:9000"),
            ("AWS_DEFAULT_REGION", "eu-1"),
            ("AWS_S3_BUCKET", "models"),
        ]);
        let by_json = read(&[(
            "STORAGE_CONFIG",
            r#"{"type":"s3","access_key_id":"id","secret_access_key":"geheim","endpoint_url":"http://minio:9000","region":"eu-1","bucket":"models"}"#,
        )]);
        assert_eq!(by_variables, by_json);
        let access = by_json.unwrap();
        assert!(!format!("{access:?}").contains("geheim"));
        assert_eq!(access.scrubbed("id says geheim"), "… says …");
    }

    #[test]
    fn what_is_wrong_is_named_without_values() {
        for (variables, error) in [
            (&[("STORAGE_CONFIG", "geheim")][..], AccessError::NotJson),
            (&[("STORAGE_CONFIG", r#"{"type":"gs","key":"geheim"}"#)], AccessError::Type),
            (&[("STORAGE_CONFIG", r#"{"type":"s3","verify_ssl":"0"}"#)], AccessError::Unverified),
            (
                &[("AWS_ACCESS_KEY_ID", "geheim")],
                AccessError::Half { present: "AWS_ACCESS_KEY_ID", missing: "AWS_SECRET_ACCESS_KEY" },
            ),
            (&[("S3_VERIFY_SSL", "0")], AccessError::Unverified),
        ] {
            let found = read(variables).unwrap_err();
            assert_eq!(found, error);
            assert!(!found.to_string().contains("geheim"));
        }
        assert!(read(&[]).is_ok());
    }
}
