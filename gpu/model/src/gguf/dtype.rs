//! GGML's storage formats: their numbers in files, and the size of a tensor.

use engine::DType;

/// The format with GGML's number `id`, if this project has kernels for it.
pub(crate) fn dtype_of(id: u32) -> Option<DType> {
    Some(match id {
        0 => DType::F32,
        1 => DType::F16,
        2 => DType::Q4_0,
        3 => DType::Q4_1,
        6 => DType::Q5_0,
        7 => DType::Q5_1,
        8 => DType::Q8_0,
        12 => DType::Q4K,
        14 => DType::Q6K,
        30 => DType::Bf16,
        _ => return None,
    })
}

/// Bytes of a tensor with these dimensions (the first is the length of a row), or `None` where a row is not a whole number of
/// blocks or the size overflows.
pub(crate) fn byte_len(dtype: DType, dims: &[u64]) -> Option<u64> {
    let (numbers, bytes) = dtype.block();
    let (numbers, bytes) = (numbers as u64, bytes as u64);
    let (&columns, outer) = dims.split_first()?;
    if columns % numbers != 0 {
        return None;
    }
    let row = (columns / numbers).checked_mul(bytes)?;
    outer.iter().try_fold(row, |len, &d| len.checked_mul(d))
}
