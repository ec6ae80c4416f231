//! What peers hear of an owner that ends without ending its links.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

/// The words, which the owner may change while it lives.
#[derive(Debug)]
pub(crate) struct LastWords(Mutex<Cow<'static, str>>);

impl LastWords {
    pub(crate) fn new(words: &'static str) -> Self {
        Self(Mutex::new(Cow::Borrowed(words)))
    }

    pub(crate) fn set(&self, words: Cow<'static, str>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = words;
    }

    pub(crate) fn get(&self) -> Cow<'static, str> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
