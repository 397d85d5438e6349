//! Codes `SCN02xx`: whether what a release refers to has been published and can be pulled.

table! {
    NOT_IN_LIST = "SCN0201", Error,
        "reference that is not in the list of published images",
        "the list given does not hold this digest; a list that does not declare itself complete proves no more than that",
        "publish the image and add it to the list, or write a digest that the list holds";
    NEVER_PUBLISHED = "SCN0202", Error,
        "reference to an image that does not exist",
        "a complete list or a registry's own answer says that there is no such image, so that every pod that asks for it stays in ImagePullBackOff",
        "publish the image, or write the digest of one that is published",
        upgrade Refused;
    CANNOT_BE_PULLED = "SCN0203", Error,
        "reference that cannot be pulled from here",
        "the registry answered, and the answer is not the image",
        "correct the credential, the platform or the image, as the registry's answer says",
        upgrade Refused;
    NOT_DECIDED = "SCN0204", Warning,
        "reference that could not be checked",
        "no registry gave an answer that decides whether the image exists",
        "make the registry reachable and check again",
        upgrade Refused;
    OUTSIDE_ENVIRONMENT = "SCN0205", Error,
        "reference outside the registries of an environment",
        "the environment allows only the registries that it names, and the reference leads to another one",
        "copy the image into a registry of the environment and write that reference, or add the registry to the environment";
    LIST_UNREADABLE = "SCN0206", Error,
        "line of a published list that is not a reference",
        "the line is neither an image reference nor a comment, so that what it was meant to say is lost",
        "write one reference a line, and comments after #";
    NOT_IN_LOCK = "SCN0207", Error,
        "reference that the lock does not hold",
        "the lock was made for other manifests than these, so that nobody knows what this reference leads to",
        "make the lock again",
        upgrade Refused;
    PLACES_DISAGREE = "SCN0208", Warning,
        "tag that does not lead to the same image everywhere",
        "a mirror or a cache keeps what the tag led to earlier, so that what a node gets depends on the place that it asks",
        "write the digest, lock the release, or bring the mirror up to date",
        upgrade Reported;
}
