//! Tokens, credentials, redirects.

use std::collections::BTreeMap;

use http::{Response, header};
use scantling_registry::Verdict;
use scantling_registry_server::{Access, Account, Rights};

use crate::support::{Registries, image, platforms, reference};

const PASSWORD: &str = "correct-horse";

fn accounts() -> BTreeMap<String, Account> {
    let account = Account { password: PASSWORD.to_owned(), rights: Rights::Push };
    BTreeMap::from([("robot".to_owned(), account)])
}

fn guarded(access: Access) -> Registries {
    let registries = Registries::new();
    registries.push("quay.io/team/nb:1", &image("1.0", &["linux/amd64", "linux/arm64"]));
    registries.server.lock().unwrap().access("quay.io", "team", access);
    registries
}

#[tokio::test(start_paused = true)]
async fn one_token_serves_a_repository() {
    let registries = guarded(Access::Token { accounts: accounts(), anonymous_pull: true });
    let client = registries.client();
    let probe = client.probe(&reference("quay.io/team/nb:1"), &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable);
    let asked = registries.asked();
    let tokens: Vec<_> = asked.iter().filter(|request| request.contains("/token")).collect();
    assert_eq!(tokens.len(), 1, "{asked:?}");
    assert_eq!(tokens[0], "GET quay.io/token?service=quay.io&scope=repository%3Ateam%2Fnb%3Apull");
    assert!(asked[2..].iter().all(|request| request.ends_with(" Bearer")), "{asked:?}");
    // The next question needs neither a challenge nor a token.
    client.resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!(registries.asked(), ["HEAD quay.io/v2/team/nb/manifests/1 Bearer"]);
    // A token that ran out is replaced, once.
    registries.server.lock().unwrap().expire_tokens("quay.io");
    client.resolve(&reference("quay.io/team/nb:1")).await.unwrap();
    assert_eq!(registries.asked().iter().filter(|request| request.contains("/token")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn credentials_are_used_where_they_fit() {
    for access in [
        Access::Token { accounts: accounts(), anonymous_pull: false },
        Access::Basic { accounts: accounts() },
    ] {
        let mut registries = guarded(access);
        let anonymous = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
        assert_eq!(anonymous.verdict, Verdict::Unauthenticated, "{:?}", anonymous.attempts);

        registries.credential("quay.io/team", "robot", PASSWORD);
        let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
        assert_eq!(probe.verdict, Verdict::Pullable, "{:?}", probe.attempts);
        assert_eq!(probe.attempts[0].credential.as_deref(), Some("test (quay.io/team)"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_credential_is_named_and_the_next_one_is_tried() {
    for access in [
        Access::Token { accounts: accounts(), anonymous_pull: false },
        Access::Basic { accounts: accounts() },
    ] {
        let mut registries = guarded(access);
        registries.credential("quay.io/team", "robot", "wrong-and-secret");
        registries.credential("quay.io", "robot", PASSWORD);
        let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
        let verdicts: Vec<_> = probe.attempts.iter().map(|attempt| attempt.verdict).collect();
        assert_eq!(verdicts, [Verdict::Unauthenticated, Verdict::Pullable]);
        let refused = &probe.attempts[0].detail;
        assert!(refused.contains("refused the credential test (quay.io/team)"), "{refused}");
        let shown = format!("{:?} {:?}", probe.attempts, registries.client());
        assert!(!shown.contains("wrong-and-secret") && !shown.contains(PASSWORD), "{shown}");
    }
}

// C022, distribution/distribution#2376: 401 for a repository that does not exist.
#[tokio::test(start_paused = true)]
async fn a_hidden_repository_is_missing_or_not_permitted() {
    let mut registries = Registries::new();
    registries.push("hub.example/lab/alpine:3.19", &image("1.0", &["linux/amd64"]));
    let access = Access::Token { accounts: accounts(), anonymous_pull: true };
    registries.server.lock().unwrap().access("hub.example", "", access);
    let hidden = |_: &str, request: &http::Request<bytes::Bytes>, response: Response<bytes::Bytes>| {
        if request.uri().path().contains("/alpin/") && response.status() == 404 {
            let challenge = "Bearer realm=\"https://hub.example/token\",service=\"hub.example\",error=\"insufficient_scope\"";
            let body = r#"{"errors":[{"code":"UNAUTHORIZED","message":"authentication required"}]}"#;
            return Response::builder()
                .status(401)
                .header(header::WWW_AUTHENTICATE, challenge)
                .body(body.into())
                .unwrap();
        }
        response
    };
    registries.twist(hidden);
    let found = registries.client().probe(&reference("hub.example/lab/alpine:3.19"), &[]).await;
    assert_eq!(found.verdict, Verdict::Pullable);
    for (verdict, words) in [
        (Verdict::Unauthenticated, "missing, or a credential is needed"),
        (Verdict::Forbidden, "missing, or not permitted with the credential"),
    ] {
        if verdict == Verdict::Forbidden {
            registries.credential("hub.example", "robot", PASSWORD);
        }
        let probe = registries.client().probe(&reference("hub.example/lab/alpin:3.19"), &[]).await;
        assert_eq!(probe.verdict, verdict);
        let detail = &probe.attempts[0].detail;
        assert!(detail.contains(words), "{detail}");
        assert!(!detail.contains("refused the credential"), "{detail}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_repeats_a_credential_is_dropped() {
    let mut registries = guarded(Access::Anonymous);
    registries.credential("quay.io", "robot", PASSWORD);
    registries.twist(|_, _, _| {
        let body = format!(r#"{{"errors":[{{"code":"DENIED","message":"robot:{PASSWORD} may not"}}]}}"#);
        Response::builder().status(403).body(body.into()).unwrap()
    });
    let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "quay.io/team/nb: manifest 1: not permitted with the credential test (quay.io): HTTP 403 DENIED"
    );
}

#[tokio::test(start_paused = true)]
async fn a_credential_stays_with_its_host() {
    let mut registries = guarded(Access::Basic { accounts: accounts() });
    registries.credential("quay.io", "robot", PASSWORD);
    let blobs = registries.clone();
    registries.server.lock().unwrap().add_host("cdn.example");
    registries.twist(move |host, request, response| {
        let path = request.uri().path().to_owned();
        if host == "quay.io" && path.contains("/blobs/") {
            return Response::builder()
                .status(307)
                .header(header::LOCATION, format!("https://cdn.example{path}?signed"))
                .body("".into())
                .unwrap();
        }
        if host == "cdn.example" {
            assert!(request.headers().get(header::AUTHORIZATION).is_none());
            let mut inner = http::Request::builder().uri(path);
            if let Some(range) = request.headers().get(header::RANGE) {
                inner = inner.header(header::RANGE, range);
            }
            let mut inner = inner.body(bytes::Bytes::new()).unwrap();
            let value = "Basic cm9ib3Q6Y29ycmVjdC1ob3JzZQ==".parse().unwrap();
            inner.headers_mut().insert(header::AUTHORIZATION, value);
            return storage(&blobs, &inner);
        }
        response
    });
    let probe = registries.client().probe(&reference("quay.io/team/nb:1"), &[]).await;
    assert_eq!(probe.verdict, Verdict::Pullable, "{:?}", probe.attempts);
    let contents =
        registries.client().contents(&reference("quay.io/team/nb:1"), &platforms(&["linux/amd64"])[0]).await;
    assert_eq!(contents.unwrap().version_of("tensorflow"), Some("1.0"));
    assert!(registries.asked().iter().any(|request| request.starts_with("GET cdn.example")));
}

fn storage(registries: &Registries, request: &http::Request<bytes::Bytes>) -> Response<bytes::Bytes> {
    registries.server.lock().unwrap().handle("quay.io", request)
}

#[tokio::test(start_paused = true)]
async fn credentials_are_not_sent_where_they_could_be_read() {
    let check = async |challenge: &'static str, part: &str| {
        let mut registries = guarded(Access::Anonymous);
        registries.credential("quay.io", "robot", PASSWORD);
        registries.twist(move |_, _, _| {
            Response::builder()
                .status(401)
                .header(header::WWW_AUTHENTICATE, challenge)
                .body("".into())
                .unwrap()
        });
        let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        let asked = registries.asked();
        assert!(asked.iter().all(|request| !request.contains("Basic")), "{asked:?}");
    };
    check("Bearer realm=\"http://evil.example/token\"", "is not reached over HTTPS").await;
    check("Bearer realm=\"no address\"", "no address").await;
    check("Negotiate", "a credential is needed and none fits").await;

    let registries = guarded(Access::Anonymous);
    registries.twist(|_, _, _| {
        Response::builder().status(302).header(header::LOCATION, "http://quay.io/x").body("".into()).unwrap()
    });
    let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
    assert!(error.to_string().contains("from HTTPS to plain HTTP"), "{error}");
    registries.twist(|_, _, _| {
        Response::builder().status(302).header(header::LOCATION, "/again").body("".into()).unwrap()
    });
    let error = registries.client().resolve(&reference("quay.io/team/nb:1")).await.unwrap_err();
    assert!(error.to_string().contains("more than 5 redirections"), "{error}");
}
