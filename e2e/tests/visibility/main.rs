//! The visibility API through the aggregation of an API server, and at the manager itself.
//!
//! | module | scenarios |
//! |---|---|
//! | `lists` | order, pages and reasons of pending Workloads; a follower; a replica that starts later |
//! | `explanations` | what a pending Workload lacks, from the leader and a follower |
//! | `access` | users with and without rights, tokens, certificates and forged headers |
//! | `documents` | discovery, OpenAPI, the CA of the API, its switch, its flow control |

mod access;
mod documents;
mod explanations;
mod fixture;
mod lists;
