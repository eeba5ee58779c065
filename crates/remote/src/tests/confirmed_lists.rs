//! Lists of a server behind which another cluster appears.

use std::time::Instant;

use leader::ListConfirmation;

use super::*;
use crate::{client, confirmed_lists::ConfirmedLists, kubeconfig::Kubeconfig};

fn confirmation(server: &TestServer) -> ConfirmedLists {
    let kubeconfig = Kubeconfig::read(server.kubeconfig("one").as_bytes()).expect("it is valid");
    let client =
        client::build(&kubeconfig, &ClientMetrics::default().requests.of("east")).expect("usable");
    let short = Duration::from_millis(20);
    let timing = ConnectionTiming { probe_every: short, deadline: TIMEOUT, first_pause: short };
    ConfirmedLists::new("east", client, timing, Some("this-place"))
}

#[tokio::test]
async fn a_list_counts_once_the_claimed_cluster_answers() {
    let server = TestServer::new(["one"]).await;
    let lists = Arc::new(confirmation(&server));
    server.state.other_uid.send_replace(Some("elsewhere"));
    let (waiting, listed) = (lists.clone(), Instant::now());
    let confirmed = tokio::spawn(async move { waiting.confirm(listed).await });
    server.wait_for_identities().await;
    assert!(!confirmed.is_finished(), "another cluster answers");
    server.state.other_uid.send_replace(None);
    timeout(TIMEOUT, confirmed).await.expect("in time").expect("the task");

    // What was listed before that read needs no other one.
    let n_identities = *server.state.n_identities.borrow();
    lists.confirm(listed).await;
    assert_eq!(*server.state.n_identities.borrow(), n_identities);
    lists.confirm(Instant::now()).await;
    assert_eq!(*server.state.n_identities.borrow(), n_identities + 1);
}

#[tokio::test]
async fn another_cluster_without_recorded_work_is_another_connection() {
    let server = TestServer::new(["one"]).await;
    let mut task = TestTask::begin(server.kubeconfig("one"));
    assert_eq!(task.status().await, active());
    server.state.other_uid.send_replace(Some("elsewhere"));
    let status = task.status().await;
    assert_eq!((status.active, status.reason), (false, "ClientConnectionFailed"));
    assert_eq!(status.message, "another cluster answers at the same address");
    assert_eq!(task.status().await, active());
}
