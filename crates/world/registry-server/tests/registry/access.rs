use base64::Engine as _;
use http::Method;
use scantling_registry_server::{Access, Account, Accounts, RegistryServer, Rights};

use crate::client::*;

fn accounts(list: &[(&str, &str, Rights)]) -> Accounts {
    list.iter()
        .map(|(user, password, rights)| {
            ((*user).to_owned(), Account { password: (*password).to_owned(), rights: *rights })
        })
        .collect()
}

fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}")))
}

fn with(server: &mut RegistryServer, method: &Method, path: &str, authorization: &str) -> Seen {
    let mut headers = vec![("accept", OCI_MANIFEST)];
    if !authorization.is_empty() {
        headers.push(("authorization", authorization));
    }
    ask(server, method, path, &headers, b"")
}

const MANIFEST: &str = "/v2/team/app/manifests/1";

#[test]
fn basic_credentials() {
    let (mut server, _) = server();
    let members = accounts(&[("anna", "a:b", Rights::Pull), ("push", "p", Rights::Push)]);
    server.access(HOST, "team", Access::Basic { accounts: members });
    server.access(HOST, "other", Access::Basic { accounts: accounts(&[("ben", "b", Rights::Push)]) });
    for (what, method, authorization, status) in [
        ("nobody", Method::GET, String::new(), 401),
        ("anna", Method::GET, basic("anna", "a:b"), 200),
        ("a scheme in lower case", Method::GET, basic("anna", "a:b").replace("Basic", "basic"), 200),
        ("a wrong password", Method::GET, basic("anna", "x"), 401),
        ("an account of another part", Method::GET, basic("ben", "b"), 403),
        ("anna may not delete", Method::DELETE, basic("anna", "a:b"), 403),
        ("no base64", Method::GET, "Basic %%%".to_owned(), 401),
        ("who may push may delete", Method::DELETE, basic("push", "p"), 202),
    ] {
        let seen = with(&mut server, &method, MANIFEST, &authorization);
        assert_eq!(seen.status, status, "{what}");
        if status == 401 {
            assert_eq!(seen.header("www-authenticate"), format!("Basic realm=\"{HOST}\""), "{what}");
        }
    }
    // A prefix is one of whole components, and other repositories stay open.
    assert_eq!(with(&mut server, &Method::GET, "/v2/teams/tags/list", "").code(), "NAME_UNKNOWN");
}

/// Follows a challenge: (status of the token request, token).
fn token(server: &mut RegistryServer, challenge: &str, authorization: &str) -> (u16, String) {
    let part = |name: &str| {
        let start = challenge.find(&format!("{name}=\"")).map(|at| at + name.len() + 2)?;
        challenge[start..].split('"').next()
    };
    let realm = part("realm").unwrap();
    let path = realm.strip_prefix(&format!("https://{HOST}")).unwrap();
    let query = format!("{path}?service={}&scope={}", part("service").unwrap(), part("scope").unwrap_or(""));
    let seen = with(server, &Method::GET, &query, authorization);
    let token = seen.json()["token"].as_str().unwrap_or_default().to_owned();
    (seen.status, token)
}

#[test]
fn the_token_flow() {
    let (mut server, _) = server();
    let members = accounts(&[("anna", "a", Rights::Pull), ("push", "p", Rights::Push)]);
    server.access(HOST, "", Access::Token { accounts: members, anonymous_pull: true });
    server.access(
        HOST,
        "secret",
        Access::Token { accounts: accounts(&[("ben", "b", Rights::Pull)]), anonymous_pull: false },
    );
    let refused = with(&mut server, &Method::GET, MANIFEST, "");
    assert_eq!((refused.status, refused.code().as_str()), (401, "UNAUTHORIZED"));
    let challenge = refused.header("www-authenticate").to_owned();
    assert_eq!(
        challenge,
        format!(
            "Bearer realm=\"https://{HOST}/token\",service=\"{HOST}\",scope=\"repository:team/app:pull\""
        )
    );
    assert_eq!(token(&mut server, &challenge, &basic("anna", "wrong")).0, 401);
    let (status, anonymous) = token(&mut server, &challenge, "");
    assert_eq!(status, 200);
    assert_eq!(token(&mut server, &challenge, "").1, anonymous, "tokens are deterministic");
    let bearer = format!("Bearer {anonymous}");
    assert_eq!(with(&mut server, &Method::GET, MANIFEST, &bearer).status, 200);
    assert_eq!(with(&mut server, &Method::GET, "/v2/", &bearer).status, 200);
    // The same token for something else.
    let other = with(&mut server, &Method::GET, "/v2/secret/x/manifests/1", &bearer);
    assert!(other.header("www-authenticate").ends_with("error=\"insufficient_scope\""));
    let secret = other.header("www-authenticate").to_owned();
    for (user, status) in [("ben:b", 404), ("anna:a", 401)] {
        let (name, password) = user.split_once(':').unwrap();
        let (asked, token) = token(&mut server, &secret, &basic(name, password));
        assert_eq!(asked, 200, "a known user gets a token, with what they may have in it");
        assert_eq!(
            with(&mut server, &Method::GET, "/v2/secret/x/manifests/1", &format!("Bearer {token}")).status,
            status,
            "{user}"
        );
    }
    // Forged, of another host, and old ones.
    let (payload, seal) = anonymous.split_once('.').unwrap();
    for forged in [
        format!("{payload}A.{seal}"),
        format!("{payload}.{}", seal.replace(|c: char| c.is_ascii_digit(), "0")),
        "x".to_owned(),
    ] {
        let seen = with(&mut server, &Method::GET, MANIFEST, &format!("Bearer {forged}"));
        assert!(seen.header("www-authenticate").contains("invalid_token"), "{forged}");
    }
    server.expire_tokens(HOST);
    assert_eq!(with(&mut server, &Method::GET, MANIFEST, &bearer).status, 401);
    // Writing wants an account that may.
    let start = "/v2/team/app/blobs/uploads/";
    let challenge = with(&mut server, &Method::POST, start, "").header("www-authenticate").to_owned();
    assert!(challenge.contains("scope=\"repository:team/app:pull,push\""));
    for (user, status) in [("anna:a", 401), ("push:p", 202)] {
        let (name, password) = user.split_once(':').unwrap();
        let (_, token) = token(&mut server, &challenge, &basic(name, password));
        assert_eq!(
            with(&mut server, &Method::POST, start, &format!("Bearer {token}")).status,
            status,
            "{user}"
        );
    }
    let catalog = with(&mut server, &Method::GET, "/v2/_catalog", "").header("www-authenticate").to_owned();
    let (_, token) = token(&mut server, &catalog, &basic("anna", "a"));
    assert_eq!(with(&mut server, &Method::GET, "/v2/_catalog", &format!("Bearer {token}")).status, 200);
}

#[test]
fn tokens_by_post_and_several_scopes() {
    let (mut server, image) = server();
    server.access(
        HOST,
        "",
        Access::Token { accounts: accounts(&[("anna", "a", Rights::Push)]), anonymous_pull: false },
    );
    server.push(HOST, "base", None, &image.pushed()).unwrap();
    let scopes = "repository:team/app:pull,push repository:base:pull";
    let form = format!(
        "grant_type=password&username=anna&password=a&service={HOST}&scope={}",
        scopes.replace(' ', "+")
    );
    let seen = ask(&mut server, &Method::POST, "/token", &[], form.as_bytes());
    let token = format!("Bearer {}", seen.json()["access_token"].as_str().unwrap());
    let layer = scantling_image::Digest::of(&image.layer);
    let mount = format!("/v2/team/app/blobs/uploads/?mount={layer}&from=base");
    assert_eq!(with(&mut server, &Method::POST, &mount, &token).status, 201);
    for (form, status) in
        [("grant_type=refresh_token", 400), ("grant_type=password&username=anna&password=x", 401), ("", 400)]
    {
        assert_eq!(ask(&mut server, &Method::POST, "/token", &[], form.as_bytes()).status, status, "{form}");
    }
    let many = format!("/token?{}", "scope=repository:a:pull&".repeat(65));
    assert_eq!(ask(&mut server, &Method::GET, &many, &[], b"").status, 400);
}

#[test]
fn passwords_are_not_shown() {
    let account = Account { password: "hunter2".to_owned(), rights: Rights::Pull };
    assert!(!format!("{account:?}").contains("hunter2"));
    let access = Access::Basic { accounts: accounts(&[("anna", "hunter2", Rights::Pull)]) };
    let mut server = RegistryServer::new();
    server.access(HOST, "", access);
    assert!(!format!("{server:?}").contains("hunter2"));
}
