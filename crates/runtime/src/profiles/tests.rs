use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicBool, Ordering},
};

use axum::body::Body;
use http_body_util::BodyExt;
use tower::ServiceExt;

use super::*;

/// The fields of a message: numbers and bytes, by the numbers of the fields.
#[derive(Debug, Default)]
struct Fields {
    numbers: BTreeMap<u64, Vec<u64>>,
    bytes: BTreeMap<u64, Vec<Vec<u8>>>,
}

impl Fields {
    fn of(mut rest: &[u8]) -> Self {
        let mut fields = Self::default();
        while !rest.is_empty() {
            let key = varint(&mut rest);
            let number = varint(&mut rest);
            match key & 7 {
                0 => fields.numbers.entry(key >> 3).or_default().push(number),
                2 => {
                    let (bytes, further) = rest.split_at(number as usize);
                    fields.bytes.entry(key >> 3).or_default().push(bytes.to_vec());
                    rest = further;
                }
                other => panic!("wire type {other}"),
            }
        }
        fields
    }

    fn messages(&self, field: u64) -> Vec<Self> {
        self.bytes.get(&field).into_iter().flatten().map(|bytes| Self::of(bytes)).collect()
    }

    fn numbers(&self, field: u64) -> Vec<u64> {
        self.numbers.get(&field).cloned().unwrap_or_default()
    }

    fn number(&self, field: u64) -> u64 {
        self.numbers(field)[0]
    }

    fn texts(&self) -> Vec<String> {
        let texts = self.bytes[&6].iter();
        texts.map(|text| String::from_utf8(text.clone()).expect("text")).collect()
    }
}

fn varint(rest: &mut &[u8]) -> u64 {
    let mut number = 0;
    for place in 0.. {
        let byte = rest[0];
        *rest = &rest[1..];
        number |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            break;
        }
    }
    number
}

async fn get(router: Router, path: &str) -> (u16, Vec<u8>) {
    let request = http::Request::get(path).body(Body::empty()).expect("a request");
    let response = router.oneshot(request).await.expect("a response");
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, body.to_vec())
}

/// One test at a time takes a profile: there is one sampler.
static SAMPLER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

const PROFILE: &str = "/debug/pprof/profile?seconds=1";

#[inline(never)]
fn busy_in_a_test(ended: &AtomicBool) -> u64 {
    let mut sum = 0_u64;
    while !ended.load(Ordering::Relaxed) {
        for number in 0..10_000 {
            sum = std::hint::black_box(sum.wrapping_mul(31).wrapping_add(number));
        }
    }
    sum
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_names_what_was_busy_and_another_waits() {
    let _sampler = SAMPLER.lock().await;
    let ended = Arc::new(AtomicBool::new(false));
    let (busy, sampled) = (std::thread::Builder::new().name("busy".to_owned()), ended.clone());
    let busy = busy.spawn(move || busy_in_a_test(&sampled)).expect("a thread");
    let router = router(Stop::new());
    let mut first = Box::pin(get(router.clone(), PROFILE));
    assert!(futures::poll!(&mut first).is_pending());
    let (code, text) = get(router, PROFILE).await;
    assert_eq!((code, &text[..]), (429, &b"another profile is being taken\n"[..]));
    let (code, profile) = first.await;
    ended.store(true, Ordering::Relaxed);
    assert_eq!(code, 200);
    busy.join().expect("a thread");

    let profile = Fields::of(&profile);
    let texts = profile.texts();
    let text = |number: u64| texts[number as usize].as_str();
    assert_eq!(text(0), "", "the first text is empty");
    let kinds = profile.messages(1);
    let kinds: Vec<_> =
        kinds.iter().map(|kind| (text(kind.number(1)), text(kind.number(2)))).collect();
    assert_eq!(kinds, [("samples", "count"), ("cpu", "nanoseconds")]);
    let functions = profile.messages(5);
    let functions: BTreeMap<u64, &str> =
        functions.iter().map(|one| (one.number(1), text(one.number(2)))).collect();
    let locations = profile.messages(4);
    let calls = |location: &Fields| {
        let lines = location.messages(4);
        lines.iter().map(|line| functions[&line.number(1)].to_owned()).collect::<Vec<_>>()
    };
    let locations: BTreeMap<u64, Vec<String>> =
        locations.iter().map(|one| (one.number(1), calls(one))).collect();
    let samples = profile.messages(2);
    let is_busy = |sample: &&Fields| {
        let mut calls = sample.numbers(1).into_iter().flat_map(|id| &locations[&id]);
        calls.any(|call| call.contains("busy_in_a_test"))
    };
    let n_busy: u64 = samples.iter().filter(is_busy).map(|sample| sample.numbers(2)[0]).sum();
    assert!(n_busy > 0, "{locations:?}");
    let names = functions.into_values();
    assert!(names.into_iter().all(|name| !name.contains("perf_signal_handler")), "the sampler");
    assert_eq!(profile.messages(3).len(), 1, "the program in memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sampler_has_its_place_until_it_ends_though_its_client_has_left() {
    let _sampler = SAMPLER.lock().await;
    let router = router(Stop::new());
    let mut left = Box::pin(get(router.clone(), "/debug/pprof/profile?seconds=300"));
    assert!(futures::poll!(&mut left).is_pending());
    drop(left);
    let (code, _) = get(router.clone(), PROFILE).await;
    assert_eq!(code, 429);
    let freed = async {
        while get(router.clone(), PROFILE).await.0 != 200 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), freed).await.expect("a place");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stop_ends_a_profile_with_what_was_sampled() {
    let _sampler = SAMPLER.lock().await;
    let stop = Stop::new();
    let mut profile = Box::pin(get(router(stop.clone()), "/debug/pprof/profile?seconds=300"));
    assert!(futures::poll!(&mut profile).is_pending());
    stop.cancel();
    let answered = tokio::time::timeout(Duration::from_secs(60), profile).await;
    let (code, profile) = answered.expect("an answer");
    assert_eq!(code, 200);
    let lasted = Fields::of(&profile).number(10);
    assert!(lasted < 60_000_000_000, "{lasted}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_directory_of_temporary_files_the_answer_says_so() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let router = router_with(file.path().to_owned(), Stop::new());
    let (code, text) = get(router, PROFILE).await;
    let text = String::from_utf8(text).expect("text");
    let path = file.path().display();
    let expected = format!("cannot write to the directory {path} of temporary files: ");
    assert!(code == 500 && text.starts_with(&expected), "{code} {text}");
}

#[tokio::test]
async fn other_paths_say_what_there_is() {
    let (code, text) = get(router(Stop::new()), "/debug/pprof/").await;
    assert!(code == 200 && text.starts_with(b"/debug/pprof/profile"));
    for name in ["heap", "goroutine", "trace", "cmdline"] {
        let (code, text) = get(router(Stop::new()), &format!("/debug/pprof/{name}")).await;
        assert_eq!((code, text), (404, OF_GO.as_bytes().to_vec()), "{name}");
    }
    let (code, text) = get(router(Stop::new()), "/debug/pprof/profile?seconds=301").await;
    assert_eq!((code, &text[..]), (400, &b"a profile takes at most 300 seconds\n"[..]));
}

#[test]
fn durations_are_read_as_by_gos_programs() {
    for (query, seconds) in [("", 30), ("seconds=x", 30), ("seconds=-1", 30), ("seconds=0", 30)] {
        assert_eq!(duration(query), Some(Duration::from_secs(seconds)), "{query}");
    }
    assert_eq!(duration("debug=1&seconds=5"), Some(Duration::from_secs(5)));
    assert_eq!(duration("seconds=9999"), None);
}
