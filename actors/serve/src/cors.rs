//! Which pages of the web may ask in a browser (the fetch standard's CORS protocol). Browsers alone care; who has no page is not asked.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

/// For how long a browser may remember what it was allowed.
const REMEMBERED_S: &str = "600";

/// What a page may read of an answer beside its body.
const READABLE: &str = "x-request-id, x-innkeeper-room, traceparent, retry-after";

/// The router for pages of these origins as well.
pub(crate) fn shared(router: Router, origins: &[String]) -> Router {
    if origins.is_empty() {
        return router;
    }
    let origins: Arc<[String]> = origins.into();
    router.layer(middleware::from_fn_with_state(origins, pass))
}

async fn pass(State(origins): State<Arc<[String]>>, request: Request, next: Next) -> Response {
    let allowed = request.headers().get(header::ORIGIN).filter(|origin| {
        let any = |known: &String| known == "*" || known.as_bytes() == origin.as_bytes();
        origins.iter().any(any)
    });
    let allowed = allowed.cloned();
    let asks_first = *request.method() == Method::OPTIONS
        && request
            .headers()
            .contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    let mut response = match (&allowed, asks_first) {
        (Some(_), true) => preflight(request.headers()),
        _ => next.run(request).await,
    };
    let headers = response.headers_mut();
    // A cache must not give one page what another was told.
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = allowed {
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(
            header::ACCESS_CONTROL_EXPOSE_HEADERS,
            HeaderValue::from_static(READABLE),
        );
    }
    response
}

/// Before it sends what a form could not, a browser asks whether it may. Clients have headers of their own kinds: all are allowed.
fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("GET, POST"),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static(REMEMBERED_S),
    );
    response
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::post;
    use tower::ServiceExt;

    use super::*;

    async fn ask(origins: &[&str], method: Method, headers: &[(&str, &str)]) -> Response {
        let origins: Vec<String> = origins.iter().map(ToString::to_string).collect();
        let router = Router::new().route("/v1/completions", post(|| async { "text" }));
        let mut request = Request::builder().method(method).uri("/v1/completions");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        shared(router, &origins).oneshot(request).await.expect("answers")
    }

    fn header<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
        let value = response.headers().get(name)?;
        Some(value.to_str().expect("a text"))
    }

    const CHAT: &str = "https://chat.example.com";

    #[tokio::test]
    async fn a_page_that_is_named_may_ask() {
        let asking = [
            ("origin", CHAT),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization,x-stainless-os"),
        ];
        let response = ask(&[CHAT], Method::OPTIONS, &asking).await;
        assert_eq!(response.status(), StatusCode::NO_CONTENT);
        for (name, value) in [
            ("access-control-allow-origin", CHAT),
            ("access-control-allow-methods", "GET, POST"),
            ("access-control-allow-headers", "authorization,x-stainless-os"),
            ("vary", "origin"),
        ] {
            assert_eq!(header(&response, name), Some(value), "{name}");
        }
        let response = ask(&[CHAT], Method::POST, &[("origin", CHAT)]).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(header(&response, "access-control-allow-origin"), Some(CHAT));
        let response = ask(&["*"], Method::POST, &[("origin", "https://any.example.com")]).await;
        let any = header(&response, "access-control-allow-origin");
        assert_eq!(any, Some("https://any.example.com"));
    }

    #[tokio::test]
    async fn others_are_told_nothing() {
        for origin in ["https://evil.example.com", "http://chat.example.com", "null", ""] {
            let asking = [("origin", origin), ("access-control-request-method", "POST")];
            for method in [Method::OPTIONS, Method::POST] {
                let response = ask(&[CHAT], method, &asking).await;
                assert_eq!(header(&response, "access-control-allow-origin"), None, "{origin}");
                assert_eq!(header(&response, "vary"), Some("origin"));
            }
        }
        // No page, and nobody shares.
        let response = ask(&[CHAT], Method::POST, &[]).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(header(&response, "access-control-allow-origin"), None);
        let response = ask(&[], Method::POST, &[("origin", CHAT)]).await;
        assert_eq!(header(&response, "access-control-allow-origin"), None);
        assert_eq!(header(&response, "vary"), None);
    }
}
