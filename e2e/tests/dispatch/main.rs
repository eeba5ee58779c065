//! Jobs from submission to their end: on the manager's own cluster and on workers, when all goes well and when not.

mod broken_workers;
mod credentials;
mod deleted;
mod garbage;
mod house;
mod no_room;
mod own_cluster;
mod place;
mod pods_ready;
mod registered_twice;
mod rights;
mod site;
mod slices;
mod stranded;
mod takeover;
mod thin_worker;
mod unknown_queue;
mod unregistered;
mod withdrawn;
mod workers;
