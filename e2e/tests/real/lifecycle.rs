//! Neither `down` nor the end of a killed lab leaves processes or control groups of real nodes, and the machine keeps its network,
//! mounts and settings meanwhile.

use std::io::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use e2e::host_state::HostState;
use harness::{program, secs};
use lab::StateRoot;
use lab::real_nodes::cgroups;
use rustix::process::Signal;
use tokio::process::Command;
use tokio::time::timeout;

async fn run(home: &Path, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(program("sluice-lab")?);
    command.env("SLUICE_LAB_HOME", home).args(arguments).kill_on_drop(true);
    let output = timeout(secs(240), command.output()).await.context("it takes long")??;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&output.stdout), text(&output.stderr));
    ensure!(output.status.success(), "{arguments:?}: {out}{errors}");
    Ok(out)
}

/// The processes whose arguments name a directory, whatever namespaces they are in.
fn processes_of(directory: &Path) -> Result<Vec<String>> {
    let name = directory.display().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        // A process may end while the list is read.
        let line = std::fs::read(entry?.path().join("cmdline")).unwrap_or_default();
        let line = String::from_utf8_lossy(&line).replace('\0', " ");
        if line.contains(&name) {
            found.push(line);
        }
    }
    Ok(found)
}

async fn until_no_process_is_left(directory: &Path) -> Result<()> {
    let gone = async {
        while !processes_of(directory)?.is_empty() {
            tokio::task::yield_now().await;
        }
        anyhow::Ok(())
    };
    timeout(secs(60), gone).await.with_context(|| format!("{:?}", processes_of(directory)))?
}

/// Starts a lab with a pod on each worker that never ends.
async fn up_with_pods(home: &Path, name: &str, workers: usize) -> Result<()> {
    let begun = Instant::now();
    let up = ["up", "--workers", &workers.to_string(), "--real-nodes", "--lab", name];
    let said = run(home, &up).await?;
    ensure!(said.contains("ready in"), "{said}");
    let up = begun.elapsed();
    let image = "--image=lab.sluice.dev/busybox:1";
    for number in 1..=workers {
        let worker = format!("worker-{number}");
        let kubectl = ["kubectl", "--lab", name, &worker];
        let pod = ["run", "endless", image, "--restart=Never", "--", "sleep", "100000"];
        run(home, &[&kubectl[..], &pod[..]].concat()).await?;
        let wait = ["wait", "pod/endless", "--for=condition=Ready", "--timeout=90s"];
        run(home, &[&kubectl[..], &wait[..]].concat()).await?;
    }
    // The output of a test that succeeds is not shown, but for what goes to the standard error itself.
    let ready = begun.elapsed();
    writeln!(
        std::io::stderr(),
        "a lab of {workers} workers with a real node each was up after {up:.1?}, with pods after {ready:.1?}"
    )?;
    Ok(())
}

#[tokio::test]
#[ignore = "make test-real"]
async fn nothing_of_a_real_node_outlives_its_lab() -> Result<()> {
    let home = tempfile::tempdir()?;
    let root = StateRoot::at(home.path().to_owned());
    let host = HostState::now();

    up_with_pods(home.path(), "orderly", 2).await?;
    host.ensure_unchanged()?;
    let orderly = root.lab("orderly")?.directory;
    ensure!(cgroups::exists(&cgroups::of_lab(&orderly))?, "the pod has no control group");
    run(home.path(), &["down", "--lab", "orderly"]).await?;
    until_no_process_is_left(&orderly).await?;
    ensure!(!cgroups::exists(&cgroups::of_lab(&orderly))?, "`down` left control groups");
    host.ensure_unchanged()?;

    up_with_pods(home.path(), "killed", 1).await?;
    let killed = root.lab("killed")?;
    ensure!(killed.supervisor.signal(Signal::KILL)?);
    until_no_process_is_left(&killed.directory).await?;
    // The next `up` removes what no process holds: files and control groups.
    run(home.path(), &["up", "--workers", "0", "--lab", "next"]).await?;
    ensure!(!killed.directory.exists(), "its files are still there");
    ensure!(!cgroups::exists(&cgroups::of_lab(&killed.directory))?, "its groups are still there");
    run(home.path(), &["down", "--lab", "next"]).await?;
    host.ensure_unchanged()
}
