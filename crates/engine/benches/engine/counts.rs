//! Instructions, allocations and evaluations of the workloads S1 to S8, at one size and at four times that size.
//!
//! Unlike times they are the same on every machine, so they are compared with `counts.txt`: decisions, evaluations
//! and allocations exactly, instructions within [`TOLERANCE`]. Work that is linear in the size may grow [`LINEAR`]
//! times from one size to the next, work that should not depend on it [`CONSTANT`] times.
//!
//! The program runs itself under callgrind, which counts within [`cycle_that_counts`] and writes its counts at
//! every [`end_of_shape`].

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, ensure};
use engine::{AcceptAll, CycleEntry, Engine, Time};

use crate::meter::to_f64;
use crate::queue_world::World;
use crate::shapes::{self, InadmissibleLoad};

/// Says that this is the run that is counted.
pub(crate) const COUNTED: &str = "counted";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/counts.txt");
const TOLERANCE: f64 = 0.03;
const LINEAR: f64 = 4.4;
const CONSTANT: f64 = 1.3;

const HEAD: &str = "\
# What the engine does for fixed work, checked by `make counts`. Changed on purpose? `make recount` writes it again; say
# in the commit why. Instructions may differ by 3 %, the rest by nothing.
# shape       size  admitted evaluated allocations instructions
";

/// A shape that is run at a size and at four times the size.
struct BenchmarkLoad {
    name: &'static str,
    size: usize,
    slope: f64,
    run: fn(usize, &mut Tally),
}

const SHAPES: [BenchmarkLoad; 6] = [
    BenchmarkLoad {
        name: "s1",
        size: 250,
        slope: LINEAR,
        run: |queues, tally| drain(shapes::fit(queues, 4), tally),
    },
    BenchmarkLoad {
        name: "s2",
        size: 250,
        slope: LINEAR,
        run: |queues, tally| drain(shapes::fair(queues, 4), tally),
    },
    BenchmarkLoad {
        name: "s4",
        size: 50,
        slope: LINEAR,
        run: |queues, tally| preempt(queues, 50, tally),
    },
    BenchmarkLoad {
        name: "s4-victims",
        size: 50,
        slope: LINEAR,
        run: |candidates, tally| preempt(10, candidates, tally),
    },
    BenchmarkLoad {
        name: "s5",
        size: 5,
        slope: CONSTANT,
        run: |per_size, tally| wake(per_size, false, tally),
    },
    BenchmarkLoad {
        name: "s5-shared",
        size: 5,
        slope: CONSTANT,
        run: |per_size, tally| wake(per_size, true, tally),
    },
];

/// Counted things of one run.
#[derive(Debug, Default, PartialEq, Eq)]
struct Tally {
    admitted: u64,
    evaluated: u64,
    allocations: u64,
    instructions: u64,
}

impl Tally {
    /// A cycle of which everything counts.
    fn cycle<'a>(&mut self, engine: &'a mut Engine) -> &'a [CycleEntry] {
        let allocations = allocation_counter::measure(|| cycle_that_counts(engine)).count_total;
        let entries = engine.entries();
        let got_it =
            |one: &&CycleEntry| matches!(one.outcome, engine::CycleOutcome::Reserved { .. });
        self.admitted += entries.iter().filter(got_it).count() as u64;
        self.evaluated += entries.len() as u64;
        self.allocations += allocations;
        entries
    }
}

#[inline(never)]
fn cycle_that_counts(engine: &mut Engine) {
    engine.cycle(Time(0), &mut AcceptAll);
}

/// Something to do, so that there is such a function.
#[inline(never)]
fn end_of_shape(tally: &Tally) -> u64 {
    std::hint::black_box(tally.evaluated)
}

fn drain(mut world: World, tally: &mut Tally) {
    shapes::drain(&mut world, &mut |engine| tally.cycle(engine));
}

/// The first round fills the buffers that the second uses.
fn preempt(queues: usize, candidates: usize, tally: &mut Tally) {
    let mut world = shapes::full(queues, candidates);
    shapes::preempt(&mut world, queues, 1, &mut |engine| engine.cycle(Time(0), &mut AcceptAll));
    shapes::preempt(&mut world, queues, 2, &mut |engine| tally.cycle(engine));
}

fn wake(per_size: usize, compete: bool, tally: &mut Tally) {
    let mut world = InadmissibleLoad::new(4, per_size, compete);
    for _ in 0..50 {
        world.finish(&mut |engine| tally.cycle(engine));
    }
}

/// The run that is counted: prints what callgrind does not see.
#[expect(clippy::print_stdout, reason = "the run that counts reads it")]
pub(crate) fn run() {
    for (shape, size) in sizes() {
        let mut tally = Tally::default();
        (shape.run)(size, &mut tally);
        end_of_shape(&tally);
        println!("{} {} {}", tally.admitted, tally.evaluated, tally.allocations);
    }
}

fn sizes() -> impl Iterator<Item = (&'static BenchmarkLoad, usize)> {
    SHAPES.iter().flat_map(|shape| [(shape, shape.size), (shape, 4 * shape.size)])
}

/// Counts, and compares with what is written down; with `RECOUNT` set, writes it down.
pub(crate) fn check() -> anyhow::Result<()> {
    let found = count()?;
    check_slopes(&found)?;
    if std::env::var_os("RECOUNT").is_some() {
        return std::fs::write(FILE, text(&found)).context("writing the counts");
    }
    let known = std::fs::read_to_string(FILE).context("reading the counts")?;
    let known: Vec<Tally> = known.lines().filter_map(parse).collect();
    let differ = found.iter().zip(&known).any(|(found, known)| !found.is_like(known));
    ensure!(
        !differ && found.len() == known.len(),
        "counts differ from {FILE}; if that is meant, `make recount` writes them again:\n{}",
        text(&found)
    );
    Ok(())
}

fn count() -> anyhow::Result<Vec<Tally>> {
    let folder = crate::folder().join("callgrind");
    // What an earlier run left must not be taken for this one's.
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder)?;
    let out = folder.join("callgrind");
    let program = std::env::current_exe()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--toggle-collect=*cycle_that_counts*"])
        .arg("--dump-after=*end_of_shape*")
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .arg(COUNTED)
        .output()
        .context("starting valgrind; it is a package of every distribution")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed: {errors}");
    let mut tallies = Vec::new();
    for (number, line) in (1..).zip(String::from_utf8_lossy(&output.stdout).lines()) {
        let mut words = line.split(' ').map(str::parse);
        let mut word = || words.next().context("too few numbers")?.context("not a number");
        let (admitted, evaluated, allocations) = (word()?, word()?, word()?);
        let instructions = instructions(&folder.join(format!("callgrind.{number}")))?;
        tallies.push(Tally { admitted, evaluated, allocations, instructions });
    }
    Ok(tallies)
}

/// The sum that callgrind wrote.
fn instructions(file: &Path) -> anyhow::Result<u64> {
    let text = std::fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let sum = text.lines().find_map(|line| line.strip_prefix("totals: "));
    sum.context("no totals")?.trim().parse().context("totals")
}

fn check_slopes(found: &[Tally]) -> anyhow::Result<()> {
    for (shape, pair) in SHAPES.iter().zip(found.chunks(2)) {
        let [small, large] = pair else { continue };
        let slope = to_f64(large.instructions) / to_f64(small.instructions);
        let (name, bound) = (shape.name, shape.slope);
        ensure!(
            slope <= bound,
            "{name} grows {slope:.2} times at four times the size, not {bound}"
        );
    }
    Ok(())
}

fn text(tallies: &[Tally]) -> String {
    let mut text = HEAD.to_owned();
    for ((shape, size), tally) in sizes().zip(tallies) {
        let Tally { admitted, evaluated, allocations, instructions } = tally;
        let _ = writeln!(
            text,
            "{:12} {size:5} {admitted:9} {evaluated:9} {allocations:11} {instructions:12}",
            shape.name
        );
    }
    text
}

/// A line of the file.
fn parse(line: &str) -> Option<Tally> {
    let mut words = line.split_whitespace().skip(2).map(str::parse);
    let mut word = || words.next()?.ok();
    let (admitted, evaluated, allocations) = (word()?, word()?, word()?);
    Some(Tally { admitted, evaluated, allocations, instructions: word()? })
}

impl Tally {
    fn is_like(&self, known: &Self) -> bool {
        let exact = |one: &Self| (one.admitted, one.evaluated, one.allocations);
        let change = to_f64(self.instructions) / to_f64(known.instructions) - 1.0;
        exact(self) == exact(known) && change.abs() <= TOLERANCE
    }
}
