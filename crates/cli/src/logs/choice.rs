//! Which logs are wanted. Pure.

use crds::v1beta2::Workload;
use serde::Deserialize;

use super::LogsFailure;

/// What the command line asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// The pod.
    pub pod: Option<String>,
    /// All pods.
    pub all_pods: bool,
    /// The container.
    pub container: Option<String>,
    /// All containers.
    pub all_containers: bool,
    /// Logs are read on as they grow.
    pub follow: bool,
    /// The log before the last start of a container.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// The last lines only.
    pub tail: Option<u64>,
    /// Lines of the last seconds only.
    pub since_seconds: Option<u64>,
}

/// The pods of a Workload, as the manager lists them: the head or the lowest index first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodsOfWorkload {
    /// The worker; empty for the manager cluster.
    pub cluster: String,
    /// What keeps the list from being complete.
    pub incomplete: String,
    /// The pods.
    pub items: Vec<PodOfWorkload>,
}

/// A pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct PodOfWorkload {
    /// Its name.
    pub name: String,
    /// Its containers.
    pub containers: Vec<ContainerOfPod>,
}

/// A container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ContainerOfPod {
    /// Its name.
    pub name: String,
    /// It starts before the others.
    pub init: bool,
}

/// A log that is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChosenLog {
    /// The pod.
    pub pod: String,
    /// The container.
    pub container: Option<String>,
    /// Other logs of the pod are read as well.
    shares_pod: bool,
}

impl ChosenLog {
    /// What its lines begin with, beside other logs.
    #[must_use]
    pub fn prefix(&self) -> String {
        match self.container.as_ref().filter(|_| self.shares_pod) {
            Some(container) => format!("[{}/{container}] ", self.pod),
            None => format!("[{}] ", self.pod),
        }
    }
}

/// Of several Workloads of one job, the youngest one that has not finished; of finished ones the youngest.
#[must_use]
pub fn newest<'a>(workloads: &[&'a Workload]) -> Option<&'a str> {
    let order = |workload: &&&Workload| {
        let open = !workload.is_finished();
        (open, workload.metadata.creation_timestamp.clone(), workload.metadata.name.clone())
    };
    workloads.iter().max_by_key(order)?.metadata.name.as_deref()
}

/// The logs to read, and what to say about those that were not asked for.
///
/// # Errors
/// If there is no such pod or container.
pub fn chosen(
    workload: &str,
    pods: &PodsOfWorkload,
    options: &LogOptions,
) -> Result<(Vec<ChosenLog>, Vec<String>), LogsFailure> {
    let mut notes = Vec::new();
    let pods = chosen_pods(workload, pods, options, &mut notes)?;
    let mut logs = Vec::new();
    for pod in &pods {
        let (shares_pod, containers) = containers_of(pod, options);
        let log = |container| ChosenLog { pod: pod.name.clone(), container, shares_pod };
        logs.extend(containers.into_iter().map(log));
        let running: Vec<&str> = pod.running().collect();
        if pods.len() == 1
            && running.len() > 1
            && options.container.is_none()
            && !options.all_containers
        {
            notes.push(format!("Defaulted container {} out of: {}", running[0], names(pod)));
        }
    }
    match (&options.container, logs.is_empty()) {
        (Some(container), true) => {
            let mut containers: Vec<String> = pods
                .iter()
                .flat_map(|pod| &pod.containers)
                .map(|container| container.name.clone())
                .collect();
            containers.sort_unstable();
            containers.dedup();
            Err(LogsFailure::NoContainer { container: container.clone(), containers })
        }
        _ => Ok((logs, notes)),
    }
}

fn chosen_pods<'a>(
    workload: &str,
    pods: &'a PodsOfWorkload,
    options: &LogOptions,
    notes: &mut Vec<String>,
) -> Result<Vec<&'a PodOfWorkload>, LogsFailure> {
    let (workload, cluster) = (workload.to_owned(), pods.cluster.clone());
    let all = || pods.items.iter().map(|pod| pod.name.clone()).collect::<Vec<_>>();
    if let Some(name) = &options.pod {
        let found = pods.items.iter().find(|pod| pod.name == *name);
        let absent = || LogsFailure::NoPod { workload, pod: name.clone(), cluster, pods: all() };
        return found.map(|pod| vec![pod]).ok_or_else(absent);
    }
    let Some(first) = pods.items.first() else {
        return Err(LogsFailure::NoPods { workload, cluster });
    };
    if options.all_pods {
        return Ok(pods.items.iter().collect());
    }
    if pods.items.len() > 1 {
        notes.push(format!("Defaulted pod {} out of: {}", first.name, all().join(", ")));
    }
    Ok(vec![first])
}

/// The containers to read logs of, and whether they are several of the pod. A pod without a known container is asked without one.
fn containers_of(pod: &PodOfWorkload, options: &LogOptions) -> (bool, Vec<Option<String>>) {
    let named = |name: &str| Some(name.to_owned());
    if options.all_containers {
        return (true, pod.containers.iter().map(|one| named(&one.name)).collect());
    }
    match &options.container {
        Some(wanted) => {
            let found = pod.containers.iter().find(|one| one.name == *wanted);
            (false, found.map(|one| named(&one.name)).into_iter().collect())
        }
        None => (false, vec![pod.running().next().and_then(named)]),
    }
}

fn names(pod: &PodOfWorkload) -> String {
    let name = |container: &ContainerOfPod| {
        if container.init { format!("{} (init)", container.name) } else { container.name.clone() }
    };
    pod.containers.iter().map(name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pods(all: &[(&str, &[&str])]) -> PodsOfWorkload {
        let pod = |(name, containers): &(&str, &[&str])| {
            let containers: Vec<Value> = containers
                .iter()
                .map(|name| json!({"name": name, "init": name.starts_with("init")}))
                .collect();
            json!({"name": name, "phase": "Running", "containers": containers})
        };
        let items: Vec<Value> = all.iter().map(pod).collect();
        serde_json::from_value(json!({"cluster": "east", "items": items})).expect("a list")
    }

    /// The prefixes of the chosen logs, and the notes.
    fn lines(
        pods: &PodsOfWorkload,
        options: &LogOptions,
    ) -> Result<(Vec<String>, Vec<String>), String> {
        let (logs, notes) = chosen("w", pods, options).map_err(|failure| failure.to_string())?;
        let line = |log: &ChosenLog| {
            format!("{}{}", log.prefix(), log.container.as_deref().unwrap_or_default())
        };
        Ok((logs.iter().map(line).collect(), notes))
    }

    #[test]
    fn the_first_pod_and_container_are_taken_and_others_are_named() {
        let two = pods(&[("head", &["init-a", "main", "side"]), ("worker-1", &["main"])]);
        let (logs, notes) = lines(&two, &LogOptions::default()).expect("logs");
        assert_eq!(logs, ["[head] main"]);
        assert_eq!(
            notes,
            [
                "Defaulted pod head out of: head, worker-1",
                "Defaulted container main out of: init-a (init), main, side",
            ]
        );
        let one = pods(&[("only", &["main"])]);
        assert_eq!(
            lines(&one, &LogOptions::default()),
            Ok((vec!["[only] main".to_owned()], vec![]))
        );
    }

    #[test]
    fn all_means_every_pod_and_container() {
        let two = pods(&[("head", &["init-a", "main"]), ("worker-1", &["main"])]);
        let options = LogOptions { all_pods: true, ..LogOptions::default() };
        let (logs, notes) = lines(&two, &options).expect("logs");
        assert_eq!(logs, ["[head] main", "[worker-1] main"]);
        assert!(notes.is_empty(), "{notes:?}");
        let (logs, _) =
            lines(&two, &LogOptions { all_containers: true, ..options.clone() }).expect("logs");
        assert_eq!(logs, ["[head/init-a] init-a", "[head/main] main", "[worker-1/main] main"]);
        // A container that some of the pods have.
        let container = Some("init-a".to_owned());
        let (logs, _) = lines(&two, &LogOptions { container, ..options }).expect("logs");
        assert_eq!(logs, ["[head] init-a"]);
    }

    #[test]
    fn what_is_not_there_is_said_with_what_is() {
        let one = pods(&[("a", &["main"]), ("b", &["side"])]);
        let pod = Some("c".to_owned());
        let failure = lines(&one, &LogOptions { pod, ..LogOptions::default() });
        let expected = "Workload w has no pod c on cluster east; it has a, b";
        assert_eq!(failure, Err(expected.to_owned()));
        let container = Some("x".to_owned());
        let failure =
            lines(&one, &LogOptions { container, all_pods: true, ..LogOptions::default() });
        assert_eq!(failure, Err("no pod has a container x; there are main, side".to_owned()));
        let failure = lines(&pods(&[]), &LogOptions::default());
        assert_eq!(failure, Err("Workload w has no pods on cluster east".to_owned()));
    }

    #[test]
    fn the_youngest_open_workload_counts() {
        let workload = |name: &str, second: u8, finished: bool| -> Workload {
            let status = if finished { "True" } else { "False" };
            serde_json::from_value(json!({
                "metadata": {
                    "name": name, "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
                },
                "spec": {},
                "status": {"conditions": [{
                    "type": "Finished", "status": status, "reason": "R", "message": "",
                    "lastTransitionTime": "2026-01-01T00:00:00Z",
                }]},
            }))
            .expect("a Workload")
        };
        let all = [workload("a", 1, false), workload("b", 2, false), workload("c", 3, true)];
        assert_eq!(newest(&all.iter().collect::<Vec<_>>()), Some("b"));
        assert_eq!(newest(&[&all[2]]), Some("c"));
        assert_eq!(newest(&[]), None);
    }
}
