//! A CPU profile in the protobuf format of pprof, which `go tool pprof` reads.
//!
//! Source of the numbers of fields: profile.proto of github.com/google/pprof.

use std::collections::BTreeMap;

/// A CPU profile.
#[derive(Clone, Debug)]
pub(super) struct CpuProfile {
    /// Nanoseconds since 1970.
    pub(super) began: u64,
    /// Nanoseconds.
    pub(super) lasted: u64,
    /// Nanoseconds of CPU from one sample to the next.
    pub(super) period: u64,
    /// What was seen.
    pub(super) stacks: Vec<StackSample>,
    /// The calls at each address, the innermost first: more than one if functions were inlined.
    pub(super) calls: BTreeMap<u64, Vec<SourceCall>>,
    /// The program in memory, by which a tool finds names that the program itself does not have.
    pub(super) program: Option<ProgramMapping>,
}

/// How often a stack was seen.
#[derive(Clone, Debug)]
pub(super) struct StackSample {
    /// The innermost first.
    pub(super) addresses: Vec<u64>,
    pub(super) count: u64,
    pub(super) thread: String,
}

/// A function at a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceCall {
    pub(super) function: String,
    pub(super) file: String,
    pub(super) line: u32,
}

/// Where the code of the program is in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProgramMapping {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) offset: u64,
    pub(super) path: String,
}

/// The profile as bytes.
pub(super) fn encode(profile: &CpuProfile) -> Vec<u8> {
    let (mut texts, mut message) = (ProfileTexts::default(), ProtoMessage::default());
    let (samples, cpu) = (("samples", "count"), ("cpu", "nanoseconds"));
    for (kind, unit) in [samples, cpu] {
        message.message(1, &value_type(&mut texts, kind, unit));
    }
    let locations: BTreeMap<u64, u64> = profile.calls.keys().copied().zip(1..).collect();
    for stack in &profile.stacks {
        message.message(2, &sample(&mut texts, profile.period, &locations, stack));
    }
    if let Some(program) = &profile.program {
        message.message(3, &mapping(&mut texts, program));
    }
    let mut functions = BTreeMap::new();
    for ((address, calls), id) in profile.calls.iter().zip(1..) {
        let within = profile.program.as_ref().is_some_and(|program| program.has(*address));
        let mut location = ProtoMessage::default();
        location.number(1, id).number(2, within.into()).number(3, *address);
        for call in calls {
            let name = (texts.number(&call.function), texts.number(&call.file));
            let next = functions.len() as u64 + 1;
            let mut line = ProtoMessage::default();
            line.number(1, *functions.entry(name).or_insert(next)).number(2, call.line.into());
            location.message(4, &line);
        }
        message.message(4, &location);
    }
    for ((name, file), id) in functions {
        let mut function = ProtoMessage::default();
        // Without a system name: tools would shorten a name that equals it, as one of C++.
        function.number(1, id).number(2, name).number(4, file);
        message.message(5, &function);
    }
    let period = value_type(&mut texts, cpu.0, cpu.1);
    message.number(9, profile.began).number(10, profile.lasted);
    message.message(11, &period).number(12, profile.period);
    texts.in_order().for_each(|text| message.bytes(6, text.as_bytes()));
    message.0
}

fn value_type(texts: &mut ProfileTexts, kind: &str, unit: &str) -> ProtoMessage {
    let mut message = ProtoMessage::default();
    message.number(1, texts.number(kind)).number(2, texts.number(unit));
    message
}

fn sample(
    texts: &mut ProfileTexts,
    period: u64,
    locations: &BTreeMap<u64, u64>,
    stack: &StackSample,
) -> ProtoMessage {
    let mut message = ProtoMessage::default();
    for id in stack.addresses.iter().filter_map(|address| locations.get(address)) {
        message.number(1, *id);
    }
    message.number(2, stack.count).number(2, stack.count.saturating_mul(period));
    let mut label = ProtoMessage::default();
    label.number(1, texts.number("thread")).number(2, texts.number(&stack.thread));
    message.message(3, &label);
    message
}

fn mapping(texts: &mut ProfileTexts, program: &ProgramMapping) -> ProtoMessage {
    let mut message = ProtoMessage::default();
    message.number(1, 1).number(2, program.start).number(3, program.end);
    message.number(4, program.offset).number(5, texts.number(&program.path));
    message
}

impl ProgramMapping {
    fn has(&self, address: u64) -> bool {
        (self.start..self.end).contains(&address)
    }
}

/// Texts by number, in the order in which they come up. The first one is empty.
struct ProfileTexts(BTreeMap<String, u64>);

impl Default for ProfileTexts {
    fn default() -> Self {
        Self(BTreeMap::from([(String::new(), 0)]))
    }
}

impl ProfileTexts {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.0.get(text) {
            return *number;
        }
        let next = self.0.len() as u64;
        self.0.insert(text.to_owned(), next);
        next
    }

    fn in_order(&self) -> impl Iterator<Item = &str> {
        let by_number: BTreeMap<u64, &str> =
            self.0.iter().map(|(text, number)| (*number, text.as_str())).collect();
        by_number.into_values()
    }
}

/// A message of protobuf.
#[derive(Default)]
struct ProtoMessage(Vec<u8>);

impl ProtoMessage {
    fn number(&mut self, field: u64, number: u64) -> &mut Self {
        self.varint(field << 3);
        self.varint(number);
        self
    }

    fn bytes(&mut self, field: u64, bytes: &[u8]) {
        self.varint(field << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u64, message: &Self) -> &mut Self {
        self.bytes(field, &message.0);
        self
    }

    /// Seven bits per byte, the lowest first.
    fn varint(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.0.push(number.to_le_bytes()[0] | 0x80);
            number >>= 7;
        }
        self.0.push(number.to_le_bytes()[0]);
    }
}
