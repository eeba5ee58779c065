//! `make test-real` with played programs: which of its parts run, are skipped or fail.

use std::fs;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use e2e::installation::root;
use tempfile::TempDir;

use crate::{said, write_program};

/// Programs that say a line and end with an exit code, each a file below the target directory.
struct PlayedParts(TempDir);

impl PlayedParts {
    /// All of them succeed.
    fn new() -> Result<Self> {
        let played = Self(tempfile::tempdir()?);
        fs::create_dir(played.0.path().join("debug"))?;
        for program in ["cargo", "debug/sluice-lab", "debug/sluice-images"] {
            played.ends(program, "", 0)?;
        }
        played.play_kind("exit 0")?;
        Ok(played)
    }

    fn program(&self, name: &str, script: &str) -> Result<()> {
        write_program(&self.0.path().join(name), &format!("#!/bin/sh\n{script}\n"))
    }

    /// The command of `with-docker` runs with the Docker that answers; other commands do this.
    fn play_kind(&self, other: &str) -> Result<()> {
        let script = format!(
            "[ \"$1\" = with-docker ] || {{ {other}; }}\n\
             while [ \"$1\" != -- ]; do shift; done\nshift\nexec \"$@\""
        );
        self.program("debug/sluice-kind", &script)
    }

    fn ends(&self, name: &str, line: &str, code: u8) -> Result<()> {
        self.program(name, &format!("[ -z '{line}' ] || echo '{line}'\nexit {code}"))
    }

    fn make(&self, arguments: &[&str]) -> Result<Output> {
        self.make_requiring("", arguments)
    }

    /// With parts that must run.
    fn make_requiring(&self, parts: &str, arguments: &[&str]) -> Result<Output> {
        let mut make = Command::new("make");
        make.env("REQUIRED_PARTS", parts);
        let home = self.0.path().display();
        make.current_dir(root()).args(arguments);
        make.arg(format!("TARGET={home}")).arg(format!("CARGO={home}/cargo"));
        for variable in ["MAKEFLAGS", "MAKELEVEL", "MFLAGS", "RAY", "KIND", "SLUICE_IMAGES"] {
            make.env_remove(variable);
        }
        make.output().context("running make")
    }
}

/// The last lines of the output, without the seconds.
fn summary(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let begin = text.find("make test-real:").unwrap_or_default();
    let lines = text[begin..].lines().map(|line| {
        let words = line.split(' ').filter(|word| word.parse::<u32>().is_err());
        if line.starts_with("  ") { words.collect::<Vec<_>>().join(" ") } else { line.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn ensure_end(output: &Output, succeeds: bool, expected: &[&str]) -> Result<()> {
    ensure!(output.status.success() == succeeds, "{}", said(output));
    let lines = summary(output);
    let found = lines.lines().take(expected.len()).eq(expected.iter().copied());
    ensure!(found, "{lines}\nof\n{}", said(output));
    Ok(())
}

#[test]
fn the_summary_counts_parts_and_names_the_reason_of_each_skipped_one() -> Result<()> {
    let played = PlayedParts::new()?;
    ensure_end(
        &played.make(&["test-real"])?,
        true,
        &[
            "make test-real: ran 5 parts, skipped 0, failed 0",
            "  real nodes: ran, s",
            "  release images: ran, s",
            "  real Ray: ran, s",
            "  Docker daemon of its own: ran, s",
            "  clusters of kind: ran, s",
        ],
    )?;
    played.ends("debug/sluice-lab", "real nodes cannot run here: real nodes need root", 77)?;
    ensure_end(
        &played.make(&["test-real", "KIND=no"])?,
        true,
        &[
            "make test-real: ran 0 parts, skipped 5, failed 0",
            "  real nodes: skipped, s: real nodes need root",
            "  release images: skipped, s: real nodes need root",
            "  real Ray: skipped, s: real nodes need root",
            "  Docker daemon of its own: skipped, s: KIND=no",
            "  clusters of kind: skipped, s: KIND=no",
        ],
    )
}

#[test]
fn a_failure_of_what_a_part_needs_is_no_reason_to_skip_it() -> Result<()> {
    let played = PlayedParts::new()?;
    // What an argument that the program does not know ends with.
    played.ends("debug/sluice-lab", "real nodes cannot run here: not a reason", 2)?;
    ensure_end(
        &played.make(&["test-real"])?,
        false,
        &[
            "make test-real: ran 5 parts, skipped 0, failed 3",
            "  real nodes: FAILED, s: exit code",
            "  release images: FAILED, s: exit code",
            "  real Ray: FAILED, s: exit code",
            "  Docker daemon of its own: ran, s",
            "  clusters of kind: ran, s",
        ],
    )?;
    // Without a reason the exit code is that of something else.
    played.ends("debug/sluice-lab", "", 77)?;
    ensure!(!played.make(&["test-real-nodes"])?.status.success());

    played.ends("debug/sluice-lab", "", 0)?;
    played.ends("debug/sluice-images", "wrong digest", 1)?;
    ensure!(!played.make(&["test-real-ray"])?.status.success());
    ensure!(played.make(&["test-real-ray", "RAY=no"])?.status.success());
    Ok(())
}

#[test]
fn the_images_are_made_as_published_ones_and_tested_or_those_are_that_a_variable_names()
-> Result<()> {
    let played = PlayedParts::new()?;
    let home = played.0.path().display().to_string();
    played.program("debug/sluice-images", &format!("echo made \"$@\" >>{home}/calls"))?;
    played.program("cargo", &format!("echo \"$SLUICE_IMAGES: $*\" >>{home}/calls"))?;
    for (named, made) in [(&[][..], true), (&["SLUICE_IMAGES=target/images"], false)] {
        fs::write(played.0.path().join("calls"), "")?;
        let output = played.make(&[&["test-real-images"], named].concat())?;
        let calls = fs::read_to_string(played.0.path().join("calls"))?;
        let taken = if made { format!("{home}/images/quick") } else { "target/images".to_owned() };
        ensure!(output.status.success(), "{}", said(&output));
        ensure!(calls.contains(&format!("made --quick --out {home}/images/quick")) == made);
        let tested = "test --workspace --locked --test real_pods -- --ignored";
        ensure!(calls.contains(&format!("{taken}: {tested}")), "{calls}");
    }
    Ok(())
}

#[test]
fn a_docker_that_ends_below_the_clusters_is_a_failure() -> Result<()> {
    let played = PlayedParts::new()?;
    let dead = "echo 'kind: SKIPPED, nothing was done: Docker does not answer'; exit 77";
    played.play_kind(dead)?;
    ensure!(!played.make(&["test-real-clusters"])?.status.success());

    played.program("debug/sluice-kind", dead)?;
    let output = played.make(&["test-real-kind"])?;
    ensure!(output.status.success(), "{}", said(&output));
    let skipped = |line: &str| {
        line.starts_with("part \"clusters of kind\": skipped after ")
            && line.ends_with(" s: Docker does not answer")
    };
    ensure!(said(&output).lines().any(skipped), "{}", said(&output));
    // These targets print the line and succeed.
    ensure!(played.make(&["kind-up"])?.status.success());
    played.ends("debug/sluice-kind", "error: no room", 1)?;
    ensure!(!played.make(&["kind-up"])?.status.success());
    Ok(())
}

#[test]
fn a_required_part_that_is_skipped_is_a_failure() -> Result<()> {
    let played = PlayedParts::new()?;
    let without_kind = |parts: &str| played.make_requiring(parts, &["test-real", "KIND=no"]);
    ensure!(without_kind("real nodes,real Ray")?.status.success());
    for part in ["clusters of kind", "nodes"] {
        let output = without_kind(&format!("real nodes,{part}"))?;
        let line = format!("make test-real: \"{part}\" of REQUIRED_PARTS has not run");
        ensure!(!output.status.success() && said(&output).contains(&line), "{}", said(&output));
    }
    Ok(())
}

#[test]
fn ci_requires_parts_on_real_nodes_where_root_may_make_namespaces_and_none_elsewhere() -> Result<()>
{
    let played = PlayedParts::new()?;
    let bin = played.0.path().display().to_string();
    let required = |user: &str, unshare: u8| -> Result<String> {
        played.ends("id", user, 0)?;
        played.ends("unshare", "", unshare)?;
        let path = format!("{bin}:{}", std::env::var("PATH")?);
        let output = Command::new(root().join(".ci/required-parts")).env("PATH", path).output()?;
        ensure!(output.status.success(), "{}", said(&output));
        Ok(String::from_utf8(output.stdout)?.trim().to_owned())
    };
    ensure!(required("1000", 0)?.is_empty() && required("0", 1)?.is_empty());
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    if release.contains("VERSION_CODENAME=bookworm") {
        let parts = required("0", 0)?;
        let output = played.make_requiring(&parts, &["test-real"])?;
        ensure!(output.status.success() && !parts.is_empty(), "{}", said(&output));
        for part in parts.split(',') {
            let ran = format!("{part}: ran, s");
            ensure!(summary(&output).contains(&ran), "{part}: {}", said(&output));
        }
    }
    Ok(())
}

#[test]
fn a_part_with_an_end_that_cannot_be_noted_is_a_failure() -> Result<()> {
    let played = PlayedParts::new()?;
    fs::create_dir(played.0.path().join("real-parts.tsv"))?;
    let output = played.make(&["test-real-nodes"])?;
    let line = "part \"real nodes\": its end, ran, is not noted in ";
    ensure!(!output.status.success() && said(&output).contains(line), "{}", said(&output));
    Ok(())
}
