//! The crash points: before and after every write, with a scenario that leads to it.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use cluster::control::Purpose;
use e2e::installation::root;
use runtime::failpoint::{CA_BUNDLE, CERT_SECRET, EVENT_CREATE, EVENT_SERIES, LEASE};

use crate::scenario::Scenario;

/// Writes of the operators, and how often the agent survives each before it ends.
const OPERATOR_WRITES: &[(Scenario, &str, &[usize])] = &[
    // The finalizer of a RayJob and its end, the RayCluster, its Service, its head, a worker and the Service of the RayJob,
    // statuses of both, the removal of the cluster.
    (Scenario::Operated, "operator-patch", &[0, 1]),
    (Scenario::Operated, "operator-create", &[0, 1, 2, 3, 4]),
    (Scenario::Operated, "operator-status", &[0, 1, 2, 4]),
    (Scenario::Operated, "operator-delete", &[0]),
    // The spec of a RayCluster, two NetworkPolicies, the Secret with its CA, two Ingresses.
    (Scenario::Secured, "operator-patch", &[0]),
    (Scenario::Secured, "operator-apply", &[0, 1, 2, 3]),
    (Scenario::Secured, "operator-create", &[0]),
];

/// The source of the agent. Its own writes are those of its operators; the others are in `cluster::control`.
const AGENT: &str = "worker-agent/src";

/// The program that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CrashingProgram {
    Manager,
    Agent,
}

/// A crash point, and the scenario that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CrashPoint {
    pub(crate) program: CrashingProgram,
    pub(crate) scenario: Scenario,
    write: &'static str,
    moment: &'static str,
    /// How often the program survives it before.
    survived: usize,
}

impl CrashPoint {
    /// Where a manager ends before another one takes its nominations over.
    pub(crate) const BEFORE_CREATES: Self = Self {
        program: CrashingProgram::Manager,
        scenario: Scenario::Plain,
        write: Purpose::CloneCreate.name(),
        moment: "before",
        survived: 0,
    };

    /// Where a manager ends before another one stamps its clone again. The agent awaits an echo before it admits it.
    pub(crate) const AFTER_CLONE: Self =
        Self { scenario: Scenario::Leased, moment: "after", ..Self::BEFORE_CREATES };

    /// As the environment variable names it.
    pub(crate) fn failpoint(&self) -> String {
        format!("{}.{}", self.write, self.moment)
    }

    /// As the environment variable sets it.
    pub(crate) fn setting(&self) -> String {
        match self.survived {
            0 => format!("{}=return", self.failpoint()),
            count => format!("{}={count}*off->return", self.failpoint()),
        }
    }
}

/// The writes of a program during a scenario, by purpose, or by the name in `runtime::failpoint`.
fn written(
    program: CrashingProgram,
    scenario: Scenario,
) -> (&'static [Purpose], &'static [&'static str]) {
    use Purpose as P;
    match (program, scenario) {
        (CrashingProgram::Manager, Scenario::Plain) => (
            &[
                P::Incarnation,
                P::WorkloadCreate,
                P::Reserve,
                P::CloneCreate,
                P::JobCreate,
                P::Dispatched,
                P::Start,
                P::SyncStatus,
                P::Finish,
                P::Unfinalize,
                P::JobDelete,
                P::CloneDelete,
                P::ClusterQueueStatus,
                P::LocalQueueStatus,
            ],
            &[EVENT_CREATE],
        ),
        (CrashingProgram::Manager, Scenario::Interrupted) => (
            &[
                P::PodsReady,
                P::Evict,
                P::JobDelete,
                P::CloneDelete,
                P::RaiseEpoch,
                P::Idle,
                P::Stop,
                P::Release,
                P::Requeue,
                P::Reserve,
                P::CloneCreate,
                P::JobCreate,
            ],
            &[EVENT_SERIES],
        ),
        (CrashingProgram::Manager, Scenario::Edited) => {
            (&[P::Pending, P::WorkloadDelete, P::WorkloadUpdate, P::Priority, P::Move], &[])
        }
        (CrashingProgram::Manager, Scenario::AtHome) => {
            (&[P::Suspend, P::Admit, P::Reclaim, P::Stop, P::StopStatus], &[])
        }
        (CrashingProgram::Manager, Scenario::Group) => {
            (&[P::WorkloadCreate, P::Start, P::Replacement, P::AddOwners, P::JobUnfinalize], &[])
        }
        // Not `CloneDelete`: the pods own their clone, and once the last of them is gone, the garbage collector of the worker may
        // delete it before the manager does.
        (CrashingProgram::Manager, Scenario::DispatchedGroup) => (
            &[
                P::CloneCreate,
                P::JobCreate,
                P::SyncStatus,
                P::Finish,
                P::JobUnfinalize,
                P::JobDelete,
            ],
            &[],
        ),
        (CrashingProgram::Manager, Scenario::Scaled) => (&[P::Hold, P::Adopt], &[]),
        (CrashingProgram::Manager, Scenario::Elastic) => {
            (&[P::WorkloadCreate, P::UngateElastic, P::Resize, P::Finish, P::JobAnnotate], &[])
        }
        (CrashingProgram::Manager, Scenario::Shrunk) => (&[P::Resize, P::ResizeCopy], &[]),
        (CrashingProgram::Manager, Scenario::Grown) => {
            (&[P::Dispatched, P::Finish, P::ResizeCopy, P::CloneDelete], &[])
        }
        (CrashingProgram::Manager, Scenario::FailingNode) => {
            (&[P::UngateTopology, P::TerminatePod, P::UnhealthyNodes, P::AssignTopology], &[])
        }
        (CrashingProgram::Manager, Scenario::Provisioned) => (
            &[
                P::ProvisioningTemplateCreate,
                P::ProvisioningRequestCreate,
                P::ProvisioningTemplateOwner,
                P::ProvisioningCheck,
                P::ProvisioningRequestDelete,
                P::ProvisioningTemplateDelete,
            ],
            &[],
        ),
        (CrashingProgram::Manager, Scenario::Variants) => (
            &[
                P::MarkParent,
                P::VariantCreate,
                P::OpenGate,
                P::AdmitParent,
                P::Activate,
                P::Release,
            ],
            &[],
        ),
        (CrashingProgram::Manager, Scenario::Unreachable) => {
            (&[P::ForcefullyEnd, P::ForcefullyDelete], &[])
        }
        (CrashingProgram::Manager, Scenario::TooLong) => {
            (&[P::DeactivationTarget, P::Deactivate], &[])
        }
        (CrashingProgram::Manager, Scenario::Foreign) => (&[P::Reject], &[]),
        (CrashingProgram::Manager, Scenario::Robbed) => (&[P::Retry], &[]),
        (CrashingProgram::Manager, Scenario::Gated) => (&[P::OpenCloneGate], &[]),
        (CrashingProgram::Manager, Scenario::Refused) => (&[P::Unplace], &[]),
        (CrashingProgram::Manager, Scenario::Registered) => (
            &[
                P::ClusterUid,
                P::ClusterCondition,
                P::CheckCondition,
                P::LabelKeys,
                P::CapacityCopyCreate,
                P::CapacityCopy,
            ],
            &[],
        ),
        (CrashingProgram::Manager, Scenario::QueueRemoved) => (&[P::ReleaseUnused], &[]),
        (CrashingProgram::Manager, Scenario::Automated) => (&[P::ManagerQuota], &[]),
        (CrashingProgram::Manager, Scenario::Elected) => (&[], &[LEASE]),
        (CrashingProgram::Manager, Scenario::Untrusted) => (&[], &[CERT_SECRET, CA_BUNDLE]),
        (CrashingProgram::Manager, Scenario::TakenOver) => (&[P::ConfirmVersion], &[]),
        (CrashingProgram::Manager, Scenario::Leased) => {
            (&[P::FenceRecord, P::GrantCreate, P::Grant], &[])
        }
        (CrashingProgram::Manager, Scenario::LeasedTakenOver) => (&[P::Stamp], &[]),
        (CrashingProgram::Agent, Scenario::Leased) => (&[P::BeatCreate, P::Beat], &[]),
        (CrashingProgram::Agent, Scenario::Fenced) => (&[P::FencePod], &[]),
        (CrashingProgram::Agent, Scenario::Plain) => {
            (&[P::Reserve, P::Start, P::Finish, P::Capacity], &[])
        }
        (CrashingProgram::Agent, Scenario::Forbidden) => (&[P::Refuse], &[]),
        (CrashingProgram::Agent, Scenario::Registered) => (&[P::CapacityCreate], &[]),
        (
            CrashingProgram::Manager,
            Scenario::Forbidden | Scenario::Fenced | Scenario::Operated | Scenario::Secured,
        )
        | (CrashingProgram::Agent, _) => (&[], &[]),
    }
}

/// All crash points. For the analysis of a failure they can be filtered and repeated:
/// `CRASH_ONLY=start.after CRASH_TIMES=20`, or a scenario: `CRASH_ONLY=Edited`.
pub(crate) fn chosen() -> Vec<CrashPoint> {
    let Ok(only) = std::env::var("CRASH_ONLY") else {
        return all();
    };
    let times = std::env::var("CRASH_TIMES").ok().and_then(|times| times.parse().ok());
    let meant = |crash_point: &CrashPoint| {
        crash_point.failpoint() == only || format!("{:?}", crash_point.scenario) == only
    };
    let chosen: Vec<CrashPoint> = all().into_iter().filter(meant).collect();
    chosen.iter().copied().cycle().take(chosen.len() * times.unwrap_or(1)).collect()
}

fn all() -> Vec<CrashPoint> {
    let mut crash_points = Vec::new();
    for program in [CrashingProgram::Manager, CrashingProgram::Agent] {
        for &scenario in Scenario::ALL {
            let (purposes, own) = written(program, scenario);
            for write in purposes.iter().map(|one| one.name()).chain(own.iter().copied()) {
                for moment in ["before", "after"] {
                    let survived = 0;
                    crash_points.push(CrashPoint { program, scenario, write, moment, survived });
                }
            }
        }
    }
    crash_points.extend(of_operators());
    crash_points
}

fn of_operators() -> impl Iterator<Item = CrashPoint> {
    let program = CrashingProgram::Agent;
    OPERATOR_WRITES.iter().flat_map(move |&(scenario, write, counts)| {
        counts.iter().flat_map(move |&survived| {
            ["before", "after"].map(|moment| CrashPoint {
                program,
                scenario,
                write,
                moment,
                survived,
            })
        })
    })
}

/// The purposes of the operators' writes, read from their source. A purpose that is not a literal is an error: the search
/// would miss it.
fn written_by_operators() -> Result<BTreeSet<String>> {
    let mut purposes = BTreeSet::new();
    for path in sources(&root().join(AGENT))? {
        for call in std::fs::read_to_string(&path)?.split("Write::of(").skip(1) {
            let literal = call.trim_start().strip_prefix('"').and_then(|rest| rest.split_once('"'));
            let where_found = || format!("{}: a purpose that is not a literal", path.display());
            purposes.insert(literal.with_context(where_found)?.0.to_owned());
        }
    }
    Ok(purposes)
}

/// The files of Rust in a folder and below it.
fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(sources(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    Ok(files)
}

#[test]
fn every_write_has_a_crash_point() {
    let crash_points = all();
    let own = [LEASE, CERT_SECRET, CA_BUNDLE, EVENT_CREATE, EVENT_SERIES];
    let writes = Purpose::ALL.iter().filter(|purpose| !purpose.is_read());
    let purposes = writes.map(|purpose| purpose.name());
    for write in purposes.chain(own) {
        assert!(
            crash_points.iter().any(|crash_point| crash_point.write == write),
            "no program ends at {write}"
        );
    }
}

#[test]
fn every_write_of_the_operators_has_a_crash_point() -> Result<()> {
    let tested: BTreeSet<String> = of_operators().map(|point| point.write.to_owned()).collect();
    assert_eq!(written_by_operators()?, tested);
    Ok(())
}
