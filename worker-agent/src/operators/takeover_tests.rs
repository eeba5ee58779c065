//! When operators run: what is asked of the API server over changes of labels and leases.

use std::{convert::Infallible, sync::Arc, time::Duration};

use jiff::Timestamp;
use kube::{Client, client::Body};
use leader::ClientMetrics;
use parking_lot::Mutex;
use ray::security::SecurityConfig;
use runtime::{Stop, events::Reporter, lease::Leadership};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::JoinHandle, time};

use super::{AllSettings, LeaseSightings, OperatorMode, Operators, PhaseMetrics};

/// A cluster that serves every kind and has no objects beside definitions and leases.
#[derive(Default)]
struct OperatedCluster {
    is_labelled: bool,
    /// The lease of the official operator of Ray, if there is one.
    lease: Option<Value>,
    /// Answers about paths with this part take so many seconds.
    slow: Option<(&'static str, u64)>,
    /// Paths that were asked for.
    asked: Vec<String>,
}

/// See [`OperatedCluster`].
#[derive(Clone, Default)]
struct SharedCluster {
    cluster: Arc<Mutex<OperatedCluster>>,
    /// The lease was written.
    lease_changed: Arc<Notify>,
}

impl SharedCluster {
    fn client(&self) -> Client {
        let shared = self.clone();
        let service = tower::service_fn(move |request: hyper::Request<Body>| {
            let shared = shared.clone();
            async move {
                let answer = shared.answer(request.uri().clone()).await;
                Ok::<_, Infallible>(hyper::Response::new(Body::from(
                    answer.to_string().into_bytes(),
                )))
            }
        });
        Client::new(service, "default")
    }

    async fn answer(&self, uri: hyper::Uri) -> Value {
        let path = uri.path().to_owned();
        let query = uri.query().unwrap_or_default().to_owned();
        let is_watch = query.contains("watch=true");
        let of_ray = query.contains("ray-operator-leader");
        self.cluster.lock().asked.push(format!("{path} watch={is_watch}"));
        if is_watch && path.ends_with("/leases") && of_ray {
            self.lease_changed.notified().await;
            let lease = self.cluster.lock().lease.clone();
            return json!({"type": "MODIFIED", "object": lease});
        }
        if is_watch {
            std::future::pending::<()>().await;
        }
        let slow = self.cluster.lock().slow;
        if let Some((_, delay)) = slow.filter(|(part, _)| path.contains(part)) {
            seconds(delay).await;
        }
        let cluster = self.cluster.lock();
        if let Some((_, name)) = path.split_once("/customresourcedefinitions/") {
            let label = cluster.is_labelled.then_some("sluice-agent");
            return json!({
                "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
                "metadata": {"name": name, "labels": {"sluice.dev/operated-by": label.unwrap_or("other")}},
            });
        }
        let leases = cluster.lease.iter().filter(|_| path.ends_with("/leases") && of_ray);
        let items: Vec<&Value> = leases.collect();
        json!({
            "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": "1"}, "items": items,
        })
    }

    /// How often the objects of a kind were listed.
    fn lists(&self, plural: &str) -> usize {
        let wanted = format!("/{plural} watch=false");
        self.cluster.lock().asked.iter().filter(|path| path.ends_with(&wanted)).count()
    }

    /// Writes the lease of the official operator of Ray, or removes it.
    fn set_lease(&self, lease: Option<Value>) {
        self.cluster.lock().lease = lease;
    }
}

/// A lease that is held, in the time of the clock, as long as a test runs.
fn held_lease() -> Value {
    let renewed = Timestamp::now();
    json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "ray-operator-leader", "namespace": "ray", "uid": "u", "resourceVersion": "2"},
        "spec": {"holderIdentity": "it", "leaseDurationSeconds": 3600, "renewTime": renewed.to_string()},
    })
}

fn run(cluster: &SharedCluster, mode: OperatorMode) -> (Stop, JoinHandle<()>) {
    run_secured(cluster, mode, None)
}

fn run_secured(
    cluster: &SharedCluster,
    mode: OperatorMode,
    security: Option<SecurityConfig>,
) -> (Stop, JoinHandle<()>) {
    let operators = Operators {
        mode,
        client: cluster.client(),
        metrics: ClientMetrics::default(),
        phases: PhaseMetrics::default(),
        reporter: Reporter { component: "test".to_owned(), instance: "test".to_owned() },
        head_proxy: None,
        components: appwrapper::AllowedComponents::default(),
        settings: AllSettings::default(),
        security,
        namespace: "kueue-system".to_owned(),
        sightings: LeaseSightings::default(),
    };
    let stop = Stop::new();
    let task = tokio::spawn(operators.run(Leadership::alone(), stop.clone()));
    (stop, task)
}

async fn seconds(seconds: u64) {
    time::sleep(Duration::from_secs(seconds)).await;
}

async fn end((stop, task): (Stop, JoinHandle<()>)) {
    stop.cancel();
    task.await.expect("it ends with the process");
}

#[tokio::test(start_paused = true)]
async fn off_asks_the_api_server_nothing() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().is_labelled = true;
    let running = run(&cluster, OperatorMode::Off);
    seconds(300).await;
    assert_eq!(cluster.cluster.lock().asked, [""; 0]);
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn on_operates_all_kinds_over_a_held_lease() {
    let cluster = SharedCluster::default();
    cluster.set_lease(Some(held_lease()));
    let running = run(&cluster, OperatorMode::On);
    seconds(100).await;
    let kinds = ["rayclusters", "rayjobs", "rayservices", "raycronjobs", "appwrappers"];
    assert_eq!(kinds.map(|plural| cluster.lists(plural)), [1; 5]);
    assert_eq!((cluster.lists("leases"), cluster.lists("nodes")), (0, 1));
    end(running).await;
}

/// The kinds of Ray wait for their official operator, those of AppWrapper do not.
#[tokio::test(start_paused = true)]
async fn auto_leaves_the_kinds_of_a_held_lease_and_takes_them_after_it() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().is_labelled = true;
    cluster.set_lease(Some(held_lease()));
    let running = run(&cluster, OperatorMode::Auto);
    let lists = || (cluster.lists("rayclusters"), cluster.lists("appwrappers"));
    seconds(100).await;
    assert_eq!(lists(), (0, 1));
    cluster.set_lease(None);
    seconds(70).await;
    assert_eq!(lists(), (1, 2), "all kinds are watched again");
    end(running).await;
}

/// The watch of the lease shows at once that the official operator is back.
#[tokio::test(start_paused = true)]
async fn auto_stops_within_a_second_after_a_renewal() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().is_labelled = true;
    let running = run(&cluster, OperatorMode::Auto);
    seconds(5).await;
    assert_eq!(cluster.lists("rayclusters"), 1);
    let checks = cluster.lists("leases");
    cluster.set_lease(Some(held_lease()));
    cluster.lease_changed.notify_one();
    seconds(1).await;
    assert!(cluster.lists("leases") > checks, "it was looked at");
    seconds(60).await;
    assert_eq!((cluster.lists("rayclusters"), cluster.lists("appwrappers")), (1, 2));
    end(running).await;
}

#[tokio::test(start_paused = true)]
async fn auto_follows_the_label() {
    let cluster = SharedCluster::default();
    let running = run(&cluster, OperatorMode::Auto);
    seconds(100).await;
    assert_eq!(cluster.lists("rayclusters"), 0);
    for (is_labelled, expected) in [(true, 1), (false, 1), (true, 2)] {
        cluster.cluster.lock().is_labelled = is_labelled;
        seconds(70).await;
        assert_eq!(cluster.lists("rayclusters"), expected, "{is_labelled}");
    }
    end(running).await;
}

/// A report for an administrator delays no object.
#[tokio::test(start_paused = true)]
async fn operators_run_while_the_policy_about_rights_is_read() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().slow = Some(("/validatingadmissionpolicies/", 1000));
    let running = run(&cluster, OperatorMode::On);
    seconds(100).await;
    assert_eq!(cluster.lists("appwrappers"), 1);
    end(running).await;
}

/// What makes a cluster OpenShift.
const ROUTES: &str = "/apis/route.openshift.io/";

fn security() -> Option<SecurityConfig> {
    let images = "certGeneratorImage: a, oauthProxyImage: b";
    let text = format!("kuberay: {{ingressDomain: apps.example, {images}}}");
    Some(SecurityConfig::parse(&text).expect("a configuration"))
}

#[tokio::test(start_paused = true)]
async fn facts_of_the_security_are_awaited_for_seconds_only() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().is_labelled = true;
    cluster.cluster.lock().slow = Some((ROUTES, 1000));
    let running = run_secured(&cluster, OperatorMode::Auto, security());
    seconds(60).await;
    let checks = cluster.lists("leases");
    seconds(60).await;
    assert!(cluster.lists("leases") > checks, "the leases are read again");
    assert_eq!(cluster.lists("rayclusters"), 0, "none that is not secured");
    end(running).await;
}

/// Leases count as they are when the operators start, however long the security took.
#[tokio::test(start_paused = true)]
async fn an_operator_that_comes_while_the_security_is_read_is_left_its_kinds() {
    let cluster = SharedCluster::default();
    cluster.cluster.lock().is_labelled = true;
    cluster.cluster.lock().slow = Some((ROUTES, 5));
    let running = run_secured(&cluster, OperatorMode::Auto, security());
    seconds(2).await;
    cluster.set_lease(Some(held_lease()));
    seconds(5).await;
    assert_eq!((cluster.lists("rayclusters"), cluster.lists("appwrappers")), (0, 1));
    end(running).await;
}
