//! Replays base cases against an API server: `against KUBECONFIG FILE…`.
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let kc = Kubeconfig::read_from(args.next().unwrap())?;
    let mut config = Config::from_custom_kubeconfig(kc, &KubeConfigOptions::default()).await?;
    config.default_retry = false;
    let target = replay::Target::new(Client::try_from(config)?);
    let mut cases = Vec::new();
    for file in args {
        cases.extend(replay::load(file.as_ref())?.into_iter().filter(|c| {
            format!("{:?}", c.config) == std::env::var("REPLAY_CONFIG").unwrap_or("Base".into())
        }));
    }
    println!("{}", replay::run(&target, &cases).await?);
    Ok(())
}
