//! A little-endian cursor over a stream that knows how many bytes may still come.

use std::io::Read;

use super::GgufError;

/// Reads numbers and texts; refuses to go past the file's length.
pub(super) struct Reader<R> {
    inner: R,
    at: u64,
    len: u64,
}

impl<R: Read> Reader<R> {
    pub(super) fn new(inner: R, len: u64) -> Self {
        Self { inner, at: 0, len }
    }

    /// Bytes read so far.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Bytes that may still come.
    pub(super) fn left(&self) -> u64 {
        self.len - self.at
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> GgufError {
        GgufError::Damaged {
            at: self.at,
            what: what.into(),
        }
    }

    /// The next `N` bytes.
    pub(super) fn bytes<const N: usize>(&mut self) -> Result<[u8; N], GgufError> {
        if self.left() < N as u64 {
            return Err(self.damaged("the file ends inside the header"));
        }
        let mut out = [0; N];
        self.inner.read_exact(&mut out)?;
        self.at += N as u64;
        Ok(out)
    }

    pub(super) fn u32(&mut self) -> Result<u32, GgufError> {
        Ok(u32::from_le_bytes(self.bytes()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, GgufError> {
        Ok(u64::from_le_bytes(self.bytes()?))
    }

    /// A count of things that take at least `least` bytes each, at most `limit` of them.
    pub(super) fn count(&mut self, what: &str, least: u64, limit: u64) -> Result<u64, GgufError> {
        let n = self.u64()?;
        if n > limit {
            return Err(self.damaged(format!("{n} {what}, more than the {limit} allowed")));
        }
        if n > self.left() / least {
            return Err(self.damaged(format!(
                "{n} {what} do not fit into the {} bytes left",
                self.left()
            )));
        }
        Ok(n)
    }

    /// A length and so many bytes of UTF-8.
    pub(super) fn text(&mut self, limit: u64) -> Result<String, GgufError> {
        let len = self.count("bytes of text", 1, limit)?;
        let len = usize::try_from(len).map_err(|_| self.damaged("text too long for this machine"))?;
        let mut out = vec![0; len];
        self.inner.read_exact(&mut out)?;
        self.at += len as u64;
        String::from_utf8(out).map_err(|_| self.damaged("a text that is not UTF-8"))
    }
}
