//! Which hosts are known to be registries.

/// Hosts of public registries.
const HOSTS: &[&str] = &[
    "brew.registry.redhat.io",
    "cgr.dev",
    "docker.io",
    "gcr.io",
    "ghcr.io",
    "icr.io",
    "index.docker.io",
    "k8s.gcr.io",
    "lscr.io",
    "mcr.microsoft.com",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry-1.docker.io",
    "xpkg.upbound.io",
];

/// Endings of hosts that are registries.
const ENDINGS: &[&str] = &[
    ".azurecr.io",
    ".gcr.io",
    ".icr.io",
    ".jfrog.io",
    ".ocir.io",
    ".pkg.dev",
    ".pkg.github.com",
    ".quay.io",
    ".redhat.io",
];

/// Hosts of source repositories, documentation and names of API groups, which are written with paths but hold no images.
const OTHERS: &[&str] = &[
    "bitbucket.org",
    "dl.k8s.io",
    "github.com",
    "gitlab.com",
    "go.googlesource.com",
    "golang.org",
    "gopkg.in",
    "k8s.io",
    "kubernetes.io",
    "raw.githubusercontent.com",
    "sigs.k8s.io",
];

/// Whether the host is known to hold something else than images.
pub(crate) fn is_other(host: &str) -> bool {
    OTHERS.contains(&host) || host.ends_with(".kubernetes.io") || host.ends_with(".k8s.io") && !is_known(host)
}

/// Whether the host is known to be a registry, is called like one, or has a port.
pub(crate) fn is_registry(host: &str) -> bool {
    let port = host.split_once(':').map(|(_, port)| port);
    port.is_some_and(|port| !port.is_empty() && port.bytes().all(|digit| digit.is_ascii_digit()))
        || is_known(host)
}

/// Whether the host, with or without a port, is known to be a registry, or is called like one.
pub(crate) fn is_known(host: &str) -> bool {
    let name = host.split(':').next().unwrap_or_default();
    name == "localhost"
        || HOSTS.contains(&name)
        || ENDINGS.iter().any(|ending| name.ends_with(ending))
        || (name.contains(".dkr.ecr.") && name.contains(".amazonaws.com"))
        || (name.contains('.')
            && name
                .split(['.', '-'])
                .any(|label| matches!(label, "registry" | "harbor" | "cr" | "docker" | "oci")))
}

/// Whether the text has the form of a host's name: labels with dots between, the last of letters.
pub(crate) fn is_host(text: &str) -> bool {
    let name = text.split(':').next().unwrap_or_default();
    let Some((_, last)) = name.rsplit_once('.') else { return false };
    let is_label = |label: &str| {
        !label.is_empty()
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    name.split('.').all(is_label) && last.len() >= 2 && last.bytes().all(|byte| byte.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registries_are_known_by_name_ending_or_port() {
        for host in [
            "quay.io",
            "registry.example.com",
            "eu.gcr.io",
            "localhost:5000",
            "10.1.2.3:5000",
            "1.dkr.ecr.eu-1.amazonaws.com",
        ] {
            assert!(is_registry(host), "{host}");
        }
        for host in
            ["github.com", "opendatahub.io", "nvidia.com", "serving.kserve.io", "registry", "example.com:"]
        {
            assert!(!is_registry(host), "{host}");
        }
        assert!(is_other("github.com") && is_other("serving.k8s.io") && !is_other("registry.k8s.io"));
        assert!(is_host("a.example.com") && is_host("quay.io:443"));
        assert!(!is_host("v1.2") && !is_host("kserve") && !is_host("a..io"));
    }
}
