//! Frames from another node.

use wire::{Header, Hello, HelloReply, Message, ToGateway, ToWorker, VERSION};

/// The bytes as they came, and then with a header that is right but for the kind, so that the payload is looked at.
///
/// # Panics
/// Where a frame is taken by two types, changes on its way out and in again, depends on where in memory it lies, or becomes a
/// message far longer than itself.
pub fn wire_frame(data: &[u8]) {
    decode_as_all(data);
    if let Some(frame) = repaired(data) {
        decode_as_all(&frame);
    }
}

/// The frame with this version, and the length that it has. The kind is as it came.
pub(crate) fn repaired(data: &[u8]) -> Option<Vec<u8>> {
    let payload = data.get(Header::BYTES..)?;
    let header = Header {
        version: VERSION,
        kind: u16::from_le_bytes([data[6], data[7]]),
        length: u32::try_from(payload.len()).ok()?,
    };
    Some([&header.to_bytes(), payload].concat())
}

fn decode_as_all(frame: &[u8]) {
    let taken = [
        decode::<Hello>(frame).is_some(),
        decode::<HelloReply>(frame).is_some(),
        decode::<ToWorker>(frame).is_some(),
        decode::<ToGateway>(frame).is_some(),
    ];
    assert!(taken.iter().filter(|taken| **taken).count() <= 1, "{taken:?}");
}

/// The message in a frame, after everything that is demanded of it was checked.
pub(crate) fn decode<M: Message + PartialEq>(frame: &[u8]) -> Option<M> {
    let message = M::decode_frame(VERSION, frame);
    let moved = [&[0], frame].concat();
    let elsewhere = M::decode_frame(VERSION, &moved[1..]);
    let message = match (message, elsewhere) {
        (Ok(here), Ok(there)) => {
            assert_eq!(here, there, "it depends on where in memory it lies");
            here
        }
        (Err(_), Err(_)) => return None,
        (here, there) => panic!("it depends on where in memory it lies: {here:?} and {there:?}"),
    };
    let kind = message.kind();
    assert_eq!(frame[6..8], kind.number().to_le_bytes(), "{kind}");
    let again = message.encode(VERSION).unwrap();
    // An archive could be packed more tightly than ours; it cannot tell the same bytes again and again.
    let most = 2 * frame.len() + 64;
    let len = again.as_bytes().len();
    assert!(len <= most, "{kind}: {} bytes became {len}", frame.len());
    let back = M::decode_frame(VERSION, again.as_bytes()).unwrap();
    assert_eq!(back, message, "{kind}");
    assert_eq!(
        back.encode(VERSION).unwrap().as_bytes(),
        again.as_bytes(),
        "{kind}"
    );
    Some(message)
}
