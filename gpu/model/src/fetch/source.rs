//! What a user may name a model by.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use super::FetchError;

/// Where a model comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ModelSource {
    /// SmolLM2-135M-Instruct, quantised to 4 bits: small and real.
    #[default]
    Default,
    /// A file on this machine, or a folder in the layout of the Hugging Face hub.
    Path(PathBuf),
    /// A repository on the Hugging Face hub.
    HuggingFace {
        /// `owner/name`.
        repo: String,
        /// A file in it; chosen when not given.
        file: Option<String>,
    },
}

impl FromStr for ModelSource {
    type Err = FetchError;

    /// `default`; `owner/name` or `hf:owner/name[/file.gguf]`; anything that ends in `.gguf` or begins like a path.
    fn from_str(text: &str) -> Result<Self, FetchError> {
        let refused = || FetchError::Source(text.to_owned());
        if text == "default" {
            return Ok(Self::Default);
        }
        if let Some(hub) = text.strip_prefix("hf:") {
            return repository(hub).ok_or_else(refused);
        }
        let like_path = text.ends_with(".gguf") || ["/", "./", "../"].iter().any(|p| text.starts_with(p));
        if like_path {
            return Ok(Self::Path(text.into()));
        }
        match repository(text) {
            Some(Self::HuggingFace { repo, file: None }) => Ok(Self::HuggingFace { repo, file: None }),
            _ => Err(refused()),
        }
    }
}

/// `owner/name[/file]`.
fn repository(text: &str) -> Option<ModelSource> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let part = |s: &str| !s.is_empty() && !s.starts_with('.') && s.chars().all(plain);
    let mut parts = text.splitn(3, '/');
    let (owner, name, file) = (parts.next()?, parts.next()?, parts.next());
    let good = part(owner) && part(name) && file.is_none_or(|f| f.split('/').all(part));
    good.then(|| ModelSource::HuggingFace {
        repo: format!("{owner}/{name}"),
        file: file.map(str::to_owned),
    })
}

/// The way [`ModelSource::from_str`] reads it.
impl fmt::Display for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Path(path) => path.display().fmt(f),
            Self::HuggingFace { repo, file: None } => write!(f, "hf:{repo}"),
            Self::HuggingFace {
                repo,
                file: Some(file),
            } => write!(f, "hf:{repo}/{file}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(repo: &str, file: Option<&str>) -> Option<ModelSource> {
        Some(ModelSource::HuggingFace {
            repo: repo.to_owned(),
            file: file.map(str::to_owned),
        })
    }

    fn check(text: &str, expected: impl Into<Option<ModelSource>>) {
        let source = text.parse::<ModelSource>().ok();
        assert_eq!(source, expected.into(), "{text}");
        if let Some(source) = source {
            assert_eq!(
                source.to_string().parse::<ModelSource>().ok(),
                Some(source),
                "{text}"
            );
        }
    }

    #[test]
    fn names_of_models() {
        check("default", Some(ModelSource::Default));
        check("a.gguf", Some(ModelSource::Path("a.gguf".into())));
        check("a/b.gguf", Some(ModelSource::Path("a/b.gguf".into())));
        check("/models/x", Some(ModelSource::Path("/models/x".into())));
        check("./x", Some(ModelSource::Path("./x".into())));
        check("owner/name", hub("owner/name", None));
        check("hf:owner/na.me-1", hub("owner/na.me-1", None));
        check(
            "hf:owner/name/q/file.gguf",
            hub("owner/name", Some("q/file.gguf")),
        );
        for bad in [
            "",
            "x",
            "a/b/c",
            "hf:x",
            "hf:a/../b",
            "hf:a/b/../c",
            "a b/c",
            "/",
            "hf:a/b/",
        ] {
            let path = bad.starts_with('/').then(|| ModelSource::Path(bad.into()));
            check(bad, path);
        }
    }
}
