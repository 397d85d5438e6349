//! Paths and queries of requests.

use super::Status;

/// Longest path or query that is read; a real server's header limit is of this size.
const MAX_LENGTH: usize = 64 * 1024;

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Path {
    /// `/`: the list of paths.
    Root,
    /// `/version`.
    Version,
    /// `/healthz`, `/livez`, `/readyz` and what is below them.
    Health,
    /// `/api`: the versions of the core group.
    CoreVersions,
    /// `/apis`: all groups.
    Groups,
    /// `/apis/GROUP`.
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`: the resources of a version.
    Resources {
        /// Group, empty for the core group.
        group: String,
        /// Version.
        version: String,
    },
    /// `/openapi/v2`.
    OpenApiV2,
    /// `/openapi/v3`, and with a rest such as `apis/apps/v1` the document of one version.
    OpenApiV3(Option<String>),
    /// Objects.
    Objects(Target),
}

/// The objects that a path names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Target {
    /// Group, empty for the core group.
    pub(super) group: String,
    /// Version.
    pub(super) version: String,
    /// Plural name of the kind.
    pub(super) plural: String,
    /// Namespace in the path.
    pub(super) namespace: Option<String>,
    /// One object; none means all of the kind.
    pub(super) name: Option<String>,
    /// What stands below the object.
    pub(super) subresource: Option<String>,
}

impl Path {
    /// Reads a path.
    pub(super) fn parse(path: &str) -> Result<Self, Status> {
        if path.len() > MAX_LENGTH {
            return Err(Status::bad_request("the path is too long"));
        }
        let segments: Vec<String> = path
            .split('/')
            .filter(|segment| !segment.is_empty())
            .map(|segment| decode(segment, false))
            .collect();
        let segments: Vec<&str> = segments.iter().map(String::as_str).collect();
        match segments.as_slice() {
            [] => Ok(Path::Root),
            ["version"] => Ok(Path::Version),
            ["healthz" | "livez" | "readyz", ..] => Ok(Path::Health),
            ["api"] => Ok(Path::CoreVersions),
            ["apis"] => Ok(Path::Groups),
            ["apis", group] => Ok(Path::Group((*group).to_owned())),
            ["api", version] => Ok(Path::Resources { group: String::new(), version: (*version).to_owned() }),
            ["apis", group, version] => {
                Ok(Path::Resources { group: (*group).to_owned(), version: (*version).to_owned() })
            }
            ["openapi", "v2"] => Ok(Path::OpenApiV2),
            ["openapi", "v3"] => Ok(Path::OpenApiV3(None)),
            ["openapi", "v3", rest @ ..] => Ok(Path::OpenApiV3(Some(rest.join("/")))),
            ["api", version, rest @ ..] => Target::parse("", version, rest).map(Path::Objects),
            ["apis", group, version, rest @ ..] => Target::parse(group, version, rest).map(Path::Objects),
            _ => Err(Status::no_such_path()),
        }
    }
}

impl Target {
    fn parse(group: &str, version: &str, rest: &[&str]) -> Result<Self, Status> {
        let start = Self { group: group.to_owned(), version: version.to_owned(), ..Self::default() };
        let (start, rest) = match rest {
            ["watch", ..] => return Err(Status::not_modelled("the deprecated watch paths; use ?watch=true")),
            // The path of a namespace and that of objects in it differ only by what follows: `status` and `finalize`
            // belong to the namespace itself.
            ["namespaces", name, sub @ ("status" | "finalize")] if group.is_empty() => {
                return Ok(Self {
                    plural: "namespaces".to_owned(),
                    name: Some((*name).to_owned()),
                    subresource: Some((*sub).to_owned()),
                    ..start
                });
            }
            ["namespaces", namespace, plural, rest @ ..] => (
                Self { namespace: Some((*namespace).to_owned()), plural: (*plural).to_owned(), ..start },
                rest,
            ),
            [plural, rest @ ..] => (Self { plural: (*plural).to_owned(), ..start }, rest),
            [] => return Err(Status::no_such_resource()),
        };
        Ok(match rest {
            [] => start,
            [name] => Self { name: Some((*name).to_owned()), ..start },
            [name, sub @ ..] => {
                Self { name: Some((*name).to_owned()), subresource: Some(sub.join("/")), ..start }
            }
        })
    }
}

/// The parameters of a query, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads what follows the question mark.
    pub(super) fn parse(query: &str) -> Result<Self, Status> {
        if query.len() > MAX_LENGTH {
            return Err(Status::bad_request("the query is too long"));
        }
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name, true), decode(value, true))
        });
        Ok(Self(pairs.collect()))
    }

    /// The parameter; an empty one counts as not given, as for Go's option structs.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// All values of a parameter.
    pub(super) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(other, _)| other == name).map(|(_, value)| value.as_str())
    }

    /// A parameter that is true or false. Whatever is not written as false is true, as on a real server.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(other, _)| other == name)
            .is_some_and(|(_, value)| !matches!(value.to_ascii_lowercase().as_str(), "false" | "0"))
    }

    /// Whether the parameter is there at all.
    pub(super) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(other, _)| other == name)
    }

    /// A parameter that is a number not below zero.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Status> {
        self.get(name)
            .map(|text| {
                text.parse()
                    .map_err(|_| Status::bad_request(format!("the parameter {name}={text:?} is no number")))
            })
            .transpose()
    }
}

/// Percent-decoding; what is no valid escape stays as it is, and bytes that are no UTF-8 become U+FFFD.
fn decode(text: &str, plus_is_space: bool) -> String {
    let bytes = text.as_bytes();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        match first {
            b'%' => {
                let escaped = after.get(..2).and_then(|digits| {
                    let digits =
                        std::str::from_utf8(digits).ok().filter(|digits| !digits.starts_with('+'))?;
                    u8::from_str_radix(digits, 16).ok()
                });
                decoded.push(escaped.unwrap_or(b'%'));
                if escaped.is_some() {
                    rest = after.get(2..).unwrap_or_default();
                }
            }
            b'+' if plus_is_space => decoded.push(b' '),
            other => decoded.push(other),
        }
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic)]

    use super::*;

    fn target(path: &str) -> (String, String, Option<String>, Option<String>, Option<String>) {
        match Path::parse(path).unwrap() {
            Path::Objects(t) => {
                (format!("{}/{}", t.group, t.version), t.plural, t.namespace, t.name, t.subresource)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn paths_lead_to_objects() {
        let some = |text: &str| Some(text.to_owned());
        for (path, group, plural, namespace, name, subresource) in [
            ("/api/v1/pods", "/v1", "pods", None, None, None),
            ("/api/v1/namespaces/a/pods/b/status", "/v1", "pods", some("a"), some("b"), some("status")),
            ("/api/v1/namespaces", "/v1", "namespaces", None, None, None),
            ("/api/v1/namespaces/a", "/v1", "namespaces", None, some("a"), None),
            ("/api/v1/namespaces/a/finalize", "/v1", "namespaces", None, some("a"), some("finalize")),
            ("/apis/apps/v1/namespaces/a/deployments", "apps/v1", "deployments", some("a"), None, None),
            ("/api/v1/namespaces/a/pods/b/proxy/x/y", "/v1", "pods", some("a"), some("b"), some("proxy/x/y")),
            (
                "/apis/image.openshift.io/v1/namespaces/a/imagestreamtags/b%3A1",
                "image.openshift.io/v1",
                "imagestreamtags",
                some("a"),
                some("b:1"),
                None,
            ),
        ] {
            assert_eq!(
                target(path),
                (group.to_owned(), plural.to_owned(), namespace, name, subresource),
                "{path}"
            );
        }
    }

    #[test]
    fn other_paths() {
        assert_eq!(Path::parse("/"), Ok(Path::Root));
        assert_eq!(Path::parse("/apis/apps"), Ok(Path::Group("apps".into())));
        assert_eq!(Path::parse("/openapi/v3/apis/apps/v1"), Ok(Path::OpenApiV3(Some("apis/apps/v1".into()))));
        assert_eq!(Path::parse("/readyz/ping"), Ok(Path::Health));
        assert_eq!(Path::parse("/metrics").unwrap_err().code, 404);
        assert_eq!(Path::parse("/api/v1/watch/pods").unwrap_err().code, 501);
    }

    #[test]
    fn queries_are_decoded() {
        let query = Query::parse("labelSelector=a%3Db%2Cc+in+%28d%29&watch=1&limit=5&empty=&force").unwrap();
        assert_eq!(query.get("labelSelector"), Some("a=b,c in (d)"));
        assert_eq!(query.get("empty"), None);
        assert!(query.flag("watch") && query.flag("force") && !query.flag("dryRun"));
        assert_eq!(query.number("limit"), Ok(Some(5)));
        assert!(query.number("watch").is_ok() && Query::parse("limit=-1").unwrap().number("limit").is_err());
    }

    #[test]
    fn broken_escapes_stay() {
        for (text, decoded) in
            [("%", "%"), ("%4", "%4"), ("%zz", "%zz"), ("%+1", "%+1"), ("a%2Fb", "a/b"), ("%ff", "\u{fffd}")]
        {
            assert_eq!(decode(text, false), decoded);
        }
    }
}
