//! Writes the seeds of the corpus: what real encoders make, cut and bent a little. `seeds FOLDER`; files that are there stay.
#![allow(clippy::unwrap_used, reason = "a tool of the tests")]

// Of the tests of `model`.
#[path = "../../../../gpu/model/tests/it/builder.rs"]
mod builder;
#[path = "seeds/bytes.rs"]
mod bytes;
#[path = "seeds/chats.rs"]
mod chats;
#[path = "seeds/models.rs"]
mod models;
#[path = "seeds/requests.rs"]
mod requests;

use std::path::{Path, PathBuf};

/// A target, the name of a seed, and its bytes.
type Seed = (&'static str, String, Vec<u8>);

fn main() {
    let folder: PathBuf = std::env::args()
        .nth(1)
        .expect("give the folder of the corpus")
        .into();
    let all = [bytes::seeds(), chats::seeds(), models::seeds(), requests::seeds()].concat();
    for (target, name, bytes) in all {
        write(&folder.join(target), &name, &bytes);
    }
}

fn write(folder: &Path, name: &str, bytes: &[u8]) {
    std::fs::create_dir_all(folder).unwrap();
    let file = folder.join(format!("seed-{name}"));
    if !file.exists() {
        std::fs::write(file, bytes).unwrap();
    }
}
