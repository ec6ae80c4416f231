//! `innkeeper key NAME`: makes a key.

use anyhow::Result;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Digest, file};
use crate::output;

/// What every key begins with, so that people, and programs that look for secrets in places where they should not be, know one.
const BEGINNING: &str = "ik-";

/// Prints the entry for the file of keys to standard output, and the key itself, which is kept nowhere, to standard error.
pub(crate) fn print(name: &str) -> Result<()> {
    file::check_name(name).map_err(anyhow::Error::msg)?;
    let key = new();
    output::print(&format!(
        "[[key]]\nname = \"{name}\"\nsha256 = \"{}\"\n\n",
        Digest::of(&key).to_hex()
    ))?;
    eprintln!("{key}");
    Ok(())
}

fn new() -> String {
    BEGINNING.to_owned() + &URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>())
}

#[cfg(test)]
mod tests {
    use super::new;

    #[test]
    fn a_key_is_long_and_no_other_is_the_same() {
        let (a, b) = (new(), new());
        assert_eq!(a.len(), 46);
        assert!(a.starts_with("ik-") && a != b, "{a} {b}");
        assert!(
            a.bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)),
            "{a}"
        );
    }
}
