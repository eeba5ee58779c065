//! Samples of the stacks of this process.
//!
//! A timer of the kernel counts the CPU time of all threads and interrupts one that runs; the crate `pprof` takes its stack. Stacks
//! are unwound by the tables of the program, so that no frame pointers are needed.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    time::{Duration, UNIX_EPOCH},
};

use pprof::{ProfilerGuardBuilder, UnresolvedReport};

use super::{
    encoding::{CpuProfile, ProgramMapping, SourceCall, StackSample},
    sampler_frames,
};

/// Samples per second of CPU. Not a round number: periodic work would be seen always, or never.
const HERTZ: i32 = 99;

/// Code that is not unwound: the unwinder itself, and what has no tables for it.
const NOT_UNWOUND: [&str; 2] = ["libgcc", "vdso"];

/// No profile can be taken.
#[derive(Debug, thiserror::Error)]
pub(super) enum SamplingError {
    #[error("cannot write to the directory {} of temporary files", directory.display())]
    Directory { directory: PathBuf, source: std::io::Error },
    #[error("cannot sample stacks")]
    Sampler(#[from] pprof::Error),
}

/// Samples while `wait` runs, with stacks beyond a number of them in the directory of temporary files. `None` if `wait` says that
/// the profile is not wanted any more.
///
/// Start, report and end take a while: they look up names in the files of the program, and fill tables of about a hundred MB.
pub(super) fn sample(
    directory: &Path,
    wait: impl FnOnce() -> bool,
) -> Result<Option<CpuProfile>, SamplingError> {
    // The sampler keeps the first failure to make its file for as long as the process runs.
    check_writable(directory)?;
    let sampler = ProfilerGuardBuilder::default().frequency(HERTZ);
    let sampler = sampler.blocklist(&NOT_UNWOUND).build()?;
    if !wait() {
        return Ok(None);
    }
    let report = sampler.report().build_unresolved()?;
    drop(sampler);
    let began = report.timing.start_time.duration_since(UNIX_EPOCH);
    let mut profile = CpuProfile {
        began: nanos(began.unwrap_or_default()),
        lasted: nanos(report.timing.duration),
        period: 1_000_000_000 / u64::from(HERTZ.unsigned_abs()),
        stacks: stacks(&report),
        calls: BTreeMap::new(),
        program: program(),
    };
    drop(report);
    name(&mut profile);
    Ok(Some(profile))
}

fn check_writable(directory: &Path) -> Result<(), SamplingError> {
    let refused = |source| SamplingError::Directory { directory: directory.to_owned(), source };
    tempfile::NamedTempFile::new_in(directory).and_then(|file| file.close()).map_err(refused)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn stacks(report: &UnresolvedReport) -> Vec<StackSample> {
    let stacks = report.data.iter().map(|(stack, count)| StackSample {
        addresses: stack.frames.iter().map(|frame| frame.ip() as u64).collect(),
        count: u64::try_from(*count).unwrap_or_default(),
        thread: thread_name(stack.thread_name.get(..stack.thread_name_length)),
    });
    stacks.collect()
}

fn thread_name(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

/// Looks up the calls at all addresses, and cuts off the sampler.
fn name(profile: &mut CpuProfile) {
    let seen = addresses(&profile.stacks).into_iter();
    profile.calls = seen.map(|address| (address, calls_at(address))).collect();
    // Its tables of names are as large as those of the program.
    backtrace::clear_symbol_cache();
    sampler_frames::cut(&mut profile.stacks, &profile.calls);
    let left = addresses(&profile.stacks);
    profile.calls.retain(|address, _| left.contains(address));
}

fn addresses(stacks: &[StackSample]) -> BTreeSet<u64> {
    stacks.iter().flat_map(|stack| stack.addresses.iter().copied()).collect()
}

fn calls_at(address: u64) -> Vec<SourceCall> {
    let mut calls = Vec::new();
    let Ok(address) = usize::try_from(address) else { return calls };
    backtrace::resolve(address as *mut _, |symbol| {
        let Some(function) = symbol.name() else { return };
        let file = symbol.filename().map(|path| path.display().to_string());
        calls.push(SourceCall {
            // Without the hash behind the name.
            function: format!("{function:#}"),
            file: file.unwrap_or_default(),
            line: symbol.lineno().unwrap_or_default(),
        });
    });
    calls
}

/// Where this program is in memory; `None` if the kernel does not say so.
fn program() -> Option<ProgramMapping> {
    let path = std::env::current_exe().ok()?;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| code_of(line, path.to_str()?))
}

/// The mapping of a line of `/proc/PID/maps`, if it is the code of this file: `START-END PERMISSIONS OFFSET DEVICE INODE PATH`.
fn code_of(line: &str, path: &str) -> Option<ProgramMapping> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [range, permissions, offset, _, _, file] = fields[..] else { return None };
    if file != path || !permissions.contains('x') {
        return None;
    }
    let (start, end) = range.split_once('-')?;
    let number = |text| u64::from_str_radix(text, 16).ok();
    Some(ProgramMapping {
        start: number(start)?,
        end: number(end)?,
        offset: number(offset)?,
        path: path.to_owned(),
    })
}
