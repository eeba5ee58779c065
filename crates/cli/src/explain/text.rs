//! The explanation of a Workload as text.

use std::fmt::{self, Display, Formatter};

use super::{PodSetLine, WorkloadExplanation};
use crate::{
    amounts::{age_of, canonical},
    output::HumanText,
    table::TextTable,
};

impl HumanText for Vec<WorkloadExplanation> {
    fn text(&self, wide: bool) -> String {
        let texts: Vec<String> =
            self.iter().map(|one| ExplanationText { one, wide }.to_string()).collect();
        texts.join("\n")
    }
}

/// `wide` adds what is true of a Workload that gives no trouble: conditions that the state repeats, and events of every kind.
struct ExplanationText<'a> {
    one: &'a WorkloadExplanation,
    wide: bool,
}

impl Display for ExplanationText<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let one = self.one;
        line(f, "Workload", &format!("{}/{}", one.namespace, one.workload))?;
        line(f, "Job", &one.jobs.join(", "))?;
        line(f, "Queue", &queue(one))?;
        line(f, "Priority", &one.priority.to_string())?;
        let reason =
            if one.reason.is_empty() { String::new() } else { format!(" ({})", one.reason) };
        line(f, "State", &format!("{:?}{reason}", one.state))?;
        if one.cluster_reasons.is_empty() {
            line(f, "Message", &one.message)?;
        }
        if let Some(position) = one.position {
            line(
                f,
                "Position",
                &format!("{position} pending Workloads of the ClusterQueue are before it"),
            )?;
        }
        line(f, "Explanation", one.explanation.as_deref().unwrap_or_default())?;
        line(f, "Cluster", one.cluster.as_deref().unwrap_or_default())?;
        line(f, "Pods", one.pods_failing.as_deref().unwrap_or_default())?;
        line(f, "Nominated", &one.nominated_clusters.join(", "))?;
        line(f, "Not before", one.requeue_at.as_deref().unwrap_or_default())?;
        f.write_str(&self.tables())
    }
}

impl ExplanationText<'_> {
    fn tables(&self) -> String {
        let one = self.one;
        let mut text = String::new();
        let mut add = |title: &str, header: &[&str], rows: Vec<Vec<String>>| {
            if !rows.is_empty() {
                let mut table = TextTable::with_header(header);
                rows.into_iter().for_each(|row| table.add(row));
                text.push_str(&format!("{title}:\n{}", table.render(2)));
            }
        };
        let reasons = one.cluster_reasons.iter();
        let reasons = reasons.map(|one| vec![one.cluster.clone(), one.reason.clone()]);
        add("Why not on", &["CLUSTER", "REASON"], reasons.collect());
        let pod_sets = one.pod_sets.iter().flat_map(pod_set_rows);
        add("Pod sets", &["NAME", "PODS", "RESOURCE", "AMOUNT", "FLAVOR"], pod_sets.collect());
        let checks = one.admission_checks.iter().map(|check| {
            let since = age_of(one.now, check.since);
            vec![check.name.clone(), check.state.clone(), since, check.message.clone()]
        });
        add("Admission checks", &["NAME", "STATE", "SINCE", "MESSAGE"], checks.collect());
        let conditions = one.conditions.iter().map(|condition| {
            let since = age_of(one.now, condition.since);
            let (status, reason) = (condition.status.clone(), condition.reason.clone());
            vec![condition.r#type.clone(), status, reason, since, condition.message.clone()]
        });
        add("Conditions", &["TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"], conditions.collect());
        let events = one.events.iter().map(|event| {
            let mut row = vec![age_of(one.now, event.last), event.r#type.clone()];
            row.push(event.reason.clone());
            if self.wide {
                row.extend([event.count.to_string(), event.object.clone()]);
            }
            row.push(event.message.clone());
            row
        });
        let header: &[&str] = if self.wide {
            &["LAST", "TYPE", "REASON", "COUNT", "OBJECT", "MESSAGE"]
        } else {
            &["LAST", "TYPE", "REASON", "MESSAGE"]
        };
        add("Events", header, events.collect());
        text
    }
}

/// A line of the head; none without a value.
fn line(f: &mut Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    if value.is_empty() { Ok(()) } else { writeln!(f, "{:<13}{value}", format!("{name}:")) }
}

fn queue(one: &WorkloadExplanation) -> String {
    match one.cluster_queue.is_empty() {
        true if one.queue.is_empty() => String::new(),
        true => format!("{} (no LocalQueue of this name)", one.queue),
        false => format!("{} (ClusterQueue {})", one.queue, one.cluster_queue),
    }
}

/// A row per resource.
fn pod_set_rows(pod_set: &PodSetLine) -> Vec<Vec<String>> {
    let head = [pod_set.name.clone(), pod_set.count.to_string()];
    if pod_set.resources.is_empty() {
        return vec![head.to_vec()];
    }
    let rows = pod_set.resources.iter().enumerate().map(|(n_row, (resource, amount))| {
        let head = if n_row == 0 { head.clone() } else { [" ".to_owned(), " ".to_owned()] };
        let flavor = pod_set.flavors.get(resource).cloned().unwrap_or_default();
        let [name, pods] = head;
        vec![name, pods, resource.clone(), canonical(amount), flavor]
    });
    rows.collect()
}
