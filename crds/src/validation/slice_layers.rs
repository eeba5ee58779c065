//! Layers of topology slices (docs/reference/kueue.md §4.11, §5.3): no level twice, and each size divides the one before.

use super::{Errors, FieldError};
use crate::v1beta2::PodSetSliceTopologyConstraint;

/// Errors of layers, the outermost first. Sizes below one are errors of the schema, or of the caller.
#[must_use]
pub fn check(field: &str, layers: &[PodSetSliceTopologyConstraint]) -> Errors {
    let mut errors = Errors::new();
    for (at, layer) in layers.iter().enumerate() {
        let first = layers.iter().position(|other| other.topology == layer.topology);
        if let Some(first) = first.filter(|first| *first < at) {
            let value = format!("{} (also at index {first})", layer.topology);
            errors.push(FieldError::duplicate(format!("{field}[{at}].topology"), value, ""));
        }
    }
    let pairs = layers.iter().zip(layers.iter().skip(1)).enumerate();
    for (at, (outer, inner)) in pairs.filter(|(_, (_, inner))| inner.size > 0) {
        if outer.size % inner.size != 0 {
            let detail = format!("must evenly divide the parent layer size {}", outer.size);
            let field = format!("{field}[{}].size", at + 1);
            errors.push(FieldError::invalid(field, inner.size, detail));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layers_have_distinct_levels_and_sizes_that_divide() {
        let problems = |layers: &[(&str, i32)]| -> Vec<String> {
            let one = |(topology, size): &(&str, i32)| PodSetSliceTopologyConstraint {
                topology: (*topology).to_owned(),
                size: *size,
            };
            let layers: Vec<_> = layers.iter().map(one).collect();
            check("f", &layers).iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems(&[]), [""; 0]);
        assert_eq!(problems(&[("block", 8), ("rack", 4), ("host", 2)]), [""; 0]);
        assert_eq!(
            problems(&[("rack", 4), ("rack", 2)]),
            ["f[1].topology: Duplicate value: \"rack (also at index 0)\""]
        );
        assert_eq!(
            problems(&[("block", 8), ("rack", 3), ("host", 0)]),
            ["f[1].size: Invalid value: 3: must evenly divide the parent layer size 8"]
        );
    }
}
