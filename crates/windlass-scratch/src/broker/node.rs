//! A RabbitMQ node as its clients and `rabbitmqctl` find it.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use crate::{Error, programs};

/// The file in the node's folder that names its ports.
const PORTS_FILE: &str = "ports";
/// The name of the node: the same for all; the port of the name server tells them apart.
const NAME: &str = "windlass@localhost";

/// Where a node is: all that is needed to connect to it and to command it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    folder: PathBuf,
    port: u16,
    /// The port on which nodes and `rabbitmqctl` talk to each other.
    distribution_port: u16,
    /// The port of this node's own Erlang name server.
    names_port: u16,
}

impl Node {
    pub(crate) fn new(folder: &Path, [port, distribution_port, names_port]: [u16; 3]) -> Self {
        Self { folder: folder.to_owned(), port, distribution_port, names_port }
    }

    /// The node of this folder.
    pub(crate) fn at(folder: &Path) -> Result<Self, Error> {
        let text = fs::read_to_string(folder.join(PORTS_FILE))?;
        let ports: Vec<u16> = text.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let ports = <[u16; 3]>::try_from(ports).map_err(|_| Error::Start {
            server: "RabbitMQ",
            reason: format!("{} does not name its ports", folder.display()),
        })?;
        Ok(Self::new(folder, ports))
    }

    pub(crate) fn write_ports(&self) -> Result<(), Error> {
        let text = format!("{} {} {}\n", self.port, self.distribution_port, self.names_port);
        fs::write(self.folder.join(PORTS_FILE), text)?;
        Ok(())
    }

    /// The URL of the node's default virtual host, as its only user.
    pub fn url(&self) -> String {
        format!("amqp://guest:guest@127.0.0.1:{}/%2f", self.port)
    }

    /// The port on `127.0.0.1`; a restart keeps it.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of all files that the node writes.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    pub(crate) fn names_port(&self) -> u16 {
        self.names_port
    }

    /// Runs `rabbitmqctl` and returns its output: rows as lines, columns separated by tabs.
    pub fn ctl(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(programs::rabbitmqctl()?);
        for (name, value) in self.variables() {
            command.env(name, value);
        }
        command.arg("--quiet").args(arguments).current_dir("/");
        // Other commands do not accept the flag.
        if arguments.first().is_some_and(|verb| verb.starts_with("list_")) {
            command.arg("--no-table-headers");
        }
        let output = command.output().map_err(|error| Error::Rabbitmqctl(error.to_string()))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned());
        }
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let words: Vec<&str> = text.split_whitespace().collect();
        Err(Error::Rabbitmqctl(words.join(" ")))
    }

    /// The environment that makes the server and its tools use this node and no other on the machine.
    pub(crate) fn variables(&self) -> Vec<(&'static str, OsString)> {
        let file = |name: &str| self.folder.join(name).into_os_string();
        vec![
            ("HOME", self.folder.clone().into_os_string()),
            ("RABBITMQ_NODENAME", NAME.into()),
            ("RABBITMQ_NODE_PORT", self.port.to_string().into()),
            ("RABBITMQ_NODE_IP_ADDRESS", "127.0.0.1".into()),
            ("RABBITMQ_DIST_PORT", self.distribution_port.to_string().into()),
            ("ERL_EPMD_PORT", self.names_port.to_string().into()),
            ("ERL_EPMD_ADDRESS", "127.0.0.1".into()),
            ("RABBITMQ_MNESIA_BASE", file("data")),
            ("RABBITMQ_LOG_BASE", file("logs")),
            ("RABBITMQ_LOGS", "-".into()),
            ("RABBITMQ_CONFIG_FILE", file("rabbitmq")),
            ("RABBITMQ_CONF_ENV_FILE", file("none")),
            ("RABBITMQ_ENABLED_PLUGINS_FILE", file("plugins")),
            ("RABBITMQ_PID_FILE", file("pid")),
            // The traffic between nodes stays on loopback.
            ("RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS", "-kernel inet_dist_use_interface {127,0,0,1}".into()),
            // With this the script becomes the server; otherwise signals would reach the script instead of
            // the server.
            ("RUNNING_UNDER_SYSTEMD", "true".into()),
        ]
    }
}
