//! Programs that are run for their effect. What they print is shown if they fail.

use std::process::{Command, Stdio};

use super::CacheError;

/// Runs a program to its end, without input.
///
/// # Errors
/// If it cannot be started or fails.
pub fn run(command: &mut Command) -> Result<(), CacheError> {
    let failed = |command: &Command, output: String| {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        CacheError::Command { command: words.join(" "), output }
    };
    match command.stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => {
            // One line, as the reason why something is skipped.
            let said = String::from_utf8_lossy(&output.stderr);
            let lines = said.lines().map(str::trim).filter(|line| !line.is_empty());
            Err(failed(command, lines.collect::<Vec<_>>().join("; ")))
        }
        Err(error) => Err(failed(command, error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_names_the_command_and_what_it_printed() {
        let said = |command: &mut Command| run(command).unwrap_err().to_string();
        let fails =
            said(Command::new("sh").args(["-c", "echo no >&2; echo >&2; echo room >&2; exit 1"]));
        assert_eq!(fails, "sh -c echo no >&2; echo >&2; echo room >&2; exit 1 failed: no; room");
        let absent = said(&mut Command::new("/absent/program"));
        assert!(absent.starts_with("/absent/program failed: No such file"), "{absent}");
        run(&mut Command::new("true")).unwrap();
    }
}
