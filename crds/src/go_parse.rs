//! Numbers and booleans in labels and annotations, parsed as Go does.

use std::{
    num::{IntErrorKind, ParseIntError},
    str::FromStr,
};

/// Parses an integer. The error is part of the refusal's message.
pub fn integer(text: &str) -> Result<i64, String> {
    number("Atoi", text)
}

/// Parses an integer of 64 bits. The error is that of Go's `ParseInt`.
pub fn integer_of_64_bits(text: &str) -> Result<i64, String> {
    number("ParseInt", text)
}

/// Parses an integer of 32 bits. The error is that of Go.
pub fn integer_of_32_bits(text: &str) -> Result<i32, String> {
    number("ParseInt", text)
}

fn number<T: FromStr<Err = ParseIntError>>(function: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|error: ParseIntError| {
        let problem = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.{function}: parsing {text:?}: {problem}")
    })
}

/// Parses digits without a sign, such as an index in a label: Rust's own parser takes `+1` as 1, Go's `ParseUint` does not.
pub fn unsigned(text: &str) -> Option<u64> {
    let is_decimal = text.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// Parses a boolean. The error is part of the refusal's message.
pub fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("strconv.ParseBool: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsigned_number_has_digits_only() {
        assert_eq!([unsigned("0"), unsigned("012")], [Some(0), Some(12)]);
        for text in ["", "+1", "-1", "-0", " 1", "1_000", "0x1", "18446744073709551616"] {
            assert_eq!(unsigned(text), None, "{text:?}");
        }
    }
}
