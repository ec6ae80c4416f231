//! `GET /v1/models` and `GET /v1/models/{id}`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;

use super::error::ApiError;
use crate::router::Door;
use crate::submit::ModelCard;

#[derive(Serialize)]
pub(crate) struct Model {
    id: String,
    object: &'static str,
    created: u64,
    owned_by: &'static str,
    /// As vLLM spells it.
    max_model_len: u32,
}

#[derive(Serialize)]
pub(crate) struct List {
    object: &'static str,
    data: Vec<Model>,
}

impl From<ModelCard> for Model {
    fn from(card: ModelCard) -> Self {
        Self {
            id: card.id,
            object: "model",
            created: card.created_s,
            owned_by: "innkeeper",
            max_model_len: card.context_tokens,
        }
    }
}

pub(crate) async fn list_models(State(door): State<Arc<Door>>) -> Json<List> {
    Json(List {
        object: "list",
        data: door.submit.models().into_iter().map(Model::from).collect(),
    })
}

/// The id is the rest of the path: the names of models may contain slashes.
pub(crate) async fn one_model(
    State(door): State<Arc<Door>>,
    Path(id): Path<String>,
) -> Result<Json<Model>, ApiError> {
    let card = door.submit.models().into_iter().find(|card| card.id == id);
    card.map(|card| Json(card.into()))
        .ok_or_else(|| ApiError::unknown_model(&id))
}
