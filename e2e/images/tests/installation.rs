//! What is written about the images elsewhere agrees with them: `config`, the Dockerfiles.

use std::{collections::BTreeMap, fs, path::Path};

use cargo_metadata::{Metadata, MetadataCommand, Package};
use images::{
    definition::{IMAGES, ImageDefinition},
    labels,
    layer::USER,
};
use serde_json::{Value, json};

/// The folder in `config` with the Deployment of an image.
const FOLDERS: [(&str, &str); 2] =
    [("sluice-manager", "config/manager"), ("sluice-agent", "config/worker/agent")];

fn read(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).expect(path)
}

fn yaml(path: &str) -> Value {
    serde_saphyr::from_str(&read(path)).expect("YAML")
}

fn metadata() -> Metadata {
    MetadataCommand::new().no_deps().exec().expect("cargo metadata")
}

fn package<'a>(metadata: &'a Metadata, image: &ImageDefinition) -> &'a Package {
    let mut packages = metadata.packages.iter();
    packages.find(|package| package.name == image.package).expect("the package")
}

/// The base renames no image, so that one name works in the base and in kustomizations over it.
#[test]
fn deployments_name_the_images() {
    let metadata = metadata();
    for image in IMAGES {
        let (_, folder) =
            FOLDERS.into_iter().find(|(name, _)| *name == image.program).expect("a folder");
        let deployment = yaml(&format!("{folder}/deployment.yaml"));
        let pod = &deployment["spec"]["template"]["spec"];
        assert_eq!(pod["containers"][0]["image"], image.program);
        assert_eq!(pod["securityContext"]["runAsUser"], USER);
        let tag = labels::tag(package(&metadata, &image));
        let images = &yaml(&format!("{folder}/kustomization.yaml"))["images"];
        assert_eq!(*images, json!([{"name": image.program, "newTag": tag}]));
    }
}

/// The images have no folder for them, and no root that can be written to.
#[test]
fn programs_that_take_profiles_have_a_folder_of_temporary_files() {
    for folder in ["config/manager", "config/ray-api"] {
        let deployment = yaml(&format!("{folder}/deployment.yaml"));
        let pod = &deployment["spec"]["template"]["spec"];
        let mounts = pod["containers"][0]["volumeMounts"].as_array().expect("mounts");
        let mount = mounts.iter().find(|mount| mount["mountPath"] == "/tmp").expect("a mount");
        let mut volumes = pod["volumes"].as_array().expect("volumes").iter();
        let volume = volumes.find(|volume| volume["name"] == mount["name"]).expect("a volume");
        assert_eq!(volume["emptyDir"], json!({}), "{folder}");
    }
}

#[test]
fn dockerfiles_make_the_same_image() {
    let metadata = metadata();
    for image in IMAGES {
        let file = read(&format!("{}/Dockerfile", image.package));
        let (build, image_stage) = file.split_once("FROM scratch\n").expect("two stages");
        assert!(build.ends_with(&format!("--out /out {}\n\n", image.program)), "{build}");
        let after = |word: &str| {
            let lines = image_stage.lines().filter_map(|line| line.strip_prefix(word));
            lines.map(str::trim).collect::<Vec<_>>()
        };
        let copied = format!("--from=build --chown={USER}:{USER} /out/{}/ /", image.program);
        assert_eq!(after("COPY"), [copied]);
        assert_eq!(after("USER"), [format!("{USER}:{USER}")]);
        assert_eq!(after("ENTRYPOINT"), [format!("[\"/{}\"]", image.program)]);
        let labels = after("LABEL").into_iter().filter_map(|label| label.split_once('='));
        let labels: BTreeMap<String, String> = labels
            .map(|(key, value)| (key.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        let expected = labels::labels(&image, package(&metadata, &image), "$REVISION", None);
        assert_eq!(labels, expected);
    }
}
