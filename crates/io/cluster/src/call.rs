//! One HTTP exchange with the API server: bounded, typed, nothing cached.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use serde_json::Value;

use crate::error::ClusterError;

/// The largest answer that is read. A list page holds at most 250 objects and etcd refuses objects above 1.5 MiB, so
/// only a server that misbehaves comes near this.
const ANSWER_BYTES: usize = 64 << 20;

/// What a request carries.
pub(crate) enum Payload<'a> {
    Nothing,
    /// A JSON body with its content type.
    Json(&'static str, &'a Value),
}

/// Percent-encodes a value for a query string or a path segment (RFC 3986 unreserved characters stay).
pub(crate) fn encode(value: &str) -> String {
    let mut encoded = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push('%');
            for half in [byte >> 4, byte & 15] {
                encoded.push(char::from_digit(u32::from(half), 16).unwrap_or('0').to_ascii_uppercase());
            }
        }
    }
    encoded
}

/// Sends one request and reads its answer as JSON. `what` names verb and object for errors.
pub(crate) async fn call(
    client: &kube::Client,
    method: Method,
    path_and_query: &str,
    payload: Payload<'_>,
    what: &str,
) -> Result<(StatusCode, Value), ClusterError> {
    call_with(client, method, path_and_query, payload, what, http::Extensions::new()).await
}

/// The same with what the layers below are told of the request.
pub(crate) async fn call_with(
    client: &kube::Client,
    method: Method,
    path_and_query: &str,
    payload: Payload<'_>,
    what: &str,
    told: http::Extensions,
) -> Result<(StatusCode, Value), ClusterError> {
    let (head, value) = exchange(client, method, path_and_query, payload, what, told).await?;
    Ok((head.status, value))
}

/// The same with the head of the answer.
pub(crate) async fn exchange(
    client: &kube::Client,
    method: Method,
    path_and_query: &str,
    payload: Payload<'_>,
    what: &str,
    told: http::Extensions,
) -> Result<(http::response::Parts, Value), ClusterError> {
    let malformed = |message: String| ClusterError::Malformed { what: what.to_owned(), message };
    let mut builder = Request::builder()
        .method(method)
        .uri(path_and_query)
        .header(http::header::ACCEPT, "application/json");
    let body = match payload {
        Payload::Nothing => Body::empty(),
        Payload::Json(media_type, value) => {
            builder = builder.header(http::header::CONTENT_TYPE, media_type);
            Body::from(serde_json::to_vec(value).map_err(|e| malformed(e.to_string()))?)
        }
    };
    let mut request = builder.body(body).map_err(|e| malformed(format!("cannot form the request: {e}")))?;
    request.extensions_mut().extend(told);
    let answer = client.send(request).await.map_err(|e| unreachable(what, &e))?;
    let (head, body) = answer.into_parts();
    let bytes = Limited::new(body, ANSWER_BYTES)
        .collect()
        .await
        .map_err(|e| ClusterError::Unreachable { what: what.to_owned(), message: innermost(e.as_ref()) })?
        .to_bytes();
    if head.status.is_success() {
        let value = json(&bytes).map_err(|e| malformed(e.to_string()))?;
        Ok((head, value))
    } else {
        Err(ClusterError::from_status(what, head.status.as_u16(), serde_json::from_slice(&bytes).ok()))
    }
}

fn json(bytes: &Bytes) -> Result<Value, serde_json::Error> {
    if bytes.is_empty() { Ok(Value::Null) } else { serde_json::from_slice(bytes) }
}

fn unreachable(what: &str, error: &kube::Error) -> ClusterError {
    ClusterError::Unreachable { what: what.to_owned(), message: innermost(error) }
}

/// The last error of a chain: `kube` and `hyper` wrap the cause several times without adding to it.
pub(crate) fn innermost(error: &(dyn std::error::Error + 'static)) -> String {
    let mut last = error;
    while let Some(next) = last.source() {
        last = next;
    }
    last.to_string()
}

#[cfg(test)]
mod tests {
    use super::encode;

    #[test]
    fn query_values_are_encoded() {
        assert_eq!(encode("a=b,c in (d)/é"), "a%3Db%2Cc%20in%20%28d%29%2F%C3%A9");
    }
}
