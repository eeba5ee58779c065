//! The links between the gateway and the nodes: a routed pair of interfaces per node, no bridge, no address translation.

use std::io::Write;
use std::process::{Command, Stdio};

use super::node::{GATEWAY, RealNode};

/// A command of `ip` failed.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// It could not be run.
    #[error("run {command}: {source}")]
    Run {
        /// The command.
        command: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// The kernel refused a change.
    #[error("{command} failed: {output}")]
    Refused {
        /// The command.
        command: String,
        /// What it printed.
        output: String,
    },
}

/// Gives this process, which is alone in a new network namespace, the gateway's address.
///
/// # Errors
/// If the kernel refuses it.
pub fn prepare_gateway() -> Result<(), LinkError> {
    let address = format!("address add {GATEWAY}/32 dev lo");
    ip(Command::new("ip"), &["link set lo up".to_owned(), address])?;
    forward()
}

/// Lets the network namespace of this process forward packets.
///
/// # Errors
/// If `/proc` cannot be written.
pub fn forward() -> Result<(), LinkError> {
    let file = "/proc/sys/net/ipv4/ip_forward";
    std::fs::write(file, "1")
        .map_err(|source| LinkError::Run { command: format!("write {file}"), source })
}

/// Connects a node with the gateway. `gateway` and `node_process` are the pids of a process in each namespace.
///
/// # Errors
/// If a process has ended, or the kernel refuses it.
pub fn connect(gateway: u32, node_process: u32, node: &RealNode) -> Result<(), LinkError> {
    ip(inside(gateway), &gateway_commands(node_process, node))?;
    ip(inside(node_process), &node_commands(node))
}

/// Cuts a node off at the gateway. Its own interface stays, without a carrier.
///
/// # Errors
/// If the gateway has ended, or the kernel refuses it.
pub fn cut_off(gateway: u32, node: &RealNode) -> Result<(), LinkError> {
    ip(inside(gateway), &[format!("link set {} down", node.link())])
}

/// Connects a node again.
///
/// # Errors
/// If the gateway has ended, or the kernel refuses it.
pub fn reconnect(gateway: u32, node: &RealNode) -> Result<(), LinkError> {
    ip(inside(gateway), &reconnection(node))
}

/// The kernel removes the routes of an interface that is set down.
fn reconnection(node: &RealNode) -> Vec<String> {
    let up = format!("link set {} up", node.link());
    std::iter::once(up).chain(routes(node)).collect()
}

fn gateway_commands(node_process: u32, node: &RealNode) -> Vec<String> {
    let link = node.link();
    let add = format!("link add {link} type veth peer name eth0 netns {node_process}");
    std::iter::once(add).chain(reconnection(node)).collect()
}

fn routes(node: &RealNode) -> [String; 2] {
    let (link, address, pods) = (node.link(), node.address(), node.pod_range());
    [
        format!("route add {address}/32 dev {link}"),
        format!("route add {pods} via {address} dev {link} onlink"),
    ]
}

/// The default route is the last: process 1 of the node waits for it.
fn node_commands(node: &RealNode) -> Vec<String> {
    let address = node.address();
    vec![
        "link set lo up".to_owned(),
        format!("address add {address}/32 dev eth0"),
        "link set eth0 up".to_owned(),
        format!("route add {GATEWAY}/32 dev eth0"),
        format!("route add default via {GATEWAY} dev eth0 src {address}"),
    ]
}

/// `ip` in the network namespace of a process.
fn inside(process: u32) -> Command {
    let mut command = Command::new("nsenter");
    command.args(["--target", &process.to_string(), "--net", "ip"]);
    command
}

fn ip(mut command: Command, commands: &[String]) -> Result<(), LinkError> {
    let text = || format!("ip ({})", commands.join("; "));
    let unrun = |source| LinkError::Run { command: text(), source };
    command.args(["-batch", "-"]).stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::piped()).spawn().map_err(unrun)?;
    if let Some(mut input) = child.stdin.take() {
        let lines: String = commands.iter().map(|line| format!("{line}\n")).collect();
        input.write_all(lines.as_bytes()).map_err(unrun)?;
    }
    let output = child.wait_with_output().map_err(unrun)?;
    if output.status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(LinkError::Refused { command: text(), output })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn the_route_that_a_node_waits_for_is_the_last_change() {
        let node = RealNode::new(Path::new("/l/worker-1"), 1, 1);
        let gateway = gateway_commands(77, &node);
        assert_eq!(gateway[0], "link add node1 type veth peer name eth0 netns 77");
        assert!(
            gateway.contains(&"route add 10.220.1.0/24 via 10.210.0.2 dev node1 onlink".to_owned())
        );
        let last = node_commands(&node).pop();
        assert_eq!(
            last.as_deref(),
            Some("route add default via 10.210.0.1 dev eth0 src 10.210.0.2")
        );
    }
}
