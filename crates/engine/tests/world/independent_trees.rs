//! Two worlds in one engine, their lines interleaved in different ways.

use crate::world::{World, WorldStep};

/// The lines of a world between its cycles.
pub(crate) fn segments(
    settings: &str,
    objects: &[String],
    steps: &[WorldStep],
) -> Vec<Vec<String>> {
    let mut world = World::new(settings, objects);
    for step in steps {
        world.play(step);
    }
    let lines = world.lines.iter().skip(1).cloned().collect::<Vec<_>>();
    lines.split(|line| line == "cycle").map(<[String]>::to_vec).collect()
}

/// The same lines about other objects: `q1` becomes `x1`, `c1` becomes `y1`, `w1` becomes `v1`.
pub(crate) fn renamed(segments: &[Vec<String>]) -> Vec<Vec<String>> {
    segments.iter().map(|lines| lines.iter().map(|line| rename(line)).collect()).collect()
}

fn rename(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((key, value)) => format!("{key}={}", rename_word(value)),
        None => rename_word(word),
    });
    words.collect::<Vec<_>>().join(" ")
}

fn rename_word(word: &str) -> String {
    let mut letters = word.chars();
    let first = match (letters.next(), letters.next(), letters.next()) {
        (Some('q'), Some('0'..='9'), None) => "x",
        (Some('c'), Some('0'..='9'), None) => "y",
        (Some('w'), Some('0'..='9'), None) => "v",
        _ => return word.to_owned(),
    };
    format!("{first}{}", &word[1..])
}

/// Merges two lists: `picks`, used cyclically, says which list continues while both can.
fn merged<'a>(one: &'a [String], other: &'a [String], picks: &[bool]) -> Vec<&'a String> {
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    let mut picks = picks.iter().cycle();
    let mut all = Vec::new();
    while one.peek().is_some() || other.peek().is_some() {
        let first = picks.next().copied().unwrap_or_default();
        let next = if first {
            one.next().or_else(|| other.next())
        } else {
            other.next().or_else(|| one.next())
        };
        all.extend(next);
    }
    all
}

/// The trace of both worlds in one engine.
pub(crate) fn trace(
    settings: &str,
    one: &[Vec<String>],
    other: &[Vec<String>],
    picks: &[bool],
) -> String {
    let mut world = World::new(settings, &[]);
    let nothing = Vec::new();
    for index in 0..one.len().max(other.len()) {
        let at = |all: &'_ [Vec<String>]| all.get(index).unwrap_or(&nothing).clone();
        for line in merged(&at(one), &at(other), picks) {
            world.say(line);
        }
        world.play(&WorldStep::Cycle);
    }
    world.player.trace
}
