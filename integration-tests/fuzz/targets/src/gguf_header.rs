//! The header of a model file, which nobody has vouched for.

use model::{Gguf, GgufError, TensorInfo, Value};

/// The bytes as a whole file.
///
/// # Panics
/// Where a file is taken that does not begin as one (a safetensors file begins with the length of its JSON), a tensor does not lie
/// inside the file or on top of others, more comes out than is in the file, or a refusal is not told as one.
pub fn gguf_header(data: &[u8]) {
    let (metadata, tensors) = match Gguf::check(data) {
        Ok(header) => header,
        Err(error @ (GgufError::NotGguf(_) | GgufError::Damaged { .. })) => {
            let not_gguf = matches!(error, GgufError::NotGguf(_));
            assert!(not_gguf || data.starts_with(b"GGUF"), "{error}");
            return;
        }
        Err(error) => panic!("a file that is all there: {error}"),
    };
    assert!(data.starts_with(b"GGUF"));
    let told: usize = metadata.iter().map(|(key, value)| key.len() + size(value)).sum();
    let named: usize = tensors.iter().map(|tensor| tensor.name.len()).sum();
    assert!(
        told + named <= data.len(),
        "{told} + {named} bytes of {}",
        data.len()
    );

    let len = data.len() as u128;
    let mut numbers = 0;
    for tensor in &tensors {
        assert!((1..=4).contains(&tensor.dims.len()), "{tensor:?}");
        let bytes = bytes_of_f32(tensor);
        assert!(
            u128::from(tensor.offset) + bytes <= len,
            "{tensor:?} of {len} bytes"
        );
        numbers += bytes;
    }
    assert!(numbers <= len, "tensors of {numbers} bytes in {len}");
    let mut names: Vec<_> = tensors.iter().map(|tensor| &tensor.name).collect();
    names.dedup();
    assert_eq!(names.len(), tensors.len(), "a tensor twice");
}

/// Bytes in the file that a value stands for, at least.
fn size(value: &Value) -> usize {
    match value {
        Value::Text(text) => 8 + text.len(),
        Value::Array(values) => 12 + values.iter().map(size).sum::<usize>(),
        _ => 1,
    }
}

/// Bytes of a tensor of whole numbers of 32 bits; of others nothing is known here.
fn bytes_of_f32(tensor: &TensorInfo) -> u128 {
    if tensor.format != 0 {
        return 0;
    }
    let product = tensor
        .dims
        .iter()
        .try_fold(4_u128, |bytes, dim| bytes.checked_mul(u128::from(*dim)));
    product.unwrap_or(u128::MAX / 2)
}
