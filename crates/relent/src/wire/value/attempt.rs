//! How the number of an attempt stands in headers, each in its way.

pub(in crate::wire) fn from_1(text: &str) -> Option<u32> {
    number(text).filter(|attempt| *attempt > 0)
}

pub(in crate::wire) fn from_0(text: &str) -> Option<u32> {
    number(text).map(|before| before.saturating_add(1))
}

pub(in crate::wire) fn read_aws(text: &str) -> Option<u32> {
    from_1(text.split(';').find_map(|part| part.trim().strip_prefix("attempt="))?)
}

pub(in crate::wire) fn write_from_1(attempt: u32) -> Option<String> {
    Some(attempt.to_string())
}

pub(in crate::wire) fn write_from_0(attempt: u32) -> Option<String> {
    Some((attempt - 1).to_string())
}

pub(in crate::wire) fn write_previous(attempt: u32) -> Option<String> {
    (attempt > 1).then(|| (attempt - 1).to_string())
}

pub(in crate::wire) fn write_aws(attempt: u32) -> Option<String> {
    Some(format!("attempt={attempt}"))
}

fn number(text: &str) -> Option<u32> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u32, |n, byte| {
        byte.is_ascii_digit().then(|| n.saturating_mul(10).saturating_add(u32::from(byte - b'0')))
    })
}
