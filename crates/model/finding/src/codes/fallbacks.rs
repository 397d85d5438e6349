//! Codes `SCN04xx`: references that become live only under a condition.

table! {
    FALLBACK_UNPUBLISHED = "SCN0401", Error,
        "fallback that leads to no published image",
        "as soon as the condition holds, this reference is what gets pulled, and it has not been published",
        "write a published digest, or remove the fallback and let the missing setting be an error",
        upgrade Refused;
    UNDECLARED_FALLBACK = "SCN0402", Warning,
        "reference in code that the release does not declare",
        "code that brings its own image decides on the cluster, unseen, which image runs",
        "declare under `fallbacks:` when the code uses it, or remove it from the code";
    EMPTY_FALLBACK = "SCN0403", Warning,
        "declared fallback without a reference",
        "the file that is declared as a fallback holds no image reference, so that the declaration says something about nothing",
        "correct the file's name, or remove the declaration";
}
