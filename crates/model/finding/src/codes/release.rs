//! Codes `SCN07xx`: the release itself, its own file and its objects.

table! {
    BAD_RELEASE_FILE = "SCN0701", Error,
        "release file that cannot be used",
        "the release file does not say what Scantling needs to know, or says it in a way that has no meaning",
        "correct the field at the place named",
        upgrade Refused;
    NOT_AN_OBJECT = "SCN0702", Error,
        "document that is not a Kubernetes object",
        "every document among a release's manifests is applied, and this one has no apiVersion, kind or name to apply it by",
        "complete it, or move the file out of the manifests",
        upgrade Refused;
    OBJECT_TWICE = "SCN0703", Error,
        "object defined twice",
        "whichever is applied last wins, and which one that is depends on the order of files",
        "keep one of the two",
        upgrade Refused;
    NAMESPACE_MISSING = "SCN0704", Error,
        "namespaced object without a namespace",
        "without a namespace the object goes wherever the client's settings point to",
        "write metadata.namespace, or `namespace:` in release.yaml",
        upgrade Refused;
    UNKNOWN_KIND = "SCN0705", Warning,
        "kind that is not known",
        "neither Kubernetes nor OpenShift nor a definition in this release says what this kind looks like, so that it is taken as namespaced",
        "add the CustomResourceDefinition to the release, or write metadata.namespace";
    EMPTY_DEFAULT = "SCN0706", Error,
        "variable that becomes empty when it is not set",
        "the text is meant to be filled from outside and silently becomes nothing when that is forgotten",
        "write the value, or declare it under `substitutions:`",
        upgrade Refused;
    SUBSTITUTION_UNUSED = "SCN0707", Warning,
        "substitution that fills nothing",
        "no manifest holds the placeholder, so that the value reaches nobody",
        "correct the placeholder, or remove the substitution";
    NOT_A_SUCCESSOR = "SCN0708", Error,
        "release that may not follow the other",
        "the release lists under `follows:` what it was made to upgrade from, and this one is not among them",
        "upgrade through a release in between, or add it to `follows:` after testing it";
    FILE_MISSING = "SCN0709", Error,
        "release file names a path that is not there",
        "what the path was meant to bring into the release is not in it",
        "correct the path, or add the file",
        upgrade Refused;
    REGISTRY_MISSING = "SCN0710", Error,
        "release without a registry",
        "the release leaves it to its admin to say where its images live, and nobody has said so",
        "give --registry HOST[/PREFIX]",
        upgrade Refused;
    BAD_REGISTRY = "SCN0711", Error,
        "text that names no registry",
        "the text stands before the names of all the release's images, so that it must be the host of a registry, and the beginning of repositories if there is one",
        "write HOST, HOST:PORT or HOST:PORT/PREFIX, without scheme, tag and / at the end",
        upgrade Refused;
    UNKNOWN_SETTING = "SCN0712", Error,
        "setting that the release does not know",
        "a setting that reaches nothing would be left out silently",
        "write a name that the release declares, or leave the setting out",
        upgrade Refused;
    OTHER_SCANTLING = "SCN0713", Error,
        "release for another version of Scantling",
        "the release says under `requires:` which versions may bring it, and this program is none of them",
        "use a version of Scantling that the release names",
        upgrade Refused;
    NOT_ACCEPTED = "SCN0714", Error,
        "object that no cluster takes",
        "the API server would refuse the object as it is declared, and an upgrade would stop in its middle",
        "correct the name, or split what is too large",
        upgrade Refused;
}
