//! Which job ran where, over time, as an SVG.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Instant;

use super::run::BalanceRun;

/// Pixels of a second, of a GPU, and between clusters.
const SECOND: f64 = 3.0;
const GPU: f64 = 6.0;
const GAP: f64 = 24.0;

/// A job's bar: seconds, and GPUs from the top of its cluster.
struct Bar<'r> {
    name: &'r str,
    begin: f64,
    end: f64,
    gpus: Vec<usize>,
}

/// Draws a run: a lane per GPU of each cluster, a bar per job and GPU.
pub(super) fn draw(run: &BalanceRun) -> String {
    let clusters = bars(run);
    let width = run.makespan * SECOND + 120.0;
    let mut body = String::new();
    let mut top = GAP;
    for (cluster, bars) in &clusters {
        let _ = writeln!(body, r#"<text x="4" y="{:.0}">{cluster}</text>"#, top - 6.0);
        let lanes = bars.iter().flat_map(|bar| &bar.gpus).max().map_or(0, |last| last + 1);
        bars.iter().for_each(|bar| draw_bar(&mut body, bar, top));
        top += lanes_height(lanes) + GAP;
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{top:.0}\" \
         font-family=\"sans-serif\" font-size=\"10\">\n{body}</svg>\n"
    )
}

#[expect(clippy::cast_precision_loss, reason = "some hundred lanes")]
fn lanes_height(lanes: usize) -> f64 {
    lanes as f64 * GPU
}

fn draw_bar(body: &mut String, bar: &Bar<'_>, top: f64) {
    let (x, width) = (bar.begin * SECOND, (bar.end - bar.begin) * SECOND);
    let hue =
        bar.name.bytes().fold(7_u32, |hash, byte| hash.wrapping_mul(31) + u32::from(byte)) % 360;
    for gpu in &bar.gpus {
        let y = top + lanes_height(*gpu);
        let _ = writeln!(
            body,
            r#"<rect x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{GPU}" fill="hsl({hue},60%,65%)"><title>{} {:.1} s to {:.1} s</title></rect>"#,
            bar.name, bar.begin, bar.end
        );
    }
}

/// The bars of each cluster, in the order of their begin. A job gets the first GPUs that no other has at that time.
fn bars(run: &BalanceRun) -> BTreeMap<String, Vec<Bar<'_>>> {
    let seconds = |at: Instant| at.saturating_duration_since(run.begun).as_secs_f64();
    let mut spans: Vec<_> = run
        .jobs
        .iter()
        .filter_map(|(job, one)| Some((one.span()?, one.cluster.clone()?, job)))
        .collect();
    spans.sort_by_key(|((begin, _), ..)| *begin);
    let mut clusters: BTreeMap<String, Vec<Bar<'_>>> = BTreeMap::new();
    for ((begin, end), cluster, job) in spans {
        let (begin, end) = (seconds(begin), seconds(end));
        let bars = clusters.entry(cluster).or_default();
        let taken = |gpu: &usize| bars.iter().any(|bar| bar.end > begin && bar.gpus.contains(gpu));
        let wanted = job.pods * job.gpu_per_pod;
        let gpus = (0..).filter(|gpu| !taken(gpu)).take(wanted as usize).collect();
        bars.push(Bar { name: &job.name, begin, end, gpus });
    }
    clusters
}
