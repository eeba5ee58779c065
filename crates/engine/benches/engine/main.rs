//! Decisions per second of the shapes S1 to S5, fixed work, one core, with allocations and the computed floor.
//!
//! Only cycles are timed, not the events that prepare them. Figures go to `target/bench/engine.json`.

mod floor;
mod house;
mod meter;
mod shapes;

use std::fmt::Write;

use crate::floor::Lines;
use crate::meter::{Meter, to_f64};
use crate::shapes::{Balance, Parked};

/// A line of the report.
struct Row {
    name: &'static str,
    meter: Meter,
    /// Nanoseconds per decision that no engine can beat.
    floor: f64,
}

/// The tables of queues and of what they hold; a queue with its cells and its line takes about this much.
const PER_QUEUE: usize = 1024;
const PER_WORKLOAD: usize = 256;

fn row(name: &'static str, meter: Meter, queues: usize, per_queue: usize, candidates: u64) -> Row {
    let lines = Lines::of(per_queue as u64, candidates);
    let floor = lines.floor(queues * PER_QUEUE, queues * per_queue * PER_WORKLOAD);
    Row { name, meter, floor }
}

fn drain(mut world: house::World) -> Meter {
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

/// Evaluated per admitted, and what the cycles took.
fn wake(queues: usize, per_size: usize, events: usize, compete: bool) -> (f64, Meter) {
    let mut world = Parked::new(queues, per_size, compete);
    let mut meter = Meter::default();
    for _ in 0..events {
        world.finish(&mut |engine| meter.cycle(engine));
    }
    (to_f64(world.evaluated) / to_f64(world.admitted), meter)
}

/// Bytes that the engine holds for each of so many pending Workloads.
fn bytes_per_pending(queues: usize, per_queue: usize) -> f64 {
    let mut world = None;
    let counted = allocation_counter::measure(|| world = Some(shapes::fit(queues, per_queue)));
    drop(world.take());
    let empty = allocation_counter::measure(|| world = Some(shapes::fit(queues, 0)));
    let bytes = counted.bytes_current - empty.bytes_current;
    to_f64(bytes.unsigned_abs()) / to_f64((queues * per_queue) as u64)
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() -> anyhow::Result<()> {
    let rows = [
        row("s1", drain(shapes::fit(1000, 100)), 1000, 100, 0),
        row("s1_10k", drain(shapes::fit(10_000, 100)), 10_000, 100, 0),
        row("s2", drain(shapes::fair(1000, 100)), 1000, 100, 0),
        row("s4", preempt(1000, 50, 11), 1000, 51, 50),
    ];
    let mut json = String::new();
    for Row { name, meter, floor } in &rows {
        println!(
            "{name:7} {:>9.0} decisions/s {:>6.0} ns each (floor {floor:>5.0}), {:.3} allocations, \
             longest pause {:.2} ms",
            meter.rate(),
            meter.nanoseconds(),
            meter.allocations(),
            meter.pause.as_secs_f64() * 1e3
        );
        write!(json, "\"{name}\": {:.0}, ", meter.rate())?;
    }
    let steady = balance(1000, 100);
    println!(
        "steady  {:>9.0} decisions/s, {} allocations in {} decisions",
        steady.rate(),
        steady.allocations,
        steady.decisions
    );
    let (ratio, meter) = wake(16, 1000, 2000, false);
    println!(
        "s5      {ratio:.3} evaluated per admitted, {:.1} us per event",
        meter.time.as_secs_f64() * 1e6 / 2000.0
    );
    let (shared, meter) = wake(16, 100, 2000, true);
    println!(
        "        {shared:.3} where 16 queues compete for what is free, {:.1} us per event",
        meter.time.as_secs_f64() * 1e6 / 2000.0
    );
    let bytes = bytes_per_pending(1000, 1000);
    println!("memory  {bytes:.0} bytes per pending Workload");
    let pause = rows[1].meter.pause.as_secs_f64() * 1e3;
    let target = std::env::var("CARGO_TARGET_DIR");
    let target =
        target.unwrap_or_else(|_| concat!(env!("CARGO_MANIFEST_DIR"), "/../../target").into());
    let folder = std::path::Path::new(&target).join("bench");
    std::fs::create_dir_all(&folder)?;
    let text = format!(
        "{{{json}\"s5_ratio\": {ratio:.3}, \"max_pause_ms\": {pause:.2}, \"bytes_per_pending\": {bytes:.0}, \
         \"allocs_per_decision\": {:.3}}}\n",
        steady.allocations()
    );
    std::fs::write(folder.join("engine.json"), text)?;
    Ok(())
}
