//! Starts programs from one thread that lives as long as the process.
//!
//! A tether ([`lab::tether`]) ties a child to the *thread* that started it. Threads of tests end with the test, and threads of
//! an async runtime end at any time.

use std::process::{Child, Command};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, OnceLock, PoisonError};

struct SpawnRequest {
    command: Command,
    reply: Sender<std::io::Result<Child>>,
}

static SPAWNER: OnceLock<Mutex<Sender<SpawnRequest>>> = OnceLock::new();

/// Starts `command` from the lasting thread.
pub(crate) fn spawn(command: Command) -> std::io::Result<Child> {
    let (reply, answer) = channel();
    let orders = SPAWNER.get_or_init(|| Mutex::new(lasting_thread()));
    let sent =
        orders.lock().unwrap_or_else(PoisonError::into_inner).send(SpawnRequest { command, reply });
    sent.map_err(|_| std::io::Error::other("the spawning thread is gone"))?;
    answer.recv().map_err(|_| std::io::Error::other("the spawning thread is gone"))?
}

fn lasting_thread() -> Sender<SpawnRequest> {
    let (orders, received) = channel::<SpawnRequest>();
    std::thread::spawn(move || {
        for mut order in received {
            // The receiver is gone: the test was cancelled, and the tether still holds the child.
            let _ = order.reply.send(order.command.spawn());
        }
    });
    orders
}
