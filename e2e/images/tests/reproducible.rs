//! A small workspace is built, packed and read back: the way of a real image without its size.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    io::Read,
    path::{Path, PathBuf},
    process::Command,
};

use cargo_metadata::{Metadata, MetadataCommand};
use flate2::read::GzDecoder;
use images::{
    assembly::{AssembledImage, ImageOrigin, assemble},
    compilation::{Compilation, CompilationInput, ImageProfile, compile},
    definition::{ImageDefinition, ImagePlatform},
    digest::sha256,
};
use serde_json::{Value, json};
use tar::Archive;
use tempfile::TempDir;

const GREETER: ImageDefinition = ImageDefinition {
    package: "greeter",
    program: "greet",
    title: "Greeter",
    most_bytes: 10_000_000,
};

const REVISION: &str = "0123abcd";

/// Looks a name up, which a static program can do only with a C library that needs no others.
const MAIN: &str = r#"
use std::net::ToSocketAddrs;
include!(concat!(env!("OUT_DIR"), "/baked.rs"));
fn main() {
    assert_fresh(std::env::args().count());
    let found = ("localhost", 1).to_socket_addrs().expect("localhost").count();
    println!("{} {} {}", words::HELLO, found > 0, option_env!("SLUICE_GIT_COMMIT").unwrap_or(""));
}
"#;

/// Writes code whose panic names a file of the target directory.
const RECIPE: &str = r#"
pub fn bake() {
    let out = std::env::var("OUT_DIR").unwrap();
    let code = "fn assert_fresh(arguments: usize) { assert!(arguments < 9) }";
    std::fs::write(format!("{out}/baked.rs"), code).unwrap();
}
"#;

/// A workspace with a program, a library that it uses, and packages that only its build and its tests use.
struct SmallWorkspace {
    folder: TempDir,
}

impl SmallWorkspace {
    fn new() -> Self {
        let workspace = Self { folder: tempfile::tempdir().expect("a folder") };
        workspace.write(
            "Cargo.toml",
            "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\nexclude = [\"target\"]\n\
             [profile.image]\ninherits = \"release\"\nstrip = \"symbols\"\n\
             [profile.image-quick]\ninherits = \"image\"\nopt-level = 1\n\
             [profile.release.package.greeter]\nopt-level = \"s\"\n",
        );
        workspace.package(
            "greeter",
            "license = \"MIT/Apache-2.0\"\nrepository = \"https://example.com/greeter\"\n\
             [[bin]]\nname = \"greet\"\npath = \"src/main.rs\"\n\
             [dependencies]\nwords = { path = \"../words\" }\n\
             [build-dependencies]\nrecipe = { path = \"../recipe\" }\n\
             [dev-dependencies]\nchecks = { path = \"../checks\" }\n",
        );
        workspace.write("greeter/src/main.rs", MAIN);
        workspace.write("greeter/build.rs", "fn main() { recipe::bake() }");
        workspace.package(
            "words",
            "[features]\nfailpoints = [\"dep:fails\"]\n\
             [dependencies]\nfails = { path = \"../fails\", optional = true }\n",
        );
        workspace.write("words/src/lib.rs", "pub const HELLO: &str = \"hello\";");
        workspace.package("recipe", "");
        workspace.write("recipe/src/lib.rs", RECIPE);
        for unused in ["checks", "fails"] {
            workspace.package(unused, "");
            workspace.write(&format!("{unused}/src/lib.rs"), "");
        }
        // As the tests of Sluice do: a build of the whole workspace has the failpoints.
        workspace.package(
            "everything",
            "[dependencies]\nwords = { path = \"../words\", features = [\"failpoints\"] }\n",
        );
        workspace.write("everything/src/lib.rs", "");
        workspace.lock();
        workspace
    }

    fn package(&self, name: &str, rest: &str) {
        let head = format!("[package]\nname = \"{name}\"\nversion = \"1.2.3\"\nedition = \"2024\"");
        self.write(&format!("{name}/Cargo.toml"), &format!("{head}\n{rest}"));
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path().join(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn lock(&self) {
        let cargo = Command::new(env!("CARGO"))
            .args(["generate-lockfile", "--offline"])
            .current_dir(self.path())
            .output()
            .expect("cargo");
        assert!(cargo.status.success(), "{}", String::from_utf8_lossy(&cargo.stderr));
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder")
    }

    fn metadata(&self) -> Metadata {
        let mut cargo = MetadataCommand::new();
        cargo.manifest_path(self.path().join("Cargo.toml"));
        cargo.other_options(vec!["--offline".to_owned()]).exec().expect("cargo metadata")
    }

    fn compile(&self) -> anyhow::Result<Compilation> {
        self.compile_as(ImageProfile::Published)
    }

    fn compile_as(&self, profile: ImageProfile) -> anyhow::Result<Compilation> {
        let input = CompilationInput {
            workspace: &self.path(),
            target_directory: &self.path().join("target/images/build"),
            platform: platform(),
            revision: REVISION,
            profile,
        };
        compile(&[GREETER], &input)
    }

    fn image(&self) -> (AssembledImage, PathBuf) {
        let compilation = self.compile().expect("a program");
        let path = compilation.program("greet").expect("the program").to_owned();
        let origin = ImageOrigin {
            metadata: &self.metadata(),
            compiled: &compilation.linked,
            platform: platform(),
            revision: REVISION,
            source: None,
            rust: "1.95.0",
        };
        let program = fs::read(&path).expect("the program");
        (assemble(&GREETER, &program, &origin).expect("an image"), path)
    }
}

fn platform() -> ImagePlatform {
    ImagePlatform::of_this_machine().expect("a platform")
}

fn entries(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = Archive::new(tar);
    let entries = archive.entries().expect("entries").map(|entry| {
        let mut entry = entry.expect("an entry");
        let mut content = Vec::new();
        entry.read_to_end(&mut content).expect("a content");
        (entry.path().expect("a path").display().to_string(), content)
    });
    entries.collect()
}

fn json(content: &[u8]) -> Value {
    serde_json::from_slice(content).expect("JSON")
}

fn runs(program: &Path) -> String {
    let output = Command::new(program).env_clear().output().expect("the program runs");
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn an_image_is_reproducible_and_complete() {
    let (workspace, other) = (SmallWorkspace::new(), SmallWorkspace::new());
    let (image, program) = workspace.image();
    assert_eq!(runs(&program), format!("hello true {REVISION}\n"));
    assert!(image == other.image().0, "another folder gives another image");

    assert_eq!(image.reference, "greet:v1.2.3");
    let content = entries(&image.archive.content);
    blobs_have_their_digests(&content);
    let manifest = the_index_names_the_manifest(&content, &image);
    let config = the_manifest_names_config_and_layer(&content, &manifest, &program);
    the_config_is_that_of_a_program_without_rights(&config);
    the_bill_names_what_is_inside(&json(&image.bill), &program);
}

fn blobs_have_their_digests(content: &BTreeMap<String, Vec<u8>>) {
    let blobs = content.iter().filter_map(|(path, content)| {
        let name = path.strip_prefix("blobs/sha256/").filter(|name| !name.is_empty())?;
        Some((name, content))
    });
    let blobs: Vec<_> = blobs.collect();
    assert_eq!(blobs.len(), 3);
    for (name, content) in blobs {
        assert_eq!(sha256(content), name);
    }
}

fn the_index_names_the_manifest(
    content: &BTreeMap<String, Vec<u8>>,
    image: &AssembledImage,
) -> Value {
    assert_eq!(json(&content["oci-layout"]), json!({"imageLayoutVersion": "1.0.0"}));
    let index = json(&content["index.json"]);
    let descriptor = only(&index["manifests"]);
    assert_eq!(descriptor["digest"], format!("sha256:{}", image.archive.digest));
    assert_eq!(descriptor["platform"]["architecture"], platform().architecture);
    let names = &descriptor["annotations"];
    assert_eq!(names["io.containerd.image.name"], "docker.io/library/greet:v1.2.3");
    blob(content, descriptor)
}

fn the_manifest_names_config_and_layer(
    content: &BTreeMap<String, Vec<u8>>,
    manifest: &Value,
    program: &Path,
) -> Value {
    let layer = only(&manifest["layers"]);
    let docker = json(&content["manifest.json"]);
    assert_eq!(docker[0]["RepoTags"], json!(["greet:v1.2.3"]));
    assert_eq!(docker[0]["Config"], path(&manifest["config"]));
    assert_eq!(docker[0]["Layers"], json!([path(layer)]));
    let packed = &content[&path(layer)];
    assert_eq!(layer["size"], packed.len());
    let mut tar = Vec::new();
    GzDecoder::new(&**packed).read_to_end(&mut tar).expect("a tar");
    assert_eq!(entries(&tar)["greet"], fs::read(program).expect("the program"));
    let config = blob(content, &manifest["config"]);
    let diff = format!("sha256:{}", sha256(&tar));
    assert_eq!(config["rootfs"], json!({"type": "layers", "diff_ids": [diff]}));
    config
}

fn the_config_is_that_of_a_program_without_rights(config: &Value) {
    assert_eq!(config["os"], "linux");
    assert_eq!(config["config"]["User"], "65532:65532");
    assert_eq!(config["config"]["Entrypoint"], json!(["/greet"]));
    let labels = json!({
        "org.opencontainers.image.title": "Greeter",
        "org.opencontainers.image.version": "v1.2.3",
        "org.opencontainers.image.revision": REVISION,
        "org.opencontainers.image.source": "https://example.com/greeter",
        "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
    });
    assert_eq!(config["config"]["Labels"], labels);
}

fn the_bill_names_what_is_inside(bill: &Value, program: &Path) {
    assert_eq!((&bill["bomFormat"], &bill["specVersion"]), (&json!("CycloneDX"), &json!("1.5")));
    let described = &bill["metadata"]["component"];
    assert_eq!(described["name"], "greet");
    assert_eq!(described["licenses"], json!([{"expression": "MIT OR Apache-2.0"}]));
    let digest = sha256(&fs::read(program).expect("the program"));
    assert_eq!(described["hashes"], json!([{"alg": "SHA-256", "content": digest}]));
    let components = bill["components"].as_array().expect("components");
    let names: Vec<_> = components.iter().filter_map(|one| one["name"].as_str()).collect();
    assert_eq!(names, ["glibc", "rust-std", "words"]);
    let references = components.iter().chain([described]).map(|one| &one["bom-ref"]);
    let references: BTreeSet<_> = references.map(Value::to_string).collect();
    for one in bill["dependencies"].as_array().expect("dependencies") {
        let named = one["dependsOn"].as_array().expect("names").iter().chain([&one["ref"]]);
        for name in named {
            assert!(references.contains(&name.to_string()), "{name} is no component");
        }
    }
}

#[test]
fn a_program_with_failpoints_becomes_no_image() {
    let workspace = SmallWorkspace::new();
    let manifest = workspace.path().join("greeter/Cargo.toml");
    let text = fs::read_to_string(&manifest).expect("the manifest");
    let with = "words = { path = \"../words\", features = [\"failpoints\"] }";
    fs::write(&manifest, text.replace("words = { path = \"../words\" }", with)).expect("a file");
    let error = workspace.compile().expect_err("failpoints").to_string();
    assert!(error.ends_with("was built with failpoints"), "{error}");
    assert!(error.contains("words"), "{error}");
}

/// The type of a section with names of functions.
const SYMBOLS: [u8; 4] = [2, 0, 0, 0];

#[test]
fn a_program_of_a_package_with_settings_of_its_own_has_no_names_of_functions() {
    let workspace = SmallWorkspace::new();
    for profile in [ImageProfile::Published, ImageProfile::Quick] {
        let compilation = workspace.compile_as(profile).expect("a program");
        let program = fs::read(compilation.program("greet").expect("the program"));
        let kinds = sections(&program.expect("a file"));
        assert!(kinds.len() > 5 && !kinds.contains(&SYMBOLS), "{profile:?}: {kinds:?}");
    }
}

/// The types of a program's sections.
fn sections(program: &[u8]) -> Vec<[u8; 4]> {
    let first = u64::from_le_bytes(*program[0x28..].first_chunk().expect("an address"));
    let count = u16::from_le_bytes(*program[0x3c..].first_chunk().expect("a number"));
    let headers = program[usize::try_from(first).expect("an index")..].chunks(64);
    let kinds = headers.take(count.into()).map(|header| header[4..].first_chunk().copied());
    kinds.map(|kind| kind.expect("a type")).collect()
}

#[test]
fn a_quick_program_is_static_and_of_any_size() {
    let workspace = SmallWorkspace::new();
    let compilation = workspace.compile_as(ImageProfile::Quick).expect("a program");
    let path = compilation.program("greet").expect("the program");
    assert!(path.components().any(|part| part.as_os_str() == "image-quick"), "{path:?}");
    let program = fs::read(path).expect("a file");
    let small = ImageDefinition { most_bytes: 3, ..GREETER };
    assert!(images::assembly::files(&small, &program).is_err());
    images::assembly::files(&small.of_any_size(), &program).expect("a static program");
}

#[test]
fn a_program_that_is_too_large_becomes_no_image() {
    let small = ImageDefinition { most_bytes: 3, ..GREETER };
    let error = images::assembly::files(&small, b"four").expect_err("too large").to_string();
    assert_eq!(error, "the program has 4 bytes; 3 are allowed");
}

fn path(descriptor: &Value) -> String {
    let digest = descriptor["digest"].as_str().and_then(|digest| digest.strip_prefix("sha256:"));
    format!("blobs/sha256/{}", digest.expect("a digest"))
}

fn blob(content: &BTreeMap<String, Vec<u8>>, descriptor: &Value) -> Value {
    let blob = &content[&path(descriptor)];
    assert_eq!(descriptor["size"], blob.len());
    json(blob)
}

fn only(list: &Value) -> &Value {
    let list = list.as_array().expect("a list");
    assert_eq!(list.len(), 1, "{list:?}");
    &list[0]
}
