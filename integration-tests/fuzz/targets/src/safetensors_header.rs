//! The header of a file of safetensors, which nobody has vouched for.

use model::Safetensors;

/// The bytes as a whole file.
///
/// # Panics
/// Where tensors of a file that is taken do not lie behind its header, one behind the other, and fill it; one is told twice; its bytes
/// are not those of its numbers; or a refusal says nothing.
pub fn safetensors_header(data: &[u8]) {
    let tensors = match Safetensors::check(data) {
        Ok(tensors) => tensors,
        Err(what) => return assert!(!what.is_empty()),
    };
    let header = u64::from_le_bytes(data[..8].try_into().unwrap());
    let mut at = 8 + header;
    for tensor in &tensors {
        assert_eq!(tensor.offset, at, "{tensor:?}");
        at += tensor.len;
        let Ok(dtype) = tensor.dtype else { continue };
        let (_, bytes) = dtype.block();
        let numbers = tensor
            .dims
            .iter()
            .try_fold(1_u128, |product, dim| product.checked_mul(*dim as u128));
        assert_eq!(
            numbers.map(|n| n * bytes as u128),
            Some(u128::from(tensor.len)),
            "{tensor:?}"
        );
    }
    assert_eq!(at, data.len() as u64);
    let mut names: Vec<_> = tensors.iter().map(|tensor| &tensor.name).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), tensors.len(), "a tensor twice");
}
