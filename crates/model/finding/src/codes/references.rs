//! Codes `SCN01xx`: references in manifests and sources.

table! {
    MALFORMED_REFERENCE = "SCN0101", Error,
        "malformed reference",
        "the text stands where an image reference is expected but does not follow the reference grammar, so that nothing can pull it",
        "write the reference as registry/repository:tag or registry/repository@sha256:digest",
        upgrade Refused;
    UNRESOLVED_PLACEHOLDER = "SCN0102", Error,
        "unresolved placeholder",
        "the text is a placeholder that nothing in the release fills, so that it reaches the cluster as it is written",
        "give the placeholder a value, or remove the field",
        upgrade Refused;
    EMPTY_REFERENCE = "SCN0103", Error,
        "empty reference",
        "a field or variable that must name an image is empty",
        "give it a reference with a digest",
        upgrade Refused;
    UNCLASSIFIED = "SCN0104", Warning,
        "image-like text that could not be classified",
        "the text looks like an image reference but is neither well formed nor known to be something else",
        "correct the text, or list it among the release's ignored texts with a reason";
    INCOMPLETE_PAIR = "SCN0105", Warning,
        "part of a reference without its other part",
        "the fields that together make a reference (repository and tag, base and digest) are not all there",
        "add the missing field";
    DISAGREEING_PARTS = "SCN0106", Warning,
        "reference with a tag and a digest",
        "nodes pull by the digest and ignore the tag, so that the tag says nothing that can be relied upon",
        "keep only the digest, and write the version in a comment or an annotation";
    INDEX_OUT_OF_RANGE = "SCN0107", Error,
        "replacement of an element that does not exist",
        "a replacement writes to a list element by its index, and the list is shorter, so that the value goes nowhere or the placeholder stays",
        "correct the index, or add the element",
        upgrade Refused;
    UNUSED_PARAMETER = "SCN0108", Warning,
        "parameter that nothing reads",
        "the image is given as a parameter but no manifest uses the parameter's name, so that changing it changes nothing",
        "remove the parameter, or correct its name";
    UNQUOTED_TAG = "SCN0109", Warning,
        "tag that is not quoted",
        "YAML takes an unquoted tag of digits for a number, and tools that write it again write another text: 14.10 becomes 14.1",
        "put the tag in quotes";
    MISSING_SOURCE = "SCN0110", Error,
        "replacement from a value that does not exist",
        "a replacement reads a key that its config map does not have, so that the build of the manifests fails or the placeholder stays",
        "correct the key, or add it to the file that the config map is made from",
        upgrade Refused;
}
