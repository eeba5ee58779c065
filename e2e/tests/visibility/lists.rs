//! Pending Workloads: their order, pages, reasons, and both replicas.

use anyhow::{Result, ensure};
use e2e::{installation::TIMEOUT, objects};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

use crate::fixture::{ApiResponse, VisibilityFixture, get, until};

/// A Job that no quota suffices for, of a LocalQueue and a priority class.
fn job(name: &str, queue: &str, class: &str) -> Value {
    let mut job = objects::job(name, 1, "2", 1);
    job["metadata"]["labels"] = json!({
        "kueue.x-k8s.io/queue-name": queue,
        "kueue.x-k8s.io/priority-class": class,
    });
    job
}

/// One line per item: the owner, and its positions in ClusterQueue and LocalQueue.
fn lines(response: &ApiResponse) -> Vec<String> {
    let items = response.body["items"].as_array().into_iter().flatten();
    let line = |item: &Value| {
        let owner = item["metadata"]["ownerReferences"][0]["name"].as_str().unwrap_or_default();
        let queue = item["localQueueName"].as_str().unwrap_or_default();
        let positions = (&item["positionInClusterQueue"], &item["positionInLocalQueue"]);
        format!("{owner} {queue} {}/{} {}", positions.0, positions.1, item["priority"])
    };
    items.map(line).collect()
}

/// Four pending Jobs of two LocalQueues and two priorities.
async fn four_jobs(fixture: &VisibilityFixture) -> Result<()> {
    for (class, value) in [("low", 1), ("high", 7)] {
        fixture
            .apply(&json!({
                "apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "WorkloadPriorityClass",
                "metadata": {"name": format!("{}-{class}", fixture.namespace)}, "value": value,
            }))
            .await?;
    }
    let class = |name: &str| format!("{}-{name}", fixture.namespace);
    let all = [
        ("a", "queue", "low"),
        ("b", "other", "low"),
        ("c", "queue", "high"),
        ("d", "queue", "low"),
    ];
    for (count, (name, queue, priority)) in all.into_iter().enumerate() {
        fixture.apply(&job(name, queue, &class(priority))).await?;
        // Times of creation are whole seconds and uids random, so the order is that of distinct seconds.
        let created = fixture
            .until(&fixture.of_cluster_queue("v1beta2"), "has one more", |response| {
                lines(response).len() == count + 1
            })
            .await?;
        until_next_second(&created).await;
    }
    Ok(())
}

/// Whether the first item waits for cpu. Before the leader has seen all objects of the queue, an item waits for one of those.
fn waits_for_cpu(response: &ApiResponse) -> bool {
    response.body["items"][0]["message"].as_str().is_some_and(|message| message.contains("cpu"))
}

/// Waits until the clock shows a later second than the youngest item.
async fn until_next_second(response: &ApiResponse) {
    let items = response.body["items"].as_array().into_iter().flatten();
    let times = items.filter_map(|item| item["metadata"]["creationTimestamp"].as_str());
    let youngest = times.filter_map(|time| time.parse::<Timestamp>().ok()).max();
    // The seconds of API times are rounded down.
    while youngest.is_some_and(|youngest| Timestamp::now().as_second() <= youngest.as_second()) {
        tokio::time::sleep(harness::secs(1) / 20).await;
    }
}

#[tokio::test]
async fn pending_workloads_are_listed_in_the_order_of_their_queue() -> Result<()> {
    let fixture = VisibilityFixture::new("lists").await?;
    four_jobs(&fixture).await?;
    let in_order = ["c queue 0/0 7", "a queue 1/1 1", "b other 2/0 1", "d queue 3/2 1"];
    for version in ["v1beta1", "v1beta2"] {
        let all = fixture.get(&fixture.of_cluster_queue(version)).await?;
        assert_eq!(lines(&all), in_order, "{version}");
        assert_eq!(all.body["kind"], "PendingWorkloadsSummary");
        assert_eq!(all.body["apiVersion"], format!("visibility.kueue.x-k8s.io/{version}"));
        let local = fixture.get(&fixture.of_local_queue(version, "queue")).await?;
        assert_eq!(lines(&local), ["c queue 0/0 7", "a queue 1/1 1", "d queue 3/2 1"], "{version}");
    }
    for (query, from, to) in [("offset=1&limit=2", 1, 3), ("limit=1", 0, 1), ("offset=9", 4, 4)] {
        let path = format!("{}?{query}", fixture.of_cluster_queue("v1beta2"));
        assert_eq!(lines(&fixture.get(&path).await?), in_order[from..to], "{query}");
    }
    let local = format!("{}?offset=1&limit=1", fixture.of_local_queue("v1beta2", "queue"));
    assert_eq!(lines(&fixture.get(&local).await?), ["a queue 1/1 1"]);
    assert_eq!(fixture.explained("d").await?["position"], 3);
    Ok(())
}

#[tokio::test]
async fn a_pending_workload_says_why_and_goes_when_its_job_does() -> Result<()> {
    let fixture = VisibilityFixture::new("reasons").await?;
    let mut job = job("only", "queue", "");
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    fixture.apply(&job).await?;
    let path = fixture.of_local_queue("v1beta2", "queue");
    let found = fixture.until(&path, "waits for cpu", waits_for_cpu).await?;
    ensure!(found.body["items"][0]["reason"].is_string(), "{found:?}");
    fixture.installation.hub.kubectl(&["delete", "job", "only", "-n", &fixture.namespace]).await?;
    fixture.until(&path, "is empty", |response| lines(response).is_empty()).await?;
    Ok(())
}

/// The items without their explanations, which come later than the rest and not at once on every replica.
fn unexplained(mut response: ApiResponse) -> ApiResponse {
    for item in response.body["items"].as_array_mut().into_iter().flatten() {
        item["explanation"].take();
    }
    response
}

#[tokio::test]
async fn every_replica_has_the_same_list() -> Result<()> {
    let fixture = VisibilityFixture::new("replicas").await?;
    let mut job = objects::job("one", 1, "2", 1);
    job["metadata"]["labels"] = json!({"kueue.x-k8s.io/queue-name": "queue"});
    fixture.apply(&job).await?;
    let path = fixture.of_cluster_queue("v1beta2");
    let mut lists = Vec::new();
    // One of them leads, the other follows.
    for port in [fixture.first_port(), fixture.second_port()] {
        let client = fixture.at_manager(port, fixture.administrator()?).await?;
        lists.push(unexplained(until(&client, &path, "waits for cpu", waits_for_cpu).await?));
    }
    assert_eq!(lists[0], lists[1]);
    // A replica that starts with many objects lists them before it answers.
    let port = harness::free_port()?;
    let blocks = json!({"visibilityServer": {"bindAddress": "127.0.0.1", "bindPort": port}});
    let third = fixture.installation.further_manager_with(&blocks).await?;
    let client = fixture.at_manager(port, fixture.administrator()?).await?;
    let never_unknown = |response: &ApiResponse| {
        assert_ne!(response.code, 404, "{response:?}");
        response.code == 200
    };
    let late = until(&client, &path, "is answered", never_unknown).await?;
    assert_eq!(unexplained(late), lists[0]);
    third.process.terminate(TIMEOUT).await?;
    Ok(())
}

#[tokio::test]
async fn only_the_leader_writes() -> Result<()> {
    let fixture = VisibilityFixture::new("followers").await?;
    // One that led before has written as well.
    let before = fixture.writes_of_managers().await?;
    fixture.apply(&objects::job("one", 1, "2", 1)).await?;
    let path = fixture.of_cluster_queue("v1beta2");
    fixture.until(&path, "waits for cpu", waits_for_cpu).await?;
    let after = fixture.writes_of_managers().await?;
    let writers = before.iter().zip(&after).filter(|(before, after)| after > before).count();
    ensure!(writers == 1, "{before:?} {after:?}");
    Ok(())
}

#[tokio::test]
async fn an_unknown_queue_is_not_found() -> Result<()> {
    let fixture = VisibilityFixture::new("unknown").await?;
    let path = format!("{}/v1beta2/clusterqueues/none/pendingworkloads", crate::fixture::BASE);
    let response = get(&fixture.installation.hub.client(), &path, &[]).await?;
    assert_eq!(response.code, 404, "{}", fixture.log());
    let message = "clusterqueue.visibility.kueue.x-k8s.io \"none\" not found";
    assert_eq!(response.body["message"], message);
    assert_eq!(response.body["details"]["kind"], "clusterqueue");
    let path = fixture.of_local_queue("v1beta1", "none");
    assert_eq!(fixture.get(&path).await?.code, 404);
    let path = format!("{}?limit=some", fixture.of_local_queue("v1beta1", "queue"));
    assert_eq!(fixture.get(&path).await?.code, 400);
    Ok(())
}
