use std::fs;

use axum::body::Body;
use axum::routing::{get, post};
use http_body_util::BodyExt;
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::keys::{Digest, current};

/// A router whose answers use seven tokens and whose key `ik-a` has these limits.
fn router(limits: &str) -> Router {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("keys.toml");
    let digest = Digest::of("ik-a").to_hex();
    fs::write(
        &path,
        format!("[[key]]\nname = \"a\"\nsha256 = \"{digest}\"\n{limits}"),
    )
    .expect("written");
    let ring = Ring::open(&path).expect("opens");
    let answer = || async {
        let visit = current();
        visit.iter().for_each(|visit| visit.charge(7));
        // As long as the body is there.
        Body::from_stream(futures_util::stream::once(async move {
            let under_way = visit.is_some();
            Ok::<_, std::convert::Infallible>(under_way.to_string())
        }))
    };
    let router = Router::new()
        .route("/v1/completions", post(answer))
        .route("/v1/models", get(|| async { current().is_some().to_string() }))
        .route("/health/live", get(|| async { "live" }));
    guarded(router, Arc::new(ring))
}

async fn ask(router: &Router, method: Method, path: &str, authorization: Option<&str>) -> Response {
    let mut request = Request::builder().method(method).uri(path);
    if let Some(value) = authorization {
        request = request.header(header::AUTHORIZATION, value);
    }
    let request = request.body(Body::empty()).expect("a request");
    router.clone().oneshot(request).await.expect("answers")
}

async fn complete(router: &Router) -> Response {
    ask(router, Method::POST, "/v1/completions", Some("Bearer ik-a")).await
}

async fn text(response: Response) -> String {
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    String::from_utf8_lossy(&body).into_owned()
}

#[tokio::test]
async fn nobody_comes_in_without_a_good_key() {
    let router = router("");
    for (authorization, said) in [
        (None, "a key is needed"),
        (Some("Bearer ik-b"), "not known here"),
        (Some("Bearer"), "not known here"),
        (Some("Basic ik-a"), "not known here"),
        (Some("ik-a"), "not known here"),
    ] {
        for (method, path) in [
            (Method::POST, "/v1/completions"),
            (Method::GET, "/v1/models"),
            (Method::GET, "/"),
        ] {
            let answer = ask(&router, method, path, authorization).await;
            assert_eq!(answer.status(), StatusCode::UNAUTHORIZED, "{authorization:?}");
            assert_eq!(answer.headers()[header::WWW_AUTHENTICATE], "Bearer");
            let body: Value = serde_json::from_str(&text(answer).await).expect("JSON");
            assert_eq!(body["error"]["code"], "invalid_api_key");
            assert!(
                body["error"]["message"].as_str().expect("a text").contains(said),
                "{body}"
            );
        }
    }
    assert_eq!(text(complete(&router).await).await, "true");
    assert_eq!(
        text(ask(&router, Method::POST, "/v1/completions", Some("bearer  ik-a ")).await).await,
        "true"
    );
    assert_eq!(
        text(ask(&router, Method::GET, "/v1/models", Some("Bearer ik-a")).await).await,
        "false"
    );
    assert_eq!(
        text(ask(&router, Method::GET, "/health/live", None).await).await,
        "live"
    );
}

#[track_caller]
fn check_refused(answer: &Response, most_s: u64) {
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    let wait = answer.headers()[header::RETRY_AFTER].to_str().expect("a text");
    assert!((1..=most_s).contains(&wait.parse().expect("a number")), "{wait}");
}

#[tokio::test]
async fn a_limit_that_is_met_is_named_with_when_to_come_again() {
    let requests = router("requests_per_minute = 2");
    for _ in 0..2 {
        assert_eq!(complete(&requests).await.status(), StatusCode::OK);
    }
    let answer = complete(&requests).await;
    check_refused(&answer, 30);
    assert!(
        text(answer)
            .await
            .contains("the key of a has used up its requests_per_minute")
    );

    let tokens = router("tokens_per_minute = 10");
    for _ in 0..2 {
        assert_eq!(complete(&tokens).await.status(), StatusCode::OK);
    }
    // Four of debt, and one to begin with: six seconds each.
    let answer = complete(&tokens).await;
    check_refused(&answer, 30);
    assert!(text(answer).await.contains("tokens_per_minute"));
}

#[tokio::test]
async fn a_request_is_under_way_until_its_answer_is() {
    let router = router("concurrent = 1");
    let first = complete(&router).await;
    assert_eq!(first.status(), StatusCode::OK);
    check_refused(&complete(&router).await, 1);
    assert_eq!(text(first).await, "true");
    drop(complete(&router).await);
    assert_eq!(complete(&router).await.status(), StatusCode::OK);
}
