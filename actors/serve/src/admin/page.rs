//! The live page: files that are part of the program. It loads nothing from elsewhere, and its browser is told so.

use axum::Router;
use axum::http::{HeaderName, header};
use axum::response::IntoResponse;
use axum::routing::get;

/// A file of the page: where it is, what it is, what is in it.
type File = (&'static str, &'static str, &'static str);

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! file {
    ($path:literal, $kind:expr) => {
        (
            concat!("/page/", $path),
            $kind,
            include_str!(concat!("../../page/", $path)),
        )
    };
}

const INDEX: &str = include_str!("../../page/index.html");

const FILES: &[File] = &[
    file!("NOTICE", TEXT),
    file!("icon.svg", SVG),
    file!("look.css", CSS),
    file!("app.js", JS),
    file!("detail.js", JS),
    file!("glance.js", JS),
    file!("lanes.js", JS),
    file!("picture.js", JS),
    file!("plots.js", JS),
    file!("store.js", JS),
    file!("table.js", JS),
    file!("text.js", JS),
    file!("vendor/preact-htm.js", JS),
    file!("vendor/uplot.js", JS),
    file!("vendor/uplot.css", CSS),
];

/// Nothing but what comes from here may be loaded, run, or asked; nobody may put the page into a frame of theirs.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

fn answer(kind: &'static str, content: &'static str) -> impl IntoResponse {
    const SNIFF: HeaderName = header::X_CONTENT_TYPE_OPTIONS;
    (
        [
            (header::CONTENT_TYPE, kind),
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (header::CACHE_CONTROL, "no-cache"),
            (SNIFF, "nosniff"),
        ],
        content,
    )
}

/// The page's routes.
pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let index = Router::new().route("/", get(|| async { answer(HTML, INDEX) }));
    FILES.iter().fold(index, |router, (path, kind, content)| {
        router.route(path, get(move || async move { answer(kind, content) }))
    })
}

#[cfg(test)]
mod tests {
    use super::{FILES, INDEX};

    /// What the page's own files name of each other is here, and nothing is named that would be loaded from elsewhere.
    #[test]
    fn the_page_is_whole() {
        let own = FILES
            .iter()
            .filter(|(path, ..)| path.ends_with(".js") || path.ends_with(".css"));
        let own = own.filter(|(path, ..)| !path.contains("/vendor/"));
        let mut texts: Vec<&str> = own.map(|(_, _, content)| *content).collect();
        texts.push(INDEX);
        for text in &texts {
            for part in text.split(['"', '\'']) {
                let name = part.strip_prefix("./").or_else(|| part.strip_prefix("/page/"));
                if let Some(name) = name {
                    let path = format!("/page/{name}");
                    assert!(
                        FILES.iter().any(|(file, ..)| *file == path),
                        "{path} is not served"
                    );
                }
                let is_elsewhere = part.starts_with("https://") || part.starts_with("http://");
                assert!(!is_elsewhere, "{part} is loaded from elsewhere");
            }
        }
        for (path, ..) in FILES.iter().filter(|(path, ..)| !path.ends_with("NOTICE")) {
            let name = path.rsplit("/page/").next().unwrap_or(path);
            assert!(
                texts.iter().any(|text| text.contains(name)),
                "nothing names {path}"
            );
        }
    }
}
