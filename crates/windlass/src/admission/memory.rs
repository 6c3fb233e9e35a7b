//! How much memory is in use, against the limit that applies: that of a control group before that of the host.
//!
//! Version 2 and version 1 of control groups nest, and the limit of every group above counts too: the one that is nearest to
//! its limit is the one that applies. File pages that the kernel drops when memory is short do not count as used.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windlass_core::admission::MemorySample;

/// Version 1 says "no limit" with a number of this size.
const NO_LIMIT: u64 = 1 << 60;

/// Reads memory below a folder that is `/` except in tests.
#[derive(Debug, Clone)]
pub struct MemoryReader {
    root: PathBuf,
    process_limit: Option<u64>,
}

/// The files of one version of control groups.
struct Version {
    limit: &'static str,
    used: &'static str,
    /// Pages in `memory.stat` that are given back when memory is short.
    dropped: &'static str,
}

const V2: Version = Version { limit: "memory.max", used: "memory.current", dropped: "inactive_file" };
const V1: Version =
    Version { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", dropped: "total_inactive_file" };

impl MemoryReader {
    /// Reads the files of this machine. `process_limit` is a limit on the memory of this process that somebody has set; the
    /// limits that are found count beside it.
    pub fn new(process_limit: Option<u64>) -> Self {
        Self::below("/", process_limit)
    }

    /// Reads the files below a folder: `proc/…` and `sys/fs/cgroup/…`.
    pub fn below(root: impl Into<PathBuf>, process_limit: Option<u64>) -> Self {
        Self { root: root.into(), process_limit }
    }

    /// Memory in use and its limit; `None` where neither can be read.
    pub fn read(&self) -> Option<MemorySample> {
        let process =
            self.process_limit.and_then(|limit| Some(MemorySample { used: self.resident()?, limit }));
        let found = self.group().or_else(|| self.host());
        tightest([process, found].into_iter().flatten())
    }

    /// The control group of this process, or one above it, that is nearest to its limit.
    fn group(&self) -> Option<MemorySample> {
        let host = self.host().map_or(u64::MAX, |host| host.limit);
        let groups = fs::read_to_string(self.root.join("proc/self/cgroup")).ok()?;
        let samples = groups.lines().flat_map(|line| self.samples_of(line));
        // A limit above what the machine has is none.
        tightest(samples.filter(|sample| sample.limit <= host))
    }

    /// Every limit that a line such as `4:memory:/a/b` or `0::/a/b` leads to.
    fn samples_of(&self, line: &str) -> Vec<MemorySample> {
        let mut parts = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else { return Vec::new() };
        let groups = self.root.join("sys/fs/cgroup");
        let (version, mount) = if controllers.is_empty() {
            // Where both versions are mounted, version 2 has a folder of its own.
            let own = groups.join("unified");
            (&V2, if own.is_dir() { own } else { groups })
        } else if controllers.split(',').any(|name| name == "memory") {
            (&V1, groups.join("memory"))
        } else {
            return Vec::new();
        };
        // In a container the path may be that of the host, and what is mounted is the container's own group: parts of the path
        // that do not exist have no limit, and the mount itself is always looked at.
        let own = mount.join(path.trim_start_matches('/'));
        own.ancestors()
            .take_while(|folder| folder.starts_with(&mount))
            .filter_map(|folder| version.read(folder))
            .collect()
    }

    fn host(&self) -> Option<MemorySample> {
        let text = fs::read_to_string(self.root.join("proc/meminfo")).ok()?;
        let limit = kib(&text, "MemTotal:")?;
        Some(MemorySample { used: limit.saturating_sub(kib(&text, "MemAvailable:")?), limit })
    }

    /// Memory of this process that is not on disk.
    fn resident(&self) -> Option<u64> {
        kib(&fs::read_to_string(self.root.join("proc/self/status")).ok()?, "VmRSS:")
    }
}

impl Version {
    fn read(&self, group: &Path) -> Option<MemorySample> {
        let number = |file: &str| fs::read_to_string(group.join(file)).ok()?.trim().parse::<u64>().ok();
        // "max", or no such file at the root: no limit.
        let limit = number(self.limit).filter(|limit| *limit < NO_LIMIT)?;
        let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
        let dropped = stat.lines().find_map(|line| line.strip_prefix(self.dropped)?.trim().parse().ok());
        Some(MemorySample { used: number(self.used)?.saturating_sub(dropped.unwrap_or(0)), limit })
    }
}

fn tightest(samples: impl Iterator<Item = MemorySample>) -> Option<MemorySample> {
    samples.max_by(|a, b| a.usage().total_cmp(&b.usage()))
}

/// The bytes behind a name in a list of `Name: 1234 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests;
