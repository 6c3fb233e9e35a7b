//! A private RabbitMQ node.

use std::{fs, path::Path};

use rustix::process::{Pid, Signal, kill_process};
use windlass_scratch::{Broker, Node};

use crate::processes::{is_alive, wait_until_gone, with_argument};

fn kill(pid: u32) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
}

/// The name server that listens on the third port of a node.
fn name_server(node: &Node) -> u32 {
    let ports = fs::read_to_string(node.folder().join("ports")).unwrap();
    let port = ports.split_whitespace().nth(2).unwrap();
    let found = with_argument("-address").into_iter().filter(|pid| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        let words: Vec<_> = line.split(|byte| *byte == 0).collect();
        words.first().is_some_and(|program| program.ends_with(b"epmd")) && words.contains(&port.as_bytes())
    });
    let found: Vec<u32> = found.collect();
    assert_eq!(found.len(), 1, "the node has one name server of its own");
    found[0]
}

fn queues(broker: &Broker) -> String {
    broker.ctl(&["list_queues", "name"]).unwrap()
}

#[test]
fn node_keeps_its_queues_over_a_stop_and_a_crash() {
    let broker = Broker::start().unwrap();
    let (folder, names) = (broker.node().folder().to_owned(), name_server(broker.node()));
    let declare = "rabbit_amqqueue:declare(rabbit_misc:r(<<\"/\">>, queue, <<\"kept\">>), true, false, [], none, \
                   <<\"test\">>).";
    broker.ctl(&["eval", declare]).unwrap();
    assert_eq!(queues(&broker), "kept");
    broker.stop().unwrap();
    assert!(broker.pid().is_none());
    broker.start_again().unwrap();
    assert_eq!(queues(&broker), "kept");
    broker.kill().unwrap();
    broker.start_again().unwrap();
    assert_eq!(queues(&broker), "kept");
    drop(broker);
    assert!(!folder.exists());
    assert_eq!(with_argument(folder.to_str().unwrap()), Vec::<u32>::new());
    assert!(!is_alive(names), "its name server ends with it");
}

#[test]
fn a_node_whose_shell_is_killed_ends_too() {
    let broker = Broker::start().unwrap();
    let folder = broker.node().folder().to_owned();
    let name = folder.to_str().unwrap();
    let shell = with_argument("windlass-scratch-keeper");
    let shell = shell.into_iter().find(|pid| with_argument(name).contains(pid)).unwrap();
    kill(shell);
    while !with_argument(name).is_empty() {
        std::thread::yield_now();
    }
    drop(broker);
    wait_until_gone(Path::new(name));
}
