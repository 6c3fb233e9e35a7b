//! The `%` sequences of an address.

/// Decodes the `%` sequences of a text.
///
/// # Errors
/// A sentence that quotes the text: it has an invalid `%` sequence, or its bytes are not UTF-8.
pub fn decoded(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        match (digit(rest.next()), digit(rest.next())) {
            (Some(high), Some(low)) => bytes.push((high * 16 + low) as u8),
            _ => return Err(format!("{text:?} has a broken % sequence")),
        }
    }
    String::from_utf8(bytes).map_err(|_| format!("{text:?} is not text"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_sequences_are_decoded_and_invalid_ones_refused() {
        assert_eq!(decoded("/a%20b/%c3%a4.crt"), Ok("/a b/ä.crt".to_owned()));
        for broken in ["%", "%4", "%zz", "%ff"] {
            assert!(decoded(broken).is_err(), "{broken}");
        }
    }
}
