//! Used memory against the limit that applies: the limit of a control group before that of the host.
//!
//! Control groups of versions 1 and 2 nest, and the limit of every parent group counts too: the group that is
//! nearest to its limit applies. File pages that the kernel can drop do not count as used.

use std::{
    fs,
    path::{Path, PathBuf},
};

use windlass_core::admission::MemorySample;

/// Version 1 reports "no limit" as a number of this size.
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
    /// The pages in `memory.stat` that the kernel drops when memory is short.
    dropped: &'static str,
}

const V2: Version = Version { limit: "memory.max", used: "memory.current", dropped: "inactive_file" };
const V1: Version =
    Version { limit: "memory.limit_in_bytes", used: "memory.usage_in_bytes", dropped: "total_inactive_file" };

impl MemoryReader {
    /// Reads the files of this machine. `process_limit` is a limit on the memory of this process that an
    /// operator has set; the limits that the system sets also count.
    pub fn new(process_limit: Option<u64>) -> Self {
        Self::below("/", process_limit)
    }

    /// Reads the files below a folder: `proc/…` and `sys/fs/cgroup/…`.
    pub fn below(root: impl Into<PathBuf>, process_limit: Option<u64>) -> Self {
        Self { root: root.into(), process_limit }
    }

    /// Used memory and its limit; `None` if neither can be read.
    pub fn read(&self) -> Option<MemorySample> {
        let process =
            self.process_limit.and_then(|limit| Some(MemorySample { used: self.resident()?, limit }));
        let found = self.group().or_else(|| self.host());
        tightest([process, found].into_iter().flatten())
    }

    /// The control group of this process, or a parent, that is nearest to its limit.
    fn group(&self) -> Option<MemorySample> {
        let host = self.host().map_or(u64::MAX, |host| host.limit);
        let groups = fs::read_to_string(self.root.join("proc/self/cgroup")).ok()?;
        let samples = groups.lines().flat_map(|line| self.samples_of(line));
        // A limit above the machine's memory has no effect.
        tightest(samples.filter(|sample| sample.limit <= host))
    }

    /// Every limit on the path of a line such as `4:memory:/a/b` or `0::/a/b`.
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
        // In a container the path may be that of the host, while the mount is the container's own group.
        // Parts of the path that do not exist have no limit, and the mount itself is always read.
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

    /// Memory of this process that is in RAM.
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

/// The bytes after a name in a list of `Name: 1234 kB`.
fn kib(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.trim().trim_end_matches("kB").trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests;
