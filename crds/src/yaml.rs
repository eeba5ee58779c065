//! Files of YAML that an administrator writes.

use serde::de::DeserializeOwned;

/// Decodes a file.
///
/// # Errors
/// If it has no such value: the position and the message. A snippet would repeat lines of the file in a log.
pub fn decode_yaml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_saphyr::from_str(text).map_err(|error| error.without_snippet().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_repeats_no_line_of_the_file() {
        let error = decode_yaml::<bool>("secret: word").expect_err("it is a map");
        assert!(!error.contains("word"), "{error}");
    }
}
