//! What the lab's command line tool and the tests on the lab share. The tool is `src/bin/sluice-lab`, the tests are in
//! `tests/`.

pub mod local_webhooks;
pub mod replays;
pub mod world;
