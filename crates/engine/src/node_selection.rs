//! Whether the pods of a pod set may run on a flavor's nodes: taints, tolerations, node labels, node affinity.
//!
//! The same rules serve ResourceFlavors (where only the keys that the flavor labels count) and single nodes. Source:
//! docs/reference/kueue.md §4.4 step 2.

use std::fmt;

/// What a taint does to pods that do not tolerate it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TaintEffect {
    /// They are not placed there.
    NoSchedule,
    /// They are placed there only if nothing else is left: ignored here.
    PreferNoSchedule,
    /// They are not placed there and those running are removed.
    NoExecute,
}

impl TaintEffect {
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
pub struct NodeTaint {
    /// Key.
    pub key: Box<str>,
    /// Value, may be empty.
    pub value: Box<str>,
    /// Effect.
    pub effect: TaintEffect,
}

/// As people write it.
impl fmt::Display for NodeTaint {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = if self.value.is_empty() { "" } else { "=" };
        write!(to, "{}{value}{}:{}", self.key, self.value, self.effect.name())
    }
}

/// A toleration.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PodToleration {
    /// Key; empty tolerates every key (with [`TolerationOperator::Exists`]).
    pub key: Box<str>,
    /// Which values.
    pub operator: TolerationOperator,
    /// `None` tolerates every effect.
    pub effect: Option<TaintEffect>,
}

/// Which values of a taint are tolerated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TolerationOperator {
    /// All.
    Exists,
    /// This one.
    Equal(Box<str>),
    /// Integers above this one.
    Gt(i64),
    /// Integers below this one.
    Lt(i64),
}

impl PodToleration {
    fn tolerates(&self, taint: &NodeTaint) -> bool {
        self.effect.is_none_or(|effect| effect == taint.effect)
            && (self.key.is_empty() || self.key == taint.key)
            && match &self.operator {
                TolerationOperator::Exists => true,
                TolerationOperator::Equal(value) => *value == taint.value,
                TolerationOperator::Gt(bound) => integer(&taint.value).is_some_and(|v| v > *bound),
                TolerationOperator::Lt(bound) => integer(&taint.value).is_some_and(|v| v < *bound),
            }
    }
}

/// The integer that a taint or a toleration names: without leading zeros or a plus, as Kubernetes wants it.
pub fn integer(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| number.to_string() == text)
}

/// How a requirement compares.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum LabelOperator {
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
pub struct LabelRequirement {
    /// The label's key.
    pub key: Box<str>,
    /// What it must be.
    pub operator: LabelOperator,
}

impl LabelRequirement {
    /// Whether `labels` meet it.
    pub fn matches(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.admits(labels.iter().find(|(key, _)| *key == self.key).map(|(_, value)| &**value))
    }

    /// Whether the value of the key meets it; `None` if the key is absent.
    pub(crate) fn admits(&self, value: Option<&str>) -> bool {
        let among = |values: &[Box<str>], value: &str| values.iter().any(|one| **one == *value);
        match (&self.operator, value) {
            (LabelOperator::In(values), Some(value)) => among(values, value),
            (LabelOperator::NotIn(values), Some(value)) => !among(values, value),
            (LabelOperator::NotIn(_) | LabelOperator::DoesNotExist, None) => true,
            (LabelOperator::Exists, Some(_)) => true,
            (LabelOperator::Gt(bound), Some(value)) => value.parse().is_ok_and(|v: i64| v > *bound),
            (LabelOperator::Lt(bound), Some(value)) => value.parse().is_ok_and(|v: i64| v < *bound),
            (LabelOperator::DoesNotExist, Some(_)) => false,
            (
                LabelOperator::In(_)
                | LabelOperator::Exists
                | LabelOperator::Gt(_)
                | LabelOperator::Lt(_),
                None,
            ) => false,
        }
    }
}

/// A term of node affinity: all that a node must meet at once.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSelectorTerm {
    /// `matchExpressions`: what its labels must be.
    pub labels: Vec<LabelRequirement>,
    /// `matchFields`: what its name must be.
    pub fields: Vec<LabelRequirement>,
}

impl NodeSelectorTerm {
    /// The only field of a node that terms may name.
    pub const NAME: &str = "metadata.name";

    /// Whether a node meets it. A term that asks for nothing matches nothing, as in Kubernetes.
    pub fn matches(&self, name: &str, labels: &[(Box<str>, Box<str>)]) -> bool {
        let field = |key: &str| (key == Self::NAME).then_some(name);
        self.asks()
            && self.met(labels, |_| true)
            && self.fields.iter().all(|one| one.admits(field(&one.key)))
    }

    fn asks(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Whether labels meet it, as far as their keys count.
    fn met(&self, labels: &[(Box<str>, Box<str>)], counts: impl Fn(&str) -> bool) -> bool {
        self.labels.iter().filter(|one| counts(&one.key)).all(|one| one.matches(labels))
    }
}

/// Where the pods of a pod set may run.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct NodeSelection {
    /// `nodeSelector`, sorted by key.
    pub node_selector: Vec<(Box<str>, Box<str>)>,
    /// Required node affinity: any of these terms. `None` asks for nothing.
    pub affinity: Option<Vec<NodeSelectorTerm>>,
    /// Tolerations.
    pub tolerations: Vec<PodToleration>,
}

impl NodeSelection {
    /// The first taint that keeps the pods away, given `extra` tolerations.
    pub fn untolerated<'a>(
        &self,
        taints: &'a [NodeTaint],
        extra: &[PodToleration],
    ) -> Option<(usize, &'a NodeTaint)> {
        let tolerated = |taint: &NodeTaint| {
            taint.effect == TaintEffect::PreferNoSchedule
                || self.tolerations.iter().chain(extra).any(|one| one.tolerates(taint))
        };
        taints.iter().enumerate().find(|(_, taint)| !tolerated(taint))
    }

    /// Nothing is asked of labels.
    pub(crate) fn takes_any_labels(&self) -> bool {
        self.node_selector.is_empty() && self.affinity.is_none()
    }

    /// Whether the node selector picks a node with these labels.
    pub(crate) fn selects_node(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.selects(labels, |_| true)
    }

    /// Whether the required affinity allows a node.
    pub fn allows_node(&self, name: &str, labels: &[(Box<str>, Box<str>)]) -> bool {
        self.one_term(|term| term.matches(name, labels))
    }

    /// Whether a node may suit of which the labels with these keys are known, and nothing else.
    pub fn may_match_node(&self, labels: &[(Box<str>, Box<str>)], keys: &[Box<str>]) -> bool {
        let counts = |key: &str| keys.iter().any(|known| **known == *key);
        self.selects(labels, counts)
            && self.one_term(|term| term.asks() && term.met(labels, counts))
    }

    /// Whether a flavor with these labels suits: only keys that it labels count, and fields never do. A term of which
    /// nothing is left matches everything, and so does an affinity without terms.
    pub(crate) fn matches_flavor(&self, labels: &[(Box<str>, Box<str>)]) -> bool {
        let counts = |key: &str| labels.iter().any(|(known, _)| **known == *key);
        let asks = self.affinity.as_ref().is_some_and(|terms| !terms.is_empty());
        self.selects(labels, counts) && (!asks || self.one_term(|term| term.met(labels, counts)))
    }

    fn selects(&self, labels: &[(Box<str>, Box<str>)], counts: impl Fn(&str) -> bool) -> bool {
        let mut wanted = self.node_selector.iter().filter(|(key, _)| counts(key));
        wanted.all(|one| labels.contains(one))
    }

    fn one_term(&self, matches: impl Fn(&NodeSelectorTerm) -> bool) -> bool {
        self.affinity.as_ref().is_none_or(|terms| terms.iter().any(matches))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> Vec<(Box<str>, Box<str>)> {
        pairs.iter().map(|&(key, value)| (key.into(), value.into())).collect()
    }

    fn within(key: &str, values: &[&str]) -> LabelRequirement {
        let values = values.iter().map(|&value| value.into()).collect();
        LabelRequirement { key: key.into(), operator: LabelOperator::In(values) }
    }

    #[test]
    fn only_keys_that_count_are_compared() {
        let selection = NodeSelection {
            node_selector: labels(&[("zone", "a"), ("disk", "ssd")]),
            ..NodeSelection::default()
        };
        assert!(selection.matches_flavor(&labels(&[("zone", "a")])));
        assert!(!selection.matches_flavor(&labels(&[("zone", "b")])));
        assert!(!selection.selects_node(&labels(&[("zone", "a")])));
    }

    fn required(terms: &[NodeSelectorTerm]) -> NodeSelection {
        NodeSelection { affinity: Some(terms.to_vec()), ..NodeSelection::default() }
    }

    fn labelled(key: &str, values: &[&str]) -> NodeSelectorTerm {
        NodeSelectorTerm { labels: vec![within(key, values)], fields: Vec::new() }
    }

    #[test]
    fn one_term_of_the_affinity_is_enough() {
        let selection = required(&[labelled("zone", &["a"]), labelled("zone", &["b"])]);
        assert!(selection.allows_node("n1", &labels(&[("zone", "b")])));
        assert!(!selection.allows_node("n1", &labels(&[("zone", "c")])));
    }

    #[test]
    fn a_field_of_a_term_is_the_name_of_the_node() {
        let one = NodeSelectorTerm {
            fields: vec![within(NodeSelectorTerm::NAME, &["n1"])],
            ..labelled("zone", &["a"])
        };
        let selection = required(&[one]);
        let (here, elsewhere) = (labels(&[("zone", "a")]), labels(&[("zone", "b")]));
        assert!(selection.allows_node("n1", &here));
        assert!(!selection.allows_node("n2", &here));
        assert!(!selection.allows_node("n1", &elsewhere));
        assert!(selection.matches_flavor(&here));
        assert!(!selection.matches_flavor(&elsewhere));
    }

    #[test]
    fn what_is_not_known_of_a_node_may_match() {
        let named = NodeSelectorTerm {
            fields: vec![within(NodeSelectorTerm::NAME, &["n1"])],
            ..NodeSelectorTerm::default()
        };
        let zone = labels(&[("zone", "b")]);
        let may =
            |terms: &[NodeSelectorTerm]| required(terms).may_match_node(&zone, &["zone".into()]);
        assert!(may(&[labelled("disk", &["ssd"])]));
        assert!(may(&[named]));
        assert!(!may(&[labelled("zone", &["a"])]));
        assert!(!may(&[NodeSelectorTerm::default()]));
        assert!(!may(&[]));
    }

    #[test]
    fn what_asks_for_nothing_matches_every_flavor_and_no_node() {
        for selection in [required(&[]), required(&[NodeSelectorTerm::default()])] {
            assert!(selection.matches_flavor(&labels(&[("zone", "a")])));
            assert!(!selection.allows_node("n1", &labels(&[("zone", "a")])));
        }
    }

    #[test]
    fn a_toleration_names_key_value_and_effect() {
        let taint =
            NodeTaint { key: "team".into(), value: "a".into(), effect: TaintEffect::NoExecute };
        let tolerates = |key: &str, value: Option<&str>, effect| {
            let operator = value
                .map_or(TolerationOperator::Exists, |one| TolerationOperator::Equal(one.into()));
            PodToleration { key: key.into(), operator, effect }.tolerates(&taint)
        };
        assert!(tolerates("", None, None));
        assert!(tolerates("team", Some("a"), None));
        assert!(!tolerates("team", Some("b"), None));
        assert!(!tolerates("team", None, Some(TaintEffect::NoSchedule)));
    }

    #[test]
    fn a_toleration_may_compare_integers() {
        let tolerates = |operator: &TolerationOperator, value: &str| {
            let (key, effect): (Box<str>, _) = ("failures".into(), TaintEffect::NoSchedule);
            let taint = NodeTaint { key: key.clone(), value: value.into(), effect };
            PodToleration { key, operator: operator.clone(), effect: None }.tolerates(&taint)
        };
        let (few, many) = (TolerationOperator::Lt(5), TolerationOperator::Gt(5));
        assert!(tolerates(&few, "4") && tolerates(&many, "6"));
        for value in ["5", "", "x", "05", "+6", "4.5"] {
            assert!(!tolerates(&few, value) && !tolerates(&many, value), "{value}");
        }
    }
}
