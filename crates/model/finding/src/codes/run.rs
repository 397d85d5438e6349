//! Codes `SCN08xx`: what an upgrade of a cluster meets.

table! {
    FIELD_CHANGED = "SCN0801", Error,
        "a field of the release was changed by someone else",
        "the field is not as the last release left it, and the release has no rule that says who wins, so writing it would undo somebody's work without asking",
        "undo the change, or give the release an ownership rule (`take` or `keep`) for the field",
        upgrade Refused;
    SECRETS_DISAGREE = "SCN0802", Error,
        "two generated secrets that must be equal hold different values",
        "one side of the pair signs in with a password that the other side does not know; which of the two is live cannot be read from the objects",
        "find out which value the running service uses, write it into the other secret, and run again",
        upgrade Refused;
    RUNNING_DIFFERS = "SCN0803", Error,
        "a pod runs another image than the release locks",
        "the image that the node reports for the container is not of the identity class of the locked reference",
        "look at who writes the pod's image; delete the pod so that it starts with the locked digest",
        upgrade Stops;
    NODE_NOT_PREPARED = "SCN0804", Warning,
        "a node could not be given an image before users are",
        "the image was not pulled on this node ahead of time, so the first pod that lands there pulls it and waits",
        "mend the node (readiness, free disk, route to the registry) and run again; pods that name a digest never start an old image in the meantime",
        upgrade Reported;
    NOT_HEALTHY = "SCN0805", Error,
        "an object did not become healthy in time",
        "the next wave depends on it, so the run stopped instead of building on it",
        "read the object's conditions and events, mend the cause, and run again: the run continues where it stopped",
        upgrade Stops;
    BUILD_FAILED = "SCN0806", Error,
        "a build on the cluster failed",
        "images that are built on the cluster exist only after their build; without it nothing may name them",
        "read the build's log, mend the cause, and run again",
        upgrade Stops;
    NOT_WRITTEN = "SCN0807", Error,
        "the server refused an object of the release",
        "the object was planned but could not be written",
        "read the server's words; correct the manifest or the permission, and run again: the run continues where it stopped",
        upgrade Stops;
    IDENTITY_UNKNOWN = "SCN0808", Warning,
        "it cannot be decided whether a pod runs the locked image",
        "the node reports an identifier that is known neither from the lock nor from the registry",
        "run the audit from a place that reaches the registry the node pulled from",
        upgrade Stops;
    FIELD_FIXED = "SCN0809", Error,
        "a field that the release changes cannot be changed in the object that is there",
        "the API server refuses another value for this field once the object exists, and the object is not one that may be deleted and created again",
        "delete the object when nobody needs it as it is, give the release another name for it, or, for what runs pods, let an ownership rule `take` for the field say that it may be made anew",
        upgrade Refused;
    RIGHT_MISSING = "SCN0810", Error,
        "whoever runs it may not do what the release needs",
        "the API server's access control does not allow an action that the run would come to",
        "have an administrator run the command that is named, or `scantling rbac RELEASE | kubectl apply -f -` and bind the roles",
        upgrade Refused;
    NOT_ADOPTABLE = "SCN0811", Error,
        "something is in the way that belongs to somebody else, or is about to go",
        "the object is not Scantling's, differs from what the release declares, and cannot be shared: its owner would write it back, or a removal that is under way would take what is created",
        "remove the other installation, or wait until the removal has ended; then run again",
        upgrade Refused;
    RETIRED_UNPULLABLE = "SCN0812", Warning,
        "a retired image that somebody uses cannot be pulled any more",
        "the notebook runs as long as its node has the image; on another node, or after the node has cleaned up, it does not start",
        "put the image back into its registry, or have its users restart onto another one",
        upgrade Reported;
}
