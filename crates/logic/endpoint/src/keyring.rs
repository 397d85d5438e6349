//! Pull secrets, and which of them a node uses for which image.

use scantling_image::DOCKER_HUB;
use serde_json::Value;

use crate::credential::{Credential, CredentialId, Secret};
use crate::{docker_config, glob};

/// Most credentials of one keyring; service accounts have a handful.
const CREDENTIALS_MAX: usize = 10_000;
/// Largest secret that Kubernetes stores, in bytes.
const CONFIG_MAX: usize = 1024 * 1024;
/// Under this key Docker's own tools store credentials for Docker Hub.
const DEFAULT_REGISTRY_KEY: &str = "index.docker.io";

/// Credentials that a pod's pull secrets and a node give, matched as the kubelet matches them.
///
/// A key is `host[:port][/path]`; each label of the host may have patterns (`*.example.com`), the number of labels and
/// the port must agree, the path must be a prefix *of the text*. All keys that match give candidates, the
/// alphabetically last key first (so that a longer path comes before its prefix), several credentials of one key in
/// the order in which they were added; the pod's come before the node's.
///
/// Source: `pkg/credentialprovider/keyring.go` of Kubernetes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keyring {
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// The credential's key without scheme and without `/v1/` or `/v2/`.
    key: String,
    holder: Holder,
    credential: Credential,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Pod,
    Node,
}

/// Reads the entries of one of the two forms of files.
type Reader = fn(&[u8]) -> Result<Vec<docker_config::Entry>, String>;

/// Why a pull secret could not be taken. No message repeats a value from it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyringError {
    /// The secret is not of a type that holds registry credentials.
    #[error(
        "{origin}: a secret of type `{found}` holds no registry credentials; \
             kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg is needed"
    )]
    Type {
        /// The secret.
        origin: String,
        /// Its type.
        found: String,
    },
    /// The key that the type demands is missing or no base64.
    #[error("{origin}: `{key}` is missing or no base64")]
    Data {
        /// The secret.
        origin: String,
        /// The key.
        key: &'static str,
    },
    /// The content is malformed. The kubelet refuses the whole secret then.
    #[error("{origin}: {problem}")]
    Content {
        /// The secret or file.
        origin: String,
        /// What is wrong.
        problem: String,
    },
    /// More than is read.
    #[error("{origin}: larger than a pull secret can be")]
    Size {
        /// The secret or file.
        origin: String,
    },
}

impl Keyring {
    /// No credentials: every registry is asked anonymously.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a pod's pull secret, a `Secret` object.
    pub fn add_secret(&mut self, secret: &Value) -> Result<(), KeyringError> {
        let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        let origin = origin(secret);
        let (key, read): (_, Reader) = match text("/type") {
            "kubernetes.io/dockerconfigjson" => (".dockerconfigjson", docker_config::current),
            "kubernetes.io/dockercfg" => (".dockercfg", docker_config::legacy),
            found => return Err(KeyringError::Type { origin, found: found.chars().take(80).collect() }),
        };
        let bytes = secret
            .get("data")
            .and_then(|data| data.get(key))
            .and_then(Value::as_str)
            .and_then(|data| base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).ok())
            .or_else(|| secret.get("stringData")?.get(key)?.as_str().map(|text| text.as_bytes().to_vec()));
        let Some(bytes) = bytes else {
            return Err(KeyringError::Data { origin, key });
        };
        self.take(&origin, Holder::Pod, &bytes, read)
    }

    /// Takes a pod's pull secret as it is now, in place of what was taken from it before. A keyring whose secrets have not
    /// changed is the same afterwards.
    ///
    /// # Errors
    /// Those of [`Keyring::add_secret`]; what was taken before is gone then, as it is for the kubelet.
    pub fn renew_secret(&mut self, secret: &Value) -> Result<(), KeyringError> {
        let origin = origin(secret);
        let known = |entry: &Entry| entry.credential.origin == origin;
        let old: Vec<Entry> = self.entries.iter().filter(|entry| known(entry)).cloned().collect();
        let mut new = Self::new();
        let taken = new.add_secret(secret);
        if old == new.entries {
            return taken;
        }
        self.entries.retain(|entry| !known(entry));
        self.entries.append(&mut new.entries);
        taken
    }

    /// Takes the content of a `.dockerconfigjson` for the pod.
    pub fn add_docker_config(&mut self, origin: &str, bytes: &[u8]) -> Result<(), KeyringError> {
        self.take(origin, Holder::Pod, bytes, docker_config::current)
    }

    /// Takes the content of a `.dockerconfigjson` that the node has for all pods, such as OpenShift's global pull
    /// secret. Only these are used for mirrors on another host than the source.
    pub fn add_node_config(&mut self, origin: &str, bytes: &[u8]) -> Result<(), KeyringError> {
        self.take(origin, Holder::Node, bytes, docker_config::current)
    }

    fn take(&mut self, origin: &str, holder: Holder, bytes: &[u8], read: Reader) -> Result<(), KeyringError> {
        let too_large = || KeyringError::Size { origin: origin.to_owned() };
        if bytes.len() > CONFIG_MAX {
            return Err(too_large());
        }
        let entries =
            read(bytes).map_err(|problem| KeyringError::Content { origin: origin.to_owned(), problem })?;
        if self.entries.len() + entries.len() > CREDENTIALS_MAX {
            return Err(too_large());
        }
        for (key, username, password) in entries {
            self.push(holder, Credential { origin: origin.to_owned(), key, username, password });
        }
        Ok(())
    }

    /// Takes one credential for the pod.
    pub fn add(&mut self, origin: &str, key: &str, username: Secret, password: Secret) {
        let (origin, key) = (origin.to_owned(), key.to_owned());
        self.push(Holder::Pod, Credential { origin, key, username, password });
    }

    fn push(&mut self, holder: Holder, credential: Credential) {
        self.entries.push(Entry { key: normal_key(&credential.key), holder, credential });
    }

    /// True if there is no credential at all.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// A credential by its ID; `None` if the ID is of another keyring.
    pub fn credential(&self, id: CredentialId) -> Option<&Credential> {
        self.entries.get(id.0).map(|entry| &entry.credential)
    }

    /// The candidates for an image's own registry, in the order in which the kubelet tries them. The name is
    /// registry and repository, normalised.
    pub fn candidates(&self, name: &str) -> Vec<CredentialId> {
        let mut found = self.of(Holder::Pod, name);
        found.extend(self.of(Holder::Node, name));
        found
    }

    fn of(&self, holder: Holder, name: &str) -> Vec<CredentialId> {
        let held = || self.entries.iter().enumerate().filter(move |(_, entry)| entry.holder == holder);
        let mut found: Vec<(usize, &Entry)> =
            held().filter(|(_, entry)| key_matches(&entry.key, name)).collect();
        if found.is_empty() && name.split('/').next() == Some(DOCKER_HUB) {
            found = held().filter(|(_, entry)| entry.key == DEFAULT_REGISTRY_KEY).collect();
        }
        // The sort is stable: several credentials of one key stay in the order of adding.
        found.sort_by(|(_, a), (_, b)| b.key.cmp(&a.key));
        found.into_iter().map(|(place, _)| CredentialId(place)).collect()
    }

    /// The credential for a mirror on another host than the source: the runtime does not send a pod's credentials
    /// there, it looks into the node's own file, where the longest key that is the name or a parent of it counts.
    pub(crate) fn for_mirror(&self, name: &str) -> Option<CredentialId> {
        self.entries
            .iter()
            .enumerate()
            .filter(|(_, entry)| entry.holder == Holder::Node)
            .filter(|(_, entry)| {
                name.strip_prefix(entry.key.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
            .max_by_key(|(place, entry)| (entry.key.len(), std::cmp::Reverse(*place)))
            .map(|(place, _)| CredentialId(place))
    }
}

/// How a secret is named where its credentials come from.
fn origin(secret: &Value) -> String {
    let text = |pointer: &str| secret.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    match text("/metadata/namespace") {
        "" => format!("Secret {}", text("/metadata/name")),
        namespace => format!("Secret {namespace}/{}", text("/metadata/name")),
    }
}

fn normal_key(key: &str) -> String {
    let bare = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://")).unwrap_or(key);
    let (host, path) = match bare.find('/') {
        Some(slash) => bare.split_at(slash),
        None => (bare, ""),
    };
    let path = match path.get(..4) {
        Some("/v1/" | "/v2/") => path.get(3..).unwrap_or_default(),
        _ => path,
    };
    if path == "/" { host.to_owned() } else { format!("{host}{path}") }
}

fn key_matches(key: &str, name: &str) -> bool {
    let split = |text: &'_ str| -> (String, String) {
        match text.find('/') {
            Some(slash) => {
                let (host, path) = text.split_at(slash);
                (host.to_owned(), path.to_owned())
            }
            None => (text.to_owned(), String::new()),
        }
    };
    let ((key_host, key_path), (host, path)) = (split(key), split(name));
    let ((key_labels, key_port), (labels, port)) = (labels_and_port(&key_host), labels_and_port(&host));
    key_port == port
        && key_labels.len() == labels.len()
        && path.starts_with(&key_path)
        && key_labels.iter().zip(&labels).all(|(pattern, label)| glob::matches(pattern, label))
}

fn labels_and_port(host: &str) -> (Vec<&str>, &str) {
    // A colon within brackets belongs to an IPv6 address.
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, port),
        _ => (host, ""),
    };
    (name.split('.').collect(), port)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn keyring(keys: &[&str]) -> Keyring {
        let mut keyring = Keyring::new();
        for key in keys {
            keyring.add("test", key, Secret::new("user"), Secret::new("password"));
        }
        keyring
    }

    fn keys(keyring: &Keyring, name: &str) -> Vec<String> {
        keyring.candidates(name).into_iter().map(|id| keyring.credential(id).unwrap().key.clone()).collect()
    }

    #[test]
    fn a_secret_that_was_rotated_takes_its_own_place() {
        let secret = |name: &str, password: &str| {
            json!({
                "type": "kubernetes.io/dockerconfigjson", "metadata": {"namespace": "n", "name": name},
                "stringData": {".dockerconfigjson":
                    json!({"auths": {"r.example.com": {"username": "u", "password": password}}}).to_string()},
            })
        };
        let mut keyring = keyring(&["r.example.com"]);
        keyring.add_secret(&secret("a", "old")).unwrap();
        keyring.add_secret(&secret("b", "other")).unwrap();
        let before = keyring.clone();
        keyring.renew_secret(&secret("a", "old")).unwrap();
        assert_eq!(keyring, before);
        keyring.renew_secret(&secret("a", "new")).unwrap();
        assert_ne!(keyring, before);
        let passwords: Vec<String> = keyring
            .candidates("r.example.com/app")
            .into_iter()
            .map(|id| keyring.credential(id).unwrap().password.expose().to_owned())
            .collect();
        assert_eq!(passwords, ["password", "other", "new"]);
        let broken = json!({"type": "Opaque", "metadata": {"namespace": "n", "name": "a"}});
        assert!(keyring.renew_secret(&broken).is_err());
        assert_eq!(keyring.candidates("r.example.com/app").len(), 2);
    }

    #[test]
    fn keys_match_as_in_the_kubelet() {
        let check = |key: &str, name: &str, expected: bool| {
            assert_eq!(!keys(&keyring(&[key]), name).is_empty(), expected, "{key} {name}");
        };
        check("quay.io", "quay.io/a/b", true);
        check("https://quay.io", "quay.io/a/b", true);
        check("http://quay.io/v1/", "quay.io/a/b", true);
        check("https://quay.io/v2/a", "quay.io/a/b", true);
        check("quay.io/", "quay.io/a/b", true);
        check("quay.io/a", "quay.io/a/b", true);
        // A prefix of the text, not of components.
        check("quay.io/a", "quay.io/ab", true);
        check("quay.io/b", "quay.io/a/b", false);
        check("*.example.com", "a.example.com/x", true);
        check("*.example.com", "example.com/x", false);
        check("*.example.com", "a.b.example.com/x", false);
        check("*.*.example.com", "a.b.example.com/x", true);
        check("regis*.example.com", "registry.example.com/x", true);
        check("quay.io", "quay.io:443/a", false);
        check("quay.io:443", "quay.io:443/a", true);
        check("quay.io:*", "quay.io:443/a", false);
        check("[::1]:5000", "[::1]:5000/a", false);
        check("docker.io", "docker.io/library/a", true);
        check("https://index.docker.io/v1/", "docker.io/library/a", true);
        check("index.docker.io", "quay.io/a", false);
    }

    #[test]
    fn candidates_are_ordered() {
        let keyring =
            keyring(&["quay.io", "quay.io/a/b", "*.io", "quay.io/a", "quay.io/a", "index.docker.io"]);
        assert_eq!(
            keys(&keyring, "quay.io/a/b"),
            ["quay.io/a/b", "quay.io/a", "quay.io/a", "quay.io", "*.io"]
        );
        // Docker Hub's own key is a fallback only.
        assert_eq!(keys(&keyring, "docker.io/library/x"), ["*.io"]);
    }

    #[test]
    fn secrets_of_both_types_are_read() {
        use base64::Engine as _;
        let encoded = |value: Value| base64::engine::general_purpose::STANDARD.encode(value.to_string());
        let secret = |kind: &str, data: Value| json!({"kind": "Secret", "metadata": {"namespace": "n", "name": "s"}, "type": kind, "data": data});
        let auths = json!({"quay.io": {"auth": "dXNlcjpwYXNzOndvcmQ="}, "b.example": {"username": "u", "password": "p"}});
        let mut keyring = Keyring::new();
        keyring
            .add_secret(&secret(
                "kubernetes.io/dockerconfigjson",
                json!({".dockerconfigjson": encoded(json!({"auths": auths}))}),
            ))
            .unwrap();
        keyring
            .add_secret(&secret("kubernetes.io/dockercfg", json!({".dockercfg": encoded(auths)})))
            .unwrap();
        let found = keyring.candidates("quay.io/x");
        assert_eq!(found.len(), 2);
        for id in found {
            let credential = keyring.credential(id).unwrap();
            assert_eq!((credential.username.expose(), credential.password.expose()), ("user", "pass:word"));
            assert_eq!(credential.to_string(), "Secret n/s (quay.io)");
        }
        assert!(!format!("{keyring:?}").contains(":word"));

        let mut refused = |value: Value| keyring.add_secret(&value).unwrap_err().to_string();
        assert!(refused(secret("Opaque", json!({}))).contains("`Opaque` holds no registry credentials"));
        assert_eq!(
            refused(secret("kubernetes.io/dockercfg", json!({".dockerconfigjson": "e30="}))),
            "Secret n/s: `.dockercfg` is missing or no base64"
        );
    }

    #[test]
    fn malformed_content_is_refused_and_never_repeated() {
        let check = |text: &str, problem: &str| {
            let error = Keyring::new().add_docker_config("file", text.as_bytes()).unwrap_err().to_string();
            assert_eq!(error, format!("file: {problem}"));
        };
        check("{\"auths\": {\"a.b\": hunter2}}", "no JSON at line 1 column 19");
        check("[]", "a JSON object is needed");
        check("{\"auths\": []}", "`auths` must be an object");
        check("{\"auths\": {\"a.b\": \"hunter2\"}}", "the entry `a.b` must be an object");
        check("{\"auths\": {\"a.b\": {\"auth\": \"hunter2!\"}}}", "`auth` of the entry `a.b` is no base64");
        check(
            "{\"auths\": {\"a.b\": {\"auth\": \"aHVudGVyMg==\"}}}",
            "`auth` of the entry `a.b` has no colon after decoding",
        );
        check("{\"auths\": {\"a.b\": {\"auth\": 2}}}", "`auth` of the entry `a.b` must be a text");
    }

    proptest! {
        #[test]
        fn a_written_credential_is_read_back(user in "[^:\\pC]{1,10}", password in "\\PC{0,10}", padded in any::<bool>()) {
            use base64::Engine as _;
            let text = format!("{user}:{password}");
            let auth = if padded {
                base64::engine::general_purpose::STANDARD.encode(&text)
            } else {
                base64::engine::general_purpose::STANDARD_NO_PAD.encode(&text)
            };
            let mut keyring = Keyring::new();
            keyring.add_docker_config("f", json!({"auths": {"q.io": {"auth": auth}}}).to_string().as_bytes()).unwrap();
            let credential = keyring.credential(keyring.candidates("q.io/x")[0]).unwrap();
            prop_assert_eq!(credential.username.expose(), user);
            prop_assert_eq!(credential.password.expose(), password);
        }

        #[test]
        fn nothing_panics(key in "\\PC{0,30}", name in "[a-z.:/\\[\\]]{0,30}") {
            let keyring = keyring(&[&key]);
            let _ = keyring.candidates(&name);
            let _ = keyring.for_mirror(&name);
        }
    }
}
