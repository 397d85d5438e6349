//! Codes `SCN09xx`: what an audit finds in a cluster.

table! {
    RUNS_OTHER = "SCN0901", Error,
        "a container runs another image than its name means",
        "the node had an image under this name when the container was started, and did not ask whether the name means another one now",
        "write the digest into what names the image; a restart alone finds the same old image";
    STARTS_STALE = "SCN0902", Error,
        "a node would start an old image",
        "the node has an image under this name that is not what the name means now, and its pull policy lets it use that",
        "write the digest into every workload that names the image; pulling the digest onto the node does not move the name";
    NOT_PULLED = "SCN0903", Error,
        "a node cannot get an image that a workload names",
        "the kubelet has tried and says why it did not work",
        "write an image that the registry has, or mend the way to it (credentials, mirror, network)";
    RESTART_CHANGES = "SCN0904", Error,
        "a mere restart would change what a container runs",
        "the node's name has moved since the container was started: when its process ends, the same pod goes on with another image",
        "write the digest that is meant into what names the image, and choose the moment of the restart";
    REPLICAS_DIFFER = "SCN0905", Error,
        "the pods of one workload do not run one image",
        "they name the same image, and their nodes had different ones under that name",
        "write the digest into the workload";
    NAME_OF_TWO = "SCN0906", Error,
        "one name stands for two images",
        "what a pod gets under this name depends on the node that it lands on",
        "write the digest into every workload that names the image";
    SCREEN_WRONG = "SCN0907", Error,
        "a screen says what is not so",
        "people choose by it, and get something else",
        "correct the claim, or bring the image that it promises";
    CONFIGURATION_LAGS = "SCN0908", Error,
        "the configuration is not what the release means",
        "what reads it works with an old value, or falls back on what is built into the code",
        "bring the object up to date";
    NOT_DECIDED = "SCN0909", Note,
        "it cannot be decided from here",
        "what would decide it is not in what was given",
        "give what is named as missing";
    UNOWNED = "SCN0910", Note,
        "an image that no release has",
        "nobody has said what is in it and whether it can be pulled again",
        "add it to a release, or leave it to whoever brought it";
}
