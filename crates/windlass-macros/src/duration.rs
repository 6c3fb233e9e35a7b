//! Durations in attributes: `"250ms"`, `"30s"`, `"10m"`, `"2h"`, `"7d"`.

/// Reads a duration as milliseconds.
pub(crate) fn parse_ms(text: &str) -> Result<u64, String> {
    let digits = text.len() - text.trim_start_matches(|letter: char| letter.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let unit_ms = match unit.trim_start() {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(expected(text)),
    };
    let number: u64 = number.parse().map_err(|_| expected(text))?;
    match number.checked_mul(unit_ms) {
        None => Err(format!("{text:?} is too long")),
        Some(0) => Err(format!("{text:?} must be longer than zero")),
        Some(ms) => Ok(ms),
    }
}

fn expected(text: &str) -> String {
    format!("{text:?} is not a length of time: write a whole number and ms, s, m, h or d, such as \"30s\"")
}

#[cfg(test)]
mod tests {
    use super::parse_ms;

    #[test]
    fn every_unit_is_read() {
        let lengths =
            [("250ms", 250), ("30s", 30_000), ("10m", 600_000), ("2h", 7_200_000), ("1 d", 86_400_000)];
        for (text, ms) in lengths {
            assert_eq!(parse_ms(text), Ok(ms), "{text}");
        }
    }

    #[test]
    fn an_invalid_duration_is_refused_with_an_example() {
        for text in ["", "30", "s", "1.5s", "-1s", "30 sec", "30S"] {
            assert!(parse_ms(text).unwrap_err().contains("such as \"30s\""), "{text}");
        }
        assert!(parse_ms("0s").unwrap_err().contains("longer than zero"));
        assert!(parse_ms("999999999999999999d").unwrap_err().contains("too long"));
    }
}
