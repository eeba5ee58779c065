//! What an administrator sets for the operators: flags, files, and the environment variables of KubeRay's operator.

use std::{env, error::Error, fs, path::Path};

use anyhow::{Context, bail};
use appwrapper::settings::WrapperSettings;
use ray::{security::SecurityConfig, settings::OperatorSettings};

use crate::{
    args::AgentArgs,
    operators::{AllSettings, OperatorMode},
};

/// Reads all settings, and how RayClusters are secured. Where the agent operates nothing they are not read: a file for operators must not
/// stop what else it does. `value_of` has the value of an environment variable.
///
/// # Errors
/// If a file cannot be read or is invalid, or a setting is malformed, would have no effect, or does not go with another one.
pub(crate) fn operator_settings(
    args: &AgentArgs,
    value_of: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<(AllSettings, Option<SecurityConfig>)> {
    if args.operators == OperatorMode::Off {
        return Ok((AllSettings::default(), None));
    }
    let settings = without_security(args, value_of)?;
    let security = ray_security(args.ray_security.as_deref(), &settings.ray)?;
    Ok((settings, security))
}

/// The value of an environment variable. What is no Unicode in it becomes a character that no setting can have, and is refused.
pub(crate) fn variable(name: &str) -> Option<String> {
    env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

fn without_security(
    args: &AgentArgs,
    value_of: impl Fn(&str) -> Option<String>,
) -> anyhow::Result<AllSettings> {
    let gates = args.ray_feature_gates.unwrap_or_default();
    let ray = OperatorSettings { gates, ..OperatorSettings::default() };
    let ray = ray.with_variables(value_of)?;
    let ray = match &args.ray_config {
        Some(path) => read("--ray-config", path, |text| ray.with_file(text))?,
        None => ray,
    };
    let wrapper = match &args.appwrapper_config {
        Some(path) => read("--appwrapper-config", path, WrapperSettings::parse)?,
        None => WrapperSettings::default(),
    };
    Ok(AllSettings { ray, wrapper })
}

/// How RayClusters are secured; not at all without a file.
fn ray_security(
    path: Option<&Path>,
    settings: &OperatorSettings,
) -> anyhow::Result<Option<SecurityConfig>> {
    let Some(path) = path else { return Ok(None) };
    let config = read("--ray-security", path, SecurityConfig::parse)?;
    // The certificates of heads name Services of this domain, as with CodeFlare, and the manager adds them without knowing the worker's.
    let domain = &settings.cluster_domain;
    if config.mtls && *domain != OperatorSettings::default().cluster_domain {
        bail!(
            "mTLSEnabled of --ray-security needs the domain cluster.local, not CLUSTER_DOMAIN={domain}"
        );
    }
    Ok(Some(config))
}

fn read<T, E>(
    flag: &str,
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, E>,
) -> anyhow::Result<T>
where
    E: Error + Send + Sync + 'static,
{
    let read = || anyhow::Ok(parse(&fs::read_to_string(path)?)?);
    read().with_context(|| format!("{flag} {}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use clap::Parser;

    use super::*;

    fn settings(flags: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<AllSettings> {
        settings_of("--operators=auto", flags, variables)
    }

    fn settings_of(
        mode: &str,
        flags: &[&str],
        variables: &[(&str, &str)],
    ) -> anyhow::Result<AllSettings> {
        let args = ["sluice-agent", mode];
        let args = AgentArgs::try_parse_from(args.iter().chain(flags)).expect("flags");
        let value_of = |name: &str| {
            let found = variables.iter().find(|(one, _)| *one == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        operator_settings(&args, value_of).map(|(settings, _)| settings)
    }

    #[test]
    fn settings_come_from_flags_files_and_the_environment() {
        let folder = env::temp_dir().join(format!("operator-settings-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).expect("a file");
            path.display().to_string()
        };
        let header = "apiVersion: config.ray.io/v1alpha1\nkind: Configuration\n";
        let ray = file("ray.yaml", &format!("{header}defaultPodLabels: {{site: one}}\n"));
        let wrapper = file("appwrapper.yaml", "appwrapper: {faultTolerance: {resetPause: 4s}}\n");
        let flags = [
            "--ray-feature-gates=RayCronJob=false",
            "--ray-config",
            &ray,
            "--appwrapper-config",
            &wrapper,
        ];
        let variables = [("CLUSTER_DOMAIN", "corp.example"), ("ENABLE_LOGIN_SHELL", "true")];
        let read = settings(&flags, &variables).expect("settings");
        assert_eq!(read.ray.cluster_domain, "corp.example");
        assert!(read.ray.login_shell && !read.ray.gates.cron_jobs);
        assert_eq!(read.ray.pods.labels["site"], "one");
        assert_eq!(read.wrapper.fault_tolerance.reset_pause, Duration::from_secs(4));

        let bad = file("bad.yaml", "appwrapper: {pause: 1}\n");
        let error = settings(&["--appwrapper-config", &bad], &[]).expect_err("refused");
        let error = format!("{error:#}");
        assert!(error.contains("--appwrapper-config") && error.contains("`pause`"), "{error}");
        let error = settings(&[], &[("CLUSTER_DOMAIN", "a b")]).expect_err("refused").to_string();
        assert!(error.starts_with("CLUSTER_DOMAIN=a b"), "{error}");
        fs::remove_dir_all(&folder).expect("it is removed");
    }

    #[test]
    fn settings_of_operators_that_are_off_are_not_read() {
        let flags =
            ["--ray-config=/absent", "--appwrapper-config=/absent", "--ray-security=/absent"];
        let variables = [("CLUSTER_DOMAIN", "a b")];
        let read = settings_of("--operators=off", &flags, &variables).expect("not read");
        assert_eq!(format!("{read:?}"), format!("{:?}", AllSettings::default()));
        for mode in ["--operators=on", "--operators=auto"] {
            for flag in &flags {
                assert!(settings_of(mode, &[flag], &[]).is_err(), "{mode} {flag}");
            }
            assert!(settings_of(mode, &[], &variables).is_err(), "{mode}");
        }
    }

    #[test]
    fn a_variable_that_is_no_unicode_is_refused() {
        for name in ["CLUSTER_DOMAIN", "ENABLE_LOGIN_SHELL", "RAYJOB_STATUS_CHECK_TIMEOUT_SECONDS"]
        {
            // As `variable` gives the byte 0xff.
            let value = String::from_utf8_lossy(&[0xff]).into_owned();
            let error = settings(&[], &[(name, &value)]).expect_err("refused").to_string();
            assert!(error.starts_with(name), "{error}");
        }
    }

    #[test]
    fn encryption_needs_the_usual_domain() {
        let path = env::temp_dir().join(format!("ray-security-{}.yaml", std::process::id()));
        let text = "kuberay: {rayDashboardOAuthEnabled: false, certGeneratorImage: certs}\n";
        fs::write(&path, text).expect("a file");
        let usual = OperatorSettings::default();
        let other = OperatorSettings { cluster_domain: "corp.example".to_owned(), ..usual.clone() };
        assert!(ray_security(Some(&path), &usual).expect("a file").expect("settings").mtls);
        let error = ray_security(Some(&path), &other).expect_err("refused").to_string();
        assert!(error.contains("CLUSTER_DOMAIN=corp.example"), "{error}");
        assert_eq!(ray_security(None, &other).expect("no file"), None);
        fs::remove_file(&path).expect("it is removed");
    }

    #[test]
    fn without_settings_the_defaults_apply() {
        let read = settings(&[], &[]).expect("defaults");
        assert_eq!(format!("{read:?}"), format!("{:?}", AllSettings::default()));
    }
}
