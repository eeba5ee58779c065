//! Whether the pods of a pod set may run on a flavor's nodes: taints, tolerations, node labels, node affinity.
//!
//! The same rules serve ResourceFlavors (where only the keys that the flavor labels count) and single nodes. Source:
//! spec/kueue-core.md §4.4 step 2.

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Effect {
    /// They are not placed there.
    NoSchedule,
    /// They are placed there only if nothing else is left: ignored here.
    PreferNoSchedule,
    /// They are not placed there and those running are removed.
    NoExecute,
}

impl Effect {
    /// The name used on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A taint.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Taint {
    /// Key.
    pub key: Box<str>,
    /// Value, may be empty.
    pub value: Box<str>,
    /// Effect.
    pub effect: Effect,
}

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Toleration {
    /// Key; empty tolerates every key (with `value: None`).
    pub key: Box<str>,
    /// `None` is the operator `Exists`.
    pub value: Option<Box<str>>,
    /// `None` tolerates every effect.
    pub effect: Option<Effect>,
}

impl Toleration {
    fn tolerates(&self, taint: &Taint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && self.value.as_ref().is_none_or(|value| *value == taint.value)
    }
}

/// How a requirement compares.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Operator {
    /// The value is one of these.
    In(Vec<Box<str>>),
    /// The value is none of these, or the key is absent.
    NotIn(Vec<Box<str>>),
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
    /// The value is an integer above this one.
    Gt(i64),
    /// The value is an integer below this one.
    Lt(i64),
}

/// One requirement on labels.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    /// The label's key.
    pub key: Box<str>,
    /// What it must be.
    pub operator: Operator,
}

impl Requirement {
    /// Whether `labels` meet it.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.admits(labels.iter().find(|(key, _)| *key == self.key).map(|(_, value)| &**value))
    }

    /// Whether the value of the key meets it; `None` if the key is absent.
    pub(crate) fn admits(&self, value: Option<&str>) -> bool {
        let among = |values: &[Box<str>], value: &str| values.iter().any(|one| **one == *value);
        match (&self.operator, value) {
            (Operator::In(values), Some(value)) => among(values, value),
            (Operator::NotIn(values), Some(value)) => !among(values, value),
            (Operator::NotIn(_) | Operator::DoesNotExist, None) => true,
            (Operator::Exists, Some(_)) => true,
            (Operator::Gt(bound), Some(value)) => value.parse().is_ok_and(|v: i64| v > *bound),
            (Operator::Lt(bound), Some(value)) => value.parse().is_ok_and(|v: i64| v < *bound),
            (Operator::DoesNotExist, Some(_)) => false,
            (Operator::In(_) | Operator::Exists | Operator::Gt(_) | Operator::Lt(_), None) => false,
        }
    }
}

/// Where the pods of a pod set may run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Selection {
    /// `nodeSelector`, sorted by key.
    pub node_selector: Vec<(Box<str>, Box<str>)>,
    /// Required node affinity: any of these terms, each a conjunction. `None` asks for nothing.
    pub affinity: Option<Vec<Vec<Requirement>>>,
    /// Tolerations.
    pub tolerations: Vec<Toleration>,
}

impl Selection {
    /// The first taint that keeps the pods away, given `extra` tolerations.
    pub fn untolerated<'a>(
        &self,
        taints: &'a [Taint],
        extra: &[Toleration],
    ) -> Option<(usize, &'a Taint)> {
        let tolerated = |taint: &Taint| {
            taint.effect == Effect::PreferNoSchedule
                || self.tolerations.iter().chain(extra).any(|one| one.tolerates(taint))
        };
        taints.iter().enumerate().find(|(_, taint)| !tolerated(taint))
    }

    /// Nothing is asked of labels.
    pub(crate) fn takes_any_labels(&self) -> bool {
        self.node_selector.is_empty() && self.affinity.is_none()
    }

    /// Whether labels match, all of them counted: the rule for single nodes.
    pub fn matches_node(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.matches(labels, |_| true)
    }

    /// Whether labels match, looking only at keys in `labels`: the rule for flavors. A term that loses all its
    /// requirements matches everything.
    pub fn matches_flavor(&self, labels: &[(Box<str>, Box<str>)], keys: &[Box<str>]) -> bool {
        self.matches(labels, |key| keys.iter().any(|known| **known == *key))
    }

    fn matches(&self, labels: &[(Box<str>, Box<str>)], counts: impl Fn(&str) -> bool) -> bool {
        let selected = self.node_selector.iter().filter(|(key, _)| counts(key));
        let mut selected = selected.map(|wanted| labels.contains(wanted));
        if !selected.all(|found| found) {
            return false;
        }
        let Some(terms) = &self.affinity else {
            return true;
        };
        terms
            .iter()
            .any(|term| term.iter().filter(|one| counts(&one.key)).all(|one| one.matches(labels)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
        pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
    }

    fn within(key: &str, values: &[&str]) -> Requirement {
        let values = values.iter().map(|&value| value.into()).collect();
        Requirement { key: key.into(), operator: Operator::In(values) }
    }

    #[test]
    fn only_keys_that_count_are_compared() {
        let selection = Selection {
            node_selector: labels(&[("zone", "a"), ("disk", "ssd")]),
            ..Selection::default()
        };
        assert!(selection.matches_flavor(&labels(&[("zone", "a")]), &["zone".into()]));
        assert!(!selection.matches_flavor(&labels(&[("zone", "b")]), &["zone".into()]));
        assert!(!selection.matches_node(&labels(&[("zone", "a")])));
    }

    #[test]
    fn one_term_of_the_affinity_is_enough() {
        let affinity = Some(vec![vec![within("zone", &["a"])], vec![within("zone", &["b"])]]);
        let selection = Selection { affinity, ..Selection::default() };
        assert!(selection.matches_node(&labels(&[("zone", "b")])));
        assert!(!selection.matches_node(&labels(&[("zone", "c")])));
    }

    #[test]
    fn a_toleration_names_key_value_and_effect() {
        let taint = Taint { key: "team".into(), value: "a".into(), effect: Effect::NoExecute };
        let tolerate = |key: &str, value: Option<&str>, effect| Toleration {
            key: key.into(),
            value: value.map(Into::into),
            effect,
        };
        assert!(tolerate("", None, None).tolerates(&taint));
        assert!(tolerate("team", Some("a"), None).tolerates(&taint));
        assert!(!tolerate("team", Some("b"), None).tolerates(&taint));
        assert!(!tolerate("team", None, Some(Effect::NoSchedule)).tolerates(&taint));
    }
}
