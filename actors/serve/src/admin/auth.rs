//! Whom the operators' door opens to, where it has a lock: who has the token, which is in a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::config::Config;
use crate::keys::Digest;

/// Open to those who start and end processes, which have no token and learn nothing.
const OPEN: [&str; 3] = ["/health/live", "/health/started", "/health/ready"];

/// Fewest characters of a token: one that is guessed is none.
const FEWEST: usize = 16;

/// The router behind the lock of `admin.token`, if there is one.
///
/// # Errors
/// If the file cannot be read, or has no token in it.
pub(crate) fn guarded(router: Router, config: &Config) -> Result<Router> {
    let path = Path::new(&config.admin.token);
    if path.as_os_str().is_empty() {
        return Ok(router);
    }
    token(config)?;
    let path: Arc<PathBuf> = Arc::new(path.to_owned());
    Ok(router.layer(middleware::from_fn_with_state(path, pass)))
}

/// The token as the configuration has it; none if none is needed.
///
/// # Errors
/// As [`guarded`].
pub(crate) fn token(config: &Config) -> Result<Option<String>> {
    let path = &config.admin.token;
    if path.is_empty() {
        return Ok(None);
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("admin.token: cannot read {path}"))?;
    let token = text.trim();
    let fits = token.len() >= FEWEST && token.bytes().all(|byte| byte.is_ascii_graphic());
    ensure!(
        fits,
        "admin.token: {path} must hold at least {FEWEST} visible ASCII characters, such as those of `openssl rand -hex 32`"
    );
    Ok(Some(token.to_owned()))
}

async fn pass(State(path): State<Arc<PathBuf>>, request: Request, next: Next) -> Response {
    if OPEN.contains(&request.uri().path()) {
        return next.run(request).await;
    }
    // Read every time: operators ask seldom, and whoever changes it need not restart anything.
    let token = match tokio::fs::read_to_string(path.as_path()).await {
        Ok(token) => token,
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "the token of operators cannot be read: nobody comes in");
            return (StatusCode::SERVICE_UNAVAILABLE, "admin.token cannot be read\n").into_response();
        }
    };
    let token = token.trim();
    // Digests: how long the comparison takes says nothing of the token.
    let good = shown(request.headers()).is_some_and(|shown| Digest::of(&shown) == Digest::of(token));
    if good && token.len() >= FEWEST {
        return next.run(request).await;
    }
    let how = HeaderValue::from_static("Basic realm=\"innkeeper operators\", charset=\"UTF-8\"");
    let why = "a token is needed: `Authorization: Bearer TOKEN`, or the token as a password (admin.token)\n";
    (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, how)], why).into_response()
}

/// The token that a request shows; a browser's is a password, and the name beside it is of no interest.
fn shown(headers: &HeaderMap) -> Option<String> {
    let (scheme, rest) = headers
        .get(header::AUTHORIZATION)?
        .to_str()
        .ok()?
        .split_once(' ')?;
    let rest = rest.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(rest.to_owned());
    }
    let pair = scheme
        .eq_ignore_ascii_case("basic")
        .then(|| STANDARD.decode(rest).ok())?;
    let pair = String::from_utf8(pair?).ok()?;
    pair.split_once(':').map(|(_, password)| password.to_owned())
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use axum::routing::get;
    use tower::ServiceExt;

    use super::*;

    const TOKEN: &str = "0123456789abcdef";

    fn locked() -> (Config, tempfile::TempDir) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("token");
        std::fs::write(&path, format!("{TOKEN}\n")).expect("written");
        let mut config = Config::default();
        config.admin.token = path.to_str().expect("UTF-8").to_owned();
        (config, folder)
    }

    fn router(config: &Config) -> Router {
        let router = Router::new()
            .route("/rooms", get(|| async { "[]" }))
            .route("/health", get(|| async { "{}" }))
            .route("/health/live", get(|| async { "live" }));
        guarded(router, config).expect("a token")
    }

    async fn status(router: &Router, path: &str, authorization: Option<&str>) -> u16 {
        let mut request = Request::builder().uri(path);
        if let Some(value) = authorization {
            request = request.header(header::AUTHORIZATION, value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = router.clone().oneshot(request).await.expect("answers");
        assert_eq!(
            answer.status() == 401,
            answer.headers().contains_key(header::WWW_AUTHENTICATE)
        );
        answer.status().as_u16()
    }

    #[tokio::test]
    async fn who_has_the_token_comes_in() {
        let (config, _folder) = locked();
        let router = router(&config);
        let basic = |pair: &str| format!("Basic {}", STANDARD.encode(pair));
        let right = [
            format!("Bearer {TOKEN}"),
            format!("bearer {TOKEN}"),
            basic(&format!("me:{TOKEN}")),
            basic(&format!(":{TOKEN}")),
        ];
        for authorization in right {
            assert_eq!(
                status(&router, "/rooms", Some(&authorization)).await,
                200,
                "{authorization}"
            );
        }
        let wrong = [
            "Bearer 0123456789abcdeg".to_owned(),
            "Bearer ".to_owned(),
            format!("Bearer {TOKEN}0"),
            TOKEN.to_owned(),
            basic(TOKEN),
            basic(&format!("{TOKEN}:")),
            "Basic ???".to_owned(),
        ];
        for authorization in wrong {
            assert_eq!(
                status(&router, "/rooms", Some(&authorization)).await,
                401,
                "{authorization}"
            );
        }
        assert_eq!(status(&router, "/rooms", None).await, 401);
        assert_eq!(status(&router, "/health", None).await, 401);
        assert_eq!(status(&router, "/nothing", None).await, 401);
        assert_eq!(status(&router, "/health/live", None).await, 200);
    }

    #[tokio::test]
    async fn another_token_is_good_at_once_and_none_opens_nothing() {
        let (config, _folder) = locked();
        let router = router(&config);
        let path = &config.admin.token;
        std::fs::write(path, "fedcba9876543210").expect("written");
        assert_eq!(
            status(&router, "/rooms", Some(&format!("Bearer {TOKEN}"))).await,
            401
        );
        assert_eq!(
            status(&router, "/rooms", Some("Bearer fedcba9876543210")).await,
            200
        );
        std::fs::write(path, "").expect("written");
        assert_eq!(status(&router, "/rooms", Some("Bearer ")).await, 401);
        std::fs::remove_file(path).expect("removed");
        assert_eq!(
            status(&router, "/rooms", Some("Bearer fedcba9876543210")).await,
            503
        );
    }

    #[test]
    fn a_token_that_is_none_is_told() {
        let (mut config, _folder) = locked();
        assert_eq!(token(&config).expect("read").as_deref(), Some(TOKEN));
        std::fs::write(&config.admin.token, "short\n").expect("written");
        let said = format!("{:#}", token(&config).expect_err("too short"));
        assert!(said.contains("at least 16"), "{said}");
        config.admin.token = "/no/such".to_owned();
        assert!(guarded(Router::new(), &config).is_err());
        config.admin.token = String::new();
        assert_eq!(token(&config).expect("open"), None);
    }
}
