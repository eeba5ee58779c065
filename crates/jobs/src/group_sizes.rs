//! Groups of pods in the spec of a job, such as the worker groups of a RayCluster, and how the groups of a copy get their size
//! (docs/reference/multikueue.md §2.13).
//!
//! Groups stand in a list, which a merge patch replaces as a whole. So the list of the copy is written back with other sizes, and keeps
//! every other field that it has on its worker.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::pointer::Pointer;

/// A list with a pod set per element. Copies follow the sizes of its elements.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ResizedGroups {
    /// The list, below `/spec`.
    pub each: Pointer,
    /// The field of an element with its number of replicas.
    pub replicas: String,
    /// Other fields of an element that belong to its size, such as its limits.
    #[serde(default)]
    pub others: Vec<String>,
}

/// One group.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSize {
    /// The pod set that it is.
    pub pod_set: String,
    /// Its pods.
    pub pods: i32,
    /// Pods of one replica.
    pub pods_per_replica: i32,
    /// The element of the list.
    pub element: Value,
}

/// The groups of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSizes {
    /// Where they stand, and which fields are sizes.
    pub rule: ResizedGroups,
    /// The groups, in the order of the list.
    pub groups: Vec<GroupSize>,
}

impl GroupSizes {
    /// The spec with the groups of this copy, in its order, as large as `target` says, which gets the pods of a group and those of the
    /// group of the job with its name. `None` if no group changes, or the groups are others than those of the job.
    pub(crate) fn resized(
        &self,
        job: &Self,
        target: impl Fn(&str, i32, i32) -> i32,
    ) -> Option<Value> {
        if self.groups.len() != job.groups.len() {
            return None;
        }
        let resized = self.groups.iter().map(|own| {
            let wanted = job.groups.iter().find(|wanted| wanted.pod_set == own.pod_set)?;
            let pods = target(&own.pod_set, own.pods, wanted.pods);
            Some(self.rule.with_pods(own, wanted, pods))
        });
        let resized: Vec<Value> = resized.collect::<Option<_>>()?;
        let changed = self.groups.iter().zip(&resized).any(|(own, after)| own.element != *after);
        let mut object = json!({});
        self.rule.each.set(&mut object, Value::Array(resized));
        changed.then(|| object["spec"].take())
    }

    /// The list with as many pods as a Workload grants the pod sets.
    pub(crate) fn granted(&self, granted: impl Fn(&str) -> Option<i32>) -> Value {
        let groups = self.groups.iter();
        let sized = groups.map(|own| {
            let pods = granted(&own.pod_set).unwrap_or(own.pods);
            self.rule.with_pods(own, own, pods)
        });
        Value::Array(sized.collect())
    }
}

impl ResizedGroups {
    /// A group with so many pods: with the other fields of the wanted group if it has as many. The replicas are those that count: what a
    /// job writes may be out of its bounds. A number that replicas do not add up to changes nothing; the job has it for a moment only.
    fn with_pods(&self, own: &GroupSize, wanted: &GroupSize, pods: i32) -> Value {
        let mut element = own.element.clone();
        let same_shape = own.pods_per_replica == wanted.pods_per_replica;
        if pods == own.pods && (same_shape || pods != wanted.pods) {
            return element;
        }
        if pods == wanted.pods {
            for field in std::iter::once(&self.replicas).chain(&self.others) {
                // Fields that the job lacks may have a default on the worker.
                if let Some(value) = wanted.element.get(field) {
                    element[field.as_str()] = value.clone();
                }
            }
        }
        let sized = if pods == wanted.pods { wanted } else { own };
        let per_replica = sized.pods_per_replica.max(1);
        if pods % per_replica == 0 {
            element[self.replicas.as_str()] = json!(pods / per_replica);
        }
        element
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Groups by name, replicas, hosts and greatest number of replicas.
    fn groups(all: &[(&str, i32, i32, i32)]) -> GroupSizes {
        let group = |&(name, replicas, hosts, most): &(&str, i32, i32, i32)| GroupSize {
            pod_set: name.to_owned(),
            pods: replicas * hosts,
            pods_per_replica: hosts,
            element: json!({
                "groupName": name, "replicas": replicas, "numOfHosts": hosts, "maxReplicas": most,
                "template": {"of": "the worker"},
            }),
        };
        let others = vec!["numOfHosts".to_owned(), "maxReplicas".to_owned()];
        GroupSizes {
            rule: ResizedGroups {
                each: Pointer::of(&["spec", "workerGroupSpecs"]),
                replicas: "replicas".to_owned(),
                others,
            },
            groups: all.iter().map(group).collect(),
        }
    }

    /// Sizes of the groups after a change to these numbers of pods.
    fn resized(copy: &GroupSizes, job: &GroupSizes, pods: &[i32]) -> Option<Vec<String>> {
        let at = |name: &str| job.groups.iter().position(|one| one.pod_set == name);
        let spec = copy.resized(job, |name, _, _| pods[at(name).expect("a group")])?;
        let show = |group: &Value| {
            assert_eq!(group["template"], json!({"of": "the worker"}));
            format!("{}x{}<={}", group["replicas"], group["numOfHosts"], group["maxReplicas"])
        };
        Some(spec["workerGroupSpecs"].as_array().expect("a list").iter().map(show).collect())
    }

    #[test]
    fn groups_get_the_fields_of_the_job_and_keep_all_others() {
        let copy = groups(&[("a", 2, 1, 2), ("b", 3, 1, 9)]);
        let mut job = groups(&[("a", 4, 1, 8), ("b", 3, 1, 7)]);
        job.groups[0].element["template"] = json!({"of": "the hub"});
        let wanted = |all: &[&str]| Some(all.iter().map(|&one| one.to_owned()).collect());
        assert_eq!(resized(&copy, &job, &[4, 3]), wanted(&["4x1<=8", "3x1<=9"]));
        // The job has another size by now: only the number of replicas is known.
        assert_eq!(resized(&copy, &job, &[3, 3]), wanted(&["3x1<=2", "3x1<=9"]));
        assert_eq!(resized(&copy, &job, &[2, 3]), None, "limits alone are no size");
    }

    #[test]
    fn replicas_of_several_hosts_are_counted_as_a_whole() {
        let (copy, job) = (groups(&[("a", 2, 4, 9)]), groups(&[("a", 1, 4, 9)]));
        assert_eq!(resized(&copy, &job, &[4]), Some(vec!["1x4<=9".to_owned()]));
        assert_eq!(resized(&copy, &job, &[6]), None, "no number of replicas has six pods");
        let other = groups(&[("a", 4, 2, 9)]);
        assert_eq!(resized(&copy, &other, &[8]), Some(vec!["4x2<=9".to_owned()]));
    }

    #[test]
    fn a_copy_keeps_the_order_of_its_groups() {
        let copy = groups(&[("a", 4, 1, 9), ("b", 2, 1, 9)]);
        let job = groups(&[("b", 1, 1, 7), ("a", 4, 1, 8)]);
        let wanted = ["4x1<=9", "1x1<=7"].map(str::to_owned);
        assert_eq!(resized(&copy, &job, &[1, 4]), Some(wanted.into()));
    }

    #[test]
    fn other_groups_are_no_size() {
        let copy = groups(&[("a", 2, 1, 9)]);
        assert_eq!(copy.resized(&groups(&[("b", 1, 1, 9)]), |_, _, _| 1), None);
        assert_eq!(copy.resized(&groups(&[]), |_, _, _| 1), None);
    }

    #[test]
    fn fields_that_the_job_lacks_stay() {
        let copy = groups(&[("a", 2, 1, 9)]);
        let mut job = groups(&[("a", 1, 1, 9)]);
        let element = job.groups[0].element.as_object_mut().expect("fields");
        element.remove("numOfHosts");
        assert_eq!(resized(&copy, &job, &[1]), Some(vec!["1x1<=9".to_owned()]));
    }
}
