//! `nodes`.

use lab::nodes::{self, NodeSpec};

use crate::LabName;

/// Create nodes in a cluster.
#[derive(clap::Args)]
pub(crate) struct NodesCommand {
    /// The cluster: manager, worker-1, …
    cluster: String,
    /// How many.
    #[arg(long, default_value_t = 1)]
    count: usize,
    /// They are called PREFIX-1, PREFIX-2, …
    #[arg(long, default_value = "node")]
    prefix: String,
    /// CPU of each.
    #[arg(long, default_value = "32")]
    cpu: String,
    /// Memory of each.
    #[arg(long, default_value = "256Gi")]
    memory: String,
    /// A label, key=value; may be repeated.
    #[arg(long, value_parser = pair)]
    label: Vec<(String, String)>,
    /// A taint, key[=value]:Effect; may be repeated.
    #[arg(long, value_parser = nodes::parse_taint)]
    taint: Vec<k8s_openapi::api::core::v1::Taint>,
    /// A further resource, such as nvidia.com/gpu=8; may be repeated.
    #[arg(long, value_parser = pair)]
    extended: Vec<(String, String)>,
    #[command(flatten)]
    lab: LabName,
}

impl NodesCommand {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let lab = self.lab.load()?;
        let cluster = lab.cluster(&self.cluster)?;
        let spec = NodeSpec {
            prefix: self.prefix,
            count: self.count,
            cpu: self.cpu,
            memory: self.memory,
            labels: self.label.into_iter().collect(),
            taints: self.taint,
            extended: self.extended.into_iter().collect(),
        };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        runtime.block_on(async {
            nodes::create(cluster.client().await?, &spec).await?;
            anyhow::Ok(())
        })?;
        println!("{} nodes created in {}", spec.count, self.cluster);
        Ok(())
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or_else(|| format!("{text:?} is not key=value"))?;
    Ok((key.to_owned(), value.to_owned()))
}
