//! Where a user wants a model from. (A path may be that of anything: what is no model is refused when it is opened.)

use model::ModelSource;

/// The bytes as such a name.
///
/// # Panics
/// Where a name that is taken does not name the same when it is shown and read again, or part of a name that becomes part of a path
/// could lead out of a folder.
pub fn model_name(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let source: ModelSource = match text.parse() {
        Ok(source) => source,
        Err(error) => return assert!(error.to_string().contains("model"), "{error}"),
    };
    assert_eq!(
        source.to_string().parse::<ModelSource>().ok().as_ref(),
        Some(&source)
    );
    match &source {
        ModelSource::Default => assert_eq!(text, "default"),
        ModelSource::Path(path) => assert_eq!(path.as_os_str(), text),
        ModelSource::HuggingFace { repo, file } => {
            assert_eq!(repo.split('/').count(), 2, "{repo}");
            let parts = repo
                .split('/')
                .chain(file.iter().flat_map(|file| file.split('/')));
            for part in parts {
                let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
                assert!(
                    !part.is_empty() && !part.starts_with('.') && part.chars().all(plain),
                    "{part}"
                );
            }
        }
    }
}
