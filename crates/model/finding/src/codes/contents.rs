//! Codes `SCN05xx`: whether what is claimed of an image is in the image.

table! {
    CLAIM_DIFFERS = "SCN0501", Error,
        "claim that differs from the image",
        "users choose by what the claim says and get what the image holds",
        "correct the claim, or put the claimed version into the image",
        upgrade Reported;
    CLAIM_ABSENT = "SCN0502", Warning,
        "claim about a package that the image does not show",
        "no package database in the image names it, so that the claim can neither be confirmed nor refuted",
        "correct the name, or remove the claim",
        upgrade Reported;
    CLAIM_UNREADABLE = "SCN0503", Error,
        "claim that cannot be read",
        "the annotation is meant to be a JSON list of names and versions and is not, so that users are shown nothing",
        "write it as '[{\"name\":\"Python\",\"version\":\"v3.8\"}]'";
    CLAIMS_DISAGREE = "SCN0504", Error,
        "two claims about one package that disagree",
        "one image cannot hold two versions of the same thing under the same name, so that at least one of the claims is wrong",
        "make both claims say what the image holds";
}
