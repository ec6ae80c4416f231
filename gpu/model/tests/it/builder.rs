//! Writes small GGUF files for tests.

/// A GGUF file in the making.
#[derive(Clone, Default)]
pub(crate) struct Builder {
    entries: u64,
    metadata: Vec<u8>,
    tensors: u64,
    infos: Vec<u8>,
    data: Vec<u8>,
}

impl Builder {
    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.raw(key, 8, &text(value))
    }

    pub(crate) fn u32(self, key: &str, value: u32) -> Self {
        self.raw(key, 4, &value.to_le_bytes())
    }

    pub(crate) fn f32(self, key: &str, value: f32) -> Self {
        self.raw(key, 6, &value.to_le_bytes())
    }

    pub(crate) fn texts(self, key: &str, values: &[impl AsRef<str>]) -> Self {
        let items = values.iter().flat_map(|v| text(v.as_ref()));
        let value: Vec<u8> = array(8, values.len()).into_iter().chain(items).collect();
        self.raw(key, 9, &value)
    }

    pub(crate) fn i32s(self, key: &str, values: &[i32]) -> Self {
        let items = values.iter().flat_map(|v| v.to_le_bytes());
        let value: Vec<u8> = array(5, values.len()).into_iter().chain(items).collect();
        self.raw(key, 9, &value)
    }

    /// A metadata entry of GGUF's type `kind`.
    pub(crate) fn raw(mut self, key: &str, kind: u32, value: &[u8]) -> Self {
        self.entries += 1;
        self.metadata.extend(text(key));
        self.metadata.extend(kind.to_le_bytes());
        self.metadata.extend(value);
        self
    }

    /// An `f32` tensor; `dims` as GGUF has them, `[columns, rows]`.
    pub(crate) fn tensor(mut self, name: &str, dims: &[u64], numbers: &[f32]) -> Self {
        self.tensors += 1;
        self.infos.extend(text(name));
        self.infos
            .extend(u32::try_from(dims.len()).unwrap().to_le_bytes());
        self.infos.extend(dims.iter().flat_map(|d| d.to_le_bytes()));
        self.infos.extend(0_u32.to_le_bytes());
        self.infos.extend((self.data.len() as u64).to_le_bytes());
        self.data.extend(numbers.iter().flat_map(|n| n.to_le_bytes()));
        self.data.resize(self.data.len().next_multiple_of(32), 0);
        self
    }

    /// The file's bytes.
    pub(crate) fn build(self) -> Vec<u8> {
        let mut out = b"GGUF".to_vec();
        out.extend(3_u32.to_le_bytes());
        out.extend(self.tensors.to_le_bytes());
        out.extend(self.entries.to_le_bytes());
        out.extend(self.metadata);
        out.extend(self.infos);
        out.resize(out.len().next_multiple_of(32), 0);
        out.extend(self.data);
        out
    }
}

fn text(value: &str) -> Vec<u8> {
    [&(value.len() as u64).to_le_bytes()[..], value.as_bytes()].concat()
}

/// The head of an array value.
fn array(kind: u32, len: usize) -> Vec<u8> {
    [&kind.to_le_bytes()[..], &(len as u64).to_le_bytes()].concat()
}
