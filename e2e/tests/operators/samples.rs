//! The samples of Ray's objects at real API servers: the fields, what the webhooks say, and what the policies allow.

use std::{fs, io::Write};

use anyhow::{Result, ensure};
use e2e::installation::root;

use crate::fixture::OperatorFixture;

#[tokio::test]
async fn every_sample_is_valid_where_users_submit_and_where_ray_runs() -> Result<()> {
    let fixture = OperatorFixture::new("samples").await?;
    let folder = root().join("config/samples/ray");
    let namespace = fixture.space.namespace();
    // Changes nothing, and refuses fields that a kind does not have.
    let apply = ["-n", namespace, "apply", "--dry-run=server", "--validate=strict"];
    let all = folder.display().to_string();
    let files = fs::read_dir(&folder)?.count() - 1;
    for cluster in [&fixture.hub, &fixture.worker] {
        let said = cluster.kubectl(&[&apply[..], &["-k", &all]].concat()).await?;
        let accepted = said.lines().filter(|line| line.ends_with(" created (server dry run)"));
        ensure!(accepted.count() == files, "{} of {files} samples: {said}", cluster.name());
    }

    let misspelled = fs::read_to_string(folder.join("cluster.yaml"))?;
    ensure!(misspelled.contains("  headGroupSpec:"), "{misspelled}");
    let mut file = tempfile::NamedTempFile::new()?;
    file.write_all(misspelled.replace("  headGroupSpec:", "  headGroupSpeck:").as_bytes())?;
    let path = file.path().display().to_string();
    let refused = fixture.hub.kubectl(&[&apply[..], &["-f", &path]].concat()).await;
    let message = refused.err().map(|error| format!("{error}")).unwrap_or_default();
    ensure!(message.contains("unknown field \"spec.headGroupSpeck\""), "{message}");
    Ok(())
}
