//! The operators' loop over an API server, kubelets and Ray heads in memory, on a virtual clock.
//!
//! Everything between a watch event and a request is the shipped code: cache, queue, passes, decisions and writes. A test chooses one
//! write and what goes wrong there: the agent is killed before or after it, its answer is lost, or it arrives late. At that moment the
//! object may also be suspended or deleted, or its head may die. Rules that hold at every moment are checked by the API server itself.
//!
//! | module | concept |
//! |---|---|
//! | `api`, `request` | the API server: objects, versions, finalizers, and the order of changes |
//! | `environment` | kubelets, the Job controller and the garbage collector |
//! | `heads` | Ray heads, with a ledger of what was submitted to them |
//! | `world` | all of them together, and what goes wrong |
//! | `faults` | what goes wrong at a write, and what happens beside it |
//! | `run` | an agent over a world, until nothing moves any more |
//! | `scenario`, `specs` | objects that are operated, and what happens in their lives |
//! | `life`, `rest_checks` | one life with at most one fault, and what must be true once nothing moves any more |
//! | `crash_tests`, `odd_spec_tests`, `refusal_tests`, `failure_tests`, `narrowed_kinds_tests`, `sample_tests`, `unlabelled_tests` | the tests |

mod api;
mod crash_tests;
mod environment;
mod failure_tests;
mod faults;
mod heads;
mod life;
mod narrowed_kinds_tests;
mod odd_spec_tests;
mod refusal_tests;
mod request;
mod rest_checks;
mod run;
mod sample_tests;
mod scenario;
mod specs;
mod unlabelled_tests;
mod world;
