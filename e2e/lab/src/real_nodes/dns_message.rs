//! Messages of DNS (RFC 1035), as far as a resolver of pods sends them: one question over UDP, answered with IPv4 addresses.

use std::net::Ipv4Addr;

/// The length of a message's header.
const HEADER: usize = 12;

/// Messages over UDP have at most 512 bytes, of which a name takes up to 255.
const ADDRESSES_AT_MOST: usize = 14;

/// Answers change with Services, so that they are not kept for long.
const SECONDS_TO_LIVE: u32 = 2;

/// The type of a question for IPv4 addresses.
const A: u16 = 1;

/// The class of the internet.
const IN: u16 = 1;

/// Flags: the message is an answer, and the server knows the zone.
const ANSWER: u16 = 0x8400;

/// Flags: the client wants other servers to be asked.
const RECURSION: u16 = 0x0100;

/// A question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DnsQuestion {
    id: u16,
    flags: u16,
    /// The name in small letters, without a dot at its end.
    pub name: String,
    kind: u16,
    /// The question as it was sent. An answer repeats it.
    sent: Vec<u8>,
}

/// What is known about a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DnsAnswer {
    /// Its addresses.
    Addresses(Vec<Ipv4Addr>),
    /// There is no such name.
    NoSuchName,
    /// It could not be found out; the client asks again.
    Failed,
}

impl DnsQuestion {
    /// The question of a message; none if it is something else.
    #[must_use]
    pub fn parse(message: &[u8]) -> Option<Self> {
        let number = |at: usize| {
            let bytes = message.get(at..at + 2)?;
            Some(u16::from_be_bytes(bytes.try_into().ok()?))
        };
        let (id, flags, questions) = (number(0)?, number(2)?, number(4)?);
        // An answer, or another operation than a query.
        if flags & 0xf800 != 0 || questions != 1 {
            return None;
        }
        let (labels, end) = labels(message)?;
        let (kind, class) = (number(end)?, number(end + 2)?);
        let sent = message.get(HEADER..end + 4)?.to_vec();
        let name = labels.join(".").to_ascii_lowercase();
        (class == IN).then_some(Self { id, flags, name, kind, sent })
    }

    /// The message that answers it.
    #[must_use]
    pub fn answer(&self, answer: &DnsAnswer) -> Vec<u8> {
        let (code, addresses) = match answer {
            // The name exists, and has nothing of another type.
            DnsAnswer::Addresses(_) if self.kind != A => (0, &[][..]),
            DnsAnswer::Addresses(all) => (0, all.get(..ADDRESSES_AT_MOST).unwrap_or(all)),
            DnsAnswer::Failed => (2, &[][..]),
            DnsAnswer::NoSuchName => (3, &[][..]),
        };
        let flags = ANSWER | self.flags & RECURSION | code;
        let count = u16::try_from(addresses.len()).unwrap_or_default();
        let mut message = Vec::new();
        for number in [self.id, flags, 1, count, 0, 0] {
            message.extend(number.to_be_bytes());
        }
        message.extend(&self.sent);
        for address in addresses {
            // The name is that of the question, 12 bytes from the start.
            message.extend([0xc0, 0x0c]);
            message.extend([A, IN].into_iter().flat_map(u16::to_be_bytes));
            message.extend(SECONDS_TO_LIVE.to_be_bytes());
            message.extend(4_u16.to_be_bytes());
            message.extend(address.octets());
        }
        message
    }
}

/// The labels of the name after the header, and where they end.
fn labels(message: &[u8]) -> Option<(Vec<String>, usize)> {
    let (mut labels, mut at) = (Vec::new(), HEADER);
    loop {
        let length = usize::from(*message.get(at)?);
        at += 1;
        match length {
            0 => return Some((labels, at)),
            1..=63 => labels.push(String::from_utf8_lossy(message.get(at..at + length)?).into()),
            // A reference to another name, which a question does not need.
            _ => return None,
        }
        at += length;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str, kind: u16) -> Vec<u8> {
        let mut message = vec![0xab, 0xcd, 0x01, 0x00, 0, 1, 0, 0, 0, 0, 0, 0];
        for label in name.split('.') {
            message.push(label.len() as u8);
            message.extend(label.as_bytes());
        }
        message.push(0);
        message.extend([kind, IN].into_iter().flat_map(u16::to_be_bytes));
        message
    }

    #[test]
    fn a_question_is_answered_with_addresses_of_its_name() {
        let sent = query("Head.ns.svc.cluster.local", A);
        let question = DnsQuestion::parse(&sent).unwrap();
        assert_eq!(question.name, "head.ns.svc.cluster.local");
        let addresses = vec![Ipv4Addr::new(10, 0, 0, 7), Ipv4Addr::new(10, 0, 0, 8)];
        let answer = question.answer(&DnsAnswer::Addresses(addresses));
        assert_eq!(&answer[..12], [0xab, 0xcd, 0x85, 0x00, 0, 1, 0, 2, 0, 0, 0, 0]);
        assert_eq!(&answer[12..sent.len()], &sent[12..], "the question is repeated");
        let first = [0xc0, 0x0c, 0, 1, 0, 1, 0, 0, 0, 2, 0, 4, 10, 0, 0, 7];
        assert_eq!(&answer[sent.len()..sent.len() + 16], first);
        assert_eq!(answer.len(), sent.len() + 32);
    }

    #[test]
    fn an_unknown_name_another_type_and_a_failure_have_codes_of_their_own() {
        let code = |kind: u16, answer: &DnsAnswer| {
            let answer = DnsQuestion::parse(&query("a.b", kind)).unwrap().answer(answer);
            (answer[3] & 0xf, answer[7])
        };
        let known = DnsAnswer::Addresses(vec![Ipv4Addr::LOCALHOST]);
        assert_eq!(code(28, &known), (0, 0));
        assert_eq!(code(A, &known), (0, 1));
        assert_eq!(code(A, &DnsAnswer::NoSuchName), (3, 0));
        assert_eq!(code(A, &DnsAnswer::Failed), (2, 0));
        let many = DnsAnswer::Addresses(vec![Ipv4Addr::LOCALHOST; 100]);
        let longest = format!("{0}.{0}.{0}.{1}", "a".repeat(63), "b".repeat(61));
        let answer = DnsQuestion::parse(&query(&longest, A)).unwrap().answer(&many);
        assert!(answer.len() <= 512, "{}", answer.len());
    }

    #[test]
    fn what_is_no_question_has_no_answer() {
        let whole = query("a.b", A);
        for length in 0..whole.len() {
            assert_eq!(DnsQuestion::parse(&whole[..length]), None, "{length} bytes");
        }
        let mut answer = whole.clone();
        answer[2] |= 0x80;
        let mut reference = whole.clone();
        reference[12] = 0xc0;
        let mut two = whole;
        two[5] = 2;
        for wrong in [answer, reference, two] {
            assert_eq!(DnsQuestion::parse(&wrong), None);
        }
    }
}
