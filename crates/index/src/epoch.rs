//! Epoch of a Workload: the number of its dispatch to a cluster. Source: docs/reference/dispatch.md §6.

use crds::names::annotations::EPOCH;
use crds::v1beta2::Workload;

/// The epoch of a Workload; 1 without the annotation.
#[must_use]
pub fn epoch(workload: &Workload) -> u64 {
    let annotations = workload.metadata.annotations.as_ref();
    annotations.and_then(|all| all.get(EPOCH)).and_then(|text| text.parse().ok()).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_epoch_is_one_without_an_annotation() {
        let with = |text: &str| {
            let mut workload = Workload::default();
            workload.metadata.annotations = Some([(EPOCH.to_owned(), text.to_owned())].into());
            epoch(&workload)
        };
        assert_eq!(epoch(&Workload::default()), 1);
        assert_eq!((with("7"), with("x"), with("")), (7, 1, 1));
    }
}
