//! Clusters of nodes with eight gpus each, jobs that arrive, wait, run and end, and a fleet that places them. One
//! tick is a nanosecond.

use std::collections::BTreeMap;
use std::sync::Arc;

use dispatch::{
    AssignedWorkload, CapacityReport, Fleet, JobGvk, NodeClassCapacity, PlacementConfig,
    PlacementPolicy, PlacementRefusal, PlacementRequest, QueueOrder, RequestedPodSet, RunTimeGroup,
    WorkloadRequest,
};
use engine::ids::{ClusterId, ResourceId, WorkloadId};
use engine::{Amount, Time};

const GPU: ResourceId = ResourceId(0);
const SIZE: i64 = 8;

/// A job.
#[derive(Debug, Clone)]
pub(crate) struct QueuedJob {
    pub(crate) arrives: i64,
    /// Actual run time.
    pub(crate) lasts: i64,
    pub(crate) pods: i64,
    pub(crate) gpus: i64,
    pub(crate) priority: i64,
    /// Maximum run time of the request.
    pub(crate) runs: Option<i64>,
    /// Its owner. Jobs of an owner teach how long others run.
    pub(crate) owner: Option<&'static str>,
}

pub(crate) fn job(arrives: i64, lasts: i64, pods: i64, gpus: i64) -> QueuedJob {
    QueuedJob { arrives, lasts, pods, gpus, priority: 0, runs: None, owner: None }
}

struct RunningJob {
    job: usize,
    cluster: usize,
    ends: i64,
    /// Node and gpus of each pod.
    pods: Vec<(usize, i64)>,
}

/// A fleet and the nodes behind it, advanced by ticks.
pub(crate) struct ClusterSimulation {
    pub(crate) fleet: Fleet,
    pub(crate) refused: BTreeMap<usize, PlacementRefusal>,
    clusters: Vec<(ClusterId, Vec<i64>)>,
    jobs: Vec<QueuedJob>,
    /// Jobs to place now, and jobs that wait for a key.
    queue: Vec<usize>,
    running: Vec<RunningJob>,
    starts: BTreeMap<usize, i64>,
    now: i64,
    version: u64,
}

impl ClusterSimulation {
    /// Creates clusters with these numbers of nodes.
    pub(crate) fn new(sizes: &[usize], policy: PlacementPolicy) -> Self {
        let mut fleet = Fleet::new();
        let mut clusters = Vec::new();
        for (index, &nodes) in sizes.iter().enumerate() {
            let id = fleet.intern_cluster(&format!("c{index}"));
            fleet.set_connected(id, true);
            clusters.push((id, vec![SIZE; nodes]));
        }
        let ids = clusters.iter().map(|(id, _)| *id).collect();
        fleet.set_config("all", Some(PlacementConfig { clusters: ids, policy }));
        let mut clusters = Self {
            fleet,
            refused: BTreeMap::new(),
            clusters,
            jobs: Vec::new(),
            queue: Vec::new(),
            running: Vec::new(),
            starts: BTreeMap::new(),
            now: -1,
            version: 0,
        };
        (0..sizes.len()).for_each(|cluster| clusters.report(cluster));
        clusters
    }

    /// Adds jobs and runs until the end of a tick.
    pub(crate) fn run(&mut self, jobs: &[QueuedJob], until: i64) {
        let first = self.jobs.len();
        self.jobs.extend_from_slice(jobs);
        while self.now < until {
            self.now += 1;
            self.end_jobs();
            let come = (first..self.jobs.len()).filter(|&one| self.jobs[one].arrives == self.now);
            self.queue.extend(come);
            let woken_keys = self.fleet.woken_keys(Time(self.now));
            let woken = |one: &PlacementRefusal| woken_keys.contains(&one.key);
            let back: Vec<usize> =
                self.refused.iter().filter(|(_, why)| woken(why)).map(|(&job, _)| job).collect();
            for job in back {
                self.refused.remove(&job);
                self.queue.push(job);
            }
            self.offer();
        }
    }

    /// Start time of a job.
    pub(crate) fn started(&self, job: usize) -> Option<i64> {
        self.starts.get(&job).copied()
    }

    pub(crate) fn id(&self, job: usize) -> WorkloadId {
        WorkloadId::from(job)
    }

    /// Places the queued jobs in queue order, as an engine does.
    fn offer(&mut self) {
        let jobs = &self.jobs;
        self.queue.sort_by_key(|&one| (-jobs[one].priority, jobs[one].arrives, one));
        for one in std::mem::take(&mut self.queue) {
            let job = self.jobs[one].clone();
            let order = QueueOrder { priority: job.priority, queued_at: Time(job.arrives) };
            let work = self.fleet.with_run_time(work(&job), group(&job).as_ref());
            let ask = PlacementRequest {
                workload: self.id(one),
                config: "all",
                work: &work,
                order,
                only: None,
                alternative: false,
            };
            match self.fleet.choose_cluster(&ask, Time(self.now)) {
                Ok(cluster) => {
                    self.fleet.place(self.id(one), cluster, work, Time(self.now));
                    self.start(one, cluster);
                }
                Err(refused) => {
                    self.refused.insert(one, refused);
                }
            }
        }
    }

    /// Binds pods to the first nodes that fit, which differs from the fleet's packing.
    fn start(&mut self, one: usize, id: ClusterId) {
        let job = self.jobs[one].clone();
        let cluster = self.clusters.iter().position(|(known, _)| *known == id).expect("known");
        let nodes = &mut self.clusters[cluster].1;
        let mut pods = Vec::new();
        for _ in 0..job.pods {
            let node = nodes.iter().position(|&free| free >= job.gpus).expect("it was packed");
            nodes[node] -= job.gpus;
            pods.push((node, job.gpus));
        }
        self.starts.insert(one, self.now);
        self.running.push(RunningJob { job: one, cluster, ends: self.now + job.lasts, pods });
        self.report(cluster);
        self.fleet.clone_created(self.id(one), self.version);
    }

    fn end_jobs(&mut self) {
        let (over, running) =
            std::mem::take(&mut self.running).into_iter().partition(|one| one.ends <= self.now);
        self.running = running;
        let over: Vec<RunningJob> = over;
        for one in over {
            for (node, gpus) in one.pods {
                self.clusters[one.cluster].1[node] += gpus;
            }
            self.fleet.workload_removed(self.id(one.job));
            let job = &self.jobs[one.job];
            if let Some(group) = group(job) {
                self.fleet.record_run_time(&group, job.lasts, Time(self.now));
            }
            self.report(one.cluster);
        }
    }

    fn report(&mut self, cluster: usize) {
        self.version += 1;
        let (id, nodes) = &self.clusters[cluster];
        let class = |&free: &i64| NodeClassCapacity {
            count: 1,
            free: vec![(GPU, Amount(free))],
            size: vec![(GPU, Amount(SIZE))],
            ..NodeClassCapacity::default()
        };
        let classes = nodes.iter().map(class).collect();
        let kinds = vec![JobGvk::default()];
        let report =
            CapacityReport { as_of: self.version, kinds, classes, ..CapacityReport::default() };
        self.fleet.set_report(*id, Some(report));
    }
}

fn group(job: &QueuedJob) -> Option<RunTimeGroup> {
    Some(RunTimeGroup { queue: "team/q".into(), owner: job.owner?.into() })
}

fn work(job: &QueuedJob) -> Arc<AssignedWorkload> {
    let requests = vec![(GPU, Amount(job.gpus))];
    let pods = RequestedPodSet {
        name: "main".into(),
        count: job.pods,
        requests,
        ..RequestedPodSet::default()
    };
    let request = WorkloadRequest {
        pod_sets: vec![pods],
        max_run_time: job.runs,
        ..WorkloadRequest::default()
    };
    Arc::new(AssignedWorkload::new(Arc::new(request), Vec::new()))
}
