//! Codes `SCN06xx`: files that cannot be read as what they are.

table! {
    UNREADABLE_YAML = "SCN0601", Error,
        "not readable as YAML",
        "the file does not follow YAML's grammar, so that Kubernetes would refuse it too",
        "correct the text at the place named",
        upgrade Refused;
    DUPLICATE_KEY = "SCN0602", Error,
        "key given twice",
        "a mapping has the same key twice; Kubernetes refuses it or silently keeps one of the two",
        "remove one of the two",
        upgrade Refused;
    TOO_LARGE = "SCN0603", Error,
        "input beyond a limit",
        "the file is larger or more deeply nested than any manifest has reason to be, and was not read any further",
        "split the file, or leave it out of the release",
        upgrade Refused;
    NOT_TEXT = "SCN0604", Note,
        "file that is not text",
        "the file is not UTF-8 text and was not searched for references",
        "leave it out of the release if it is not needed";
    NESTED_UNREADABLE = "SCN0605", Note,
        "nested document that cannot be read",
        "the text looks like a document inside a string but does not follow its grammar, and was searched as plain text only",
        "correct the nested text at the place named";
}
