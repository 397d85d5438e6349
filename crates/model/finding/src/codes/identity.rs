//! Codes `SCN03xx`: whether one name means one image, between releases and on nodes.

table! {
    SAME_NAME_NEW_CONTENT = "SCN0301", Error,
        "same name, new content",
        "nodes that hold the old image under this name keep running it (IfNotPresent finds it by its name), while everything that reads the manifests shows the new one",
        "give the new content a new tag, or refer to it by digest";
    RENAMED = "SCN0302", Note,
        "new content under a new name",
        "the new name cannot be in any node's cache, so that every node pulls what the release means",
        "nothing has to be done; whoever still names the old tag keeps the old image";
    MUTABLE_TAG = "SCN0303", Warning,
        "reference by a tag that can move",
        "what a tag leads to can change at any time, so that two nodes, or two days, need not run the same image",
        "write the digest: registry/repository@sha256:…";
    TAGS_KEPT = "SCN0304", Note,
        "names that both releases use",
        "their declared content does not change, but a tag does not promise content: a build or an import that runs again may put something else under it",
        "write digests, or give every build its own tag";
    TAG_REMOVED = "SCN0305", Warning,
        "tag that the new release no longer has",
        "whoever still names it (a stopped notebook, a copied manifest) cannot be started again once the tag is gone",
        "keep the old tag for as long as something may name it";
    CATALOGUE_MOVES = "SCN0306", Note,
        "choice that leads to another image",
        "the catalogue names images by digest, so that no node takes the old one for the new one; notebooks that run keep the image that they have, and are marked",
        "nothing has to be done; a notebook gets the new image when its owner restarts it";
}
