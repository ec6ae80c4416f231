//! The fetched library is usable, and says what it is.

use std::path::Path;

use kv_ucx::{LoadError, Ucx};

use crate::side::ucx;

#[test]
fn the_library_says_its_version_and_place() {
    let version = ucx().version();
    assert!(
        version.starts_with("1.") && version.split('.').count() == 3,
        "{version}"
    );
    assert!(ucx().path().to_string_lossy().contains("libucp"));
}

#[test]
fn a_missing_library_is_named() {
    let missing = Path::new("/nonexistent/libucp.so.0");
    let error = Ucx::load(Some(missing), None).unwrap_err();
    assert!(matches!(&error, LoadError::NotFound { tried } if tried.len() == 1));
    assert!(error.to_string().contains("/nonexistent/libucp.so.0"), "{error}");
}
