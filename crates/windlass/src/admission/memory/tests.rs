use super::*;

/// Files below a folder of the test.
struct Machine(tempfile::TempDir);

impl Machine {
    fn new() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        machine.put(
            "proc/meminfo",
            "MemTotal:        8388608 kB\nMemFree:  100 kB\nMemAvailable:    6291456 kB\n",
        );
        machine.put("proc/self/status", "Name:\twindlass\nVmHWM:\t  4096 kB\nVmRSS:\t   2048 kB\n");
        machine
    }

    fn put(&self, path: &str, text: &str) {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn v2(&self, group: &str, limit: &str, used: u64, inactive_file: u64) {
        let folder = format!("sys/fs/cgroup/{group}");
        self.put(&format!("{folder}/memory.max"), &format!("{limit}\n"));
        self.put(&format!("{folder}/memory.current"), &format!("{used}\n"));
        self.put(
            &format!("{folder}/memory.stat"),
            &format!("anon 1\ninactive_file {inactive_file}\nfile 9\n"),
        );
    }

    fn read(&self, process_limit: Option<u64>) -> Option<MemorySample> {
        MemoryReader::below(self.0.path(), process_limit).read()
    }
}

fn sample(used: u64, limit: u64) -> MemorySample {
    MemorySample { used, limit }
}

#[test]
fn droppable_pages_of_a_version_2_group_do_not_count() {
    let machine = Machine::new();
    machine.put("proc/self/cgroup", "0::/app/worker\n");
    machine.v2("app/worker", "1000000", 700_000, 150_000);
    machine.v2("app", "max", 9_000_000, 0);
    assert_eq!(machine.read(None), Some(sample(550_000, 1_000_000)));
}

#[test]
fn a_parent_group_nearer_to_its_limit_applies() {
    let machine = Machine::new();
    machine.put("proc/self/cgroup", "0::/app/worker\n");
    machine.v2("app/worker", "1000000", 200_000, 0);
    machine.v2("app", "2000000", 1_900_000, 0);
    assert_eq!(machine.read(None), Some(sample(1_900_000, 2_000_000)), "its neighbours use the parent's");
    machine.v2("app/worker", "1000000", 990_000, 0);
    assert_eq!(machine.read(None), Some(sample(990_000, 1_000_000)));
}

#[test]
fn in_a_container_the_mount_itself_is_the_group() {
    let machine = Machine::new();
    machine.put("proc/self/cgroup", "0::/\n");
    machine.v2("", "500000", 100_000, 0);
    assert_eq!(machine.read(None), Some(sample(100_000, 500_000)));
    machine.put("proc/self/cgroup", "0::/docker/0123456789\n");
    assert_eq!(machine.read(None), Some(sample(100_000, 500_000)), "the host's path means nothing in here");
}

#[test]
fn version_1_beside_version_2_is_found() {
    let machine = Machine::new();
    machine.put("proc/self/cgroup", "5:cpu,cpuacct:/a\n4:memory:/a/b\n0::/a\n");
    machine.put("sys/fs/cgroup/unified/a/cgroup.procs", "1\n");
    machine.put("sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "268435456\n");
    machine.put("sys/fs/cgroup/memory/a/b/memory.usage_in_bytes", "200000000\n");
    machine.put("sys/fs/cgroup/memory/a/b/memory.stat", "inactive_file 1\ntotal_inactive_file 50000000\n");
    machine.put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    machine.put("sys/fs/cgroup/memory/memory.usage_in_bytes", "99999999999\n");
    assert_eq!(machine.read(None), Some(sample(150_000_000, 268_435_456)));
}

#[test]
fn without_a_limit_below_it_the_host_applies() {
    let machine = Machine::new();
    let host = Some(sample(2 << 30, 8 << 30));
    assert_eq!(machine.read(None), host, "no groups at all");
    machine.put("proc/self/cgroup", "0::/app\n");
    machine.v2("app", "max", 1, 0);
    assert_eq!(machine.read(None), host);
    machine.v2("app", "99999999999", 99_999_999_998, 0);
    assert_eq!(machine.read(None), host, "a limit above what the machine has is none");
}

#[test]
fn a_limit_of_the_process_counts_too() {
    let machine = Machine::new();
    assert_eq!(machine.read(Some(4 << 20)), Some(sample(2 << 20, 4 << 20)));
    assert_eq!(
        machine.read(Some(1 << 30)),
        Some(sample(2 << 30, 8 << 30)),
        "the host is nearer to its limit"
    );
}

#[test]
fn garbage_and_nothing_are_no_reading() {
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(MemoryReader::below(empty.path(), Some(5)).read(), None);
    let machine = Machine::new();
    machine.put("proc/self/cgroup", "\n::\n0\nmemory\n0::/../../..\n");
    machine.v2("app", "many", 1, 0);
    assert_eq!(machine.read(None), Some(sample(2 << 30, 8 << 30)));
    machine.put("proc/meminfo", "MemTotal: lots\n");
    assert_eq!(machine.read(None), None);
}

#[test]
fn this_machine_can_be_read() {
    let read = MemoryReader::new(None).read().unwrap();
    assert!(read.used > 0 && read.used < read.limit, "{read:?}");
    assert!(MemoryReader::new(Some(1 << 40)).resident().unwrap() > 0);
}
