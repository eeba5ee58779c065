//! Text out of the bytes of a log.

/// The longest line that is kept until its end.
const LONGEST: usize = 1 << 20;

/// The text of one log. Beside other logs every line has a prefix, and is printed once it is whole.
#[derive(Debug, Default)]
pub struct LogText {
    prefix: Option<String>,
    pending: Vec<u8>,
}

impl LogText {
    /// A log with this prefix before each line.
    #[must_use]
    pub fn new(prefix: Option<String>) -> Self {
        Self { prefix, pending: Vec::new() }
    }

    /// Takes bytes that have arrived. Returns the text that can be printed.
    pub fn add(&mut self, bytes: &[u8]) -> String {
        self.pending.extend_from_slice(bytes);
        let end = match &self.prefix {
            Some(_) => match self.pending.iter().rposition(|byte| *byte == b'\n') {
                Some(at) => at + 1,
                None if self.pending.len() > LONGEST => self.pending.len(),
                None => 0,
            },
            None => whole(&self.pending),
        };
        let bytes: Vec<u8> = self.pending.drain(..end).collect();
        self.text(&bytes)
    }

    /// The rest, at the end of the log.
    pub fn end(&mut self) -> String {
        let bytes = std::mem::take(&mut self.pending);
        self.text(&bytes)
    }

    fn text(&self, bytes: &[u8]) -> String {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let Some(prefix) = &self.prefix else { return text };
        text.lines().map(|line| format!("{prefix}{line}\n")).collect()
    }
}

/// The bytes before a character that has not arrived as a whole.
fn whole(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        // Later ones may be cut off as well.
        Err(error) => {
            let invalid = error.valid_up_to() + error.error_len().unwrap_or_default();
            invalid + bytes.get(invalid..).map_or(0, whole)
        }
        Ok(_) => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_log_is_printed_as_it_arrives() {
        let mut text = LogText::new(None);
        let umlaut = "ü".as_bytes();
        assert_eq!(text.add(b"50 %"), "50 %");
        assert_eq!(text.add(&umlaut[..1]), "");
        assert_eq!(text.add(&umlaut[1..]), "ü");
        // No text, and then half of a character.
        assert_eq!(text.add(&[0xff, b'a', umlaut[0]]), "\u{fffd}a");
        assert_eq!(text.end(), "\u{fffd}");
        assert_eq!(text.end(), "");
    }

    #[test]
    fn lines_beside_other_logs_are_whole_and_have_a_prefix() {
        let mut text = LogText::new(Some("[a] ".to_owned()));
        assert_eq!(text.add(b"one\ntwo\nth"), "[a] one\n[a] two\n");
        assert_eq!(text.add(b"ree"), "");
        assert_eq!(text.end(), "[a] three\n");
        let long = text.add(&vec![b'x'; LONGEST + 1]);
        assert_eq!(long.len(), LONGEST + 1 + "[a] \n".len());
    }
}
