//! The real Ray on real nodes: heads and workers that the manager dispatched run Ray's own programs, and jobs that are submitted
//! to a head over HTTP end.
//!
//! Both workers have a real node, and only the second one has room and the image. `make test-real` runs the tests, one after the
//! other: two Ray clusters at once are too much for two cores.
//!
//! | module | scenario |
//! |---|---|
//! | `pod_group` | a head and a worker as a group of pods |
//! | `ray_clusters` | a RayCluster, operated by the agent |
//! | `ray_jobs` | a RayJob until its end, operated by the agent |
//! | `fixture` | a namespace with a queue, and waits |
//! | `head` | the HTTP API of a head |
//! | `shared_installation` | control planes, manager and agents |

mod fixture;
mod head;
mod pod_group;
mod ray_clusters;
mod ray_jobs;
mod shared_installation;
