//! Requests to OpenShift's API that act instead of storing: starting a build, importing a tag again.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::openshift::image_stream::{import_now, stream_key};
use crate::openshift::{BUILD, build_config};
use crate::value::{int, latest_status_tag, list, set, text};
use crate::world::{Flavour, World};

/// Answers a request if it is one of these.
pub(crate) fn answer(world: &mut World, request: &Request<Bytes>) -> Option<Response<Bytes>> {
    if world.flavour() != Flavour::OpenShift || request.method() != Method::POST {
        return None;
    }
    let parts: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
    match parts.as_slice() {
        [
            "apis",
            "build.openshift.io",
            "v1",
            "namespaces",
            namespace,
            "buildconfigs",
            name,
            "instantiate",
        ] => Some(instantiate(world, namespace, name)),
        ["apis", "image.openshift.io", "v1", "namespaces", namespace, "imagestreamimports"] => {
            Some(import(world, namespace, request.body()))
        }
        _ => None,
    }
}

/// `oc start-build`.
fn instantiate(world: &mut World, namespace: &str, name: &str) -> Response<Bytes> {
    let key = scantling_api::ObjectKey::namespaced(BUILD, "BuildConfig", namespace, name);
    let Some(config) = world.object(&key).cloned() else {
        return failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            &format!("buildconfigs.build.openshift.io \"{name}\" not found"),
        );
    };
    let cause = json!({"message": "Manually triggered"});
    match build_config::instantiate(world, &key, &config, None, &cause) {
        Some(build) => respond(StatusCode::CREATED, &build),
        None => failure(
            StatusCode::UNPROCESSABLE_ENTITY,
            "Invalid",
            &format!(
                "Build.build.openshift.io \"{name}\" is invalid: the image that it starts from cannot be resolved"
            ),
        ),
    }
}

/// `oc import-image`: tags of a stream are imported again, changed or not.
fn import(world: &mut World, namespace: &str, body: &[u8]) -> Response<Bytes> {
    let Ok(mut object) = serde_json::from_slice::<Value>(body) else {
        return failure(StatusCode::BAD_REQUEST, "BadRequest", "the body is no JSON");
    };
    let name = text(&object, "/metadata/name").unwrap_or_default().to_owned();
    let key = stream_key(namespace, &name);
    let Some(stream) = world.object(&key).cloned() else {
        return failure(
            StatusCode::NOT_FOUND,
            "NotFound",
            &format!("imagestreams.image.openshift.io \"{name}\" not found"),
        );
    };
    let generation = int(&stream, "/metadata/generation").unwrap_or(1) + 1;
    let mut images = Vec::new();
    for image in list(&object, "/spec/images").to_vec() {
        let from = text(&image, "/from/name").unwrap_or_default();
        let tag_name = text(&image, "/to/name").unwrap_or("latest").to_owned();
        let mut tag = list(&stream, "/spec/tags")
            .iter()
            .find(|tag| text(tag, "/name") == Some(tag_name.as_str()))
            .cloned()
            .unwrap_or_else(|| json!({"name": tag_name}));
        set(&mut tag, &[], "from", json!({"kind": "DockerImage", "name": from}));
        if let Some(policy) = image.get("importPolicy") {
            set(&mut tag, &[], "importPolicy", policy.clone());
        }
        if crate::value::flag(&object, "/spec/import") {
            import_now(world, &key, &tag, &tag_name, generation);
        }
        let result = world.object(&key).and_then(|stream| latest_status_tag(stream, &tag_name)).cloned();
        let condition = result.as_ref().and_then(|entry| entry.pointer("/conditions/0"));
        images.push(match condition {
            Some(condition) => json!({"tag": tag_name, "status": {
                "status": "Failure", "message": condition.get("message"), "reason": condition.get("reason")}}),
            None => json!({"tag": tag_name, "status": {"status": "Success"},
                "image": {"metadata": {"name": result.as_ref().and_then(|entry| text(entry, "/items/0/image"))}}}),
        });
    }
    let stream = world.object(&key).cloned().unwrap_or(Value::Null);
    set(&mut object, &["status"], "images", Value::Array(images));
    set(&mut object, &["status"], "import", stream);
    respond(StatusCode::CREATED, &object)
}

fn failure(status: StatusCode, reason: &str, message: &str) -> Response<Bytes> {
    respond(
        status,
        &json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": message, "reason": reason, "code": status.as_u16(),
        }),
    )
}

fn respond(status: StatusCode, object: &Value) -> Response<Bytes> {
    let mut response = Response::new(Bytes::from(object.to_string()));
    *response.status_mut() = status;
    let json = http::HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}
