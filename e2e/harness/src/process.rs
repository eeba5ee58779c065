//! A program of the project that runs beside the lab.

use std::ffi::OsString;
use std::fs::File;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use lab::control::ControlError;
use lab::{ProcessId, logs, tether};
use rustix::process::Signal;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::lab::{LabError, TestLab, program};
use crate::{backlog, plain_http, spawner};

/// Pause between two probes of a readiness endpoint.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// One readiness request is answered at once or counts as no.
const ONE_REQUEST: Duration = Duration::from_secs(2);

/// Last lines shown with a failure.
const LINES: usize = 40;

/// Why a program failed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It has not been built.
    #[error(transparent)]
    Lab(#[from] LabError),
    /// It could not be started or signalled.
    #[error("{operation} {program}: {source}")]
    System {
        /// What was tried.
        operation: &'static str,
        /// The program.
        program: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// It ended before it was ready.
    #[error("{program} ended ({status}) before it was ready; its last lines:\n{log}")]
    Ended {
        /// The program.
        program: String,
        /// How it ended.
        status: String,
        /// The end of its log.
        log: String,
    },
    /// It was not ready in time.
    #[error("{program} was not ready within {within:?} ({url}: {last}); its last lines:\n{log}")]
    NotReady {
        /// The program.
        program: String,
        /// How long it had.
        within: Duration,
        /// The readiness URL.
        url: String,
        /// The last answer.
        last: String,
        /// The end of its log.
        log: String,
    },
    /// The supervisor of the lab did not start it.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// It did not end in time.
    #[error("{program} did not end within {within:?}; its last lines:\n{log}")]
    StillRunning {
        /// The program.
        program: String,
        /// How long it had.
        within: Duration,
        /// The end of its log.
        log: String,
    },
}

/// What to start.
#[derive(Debug, Clone)]
pub struct Launch {
    pub(crate) program: String,
    pub(crate) folder: Option<PathBuf>,
    pub(crate) arguments: Vec<OsString>,
    environment: Vec<(String, OsString)>,
}

impl Launch {
    /// A program of this workspace, such as `sluice-manager`.
    pub fn of(program: &str) -> Self {
        Self {
            program: program.to_owned(),
            folder: None,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// Of another build: the one in this folder, instead of the one that this program belongs to.
    pub fn built_in(self, folder: Option<PathBuf>) -> Self {
        Self { folder, ..self }
    }

    /// One more argument.
    pub fn arg(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// Some more arguments.
    pub fn args<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// One more variable of the environment.
    pub fn env(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// Starts the program. Its output goes to a log in the lab's directory. It ends with this process.
    pub fn start(self, lab: &TestLab) -> Result<Process, ProcessError> {
        self.start_in(&lab.state().directory)
    }

    /// Starts the program without a lab, with the log in this directory.
    pub fn start_in(self, directory: &Path) -> Result<Process, ProcessError> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let log = directory.join(format!("{}-{number}.log", self.program));
        let failed = |operation| {
            let program = self.program.clone();
            move |source| ProcessError::System { operation, program, source }
        };
        let output = File::create(&log).map_err(failed("make the log of"))?;
        let errors = output.try_clone().map_err(failed("make the log of"))?;
        let path = match &self.folder {
            Some(folder) => folder.join(&self.program),
            None => program(&self.program)?,
        };
        let mut command = tether::command(&program("sluice-lab")?, &path);
        command
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output)
            .stderr(errors);
        // The tether names its parent by pid, and the spawner is a thread of this process.
        let child = spawner::spawn(command).map_err(failed("start"))?;
        backlog::add(&self.program, child.id(), &log);
        Process::adopt(self.program, child, log)
    }
}

impl ProcessError {
    /// A program did not answer with 200 in time. `last` is its last other answer.
    pub(crate) fn not_ready(
        program: &str,
        (address, path, within): (SocketAddr, &str, Duration),
        last: String,
        log: &Path,
    ) -> Self {
        Self::NotReady {
            program: program.to_owned(),
            within,
            url: format!("http://{address}{path}"),
            last,
            log: logs::tail(log, LINES),
        }
    }
}

/// Asks until the answer is 200. `last` is the last other answer.
pub(crate) async fn until_ok(address: SocketAddr, path: &str, last: &mut String) {
    loop {
        *last = match timeout(ONE_REQUEST, plain_http::ask(address, path, "")).await {
            Ok(Ok(answer)) if answer.is_ok() => return,
            Ok(Ok(answer)) => format!("{} {}", answer.status, answer.body),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "no answer".to_owned(),
        };
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    program: String,
    id: ProcessId,
    log: PathBuf,
    exited: watch::Receiver<Option<String>>,
}

impl Process {
    fn adopt(
        program: String,
        mut child: std::process::Child,
        log: PathBuf,
    ) -> Result<Self, ProcessError> {
        // A child exists until it is waited for, so its start time can be read.
        let id = ProcessId::of(child.id()).ok_or_else(|| ProcessError::System {
            operation: "find",
            program: program.clone(),
            source: std::io::ErrorKind::NotFound.into(),
        })?;
        let (ended, exited) = watch::channel(None);
        std::thread::spawn(move || {
            let status = child.wait().map_or_else(|error| error.to_string(), |s| s.to_string());
            ended.send_replace(Some(status));
        });
        Ok(Self { program, id, log, exited })
    }

    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.id.pid()
    }

    /// The last lines of its log.
    pub fn log_tail(&self, lines: usize) -> String {
        logs::tail(&self.log, lines)
    }

    /// Waits until `GET http://<address><path>` is answered with 200.
    pub async fn ready(
        &self,
        address: SocketAddr,
        path: &str,
        within: Duration,
    ) -> Result<(), ProcessError> {
        let mut last = String::new();
        tokio::select! {
            answered = timeout(within, until_ok(address, path, &mut last)) => if answered.is_ok() { return Ok(()) },
            status = self.ended() => {
                return Err(ProcessError::Ended {
                    program: self.program.clone(),
                    status,
                    log: self.log_tail(LINES),
                });
            }
        }
        Err(ProcessError::not_ready(&self.program, (address, path, within), last, &self.log))
    }

    /// Asks it to end (SIGTERM).
    pub fn ask_to_end(&self) -> Result<(), ProcessError> {
        self.signal(Signal::TERM)
    }

    /// Asks it to end (SIGTERM) and waits until it did. Gives how it ended.
    pub async fn terminate(&self, within: Duration) -> Result<String, ProcessError> {
        self.ask_to_end()?;
        timeout(within, self.ended()).await.map_err(|_| ProcessError::StillRunning {
            program: self.program.clone(),
            within,
            log: self.log_tail(LINES),
        })
    }

    /// Kills the process (SIGKILL) and waits for its end.
    pub async fn kill(&self) -> Result<(), ProcessError> {
        self.signal(Signal::KILL)?;
        self.ended().await;
        Ok(())
    }

    /// Stops it where it is (SIGSTOP).
    pub fn pause(&self) -> Result<(), ProcessError> {
        self.signal(Signal::STOP)
    }

    /// Resumes the process (SIGCONT).
    pub fn resume(&self) -> Result<(), ProcessError> {
        self.signal(Signal::CONT)
    }

    /// Waits until it ends by itself. Gives how.
    pub async fn ended(&self) -> String {
        let mut exited = self.exited.clone();
        match exited.wait_for(Option::is_some).await {
            Ok(status) => status.clone().unwrap_or_default(),
            Err(_) => "unknown status".to_owned(),
        }
    }

    fn signal(&self, signal: Signal) -> Result<(), ProcessError> {
        let sent = self.id.signal(signal).map_err(|source| ProcessError::System {
            operation: "signal",
            program: self.program.clone(),
            source,
        });
        sent.map(drop)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that cannot be signalled has ended.
        let _ = self.id.signal(Signal::KILL);
        if !std::thread::panicking() {
            // Otherwise the space of the test, which is dropped later, prints the log.
            backlog::remove(&self.log);
        }
    }
}
