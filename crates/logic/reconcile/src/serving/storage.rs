//! How a model comes into the pod: a volume, or an init container that fetches it.

use std::collections::{BTreeMap, BTreeSet};

use scantling_api::kserve::{ModelSpec, StorageSpec};
use scantling_api::{ObjectKey, object};
use scantling_observed::{
    InferenceService, Observed, PersistentVolumeClaim, Secret, ServiceAccount, View as _,
};
use serde_json::{Value, json};

use super::refusal::{Failure, Refusal};
use super::status::STORAGE_READY;

/// Where runtimes look for their model.
pub(crate) const MODEL_FOLDER: &str = "/mnt/models";
/// The init container that fetches; KServe's clients read its state by this name.
pub(crate) const FETCHER: &str = "storage-initializer";
/// Where a claim is mounted while it is looked at.
const CLAIM_FOLDER: &str = "/mnt/pvc";
/// The volume that a model is fetched into.
const FETCHED_VOLUME: &str = "kserve-provision-location";
/// The volume of a claim that has the model.
const CLAIM_VOLUME: &str = "kserve-pvc-source";
/// The secret whose keys are data connections, as KServe has it.
const CONNECTIONS: &str = "storage-config";
/// What is said of a connection whose server could be anybody.
const UNVERIFIED: &str = "asks to trust anybody who answers: use http:// inside the cluster, or a certificate of a known authority";
/// Longest URI that is taken; longer ones would not fit into what shows them.
const MAX_URI: usize = 2048;

/// What a pod needs for its model.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Storage {
    /// The init container.
    pub(crate) init: Option<Value>,
    /// Volumes of the pod.
    pub(crate) volumes: Vec<Value>,
    /// Mounts of the container that serves.
    pub(crate) mounts: Vec<Value>,
}

fn refuse<T>(reason: &'static str, message: String) -> Result<T, Refusal> {
    Err(Refusal { condition: STORAGE_READY, reason, failure: Failure::InvalidPredictorSpec, message })
}

/// What the storage of a model amounts to in its pod.
pub(crate) struct Places<'a> {
    pub(crate) observed: &'a Observed,
    pub(crate) namespace: &'a str,
    pub(crate) service_account: &'a str,
    /// The image that fetches, if it is known.
    pub(crate) fetch_image: Option<&'a str>,
    /// The environment of what fetches, where the secrets that say it are not known: whoever plans has no right to read them.
    pub(crate) assumed: Option<Vec<Value>>,
    /// Objects that could not be read, and why.
    pub(crate) unread: &'a BTreeMap<ObjectKey, String>,
}

impl Places<'_> {
    /// The storage of a model.
    pub(crate) fn storage(&self, model: &ModelSpec) -> Result<Storage, Refusal> {
        let uri = model.storage_uri.as_deref().unwrap_or_default();
        if uri.len() > MAX_URI {
            return refuse(
                "UriTooLong",
                format!("storageUri has {} bytes; at most {MAX_URI} are taken", uri.len()),
            );
        }
        if uri.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return refuse("UriMalformed", "storageUri has a space or a control character in it".to_owned());
        }
        match (uri.split_once("://"), &model.storage) {
            (None, None) if uri.is_empty() => Ok(Storage::default()),
            (None, None) => refuse(
                "UriNotSupported",
                format!(
                    "storageUri {uri:?} names no place: write pvc://CLAIM/PATH, https://… or s3://BUCKET/PATH"
                ),
            ),
            (Some(("pvc", place)), None) => self.claim(place),
            (Some(("http" | "https", place)), None) => {
                let host = place.split('/').next().unwrap_or_default();
                if host.contains('@') {
                    return refuse(
                        "SecretInUri",
                        "storageUri has a user or a password in it, which everybody can read: put the model into S3 or a volume".to_owned(),
                    );
                }
                if host.is_empty() {
                    return refuse("UriMalformed", format!("storageUri {uri:?} has no host"));
                }
                self.fetched(uri, &[])
            }
            (Some(("s3", place)), connection) => {
                if place.split('/').next().unwrap_or_default().is_empty() {
                    return refuse(
                        "UriMalformed",
                        format!("storageUri {uri:?} has no bucket: write s3://BUCKET/PATH"),
                    );
                }
                let env = match (&self.assumed, connection) {
                    (Some(assumed), _) => assumed.clone(),
                    (None, Some(connection)) => self.connection(connection)?,
                    (None, None) => self.account_env()?,
                };
                self.fetched(uri, &env)
            }
            (None, Some(connection)) if uri.is_empty() => {
                let env = match &self.assumed {
                    Some(assumed) => assumed.clone(),
                    None => self.connection(connection)?,
                };
                let bucket = connection.parameters.get("bucket").map(String::as_str).unwrap_or_default();
                let path = connection.path.as_deref().unwrap_or_default().trim_start_matches('/');
                // Without a bucket, the one of the connection is meant; its name is in the secret.
                self.fetched(&format!("s3://{bucket}/{path}"), &env)
            }
            (Some((scheme, _)), Some(_)) => refuse(
                "UriNotSupported",
                format!(
                    "a data connection is for s3:// and storageUri is {scheme}://: leave one of them out"
                ),
            ),
            (None, Some(_)) => refuse(
                "UriNotSupported",
                format!("storageUri {uri:?} names no place: leave it out, the data connection has the place"),
            ),
            (Some((scheme, _)), None) => refuse(
                "UriNotSupported",
                format!(
                    "storageUri with {scheme}:// is not supported: copy the model to S3 (s3://), to a web server (https://) or to a volume (pvc://)"
                ),
            ),
        }
    }

    /// A model on a claim: it is used where it is, read-only, after a look whether it is there.
    fn claim(&self, place: &str) -> Result<Storage, Refusal> {
        let (claim, path) = place.split_once('/').unwrap_or((place, ""));
        let path = path.trim_matches('/');
        if claim.is_empty() {
            return refuse("UriMalformed", "storageUri names no claim: write pvc://CLAIM/PATH".to_owned());
        }
        if path.split('/').any(|part| part == ".." || part == ".") {
            return refuse("UriMalformed", format!("the path {path:?} of storageUri leaves the claim"));
        }
        let found: Option<PersistentVolumeClaim<'_>> = self.observed.one(self.namespace, claim);
        match found {
            None => {
                return refuse(
                    "ClaimMissing",
                    format!(
                        "there is no PersistentVolumeClaim {}/{claim}: make it, or correct storageUri",
                        self.namespace
                    ),
                );
            }
            Some(found) if found.is_lost() => {
                return refuse(
                    "ClaimLost",
                    format!(
                        "the volume of PersistentVolumeClaim {}/{claim} is gone: restore it, or use another claim",
                        self.namespace
                    ),
                );
            }
            Some(_) => {}
        }
        let mut mount = json!({"name": CLAIM_VOLUME, "mountPath": MODEL_FOLDER, "readOnly": true});
        if !path.is_empty() {
            mount["subPath"] = json!(path);
        }
        let init = match self.fetch_image {
            // A path that is not there would be made, empty, by the mount of the container that serves.
            Some(image) => {
                let uri = format!("file://{CLAIM_FOLDER}/{path}");
                let mounts = json!([{"name": CLAIM_VOLUME, "mountPath": CLAIM_FOLDER, "readOnly": true}]);
                Some(fetcher(image, &["--check", &uri], &[], &mounts))
            }
            None => return Self::no_image(),
        };
        Ok(Storage {
            init,
            volumes: vec![json!({"name": CLAIM_VOLUME, "persistentVolumeClaim": {"claimName": claim}})],
            mounts: vec![mount],
        })
    }

    fn no_image<T>() -> Result<T, Refusal> {
        refuse(
            "FetcherUnknown",
            format!(
                "the image that fetches models is that of Deployment {}/{}, which is not there: install the platform's operator",
                crate::isolation::SYSTEM_NAMESPACE,
                super::OPERATOR
            ),
        )
    }

    /// A model that an init container fetches into a volume of the pod's own.
    fn fetched(&self, uri: &str, env: &[Value]) -> Result<Storage, Refusal> {
        let Some(image) = self.fetch_image else { return Self::no_image() };
        let mounts = json!([{"name": FETCHED_VOLUME, "mountPath": MODEL_FOLDER}]);
        Ok(Storage {
            init: Some(fetcher(image, &[uri, MODEL_FOLDER], env, &mounts)),
            volumes: vec![json!({"name": FETCHED_VOLUME, "emptyDir": {}})],
            mounts: vec![json!({"name": FETCHED_VOLUME, "mountPath": MODEL_FOLDER, "readOnly": true})],
        })
    }

    fn secret(&self, name: &str) -> Result<Option<Secret<'_>>, Refusal> {
        if let Some(why) = self.unread.get(&secret_key(self.namespace, name)) {
            return refuse(
                "SecretUnread",
                format!(
                    "Secret {}/{name} could not be read, which is tried again by itself: {why}",
                    self.namespace
                ),
            );
        }
        Ok(self.observed.one(self.namespace, name))
    }

    /// The environment of a data connection.
    fn connection(&self, storage: &StorageSpec) -> Result<Vec<Value>, Refusal> {
        if let Some(kind) = storage.parameters.get("type").filter(|kind| *kind != "s3") {
            return refuse(
                "ConnectionNotSupported",
                format!("storage.parameters.type {kind:?} is not supported: only s3 is"),
            );
        }
        let Some(key) = storage.key.as_deref().filter(|key| !key.is_empty()) else {
            return refuse(
                "ConnectionMissing",
                "storage names no data connection: write its name into storage.key".to_owned(),
            );
        };
        let listed = self.secret(CONNECTIONS)?.filter(|secret| secret.keys().any(|own| own == key));
        if let Some(secret) = listed {
            let whole =
                secret.value(key).and_then(|value| serde_json::from_slice::<Value>(value.expose()).ok());
            let place = format!("key {key:?} of Secret {}/{CONNECTIONS}", self.namespace);
            let Some(whole) = whole.filter(Value::is_object) else {
                return refuse(
                    "SecretMalformed",
                    format!("{place} is no JSON object: write the data connection anew"),
                );
            };
            let has = |name: &str| !object::text(&whole, &format!("/{name}")).is_empty();
            if object::text(&whole, "/type") != "s3" {
                return refuse("SecretMalformed", format!("{place} is not of type s3; only s3 is supported"));
            }
            let is = |name: &str, words: [&str; 3]| {
                let written = whole.get(name).map(|value| value.to_string().trim_matches('"').to_owned());
                written.is_some_and(|written| words.contains(&written.as_str()))
            };
            if is("verify_ssl", ["false", "False", "0"]) {
                return refuse("TlsNotVerified", format!("{place} {UNVERIFIED}"));
            }
            let missing = ["access_key_id", "secret_access_key"].into_iter().find(|name| !has(name));
            if let Some(missing) = missing.filter(|_| !is("anonymous", ["true", "True", "1"])) {
                return refuse("SecretMalformed", format!("{place} has no {missing:?}: add it"));
            }
            let bucket_known = storage.parameters.get("bucket").is_some_and(|bucket| !bucket.is_empty());
            if !bucket_known && !has("bucket") && !has("default_bucket") {
                return refuse(
                    "SecretMalformed",
                    format!("{place} has no \"bucket\": add it, or write storage.parameters.bucket"),
                );
            }
            return Ok(vec![from_secret("STORAGE_CONFIG", CONNECTIONS, key)]);
        }
        let Some(secret) = self.secret(key)? else {
            return refuse(
                "SecretMissing",
                format!(
                    "there is no data connection {key:?} in namespace {}: make a Secret of this name with AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_S3_ENDPOINT and AWS_S3_BUCKET, or a key of this name in the Secret {CONNECTIONS}",
                    self.namespace
                ),
            );
        };
        let mut needed = vec!["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"];
        if storage.parameters.get("bucket").is_none_or(String::is_empty) {
            needed.push("AWS_S3_BUCKET");
        }
        self.has_keys(secret, &needed)?;
        let known = [
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_S3_ENDPOINT",
            "AWS_DEFAULT_REGION",
            "AWS_S3_BUCKET",
        ];
        Ok(known
            .into_iter()
            .filter(|name| secret.keys().any(|own| own == *name))
            .map(|name| from_secret(name, key, name))
            .collect())
    }

    fn has_keys(&self, secret: Secret<'_>, needed: &[&str]) -> Result<(), Refusal> {
        let filled = |name: &str| secret.value(name).is_some_and(|value| !value.expose().is_empty());
        match needed.iter().find(|name| !filled(name)) {
            None => Ok(()),
            Some(missing) => refuse(
                "SecretMalformed",
                format!(
                    "Secret {}/{} has no key {missing}, or it is empty: add it",
                    self.namespace,
                    secret.name()
                ),
            ),
        }
    }

    /// The environment that the secrets of the service account give, by KServe's annotations. Without such a secret the bucket is public,
    /// or the node has access.
    fn account_env(&self) -> Result<Vec<Value>, Refusal> {
        let account: Option<ServiceAccount<'_>> = self.observed.one(self.namespace, self.service_account);
        let Some(account) = account else { return Ok(Vec::new()) };
        for name in account.secrets() {
            let Some(secret) = self.secret(name)? else { continue };
            let annotation = |name: &str| {
                secret.annotation(&format!("serving.kserve.io/{name}")).filter(|v| !v.is_empty())
            };
            let has_keys = secret.keys().any(|key| key == "AWS_ACCESS_KEY_ID");
            if !has_keys && annotation("s3-endpoint").is_none() {
                continue;
            }
            if annotation("s3-verifyssl") == Some("0") {
                return refuse("TlsNotVerified", format!("Secret {}/{name} {UNVERIFIED}", self.namespace));
            }
            let anonymous = annotation("s3-useanoncredential") == Some("true");
            let mut env = Vec::new();
            if anonymous {
                env.push(json!({"name": "AWS_ANONYMOUS_CREDENTIAL", "value": "true"}));
            } else {
                self.has_keys(secret, &["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])?;
                for key in ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"] {
                    env.push(from_secret(key, name, key));
                }
            }
            if let Some(endpoint) = annotation("s3-endpoint") {
                let scheme = if annotation("s3-usehttps") == Some("0") { "http" } else { "https" };
                let url = if endpoint.contains("://") {
                    endpoint.to_owned()
                } else {
                    format!("{scheme}://{endpoint}")
                };
                env.push(json!({"name": "AWS_ENDPOINT_URL", "value": url}));
            }
            if let Some(region) = annotation("s3-region") {
                env.push(json!({"name": "AWS_DEFAULT_REGION", "value": region}));
            }
            if annotation("s3-usevirtualbucket") == Some("true") {
                env.push(json!({"name": "S3_USER_VIRTUAL_BUCKET", "value": "true"}));
            }
            return Ok(env);
        }
        Ok(Vec::new())
    }
}

fn secret_key(namespace: &str, name: &str) -> ObjectKey {
    ObjectKey::namespaced("", "Secret", namespace, name)
}

/// The secrets that services name, by themselves or by their accounts. No other is read.
pub(crate) fn names(observed: &Observed) -> BTreeSet<ObjectKey> {
    let mut names = BTreeSet::new();
    for service in observed.all::<InferenceService<'_>>().filter(|service| !service.is_being_deleted()) {
        let Ok(spec) = service.spec() else { continue };
        let Ok(model) = super::spec::model_of(&spec) else { continue };
        let namespace = service.namespace();
        if let Some(key) = model.storage.as_ref().and_then(|storage| storage.key.as_deref()) {
            names.extend([CONNECTIONS, key].map(|name| secret_key(namespace, name)));
        } else if model.storage_uri.as_deref().is_some_and(|uri| uri.starts_with("s3://")) {
            let account: Option<ServiceAccount<'_>> =
                observed.one(namespace, super::spec::account_of(&spec.predictor));
            let of_account = account.into_iter().flat_map(ServiceAccount::secrets);
            names.extend(of_account.map(|name| secret_key(namespace, name)));
        }
    }
    names.retain(|key| !key.name.is_empty());
    names
}

fn from_secret(variable: &str, secret: &str, key: &str) -> Value {
    json!({"name": variable, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
}

/// The init container. Its last words become its termination message, which the status of the service repeats.
fn fetcher(image: &str, arguments: &[&str], env: &[Value], mounts: &Value) -> Value {
    let mut args = vec!["fetch-model"];
    args.extend(arguments);
    json!({
        "name": FETCHER,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "args": args,
        "env": env,
        // Written down so that quotas on requests can be held.
        "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": mounts,
    })
}
