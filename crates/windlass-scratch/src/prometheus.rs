//! A private Prometheus with a given configuration.

use std::{
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpStream},
    path::PathBuf,
    thread,
    time::{Duration, Instant},
};

use crate::{
    Error,
    keeper::{Keeper, owner::Owner, port},
    programs,
};

/// How long it may take until it answers.
const START_LIMIT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How many ports to try if another process takes one that was free a moment ago.
const PORT_TRIES: usize = 5;
/// Its data are not needed afterwards.
const SIGNAL: &str = "KILL";

/// A private Prometheus on `127.0.0.1`, removed with its data when the value is dropped or the process ends.
#[derive(Debug)]
pub struct Prometheus {
    keeper: Keeper,
    port: u16,
}

impl Prometheus {
    /// Starts one with this configuration and these other files beside it, and waits until it answers.
    pub fn start(configuration: &str, files: &[(&str, &str)]) -> Result<Self, Error> {
        let mut last = Error::Start { server: "Prometheus", reason: "no port is free".to_owned() };
        for _ in 0..PORT_TRIES {
            let Some(port) = port::free() else { break };
            match Self::start_on(port, configuration, files) {
                Err(error @ Error::Start { .. }) => last = error,
                started => return started,
            }
        }
        Err(last)
    }

    fn start_on(port: u16, configuration: &str, files: &[(&str, &str)]) -> Result<Self, Error> {
        let owner = Owner::find()?;
        let program = programs::prometheus()?;
        let folder = owner.folder(None)?;
        for (name, text) in files.iter().chain([&("prometheus.yml", configuration)]) {
            let path = folder.path().join(name);
            fs::write(&path, text)?;
            owner.give(&path)?;
        }
        let flag = |name: &str, path: &str| format!("--{name}={}", folder.path().join(path).display());
        let command = [
            program.into(),
            flag("config.file", "prometheus.yml").into(),
            flag("storage.tsdb.path", "data").into(),
            format!("--web.listen-address=127.0.0.1:{port}").into(),
            "--log.level=warn".into(),
        ];
        let prometheus = Self { keeper: Keeper::new(owner, folder, SIGNAL, &command)?, port };
        prometheus.keeper.start()?;
        let deadline = Instant::now() + START_LIMIT;
        while !prometheus.is_ready() {
            if !prometheus.keeper.is_running() || Instant::now() >= deadline {
                let log = fs::read_to_string(prometheus.keeper.folder().join("log")).unwrap_or_default();
                let reason = log.lines().next_back().unwrap_or("no reason in its log").to_owned();
                return Err(Error::Start { server: "Prometheus", reason });
            }
            thread::sleep(LOOK_EVERY);
        }
        Ok(prometheus)
    }

    /// Its address, such as `http://127.0.0.1:19090`.
    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn is_ready(&self) -> bool {
        let ask = || -> std::io::Result<String> {
            let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
            stream.set_read_timeout(Some(Duration::from_secs(2)))?;
            stream.write_all(b"GET /-/ready HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        ask().is_ok_and(|answer| answer.contains(" 200 "))
    }
}

/// The program `promtool`, which checks and tests rules.
pub fn promtool() -> Result<PathBuf, Error> {
    programs::promtool()
}
