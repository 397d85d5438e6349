//! What the Kubernetes API looks like: kinds, schemas and the parts every object has.

pub mod schema;
