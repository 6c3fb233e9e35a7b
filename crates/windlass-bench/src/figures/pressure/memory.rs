//! Tasks that together hold more memory than their control group has. With admission control all of them
//! finish; without it the kernel kills the process.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    sync::Arc,
    time::Duration,
};

use anyhow::Context as _;
use serde_json::{Value, json};
use windlass::{
    Context, Outcome,
    admission::{AdmissionConfig, MemoryReader},
    handler::RawHandler,
    worker::WorkerConfig,
};

use super::super::memory::status_mb;
use crate::{
    args::{AdmissionArg, Common},
    rig::{HistoryArg, Rig, round, runtime},
};

/// Memory of the control group.
const LIMIT: u64 = 256 << 20;
/// The bytes that each task holds, and how long it holds them.
const HELD: usize = 1 << 20;
const HELD_FOR: Duration = Duration::from_millis(200);
/// Slots: four times as many as fit into memory.
pub(super) const SLOTS: u32 = 1_000;

/// Runs both parts, one after the other, each in a control group of its own.
pub(super) fn run(common: &Common, tasks: usize, slots: u32) -> anyhow::Result<Value> {
    let part = |admission: &str| -> anyhow::Result<Value> {
        let group = Group::make(admission);
        let mut command = command(group.as_ref().ok(), admission, tasks, slots)?;
        if let Some(dir) = &common.dir {
            command.arg("--dir").arg(dir);
        }
        let output = command.output()?;
        Ok(judged(&output, group.as_ref().ok(), group.as_ref().err()))
    };
    let (on, off) = (part("on")?, part("off")?);
    Ok(json!({
        "limit_mb": LIMIT >> 20,
        "tasks": tasks,
        "slots": slots,
        "held_mb": HELD >> 20,
        "on": on,
        "off": off,
    }))
}

/// The process of a part: inside the control group, or with a memory limit of its own where no group can
/// be made.
fn command(group: Option<&Group>, admission: &str, tasks: usize, slots: u32) -> anyhow::Result<Command> {
    let own = std::env::current_exe()?;
    let mut command = match group {
        Some(group) => {
            // The shell enters the group and then becomes the program, so everything that the program
            // allocates counts.
            let mut shell = Command::new("sh");
            shell.args(["-c", "echo $$ > \"$1\" && shift && exec \"$@\"", "sh"]);
            shell.arg(group.folder.join("cgroup.procs")).arg(own);
            shell
        }
        None => Command::new(own),
    };
    command.args(["pressure", "--part", "--json", "--admission", admission]);
    command.args(["--tasks", &tasks.to_string(), "--slots", &slots.to_string()]);
    Ok(command)
}

fn judged(output: &Output, group: Option<&Group>, why_none: Option<&anyhow::Error>) -> Value {
    use std::os::unix::process::ExitStatusExt as _;
    let figures: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let peak = group.and_then(Group::peak_mb).or_else(|| figures.get("peak_mb").and_then(Value::as_f64));
    let mut judged = json!({
        "finished": output.status.success(),
        "killed": output.status.signal() == Some(9),
        "limited_by": if group.is_some() { "control group" } else { "memory_limit" },
        "group_peak_mb": peak,
        "run": figures,
    });
    if let (Some(error), Some(map)) = (why_none, judged.as_object_mut()) {
        map.insert("no_control_group".to_owned(), format!("{error:#}").into());
    }
    if !output.status.success()
        && let Some(map) = judged.as_object_mut()
    {
        let said = String::from_utf8_lossy(&output.stderr);
        map.insert("said".to_owned(), said.lines().last().unwrap_or_default().into());
    }
    judged
}

/// A control group of the bench; removed at the end.
struct Group {
    folder: PathBuf,
    peak: &'static str,
}

impl Group {
    /// Version 1 if the memory controller is there, else version 2.
    fn make(name: &str) -> anyhow::Result<Self> {
        let name = format!("windlass-bench-{}-{name}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (folder, limit, peak) = if v1.is_dir() {
            (v1.join(name), "memory.limit_in_bytes", "memory.max_usage_in_bytes")
        } else {
            (Path::new("/sys/fs/cgroup").join(name), "memory.max", "memory.peak")
        };
        fs::create_dir(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let group = Self { folder, peak };
        fs::write(group.folder.join(limit), LIMIT.to_string())
            .with_context(|| format!("cannot set {limit} of {}", group.folder.display()))?;
        // Without these limits the kernel swaps, if there is swap. Some kernels do not have them.
        let _ = fs::write(group.folder.join("memory.memsw.limit_in_bytes"), LIMIT.to_string());
        let _ = fs::write(group.folder.join("memory.swap.max"), "0");
        Ok(group)
    }

    fn peak_mb(&self) -> Option<f64> {
        let bytes: f64 = fs::read_to_string(self.folder.join(self.peak)).ok()?.trim().parse().ok()?;
        Some(round(bytes / f64::from(1 << 20), 1))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The kernel may take a moment to remove the last process from the group.
        for _ in 0..100 {
            if fs::remove_dir(&self.folder).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Holds memory for some time.
struct Hold;

#[async_trait::async_trait]
impl RawHandler for Hold {
    async fn call(&self, _context: Context) -> Outcome {
        let held = vec![1_u8; HELD];
        tokio::time::sleep(HELD_FOR).await;
        // Read the memory, so that the compiler cannot remove the allocation.
        if held.last() == Some(&1) { Outcome::Done(None) } else { Outcome::dead("it was not held") }
    }
}

/// Runs one part in this process.
pub(super) fn run_part(common: &Common, tasks: usize, slots: u32) -> anyhow::Result<Value> {
    let found = MemoryReader::new(None).read().map_or(u64::MAX, |memory| memory.limit);
    let admission = AdmissionConfig {
        is_on: common.admission == AdmissionArg::On,
        // Outside a control group the process limits itself.
        memory_limit: (found > LIMIT).then_some(LIMIT),
        ..AdmissionConfig::default()
    };
    let config = WorkerConfig { slots, admission, ..WorkerConfig::default() };
    runtime()?.block_on(async {
        let rig = Rig::new(common, HistoryArg::Off).await?;
        rig.load("hold", "default", tasks).await?;
        let running = rig.start("hold", Arc::new(Hold), config)?;
        let (mut reasons, mut least, mut most) = (BTreeSet::new(), 1.0_f64, 0);
        loop {
            let status = running.handle.status();
            if status.settled >= tasks as u64 {
                break;
            }
            reasons.insert(status.reasons.to_string());
            (least, most) = (least.min(status.factor), most.max(status.running));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let seconds = running.started.elapsed().as_secs_f64();
        running.stop().await?;
        rig.store.close().await?;
        reasons.remove("");
        Ok(json!({
            "limit_found_mb": found >> 20,
            "seconds": round(seconds, 2),
            "peak_mb": round(status_mb("VmHWM:")?, 1),
            "most_running": most,
            "factor_least": round(least, 4),
            "reasons": reasons,
        }))
    })
}
