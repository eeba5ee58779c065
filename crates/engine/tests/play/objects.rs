//! Lines about objects, converted to events.

use engine::ids::CheckId;
use engine::node_selection::{
    LabelOperator, LabelRequirement, NodeSelection, NodeSelectorTerm, NodeTaint, PodToleration,
    TaintEffect, TolerationOperator,
};
use engine::spec::{
    AdmissionCheckRule, BorrowWithinCohortSpec, CheckSpec, CheckState, ClusterQueueInfo,
    CohortInfo, FairSharingWeight, FlavorFungibilityPolicy, FlavorFungibilityPreference,
    FlavorQuotaSpec, FlavorSpec, FungibilitySpec, LocalQueueInfo, NamespaceSelector, PodSetSpec,
    PreemptionPolicy, PreemptionSpec, QueueingStrategy, QuotaSpec, ResourceGroupSpec,
    TopologyTiming, WorkloadInfo,
};
use engine::topology::{
    HOSTNAME_LABEL, PreferredTerm, TopologyLevels, TopologyMode, TopologyNodeSpec, TopologyRequest,
};
use engine::{AdmissionFairSharingSettings, Amount, Event, Names, NanoAmount, Time};

use crate::play::words::{Words, label, pair};
use crate::play::{Player, SECOND};

/// Keys of a Workload line that are not resources.
const KEYS: [&str; 22] = [
    "check",
    "q",
    "ns",
    "prio",
    "t",
    "uid",
    "pods",
    "min",
    "name",
    "on",
    "in",
    "prefers",
    "tolerate",
    "required",
    "preferred",
    "slice",
    "group",
    "hold",
    "template",
    "replaces",
    "allowed",
    "family",
];

impl Player {
    /// A line about an object.
    pub(super) fn object(&mut self, words: &Words<'_>) {
        match words.kind() {
            "flavor" => self.flavor(words),
            "topology" => self.topology(words),
            "node" => self.host(words),
            "namespace" => self.namespace(words),
            "check" => self.check(words),
            "cohort" => self.cohort(words),
            "cq" => self.queue(words),
            "lq" => self.local_queue(words),
            _ => self.workload(words),
        }
    }

    fn flavor(&mut self, words: &Words<'_>) {
        let mut labels: Vec<_> = words.all("label").map(label).collect();
        labels.sort();
        let names = self.engine.names_mut();
        let topology = words.text("topology").map(|one| names.topologies.intern(one));
        let id = names.flavors.intern(words.name());
        let tolerations = words.all("tolerate").map(toleration).collect();
        let taints = words.all("taint").map(taint).collect();
        let spec = FlavorSpec { labels, taints, tolerations, topology };
        self.apply_object("flavor", words.name(), Event::Flavor(id, Some(spec)));
    }

    fn topology(&mut self, words: &Words<'_>) {
        let levels = words.text("levels").unwrap_or_default().split(',').map(level).collect();
        let id = self.engine.names_mut().topologies.intern(words.name());
        let event = Event::Topology(id, Some(TopologyLevels { levels }));
        self.apply_object("topology", words.name(), event);
    }

    fn host(&mut self, words: &Words<'_>) {
        let names = self.engine.names_mut();
        let own_label = words.text(HOSTNAME_LABEL).is_none();
        let own_label = own_label.then(|| (HOSTNAME_LABEL.into(), words.name().into()));
        let mut labels: Vec<(Box<str>, Box<str>)> = own_label.into_iter().collect();
        let pods = names.resources.intern("pods");
        let mut allocatable = vec![(pods, Amount(words.number("pods").unwrap_or(100)))];
        let (mut foreign, mut leaving) = (Vec::new(), Vec::new());
        for (key, value) in words.pairs().filter(|(key, _)| !["taint", "pods"].contains(key)) {
            if let (Some(resource), Ok(amount)) = (key.strip_prefix("leaving/"), value.parse()) {
                leaving.push((names.resources.intern(resource), Amount(amount)));
                continue;
            }
            match (key.strip_prefix("used/"), value.parse().map(Amount)) {
                (Some(resource), Ok(amount)) => {
                    foreign.push((names.resources.intern(resource), amount));
                }
                (None, Ok(amount)) => allocatable.push((names.resources.intern(key), amount)),
                (_, Err(_)) => labels.push((key.into(), value.into())),
            }
        }
        labels.sort();
        let spec = TopologyNodeSpec {
            name: words.name().into(),
            labels,
            taints: words.all("taint").map(taint).collect(),
            usable: !words.has("down"),
            allocatable,
            foreign,
            leaving,
        };
        let id = names.nodes.intern(words.name());
        self.apply_object("node", words.name(), Event::Node(id, Some(spec)));
    }

    fn namespace(&mut self, words: &Words<'_>) {
        let mut labels: Vec<(Box<str>, Box<str>)> =
            words.pairs().map(|(key, value)| (key.into(), value.into())).collect();
        labels.sort();
        let id = self.engine.names_mut().namespaces.intern(words.name());
        self.apply_object("namespace", words.name(), Event::Namespace(id, Some(labels)));
    }

    fn check(&mut self, words: &Words<'_>) {
        let topology = match words.text("topology") {
            None => TopologyTiming::WithQuota,
            Some("after-checks") => TopologyTiming::AfterChecks,
            Some("on-worker") => TopologyTiming::OnWorker,
            Some(other) => unreachable!("unknown time {other}"),
        };
        let generation = words.number("generation").unwrap_or_default();
        let spec = CheckSpec { active: !words.has("inactive"), topology, generation };
        let id = self.engine.names_mut().checks.intern(words.name());
        self.apply_object("check", words.name(), Event::Check(id, Some(spec)));
    }

    pub(super) fn sharing(&mut self, words: &Words<'_>) {
        let seconds = |key| words.number(key).unwrap_or(0) * SECOND;
        let (usage_half_life, interval) = (seconds("half-life"), seconds("interval"));
        let weighed = words.pairs().filter(|(key, _)| !["half-life", "interval"].contains(key));
        let names = self.engine.names_mut();
        let weights = weighed.map(|(key, text)| (names.resources.intern(key), weight_of(text)));
        let sharing =
            AdmissionFairSharingSettings { usage_half_life, interval, weights: weights.collect() };
        self.engine.apply(Event::AdmissionFairSharing(Some(sharing)));
    }

    pub(super) fn consumed(&mut self, words: &Words<'_>) {
        let now = self.now();
        let names = self.engine.names_mut();
        let id = names.local_queues.intern(words.name());
        let amount = |text: &str| NanoAmount::from(Amount(text.parse().expect("an amount")));
        let all = words.pairs().map(|(key, text)| (names.resources.intern(key), amount(text)));
        let all = all.collect();
        self.engine.apply(Event::ConsumedResources(id, all, now));
    }

    fn cohort(&mut self, words: &Words<'_>) {
        let groups = self.groups(words);
        let names = self.engine.names_mut();
        let parent = words.text("parent").map(|one| names.cohorts.intern(one));
        let id = names.cohorts.intern(words.name());
        let spec = CohortInfo { parent, groups, weight: weight(words) };
        self.apply_object("cohort", words.name(), Event::Cohort(id, Some(spec)));
    }

    fn queue(&mut self, words: &Words<'_>) {
        let groups = self.groups(words);
        let names = self.engine.names_mut();
        let checks = words.all("check").map(|text| rule(names, text)).collect();
        let cohort = words.text("cohort").map(|one| names.cohorts.intern(one));
        let id = names.queues.intern(words.name());
        let borrow_within_cohort = words.has("borrow-within-cohort").then_some(None);
        let borrow_within_cohort =
            borrow_within_cohort.or_else(|| words.number("borrow-within-cohort").map(Some));
        let chosen = |flag| {
            if words.has(flag) {
                FlavorFungibilityPolicy::TryNextFlavor
            } else {
                FlavorFungibilityPolicy::MayStopSearch
            }
        };
        let spec = ClusterQueueInfo {
            generation: words.number("generation").unwrap_or(0),
            cohort,
            groups,
            strategy: if words.has("strict") {
                QueueingStrategy::StrictFifo
            } else {
                QueueingStrategy::BestEffortFifo
            },
            preemption: PreemptionSpec {
                within_cluster_queue: policy(words.text("within")),
                reclaim: policy(words.text("reclaim")),
                borrow: borrow_within_cohort
                    .map(|max_priority| BorrowWithinCohortSpec { max_priority }),
            },
            flavor_fungibility: FungibilitySpec {
                when_can_borrow: chosen("borrow-next"),
                when_can_preempt: if words.has("preempt-stops") {
                    FlavorFungibilityPolicy::MayStopSearch
                } else {
                    FlavorFungibilityPolicy::TryNextFlavor
                },
                preference: if words.has("prefer-preempting") {
                    FlavorFungibilityPreference::PreemptionOverBorrowing
                } else {
                    FlavorFungibilityPreference::BorrowingOverPreemption
                },
            },
            weight: weight(words),
            stopped: words.has("stopped"),
            ready: !words.has("not-ready"),
            namespaces: selector(words),
            checks,
            last_acceptable_flavor: words.text("last").map(|one| names.flavors.intern(one)),
            admission_fair_sharing: words.has("usage-based"),
        };
        self.apply_object("cq", words.name(), Event::ClusterQueue(id, Some(Box::new(spec))));
        if !self.known.contains_key(&("lq", words.name().to_owned())) {
            let line = format!("lq {0} cq={0}", words.name());
            self.line(&line);
        }
    }

    fn local_queue(&mut self, words: &Words<'_>) {
        let names = self.engine.names_mut();
        let queue = names.queues.intern(words.text("cq").expect("a queue"));
        let id = names.local_queues.intern(words.name());
        let spec = LocalQueueInfo { queue, stopped: words.has("stopped"), weight: weight(words) };
        self.apply_object("lq", words.name(), Event::LocalQueue(id, Some(spec)));
    }

    /// All `resource/flavor=amount` words; `borrow` and `lend` apply to those without their own.
    fn groups(&mut self, words: &Words<'_>) -> Vec<ResourceGroupSpec> {
        let limit = |name| words.number(name).map(Amount);
        let limits = (limit("borrow"), limit("lend"));
        let parts = words.parts().into_iter().map(|part| self.group(&part, limits));
        parts.collect::<Vec<_>>().into_iter().filter(|one| !one.flavors.is_empty()).collect()
    }

    fn group(
        &mut self,
        words: &Words<'_>,
        (borrow, lend): (Option<Amount>, Option<Amount>),
    ) -> ResourceGroupSpec {
        let mut group = ResourceGroupSpec::default();
        for (key, value) in words.pairs() {
            let Some((resource, name)) = key.rsplit_once('/') else {
                continue;
            };
            if !self.known.contains_key(&("flavor", name.to_owned())) {
                self.line(&format!("flavor {name}"));
            }
            let names = self.engine.names_mut();
            let (resource, flavor) = (names.resources.intern(resource), names.flavors.intern(name));
            let quota = quota(resource, value, borrow, lend);
            if !group.resources.contains(&resource) {
                group.resources.push(resource);
            }
            match group.flavors.iter_mut().find(|one| one.flavor == flavor) {
                Some(one) => one.resources.push(quota),
                None => group.flavors.push(FlavorQuotaSpec { flavor, resources: vec![quota] }),
            }
        }
        group
    }

    fn workload(&mut self, words: &Words<'_>) {
        let parts = words.parts();
        let pod_sets = parts.iter().enumerate().map(|(index, part)| self.pod_set(part, index));
        let pod_sets = pod_sets.collect();
        let names = self.engine.names_mut();
        let checks = words.all("check").map(|text| state(names, text)).collect();
        let spec = WorkloadInfo {
            namespace: names.namespaces.intern(words.text("ns").unwrap_or("ns")),
            local_queue: words.text("q").map(|queue| names.local_queues.intern(queue)),
            uid: words.text("uid").unwrap_or(words.name()).into(),
            priority: words.number("prio").unwrap_or(0),
            queued_at: Time(words.number("t").unwrap_or(0)),
            pod_sets,
            eligibility: words.eligibility(),
            invalid: words
                .has("invalid")
                .then(|| "resources validation failed: limits are below requests".into()),
            preemption_gated: words.has("gated"),
            has_priority_class: words.has("class"),
            allowed_flavors: words.text("allowed").map(|all| {
                let all = all.split(',').filter(|name| !name.is_empty());
                all.map(|name| names.flavors.intern(name)).collect()
            }),
            variant_of: words.text("family").map(Into::into),
            replaced_slice: words.text("replaces").map(Into::into),
            elastic: words.has("elastic"),
            checks,
            admission: None,
        };
        let id = names.workloads.intern(words.name());
        self.apply_object("wl", words.name(), Event::Workload(id, Box::new(spec)));
    }

    fn pod_set(&mut self, words: &Words<'_>, index: usize) -> PodSetSpec {
        let mut wanted: Vec<(&str, Amount)> = words
            .pairs()
            .filter(|(key, _)| !KEYS.contains(key))
            .map(|(key, value)| (key, amount(value)))
            .collect();
        wanted.sort();
        let names = self.engine.names_mut();
        let mut requests = Vec::new();
        let mut takes = Vec::new();
        for (key, one) in wanted {
            match key.strip_prefix("node/") {
                Some(key) => takes.push((names.resources.intern(key), one)),
                None => requests.push((names.resources.intern(key), one)),
            }
        }
        let usual = if index == 0 { "main".to_owned() } else { format!("more-{index}") };
        PodSetSpec {
            name: words.text("name").unwrap_or(&usual).into(),
            count: words.number("pods").unwrap_or(1),
            reclaimed: 0,
            min_count: words.number("min"),
            requests,
            on_node: (!takes.is_empty()).then(|| takes.into()),
            selection: selection(words),
            preferred: words.all("prefers").map(preferred).collect(),
            topology: wish(words),
            template: words.number("template").unwrap_or(0).unsigned_abs(),
        }
    }
}

/// `check` or `check:flavor,flavor`.
fn rule(names: &mut Names, text: &str) -> AdmissionCheckRule {
    let (check, flavors) = pair(text);
    let flavors = flavors.unwrap_or_default();
    let flavors = flavors.split(',').filter(|name| !name.is_empty());
    AdmissionCheckRule {
        check: names.checks.intern(&check),
        flavors: flavors.map(|name| names.flavors.intern(name)).collect(),
    }
}

/// `check:state`.
fn state(names: &mut Names, text: &str) -> (CheckId, CheckState) {
    let (check, state) = label(text);
    let state = match &*state {
        "pending" => CheckState::Pending,
        "ready" => CheckState::Ready,
        "retry" => CheckState::Retry,
        "rejected" => CheckState::Rejected,
        other => unreachable!("unknown state {other}"),
    };
    (names.checks.intern(&check), state)
}

fn quota(
    resource: engine::ids::ResourceId,
    text: &str,
    borrow: Option<Amount>,
    lend: Option<Amount>,
) -> QuotaSpec {
    let mut parts = text.split(',');
    let nominal = amount(parts.next().unwrap_or_default());
    let (mut borrowing_limit, mut lending_limit) = (borrow, lend);
    for part in parts {
        let (key, value) = part.split_once(':').expect("a limit");
        let value = Some(Amount(value.parse().expect("an amount")));
        match key {
            "borrow" => borrowing_limit = value,
            "lend" => lending_limit = value,
            other => unreachable!("unknown limit {other}"),
        }
    }
    QuotaSpec { resource, nominal, borrowing_limit, lending_limit }
}

/// A number, or `unlimited`.
fn amount(text: &str) -> Amount {
    match text {
        "unlimited" => Amount::UNLIMITED,
        number => Amount(number.parse().expect("an amount")),
    }
}

fn selection(words: &Words<'_>) -> NodeSelection {
    let mut node_selector: Vec<_> = words.all("on").map(label).collect();
    node_selector.sort();
    let terms: Vec<NodeSelectorTerm> = words.all("in").map(node_term).collect();
    let affinity = (!terms.is_empty()).then_some(terms);
    let tolerations = words.all("tolerate").map(toleration).collect();
    NodeSelection { node_selector, affinity, tolerations }
}

/// `weight:` and a term.
fn preferred(text: &str) -> PreferredTerm {
    let (weight, asked) = label(text);
    let weight = weight.parse().expect("a weight");
    PreferredTerm { weight, preference: node_term(&asked) }
}

/// `key:value|value,…`; the key `metadata.name` is a field, all others are labels.
fn node_term(text: &str) -> NodeSelectorTerm {
    let asked = text.split(',').filter(|one| !one.is_empty()).map(within);
    let (fields, labels) = asked.partition(|one| *one.key == *NodeSelectorTerm::NAME);
    NodeSelectorTerm { labels, fields }
}

fn within(text: &str) -> LabelRequirement {
    let (key, values) = label(text);
    LabelRequirement {
        key,
        operator: LabelOperator::In(values.split('|').map(Into::into).collect()),
    }
}

fn wish(words: &Words<'_>) -> Option<TopologyRequest> {
    let mode = match (words.text("required"), words.text("preferred")) {
        (Some(name), _) => Some(TopologyMode::Required(level(name))),
        (None, Some(name)) => Some(TopologyMode::Preferred(level(name))),
        (None, None) => words.has("unconstrained").then_some(TopologyMode::Unconstrained),
    };
    let slices = words.all("slice").map(label);
    let slices = slices.map(|(name, size)| (level(&name), size.parse().expect("a size")));
    let slices: Vec<_> = slices.collect();
    let group = words.text("group").map(Into::into);
    let asks = mode.is_some() || !slices.is_empty() || group.is_some();
    asks.then_some(TopologyRequest { mode, slices, group })
}

/// `node` is short for the host name label.
fn level(name: &str) -> Box<str> {
    if name == "node" { HOSTNAME_LABEL.into() } else { name.into() }
}

fn taint(text: &str) -> NodeTaint {
    let (key, rest) = label(text);
    let (value, effect) = label(&rest);
    let effect = match &*effect {
        "" | "NoSchedule" => TaintEffect::NoSchedule,
        "PreferNoSchedule" => TaintEffect::PreferNoSchedule,
        "NoExecute" => TaintEffect::NoExecute,
        other => unreachable!("unknown effect {other}"),
    };
    NodeTaint { key, value, effect }
}

fn toleration(text: &str) -> PodToleration {
    let (key, value) = pair(text);
    let operator = value.map_or(TolerationOperator::Exists, TolerationOperator::Equal);
    PodToleration { key, operator, effect: None }
}

fn selector(words: &Words<'_>) -> NamespaceSelector {
    if words.has("select-nothing") {
        return NamespaceSelector::Nothing;
    }
    NamespaceSelector::All(words.all("select").map(within).collect())
}

fn weight(words: &Words<'_>) -> FairSharingWeight {
    words.text("weight").map(weight_of).unwrap_or_default()
}

fn weight_of(text: &str) -> FairSharingWeight {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    FairSharingWeight(format!("{whole}{part:0<9}").parse().expect("a weight"))
}

fn policy(name: Option<&str>) -> PreemptionPolicy {
    match name {
        None => PreemptionPolicy::Never,
        Some("lower") => PreemptionPolicy::LowerPriority,
        Some("newer") => PreemptionPolicy::LowerOrNewerEqualPriority,
        Some("any") => PreemptionPolicy::Any,
        Some(other) => unreachable!("unknown policy {other}"),
    }
}
