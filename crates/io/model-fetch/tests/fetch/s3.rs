//! From S3, against `moto_server` where it is installed (`pip install 'moto[server]'`).

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use scantling_model_fetch::{Access, FetchError, Fetched, Limits, Uri, fetch};

use crate::{bytes, files, limits};

struct Moto {
    process: Child,
    address: String,
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Moto {
    /// None where it is not installed.
    fn start() -> Option<Self> {
        let process = Command::new("moto_server")
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn();
        let Ok(mut process) = process else {
            println!("skipped: moto_server is not installed");
            return None;
        };
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map_while(Result::ok);
        let address = lines
            .find_map(|line| line.split_once("Running on ").map(|(_, address)| address.trim().to_owned()));
        // What it says further must not fill the pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let Some(address) = address else {
            let _ = process.kill();
            println!("skipped: moto_server does not start");
            return None;
        };
        Some(Self { process, address })
    }

    async fn put(&self, path: &str, content: &[u8]) {
        let client: hyper_util::client::legacy::Client<_, http_body_util::Full<bytes::Bytes>> =
            hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
        let request = http::Request::put(format!("{}/{path}", self.address))
            .header("authorization", "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=0")
            .body(http_body_util::Full::new(bytes::Bytes::copy_from_slice(content)))
            .unwrap();
        let response = client.request(request).await.unwrap();
        assert!(response.status().is_success(), "{}", response.status());
    }

    async fn get(
        &self,
        uri: &str,
        bucket: &str,
        to: &std::path::Path,
        limits: &Limits,
    ) -> Result<Fetched, FetchError> {
        let config = serde_json::json!({
            "type": "s3", "access_key_id": "id", "secret_access_key": "geheim", "endpoint_url": self.address, "bucket": bucket,
        });
        let access =
            Access::read(|name| (name == "STORAGE_CONFIG").then(|| config.to_string()), Vec::new()).unwrap();
        fetch(&Uri::parse(uri).unwrap(), &access, to, None, limits, 1, &mut |_| ()).await
    }
}

#[tokio::test]
async fn a_model_in_s3_arrives_with_its_paths() {
    let Some(moto) = Moto::start() else { return };
    let big = bytes(3_000_000);
    moto.put("models", b"").await;
    for (key, content) in [
        ("iris/v1/model.joblib", &b"m"[..]),
        ("iris/v1/parts/weights.bin", &big),
        ("iris/v1/parts/", b""),
        ("iris/v10/other", b"x"),
    ] {
        moto.put(&format!("models/{key}"), content).await;
    }
    let to = tempfile::tempdir().unwrap();
    let done = moto.get("s3://models/iris/v1/", "", to.path(), &limits()).await.unwrap();
    assert_eq!((done.files, done.bytes), (2, 3_000_001));
    let expected =
        BTreeMap::from([("model.joblib".to_owned(), b"m".to_vec()), ("parts/weights.bin".to_owned(), big)]);
    assert_eq!(files(to.path()), expected);
    let again = moto.get("s3://models/iris/v1", "", to.path(), &limits()).await.unwrap();
    assert_eq!(again.reused, 2);
    // One object, and the bucket of the data connection.
    let one = tempfile::tempdir().unwrap();
    let done = moto.get("s3:///iris/v1/model.joblib", "models", one.path(), &limits()).await.unwrap();
    assert_eq!((done.files, files(one.path())["model.joblib"].as_slice()), (1, &b"m"[..]));
    for (uri, bucket, expected) in [
        ("s3://models/nothing", "", "there is nothing at"),
        ("s3://nobody/x", "", "nobody"),
        ("s3:///x", "", "no bucket is named"),
    ] {
        let error = moto.get(uri, bucket, one.path(), &limits()).await.unwrap_err().to_string();
        assert!(error.contains(expected) && !error.contains("geheim"), "{error}");
    }
    let few = Limits { files: 1, ..limits() };
    assert!(matches!(
        moto.get("s3://models/iris", "", to.path(), &few).await,
        Err(FetchError::TooMuch { .. })
    ));
}
