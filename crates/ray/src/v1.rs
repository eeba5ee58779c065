//! `ray.io/v1`: the stored version.

mod ray_cluster;
mod ray_cluster_status;
mod ray_cron_job;
mod ray_job;
mod ray_service;

pub use self::{
    ray_cluster::*, ray_cluster_status::*, ray_cron_job::*, ray_job::*, ray_service::*,
};
