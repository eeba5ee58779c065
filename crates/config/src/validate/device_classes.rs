//! Validation of `resources.deviceClassMappings` (docs/reference/kueue.md §6.4).

use std::collections::{BTreeMap, BTreeSet};

use crds::validation::{Errors, FieldError};

use super::Problems;
use crate::DeviceClassMapping;

const PATH: &str = "resources.deviceClassMappings";

/// The resource that each device class is mapped to first, with the counters of all its mappings.
type MappedClasses<'a> = BTreeMap<&'a str, (&'a str, BTreeSet<&'a str>)>;

/// Adds the problems of the mappings.
pub(super) fn check(mappings: &[DeviceClassMapping], problems: &mut Problems) {
    problems.unless(mappings.len() <= 16, PATH, "must have at most 16 entries");
    let (mut names, mut mapped) = (BTreeSet::new(), MappedClasses::new());
    for (i, mapping) in mappings.iter().enumerate() {
        let path = format!("{PATH}[{i}]");
        if !names.insert(&mapping.name) {
            problems.extend([FieldError::duplicate(format!("{path}.name"), &mapping.name, "")]);
        }
        check_number(&path, mapping, problems);
        problems.extend(check_classes(&path, mapping, &mut mapped));
        check_sources(&path, mapping, problems);
    }
}

fn check_number(path: &str, mapping: &DeviceClassMapping, problems: &mut Problems) {
    let path = format!("{path}.deviceClassNames");
    let n_classes = mapping.device_class_names.len();
    problems.unless(n_classes <= 8, &path, "must have at most 8 entries");
    if n_classes == 0 {
        let detail = "at least one device class name is required";
        problems.extend([FieldError::required(path, detail)]);
    }
}

fn check_classes<'a>(
    path: &str,
    mapping: &'a DeviceClassMapping,
    mapped: &mut MappedClasses<'a>,
) -> Errors {
    let (mut errors, mut seen) = (Errors::new(), BTreeSet::new());
    for (i, class) in mapping.device_class_names.iter().enumerate() {
        let path = format!("{path}.deviceClassNames[{i}]");
        if !seen.insert(class) {
            errors.push(FieldError::duplicate(&path, class, ""));
        }
        let problem = map_class(mapping, class, mapped);
        errors.extend(problem.map(|problem| FieldError::invalid(&path, class, problem)));
    }
    errors
}

/// Several resources may count different counters of one class, and nothing else of it.
fn map_class<'a>(
    mapping: &'a DeviceClassMapping,
    class: &'a str,
    mapped: &mut MappedClasses<'a>,
) -> Option<String> {
    let counter = counter_name(mapping);
    let Some((resource, counters)) = mapped.get_mut(class) else {
        mapped.insert(class, (&mapping.name, counter.into_iter().collect()));
        return None;
    };
    if *resource == mapping.name {
        return None;
    }
    match counter.filter(|_| !counters.is_empty()) {
        None => Some(format!("device class already mapped to resource {resource}")),
        Some(counter) => (!counters.insert(counter))
            .then(|| format!("device class already has a counter source for counter {counter:?}")),
    }
}

/// The name of the first counter that a mapping counts.
fn counter_name(mapping: &DeviceClassMapping) -> Option<&str> {
    let mut counters = mapping.sources.iter().filter_map(|source| source.counter.as_ref());
    counters.next()?.get("name")?.as_str()
}

fn check_sources(path: &str, mapping: &DeviceClassMapping, problems: &mut Problems) {
    let path = format!("{path}.sources");
    let sources = &mapping.sources;
    let mut single = Vec::new();
    for (i, source) in sources.iter().enumerate() {
        let one = source.counter.is_some() != source.capacity.is_some();
        let problem = "must have exactly one of counter and capacity";
        problems.unless(one, &format!("{path}[{i}]"), problem);
        single.extend(one.then_some(source.counter.is_some()));
    }
    if single.contains(&true) && single.contains(&false) {
        let detail = "cannot mix counter and capacity sources in the same mapping";
        problems.extend([FieldError::invalid(path, sources.len(), detail)]);
    }
}
