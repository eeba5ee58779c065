//! CPU profiles at the paths of Go's programs, for `go tool pprof`.
//!
//! | file | concept |
//! |---|---|
//! | `sampling` | samples of the stacks of this process |
//! | `sampler_frames` | the frames that are those of the sampler |
//! | `encoding` | a profile in the format of pprof |

mod encoding;
mod sampler_frames;
mod sampling;

use std::{env, path::PathBuf, sync::Arc, time::Duration};

use axum::{
    Router,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
    routing::get,
};
use http::{StatusCode, header::CONTENT_DISPOSITION, header::CONTENT_TYPE};
use tokio::{
    runtime::Handle,
    sync::Semaphore,
    task::{JoinError, spawn_blocking},
};

use self::sampling::SamplingError;
use crate::Stop;

/// The duration of a profile that names none, as of Go's programs.
const DEFAULT_SECONDS: u64 = 30;

/// The longest duration of a profile.
const MOST_SECONDS: u64 = 300;

const INDEX: &str = "/debug/pprof/profile?seconds=N  samples of all threads for N seconds of time, 30 by default, at most 300\n";

const OF_GO: &str = "profiles of heap, goroutines and blocking are those of Go; this program has /debug/pprof/profile\n";

/// What a profile needs.
#[derive(Clone)]
struct ProfileServer {
    /// The timer of samples is one of the process.
    place: Arc<Semaphore>,
    /// Of temporary files.
    directory: PathBuf,
    /// The server waits for requests in flight, and the process for the server.
    stop: Stop,
}

/// Serves `/debug/pprof/`, one profile at a time. `stop` ends a profile, which has what was sampled by then.
pub fn router(stop: Stop) -> Router {
    router_with(env::temp_dir(), stop)
}

fn router_with(directory: PathBuf, stop: Stop) -> Router {
    let server = ProfileServer { place: Arc::new(Semaphore::new(1)), directory, stop };
    Router::new()
        .route("/debug/pprof/", get(|| async { INDEX }))
        .route("/debug/pprof/profile", get(profile))
        .route("/debug/pprof/{name}", get(|| async { (StatusCode::NOT_FOUND, OF_GO) }))
        .with_state(server)
}

async fn profile(State(server): State<ProfileServer>, RawQuery(query): RawQuery) -> Response {
    let Some(lasts) = duration(query.as_deref().unwrap_or_default()) else {
        let text = format!("a profile takes at most {MOST_SECONDS} seconds\n");
        return (StatusCode::BAD_REQUEST, text).into_response();
    };
    let Ok(place) = server.place.try_acquire_owned() else {
        return (StatusCode::TOO_MANY_REQUESTS, "another profile is being taken\n").into_response();
    };
    let left = Stop::new();
    // The end of this future, for example because its client has left, ends the sampling.
    let _ends = left.clone().drop_guard();
    let runtime = Handle::current();
    let sampled = spawn_blocking(move || {
        let wait = || runtime.block_on(wait(lasts, &server.stop, &left));
        let profile = sampling::sample(&server.directory, wait);
        // Not before the end of the sampler, which no future waits for.
        drop(place);
        profile.map(|profile| profile.map(|profile| encoding::encode(&profile)))
    });
    answer(sampled.await)
}

/// Waits for the end of a profile. Returns whether it is still wanted.
async fn wait(lasts: Duration, stop: &Stop, left: &Stop) -> bool {
    tokio::select! {
        () = tokio::time::sleep(lasts) => true,
        () = stop.cancelled() => true,
        () = left.cancelled() => false,
    }
}

fn answer(sampled: Result<Result<Option<Vec<u8>>, SamplingError>, JoinError>) -> Response {
    let text = match sampled {
        Ok(Ok(profile)) => {
            let headers = [
                (CONTENT_TYPE, "application/octet-stream"),
                (CONTENT_DISPOSITION, "attachment; filename=\"profile\""),
            ];
            return (headers, profile.unwrap_or_default()).into_response();
        }
        Ok(Err(error)) => crate::error_chain::describe(&error),
        Err(error) => crate::error_chain::describe(&error),
    };
    (StatusCode::INTERNAL_SERVER_ERROR, format!("{text}\n")).into_response()
}

/// How long the query asks for; `None` if that is too long. What is no positive number is the default, as for Go's programs.
fn duration(query: &str) -> Option<Duration> {
    let asked = query.split('&').find_map(|one| one.strip_prefix("seconds="));
    let seconds = asked.and_then(|text| text.parse().ok()).filter(|seconds| *seconds > 0);
    let seconds = seconds.unwrap_or(DEFAULT_SECONDS);
    (seconds <= MOST_SECONDS).then(|| Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests;
