//! A client of a notebook's server, as a browser is one: a kernel, and what code prints in it.

use std::net::SocketAddr;

use futures::{SinkExt as _, StreamExt as _};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::{Message, client::IntoClientRequest as _};

use crate::common::block_on;

/// A kernel of a notebook.
pub(crate) struct Kernel {
    address: SocketAddr,
    base: String,
    id: String,
    token: String,
}

impl Kernel {
    /// Starts a kernel in the notebook's pod, which is at an address.
    pub(crate) fn start(address: SocketAddr, namespace: &str, notebook: &str) -> Self {
        let base = format!("/notebook/{namespace}/{notebook}");
        block_on(async {
            // Whoever wants to change something shows a cookie that only a page of the server can have.
            let page = request(address, Method::GET, &format!("{base}/lab"), None, &Value::Null).await;
            let mut cookies = page.headers().get_all(header::SET_COOKIE).iter();
            let token = cookies
                .find_map(|cookie| cookie.to_str().ok()?.split(';').next()?.strip_prefix("_xsrf="))
                .expect("a cookie against forged requests")
                .to_owned();
            let path = format!("{base}/api/kernels");
            let answer =
                request(address, Method::POST, &path, Some(&token), &json!({"name": "python3"})).await;
            assert!(answer.status().is_success(), "{}", String::from_utf8_lossy(answer.body()));
            let kernel: Value = serde_json::from_slice(answer.body()).unwrap();
            Self { address, base, id: kernel["id"].as_str().unwrap().to_owned(), token }
        })
    }

    /// What code prints.
    pub(crate) fn run(&self, code: &str) -> String {
        block_on(async {
            let mut socket = self.sent(code).await;
            let mut printed = String::new();
            while let Some(message) = next(&mut socket).await {
                match message["msg_type"].as_str().unwrap_or_default() {
                    "stream" => printed.push_str(message["content"]["text"].as_str().unwrap_or_default()),
                    "error" => panic!("{code}\n{}", message["content"]),
                    "status" if message["content"]["execution_state"] == "idle" => break,
                    _ => {}
                }
            }
            printed.trim().to_owned()
        })
    }

    /// Sends code to the kernel.
    async fn sent(&self, code: &str) -> Channel {
        let url = format!("ws://{}{}/api/kernels/{}/channels", self.address, self.base, self.id);
        let mut handshake = url.into_client_request().unwrap();
        let cookie = format!("_xsrf={}", self.token);
        handshake.headers_mut().insert(header::COOKIE, cookie.parse().unwrap());
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut socket, _) = tokio_tungstenite::client_async(handshake, stream).await.unwrap();
        let message = json!({
            "channel": "shell", "buffers": [], "parent_header": {}, "metadata": {},
            "header": {
                "msg_id": "ask", "msg_type": "execute_request", "session": "test", "username": "test",
                "version": "5.3", "date": "2026-01-01T00:00:00Z",
            },
            "content": {
                "code": code, "silent": false, "store_history": false, "user_expressions": {},
                "allow_stdin": false, "stop_on_error": true,
            },
        });
        socket.send(Message::text(message.to_string())).await.unwrap();
        socket
    }
}

type Channel = WebSocketStream<TcpStream>;

/// The next message that answers what was sent.
async fn next(socket: &mut Channel) -> Option<Value> {
    while let Some(message) = socket.next().await {
        let Ok(text) = message.unwrap().into_text() else { continue };
        let Ok(message) = serde_json::from_str::<Value>(&text) else { continue };
        if message["parent_header"]["msg_id"] == "ask" {
            return Some(message);
        }
    }
    None
}

/// One request over a connection of its own.
pub(crate) async fn request(
    address: SocketAddr,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> http::Response<Vec<u8>> {
    match try_request(address, method, path, token, body).await {
        Ok(response) => response,
        Err(error) => panic!("{path}: {error}"),
    }
}

/// The same, where failing is an answer.
pub(crate) async fn try_request(
    address: SocketAddr,
    method: Method,
    path: &str,
    token: Option<&str>,
    body: &Value,
) -> anyhow::Result<http::Response<Vec<u8>>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await?;
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::HOST, address.to_string())
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::COOKIE, format!("_xsrf={token}")).header("X-XSRFToken", token);
    }
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let asked = async {
        let response = sender.send_request(request.body(Full::new(bytes::Bytes::from(body)))?).await?;
        let (parts, body) = response.into_parts();
        anyhow::Ok(http::Response::from_parts(parts, body.collect().await?.to_bytes().to_vec()))
    };
    let mut asked = std::pin::pin!(asked);
    tokio::select! {
        biased;
        response = &mut asked => response,
        // A server may end the connection with the end of its answer.
        ended = connection => match ended {
            Ok(()) => asked.await,
            Err(error) => Err(error.into()),
        },
    }
}
