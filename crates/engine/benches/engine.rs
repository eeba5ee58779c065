//! Decisions per second of the shapes S1, S2 and S4, fixed work, one core.
//!
//! Only cycles are timed, not the events that prepare them. Figures go to `target/bench/engine.json`.

use std::fmt::Write;
use std::time::{Duration, Instant};

use engine::flavors::matching::Selection;
use engine::spec::{
    ClusterQueueSpec, FlavorQuotas, FlavorSpec, Fungibility, Hold, LocalQueueSpec,
    NamespaceSelector, PodSetSpec, Preemption, PreemptionPolicy, ResourceGroup, ResourceQuota,
    Strategy, Weight, WorkloadSpec,
};
use engine::{Amount, Anywhere, Engine, Event, FairStrategy, Settings, Time};

/// What a shape needs to know.
struct Shape {
    settings: Settings,
    queues: usize,
    per_queue: usize,
    quota: i64,
    cohort: bool,
    within: PreemptionPolicy,
}

fn build(shape: &Shape) -> Engine {
    let mut engine = Engine::new(shape.settings.clone());
    let namespace = engine.names_mut().namespaces.intern("ns");
    engine.apply(Event::Namespace(namespace, Some(Vec::new())));
    let flavor = engine.names_mut().flavors.intern("default");
    engine.apply(Event::Flavor(flavor, Some(FlavorSpec::default())));
    let resource = engine.names_mut().resources.intern("cpu");
    for index in 0..shape.queues {
        let name = format!("queue-{index}");
        let cohort = shape.cohort.then(|| engine.names_mut().cohorts.intern("all"));
        let quota = ResourceQuota {
            resource,
            nominal: Amount(shape.quota),
            borrowing_limit: None,
            lending_limit: None,
        };
        let flavors = vec![FlavorQuotas { flavor, resources: vec![quota] }];
        let spec = ClusterQueueSpec {
            cohort,
            groups: vec![ResourceGroup { resources: vec![resource], flavors }],
            strategy: Strategy::BestEffortFifo,
            preemption: Preemption { within_queue: shape.within, ..Preemption::default() },
            fungibility: Fungibility::default(),
            weight: Weight::default(),
            stopped: false,
            ready: true,
            namespaces: NamespaceSelector::All(Vec::new()),
            checks: Vec::new(),
        };
        let queue = engine.names_mut().queues.intern(&name);
        engine.apply(Event::ClusterQueue(queue, Some(Box::new(spec))));
        let local = engine.names_mut().local_queues.intern(&name);
        engine.apply(Event::LocalQueue(local, Some(LocalQueueSpec { queue, stopped: false })));
    }
    for index in 0..shape.queues {
        submit(&mut engine, index, 0, shape.per_queue);
    }
    engine
}

fn submit(engine: &mut Engine, queue: usize, priority: i64, count: usize) {
    for number in 0..count {
        let name = format!("workload-{queue}-{priority}-{number}");
        let names = engine.names_mut();
        let resource = names.resources.intern("cpu");
        let spec = WorkloadSpec {
            namespace: names.namespaces.intern("ns"),
            local_queue: Some(names.local_queues.intern(&format!("queue-{queue}"))),
            uid: name.as_str().into(),
            priority,
            queued_at: Time(i64::try_from(number).unwrap_or_default()),
            pod_sets: vec![PodSetSpec {
                name: "main".into(),
                count: 1,
                min_count: None,
                requests: vec![(resource, Amount(1))],
                selection: Selection::default(),
                topology: None,
                template: 0,
            }],
            hold: Hold::None,
            invalid: None,
            checks: Vec::new(),
            admission: None,
        };
        let id = names.workloads.intern(&name);
        engine.apply(Event::Workload(id, Box::new(spec)));
    }
}

/// Decisions, time, and the longest cycle.
#[derive(Debug, Default)]
struct Run {
    decisions: usize,
    time: Duration,
    pause: Duration,
}

impl Run {
    fn cycle(&mut self, engine: &mut Engine) -> usize {
        let start = Instant::now();
        let decided = engine.cycle(Time(0), &mut Anywhere).len();
        let time = start.elapsed();
        self.decisions += decided;
        self.time += time;
        self.pause = self.pause.max(time);
        decided
    }

    fn rate(&self) -> f64 {
        f64::from(u32::try_from(self.decisions).unwrap_or(u32::MAX)) / self.time.as_secs_f64()
    }
}

/// All Workloads fit; cycles until nobody waits.
fn drain(shape: &Shape, cycles: usize) -> Run {
    let (mut engine, mut run) = (build(shape), Run::default());
    for _ in 0..cycles {
        if run.cycle(&mut engine) == 0 {
            break;
        }
    }
    run
}

/// Queues filled with 50 Workloads each; then every head preempts one of them.
fn preempt(queues: usize) -> Run {
    let shape = Shape {
        settings: Settings::default(),
        queues,
        per_queue: 50,
        quota: 50,
        cohort: false,
        within: PreemptionPolicy::LowerPriority,
    };
    let mut engine = build(&shape);
    while !engine.cycle(Time(0), &mut Anywhere).is_empty() {}
    for queue in 0..queues {
        submit(&mut engine, queue, 1, 1);
    }
    let mut run = Run::default();
    run.cycle(&mut engine);
    run
}

#[expect(clippy::print_stdout, reason = "a benchmark reports")]
fn main() -> anyhow::Result<()> {
    let fit = |queues, per_queue| Shape {
        settings: Settings::default(),
        queues,
        per_queue,
        quota: 1000,
        cohort: true,
        within: PreemptionPolicy::Never,
    };
    let fair = Some(vec![FairStrategy::LessThanOrEqualToFinalShare]);
    let settings = Settings { fair_sharing: fair, ..Settings::default() };
    let runs = [
        ("s1", drain(&fit(1000, 100), usize::MAX)),
        ("s1_10k", drain(&fit(10_000, 20), usize::MAX)),
        ("s2", drain(&Shape { settings, ..fit(1000, 10) }, 2)),
        ("s4", preempt(1000)),
    ];
    let mut json = String::new();
    for (name, run) in &runs {
        let pause = run.pause.as_secs_f64() * 1000.0;
        println!("{name}: {:.0} decisions/s, longest cycle {pause:.2} ms", run.rate());
        write!(json, "\"{name}\": {:.0}, ", run.rate())?;
    }
    let pause = runs[1].1.pause.as_secs_f64() * 1000.0;
    let target = std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "target".to_owned());
    let folder = std::path::Path::new(&target).join("bench");
    std::fs::create_dir_all(&folder)?;
    std::fs::write(
        folder.join("engine.json"),
        format!("{{{json}\"max_pause_ms\": {pause:.2}}}\n"),
    )?;
    Ok(())
}
