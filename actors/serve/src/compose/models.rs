//! The model: fetched into the cache on first use, with a progress bar, and opened.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use model::{FetchOptions, Model, ModelFile, ModelSource};
use tracing::instrument;

use crate::config::Config;
use crate::{paths, progress};

/// The model's file, fetched if it is not here yet.
#[instrument(name = "fetch_model", skip_all, fields(source = %config.model.source))]
pub(crate) async fn file(config: &Config) -> Result<PathBuf> {
    let source: ModelSource = config.model.source.parse().context("model.source")?;
    let options = FetchOptions::new(paths::models(config)?);
    // Bounded: `fetch` gives up when nothing has arrived for a while.
    let fetched = tokio::task::spawn_blocking(move || {
        let mut bar = progress::Bar::new("fetching the model");
        model::fetch(&source, &options, &mut |progress| {
            bar.update(progress.done_bytes, progress.total_bytes);
        })
    });
    fetched.await?.context("the model cannot be had")
}

/// The model, open: tokenizer and shape; weights stay in the file until a worker loads them.
#[instrument(name = "open_model", skip_all)]
pub(crate) async fn open(config: &Config) -> Result<Arc<Model>> {
    let path = file(config).await?;
    let opened = tokio::task::spawn_blocking(move || Model::open(&path)).await?;
    Ok(Arc::new(opened.context("the model cannot be opened")?))
}

/// The model without its tokenizer: a worker sees no text, and need not have a vocabulary's worth of memory for it.
#[instrument(name = "open_model", skip_all)]
pub(crate) async fn open_file(config: &Config) -> Result<Arc<ModelFile>> {
    let path = file(config).await?;
    let opened = tokio::task::spawn_blocking(move || ModelFile::open(&path)).await?;
    Ok(Arc::new(opened.context("the model cannot be opened")?))
}

/// The name that clients use.
pub(crate) fn served_name(config: &Config, model: &Model) -> String {
    if config.model.name.is_empty() {
        model.name().to_owned()
    } else {
        config.model.name.clone()
    }
}
