//! Whether the daemon's layers can be mounted in its directory. The kernel may have overlays, and the file system of the directory may not
//! take one: that of a container often is an overlay itself.

use std::fs;
use std::path::Path;
use std::process::Command;

use cache::command;
use lab::StateRoot;

use super::requirements::misplaced;

/// Why not, in one line.
pub(super) fn lacking(root: &StateRoot) -> Option<String> {
    // The mount ends with the namespace.
    let mut mount = Command::new("unshare");
    mount.args(["--mount", "mount", "-n", "-t", "overlay", "overlay", "-o"]);
    locked(root, mount)
}

/// The trial in a place that may be written: another process sweeps what no daemon owns, the files of a trial as well.
fn locked(root: &StateRoot, mount: Command) -> Option<String> {
    if let Some(why) = misplaced(root.path()) {
        return Some(why);
    }
    match root.lock() {
        Ok(_lock) => tried(root.path(), mount),
        Err(error) => {
            Some(format!("no layers can be mounted in {}: {error}", root.path().display()))
        }
    }
}

/// The command gets the options and the place of an overlay.
fn tried(root: &Path, mut mount: Command) -> Option<String> {
    let trial = root.join(format!("overlay-{}", std::process::id()));
    let [lower, upper, work, merged] =
        ["lower", "upper", "work", "merged"].map(|name| trial.join(name));
    let made = [&lower, &upper, &work, &merged].into_iter().try_for_each(fs::create_dir_all);
    mount.arg(options(&lower, &upper, &work)).arg(merged);
    let why = match made {
        Ok(()) => command::run(&mut mount).err().map(|error| error.to_string()),
        Err(error) => Some(error.to_string()),
    };
    // A half-made one has nothing that a daemon or the next trial needs.
    drop(fs::remove_dir_all(&trial));
    why.map(|why| {
        let root = root.display();
        format!(
            "no layers can be mounted in {root}: {why}; set XDG_STATE_HOME to another file system"
        )
    })
}

/// The options of an overlay of these directories.
pub(super) fn options(lower: &Path, upper: &Path, work: &Path) -> String {
    let (lower, upper, work) = (lower.display(), upper.display(), work.display());
    format!("lowerdir={lower},upperdir={upper},workdir={work}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_system_without_overlays_is_named_and_left_as_it_was() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(tried(root.path(), Command::new("true")), None);
        let mut refused = Command::new("sh");
        refused.args(["-c", "echo wrong fs type >&2; exit 32"]);
        let said = tried(root.path(), refused).unwrap();
        let begins = format!("no layers can be mounted in {}: ", root.path().display());
        assert!(said.starts_with(&begins) && said.contains("wrong fs type; set XDG"), "{said}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_covered_place_is_named_before_anything_is_written() {
        let root = StateRoot::at("/run/absent/sluice-kind".into());
        let said = locked(&root, Command::new("true")).unwrap();
        assert!(said.contains("it covers /run"), "{said}");
        assert!(!Path::new("/run/absent").exists());
    }

    #[test]
    fn a_trial_waits_for_the_lock_of_the_root() {
        let folder = tempfile::tempdir().unwrap();
        let root = StateRoot::at(folder.path().to_owned());
        let lock = root.lock().unwrap();
        let trial = std::thread::spawn({
            let root = StateRoot::at(folder.path().to_owned());
            move || locked(&root, Command::new("true"))
        });
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(!trial.is_finished());
        drop(lock);
        assert_eq!(trial.join().unwrap(), None);
    }

    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        let said = tried(Path::new("/proc/nothing"), Command::new("true")).unwrap();
        assert!(said.starts_with("no layers can be mounted in /proc/nothing: "), "{said}");
    }
}
