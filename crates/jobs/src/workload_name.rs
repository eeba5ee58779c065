//! Name of a job's Workload (docs/reference/kueue.md §2.9).

use sha1::{Digest, Sha1};

const MAX_LENGTH: usize = 253;
const MAX_SHORT_LENGTH: usize = 63;
const HASH_LENGTH: usize = 5;

/// The job that owns a Workload, as far as the name needs it.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadOwner<'a> {
    /// Kind of the job.
    pub kind: &'a str,
    /// Group of the kind.
    pub group: &'a str,
    /// Name of the job.
    pub name: &'a str,
    /// UID of the job.
    pub uid: &'a str,
    /// Distinguishes the Workloads of an elastic job: its generation.
    pub part: Option<&'a str>,
}

/// Kind, job name and a hash that distinguishes jobs of one name.
#[must_use]
pub fn workload_name(owner: WorkloadOwner<'_>, short: bool) -> String {
    hashed(format!("{}-{}", owner.kind.to_lowercase(), owner.name), owner, short)
}

/// The name of the variant of a Workload for a flavor: the Workload's name, with another hash.
#[must_use]
pub fn variant_name(parent: &str, uid: &str, flavor: &str, short: bool) -> String {
    let base = parent.rsplit_once('-').map_or(parent, |(base, _)| base);
    let owner = WorkloadOwner {
        kind: "Workload",
        group: "kueue.x-k8s.io",
        name: parent,
        uid,
        part: Some(flavor),
    };
    hashed(format!("{base}-variant-{flavor}"), owner, short)
}

fn hashed(mut name: String, owner: WorkloadOwner<'_>, short: bool) -> String {
    let longest = if short { MAX_SHORT_LENGTH } else { MAX_LENGTH };
    let mut end = name.len().min(longest - HASH_LENGTH - 1);
    // Names are ASCII; the loop keeps `truncate` from panicking on any other text.
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    name.truncate(end);
    format!("{name}-{}", hash(owner))
}

fn hash(owner: WorkloadOwner<'_>) -> String {
    let mut parts = vec![owner.kind, owner.group, owner.name, owner.uid];
    parts.extend(owner.part);
    let digest = Sha1::digest(parts.join("\n").as_bytes());
    let hex: String =
        digest.iter().take(HASH_LENGTH.div_ceil(2)).map(|byte| format!("{byte:02x}")).collect();
    hex.chars().take(HASH_LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> WorkloadOwner<'_> {
        WorkloadOwner { kind: "Job", group: "batch", name, uid: "u-1", part: None }
    }

    #[test]
    fn a_name_ends_with_a_prefix_of_a_sha_1() {
        // printf 'Job\nbatch\ntrain\nu-1' | sha1sum
        assert_eq!(workload_name(owner("train"), false), "job-train-d688a");
        let later = WorkloadOwner { part: Some("2"), ..owner("train") };
        // printf 'Job\nbatch\ntrain\nu-1\n2' | sha1sum
        assert_eq!(workload_name(later, false), "job-train-aa910");
    }

    #[test]
    fn a_variant_is_named_after_its_parent_and_flavor() {
        let name = |parent, flavor| variant_name(parent, "u-1", flavor, false);
        // printf 'Workload\nkueue.x-k8s.io\njob-train-d688a\nu-1\nspot' | sha1sum
        assert_eq!(name("job-train-d688a", "spot"), "job-train-variant-spot-138c2");
        assert_ne!(name("job-train-d688a", "spot"), name("job-train-d688b", "spot"));
        assert!(name("group", "spot").starts_with("group-variant-spot-"));
        assert_eq!(variant_name("job-train-d688a", "u", &"f".repeat(90), true).len(), 63);
    }

    #[test]
    fn a_long_name_is_cut_before_the_hash() {
        let long = "a".repeat(300);
        for (short, length) in [(false, 253), (true, 63)] {
            let name = workload_name(owner(&long), short);
            assert_eq!(name.len(), length);
            assert!(name.starts_with("job-aaa"));
            assert_ne!(name, workload_name(WorkloadOwner { uid: "u-2", ..owner(&long) }, short));
        }
    }
}
