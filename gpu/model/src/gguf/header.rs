//! The header: metadata, then the list of tensors.

use std::collections::BTreeMap;
use std::io::Read;

use super::dtype::{byte_len, dtype_of};
use super::reader::Reader;
use super::{GgufError, TensorInfo, Value, limits};

/// A checked header.
#[derive(Debug)]
pub(super) struct Header {
    pub(super) metadata: BTreeMap<String, Value>,
    pub(super) tensors: BTreeMap<String, TensorInfo>,
}

/// Reads a header from the start of a file of `len` bytes.
pub(super) fn read(source: impl Read, len: u64) -> Result<Header, GgufError> {
    let mut r = Reader::new(source, len);
    check_magic(&mut r)?;
    let tensor_count = r.count("tensors", 24, limits::ENTRIES)?;
    let entries = r.count("metadata entries", 13, limits::ENTRIES)?;
    let mut budget = limits::ELEMENTS;
    let mut metadata = BTreeMap::new();
    for _ in 0..entries {
        let key = r.text(limits::NAME_BYTES)?;
        let kind = r.u32()?;
        let value = value(&mut r, kind, limits::DEPTH, &mut budget)?;
        if metadata.insert(key.clone(), value).is_some() {
            return Err(r.damaged(format!("metadata `{key}` twice")));
        }
    }
    let mut list = Vec::new();
    for _ in 0..tensor_count {
        list.push(tensor(&mut r)?);
    }
    let start = data_start(&r, &metadata)?;
    let mut tensors = BTreeMap::new();
    // What could be loaded is no more than what the file holds.
    let mut room = len.saturating_sub(start);
    for mut info in list {
        let size = place(&r, &mut info, start, len)?;
        room = room
            .checked_sub(size)
            .ok_or_else(|| r.damaged(format!("tensor `{}` lies on top of others", info.name)))?;
        if let Some(old) = tensors.insert(info.name.clone(), info) {
            return Err(r.damaged(format!("tensor `{}` twice", old.name)));
        }
    }
    Ok(Header { metadata, tensors })
}

fn check_magic(r: &mut Reader<impl Read>) -> Result<(), GgufError> {
    if r.left() < 24 || r.bytes::<4>()? != *b"GGUF" {
        return Err(GgufError::NotGguf(
            "it does not begin with the letters GGUF".to_owned(),
        ));
    }
    match r.u32()? {
        2 | 3 => Ok(()),
        v if matches!(v.swap_bytes(), 2 | 3) => Err(GgufError::NotGguf(
            "big-endian files are not supported".to_owned(),
        )),
        v => Err(GgufError::NotGguf(format!("version {v}"))),
    }
}

/// A metadata value of GGUF's type `kind`.
fn value(r: &mut Reader<impl Read>, kind: u32, depth: u32, budget: &mut u64) -> Result<Value, GgufError> {
    Ok(match kind {
        0 => Value::Unsigned(r.bytes::<1>()?[0].into()),
        1 => Value::Signed(i8::from_le_bytes(r.bytes()?).into()),
        2 => Value::Unsigned(u16::from_le_bytes(r.bytes()?).into()),
        3 => Value::Signed(i16::from_le_bytes(r.bytes()?).into()),
        4 => Value::Unsigned(r.u32()?.into()),
        5 => Value::Signed(i32::from_le_bytes(r.bytes()?).into()),
        6 => Value::Float(f32::from_le_bytes(r.bytes()?).into()),
        7 => match r.bytes::<1>()?[0] {
            0 => Value::Bool(false),
            1 => Value::Bool(true),
            b => return Err(r.damaged(format!("{b} where a truth value should be"))),
        },
        8 => Value::Text(r.text(limits::TEXT_BYTES)?),
        9 => array(r, depth, budget)?,
        10 => Value::Unsigned(r.u64()?),
        11 => Value::Signed(i64::from_le_bytes(r.bytes()?)),
        12 => Value::Float(f64::from_le_bytes(r.bytes()?)),
        _ => return Err(r.damaged(format!("metadata type {kind}"))),
    })
}

fn array(r: &mut Reader<impl Read>, depth: u32, budget: &mut u64) -> Result<Value, GgufError> {
    if depth == 0 {
        return Err(r.damaged("arrays nested too deep"));
    }
    let kind = r.u32()?;
    let least = match kind {
        0 | 1 | 7 => 1,
        2 | 3 => 2,
        4..=6 => 4,
        8 | 10..=12 => 8,
        9 => 12,
        _ => return Err(r.damaged(format!("array of metadata type {kind}"))),
    };
    let n = r.count("array elements", least, *budget)?;
    *budget -= n;
    let mut out = Vec::new();
    for _ in 0..n {
        out.push(value(r, kind, depth - 1, budget)?);
    }
    Ok(Value::Array(out))
}

/// One entry of the tensor list; its offset is still relative to the start of the data.
fn tensor(r: &mut Reader<impl Read>) -> Result<TensorInfo, GgufError> {
    let name = r.text(limits::NAME_BYTES)?;
    let n = r.u32()?;
    if n == 0 || n > limits::DIMENSIONS {
        return Err(r.damaged(format!("tensor `{name}` has {n} dimensions")));
    }
    let mut dims = Vec::new();
    for _ in 0..n {
        dims.push(r.u64()?);
    }
    Ok(TensorInfo {
        name,
        dims,
        format: r.u32()?,
        offset: r.u64()?,
    })
}

/// Where tensor data begins.
fn data_start(r: &Reader<impl Read>, metadata: &BTreeMap<String, Value>) -> Result<u64, GgufError> {
    let alignment = metadata
        .get("general.alignment")
        .map_or(Some(32), Value::as_unsigned);
    match alignment {
        Some(a) if a.is_power_of_two() && a <= limits::ALIGNMENT => Ok(r.at().next_multiple_of(a)),
        _ => Err(r.damaged("general.alignment is not a power of two up to 2^20")),
    }
}

/// Makes the offset absolute and checks that the tensor lies inside the file. A tensor of an unknown format only has to begin there:
/// it cannot be read anyway. Gives its size.
fn place(r: &Reader<impl Read>, info: &mut TensorInfo, start: u64, len: u64) -> Result<u64, GgufError> {
    let size = match dtype_of(info.format) {
        Some(dtype) => byte_len(dtype, &info.dims),
        None => Some(0),
    };
    let offset = info.offset.checked_add(start);
    let end = offset.zip(size).and_then(|(o, s)| o.checked_add(s));
    match (offset, size, end) {
        (Some(offset), Some(size), Some(end)) if end <= len => {
            info.offset = offset;
            Ok(size)
        }
        _ => Err(r.damaged(format!(
            "tensor `{}` ({:?}) does not lie inside the file",
            info.name, info.dims
        ))),
    }
}
