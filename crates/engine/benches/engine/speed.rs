//! Time and memory of the workloads S1 to S5 and S8, fixed work, one core, beside the lower bound of `floor.rs`.
//!
//! Only cycles are timed, not the events that prepare them. Figures go to `target/bench/engine.json`.

use std::time::Duration;

use serde_json::{Value, json};

use crate::floor::Lines;
use crate::meter::{Meter, now, to_f64};
use crate::queue_world::World;
use crate::shapes::{self, Balance, InadmissibleLoad};

/// Result of a run.
struct Row {
    name: &'static str,
    meter: Meter,
    /// Lower bound in nanoseconds per decision, with memory at its best and at its worst.
    floor: (f64, f64),
}

/// Queues in balance: nothing may be allocated.
const STEADY: &str = "steady";

/// Events of S5; after each, cycles run until no Workload makes progress.
const EVENTS: u64 = 2000;

/// Measures everything, prints it and writes it down.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
pub(crate) fn report() -> anyhow::Result<()> {
    let rows = [
        row("s1", drain(shapes::fit(1000, 100)), Lines::of(1000, 100, 0)),
        row("s1_10k", drain(shapes::fit(10_000, 100)), Lines::of(10_000, 100, 0)),
        row("s2", drain(shapes::fair(1000, 100)), Lines::of(1000, 100, 0)),
        row("s3", drain(shapes::deep(false, 100)), Lines::of(1000, 100, 0).of_levels(4)),
        row("s3 fair", drain(shapes::deep(true, 100)), Lines::of(1000, 100, 0).of_levels(4)),
        row("s4", preempt(1000, 50, 11), Lines::of(1000, 51, 50)),
        row(STEADY, balance(1000, 100), Lines::of(1000, 2, 0)),
    ];
    rows.iter().for_each(print);
    churn();
    let own = wake("where queues have their own quota", false);
    let shared = wake("where they compete for it", true);
    let (place, _) = crate::topology::report();
    let bytes = bytes_per_pending(1000, 1000);
    println!("memory  {bytes:.0} bytes per pending Workload");
    let pause = rows.iter().map(|row| row.meter.pause).max().unwrap_or_default();
    let steady = rows.iter().find(|row| row.name == STEADY).map(|row| row.meter.allocations());
    let mut figures = json!({
        "s5_ratio": rounded(own.max(shared)),
        "s6_us": rounded(place),
        "max_pause_ms": rounded(pause.as_secs_f64() * 1e3),
        "bytes_per_pending": rounded(bytes),
        "allocs_per_decision": steady.map(rounded),
    });
    for Row { name, meter, .. } in rows.iter().filter(|row| row.name != STEADY) {
        figures[name.replace(' ', "_")] = json!(meter.rate().round());
    }
    write(&figures)
}

fn row(name: &'static str, meter: Meter, lines: Lines) -> Row {
    Row { name, meter, floor: lines.floor() }
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn print(row: &Row) {
    let Row { name, meter, floor } = row;
    println!(
        "{name:7} {:>8.0} decisions/s, {:>5.0} ns each (floor {:.0} to {:.0}), {:.3} allocations, pauses up \
         to {:.2} ms",
        meter.rate(),
        meter.nanoseconds(),
        floor.0,
        floor.1,
        meter.allocations(),
        meter.pause.as_secs_f64() * 1e3
    );
}

fn rounded(figure: f64) -> f64 {
    (figure * 1000.0).round() / 1000.0
}

fn write(figures: &Value) -> anyhow::Result<()> {
    let folder = crate::folder();
    std::fs::create_dir_all(&folder)?;
    std::fs::write(folder.join("engine.json"), format!("{figures}\n"))?;
    Ok(())
}

fn drain(mut world: World) -> Meter {
    let mut meter = Meter::default();
    shapes::drain(&mut world, &mut |engine| meter.cycle(engine));
    meter
}

fn preempt(queues: usize, candidates: usize, rounds: i64) -> Meter {
    let mut world = shapes::full(queues, candidates);
    let mut meter = Meter::default();
    for priority in 1..=rounds {
        if priority == 2 {
            // The first round fills the buffers that the others use.
            meter = Meter::default();
        }
        shapes::preempt(&mut world, queues, priority, &mut |engine| meter.cycle(engine));
    }
    meter
}

fn balance(queues: usize, turns: usize) -> Meter {
    let mut world = Balance::new(queues);
    let mut meter = Meter::default();
    world.turn(&mut |engine| meter.cycle(engine));
    meter = Meter::default();
    for _ in 0..turns {
        world.turn(&mut |engine| meter.cycle(engine));
    }
    meter
}

/// The cost of a configuration that changes all the time.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn churn() {
    let mut world = shapes::Churn::new(1000, 100);
    let (mut meter, mut changes, mut telling) = (Meter::default(), 0, Duration::ZERO);
    let mut left = true;
    while left {
        let start = now();
        changes += world.change();
        telling += now() - start;
        left = world.decide(&mut |engine| meter.cycle(engine));
    }
    let micros = |time: Duration, count: u64| time.as_secs_f64() * 1e6 / to_f64(count);
    println!(
        "s8       {:>8.0} decisions/s where {changes} quotas change, {:.1} us per change, pauses up to {:.2} ms",
        meter.rate(),
        micros(telling, changes as u64),
        meter.pause.as_secs_f64() * 1e3
    );
}

/// Evaluated per admitted, with a million Workloads of 64 sizes in 16 queues.
#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn wake(how: &str, compete: bool) -> f64 {
    let mut world = InadmissibleLoad::new(16, 1000, compete);
    let mut meter = Meter::default();
    for _ in 0..EVENTS {
        world.finish(&mut |engine| meter.cycle(engine));
    }
    let ratio = to_f64(world.evaluated) / to_f64(world.admitted);
    let micros = meter.time.as_secs_f64() * 1e6 / to_f64(EVENTS);
    println!("s5      {ratio:.3} evaluated per admitted {how}, {micros:.0} us per event");
    ratio
}

/// Bytes that the engine holds for each of so many pending Workloads.
fn bytes_per_pending(queues: usize, per_queue: usize) -> f64 {
    let mut world = None;
    let full = allocation_counter::measure(|| world = Some(shapes::fit(queues, per_queue)));
    drop(world.take());
    let empty = allocation_counter::measure(|| world = Some(shapes::fit(queues, 0)));
    let bytes = full.bytes_current - empty.bytes_current;
    to_f64(bytes.unsigned_abs()) / to_f64((queues * per_queue) as u64)
}
