//! A full disk, and a failing disk: no acknowledged task is lost.

use std::{
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use e2e::{
    http::Api,
    process::{END_LIMIT, Process, command},
    up::{Up, up_command},
};
use serde_json::json;

const NONE: [&str; 0] = [];

/// A small file system of its own, unmounted after the test.
struct SmallDisk(PathBuf);

impl SmallDisk {
    /// `None` if mounting is not permitted.
    fn mount(at: &Path, mib: u32) -> Option<Self> {
        let options = format!("size={mib}m");
        // `scripts/test` finds it by this name if this test is killed.
        let name = std::env::var("TEST_RUN_MARK").unwrap_or_else(|_| "windlass-test".to_owned());
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &options, &name]).arg(at).output();
        mounted.is_ok_and(|output| output.status.success()).then(|| Self(at.to_owned()))
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Waits for a task's end by long polls; returns its state.
async fn ended(api: &Api, id: &str) -> String {
    loop {
        let answer = api.post("/v1/tasks/wait", &json!({"ids": [id], "timeout_ms": 10_000})).await.unwrap();
        assert_eq!(answer.status, 200, "{answer:?}");
        if let Some(state) = answer.body.pointer("/ended/0/state") {
            return state.as_str().unwrap_or_default().to_owned();
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_refuses_new_tasks_and_loses_none() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 96) else {
        eprintln!("skipped: mounting a tmpfs needs root; run as root to see this test work");
        return;
    };
    let store = disk.0.join("windlass.db");
    // A reserve that fits the small disk, and is larger than the log may become.
    let start = || {
        let mut command = up_command(&store, NONE).unwrap();
        command.env("WINDLASS_MIN_FREE_DISK_BYTES", "40MiB");
        Up::start(command).unwrap()
    };
    let up = start();
    let api = up.api();
    let batch = json!({"tasks": vec![json!({"kind": "nobody", "payload": "x".repeat(20_000)}); 20]});
    let later = json!({"kind": "echo", "payload": "still here", "delay_ms": 3_000});
    let echo = api.post("/v1/tasks", &later).await.unwrap().ids().remove(0);
    let mut acknowledged = Vec::new();
    let refused = loop {
        let answer = api.post("/v1/tasks", &batch).await.unwrap();
        if answer.status >= 300 {
            break answer;
        }
        acknowledged.extend(answer.ids());
    };
    assert_eq!((refused.status, refused.error_code()), (507, Some("store_full")), "{refused:?}");
    assert!(!acknowledged.is_empty(), "the disk was full from the start");

    // Claims and settlements continue: tasks that were accepted before run to their end.
    assert_eq!(ended(&api, &echo).await, "done");
    drop(up);

    // No acknowledged task is lost, not even for the next process.
    let up = start();
    for id in &acknowledged {
        let answer = up.api().get(&format!("/v1/tasks/{id}")).await.unwrap();
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_without_a_reserve_loses_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let Some(disk) = SmallDisk::mount(folder.path(), 8) else {
        eprintln!("skipped: mounting a tmpfs needs root; run as root to see this test work");
        return;
    };
    let store = disk.0.join("windlass.db");
    // The check is off, so that the write itself reaches the end of the disk.
    let mut command = up_command(&store, NONE).unwrap();
    command.env("WINDLASS_MIN_FREE_DISK_BYTES", "0").env("WINDLASS_MIN_FREE_DISK_PERCENT", "0");
    let up = Up::start(command).unwrap();
    let batch = json!({"tasks": vec![json!({"kind": "nobody", "payload": "x".repeat(50_000)}); 4]});
    let mut acknowledged = Vec::new();
    let refused = loop {
        match up.api().post("/v1/tasks", &batch).await {
            Ok(answer) if answer.status < 300 => acknowledged.extend(answer.ids()),
            Ok(answer) => break answer,
            Err(error) => panic!("the server went away: {error}\n{}", up.process.transcript()),
        }
    };
    assert_eq!(refused.error_code(), Some("store_full"), "{refused:?}");
    drop(up);
    // Room for the next process to open the file.
    let grown = Command::new("mount").args(["-o", "remount,size=64m"]).arg(&disk.0).status().unwrap();
    assert!(grown.success());
    let up = Up::on(&store, NONE).unwrap();
    assert!(!acknowledged.is_empty());
    for id in &acknowledged {
        let answer = up.api().get(&format!("/v1/tasks/{id}")).await.unwrap();
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_fsync_ends_the_process_and_loses_no_task() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("windlass.db");
    // The store is created first, so that the failing sync is one of a commit and not of the setup.
    drop(Up::on(&store, NONE).unwrap());

    let plain = up_command(&store, NONE).unwrap();
    let mut traced = command("strace");
    traced.args(["-f", "-qq", "-o", "/dev/null", "-e", "trace=fsync,fdatasync"]);
    traced.args(["-e", "inject=fsync,fdatasync:error=EIO:when=30+"]);
    traced.arg(plain.get_program()).args(plain.get_args()).current_dir(folder.path());
    let mut up = match Process::start_group(traced).and_then(Up::wait_for_address) {
        Ok(up) => up,
        Err(error) if error.to_string().contains("ptrace") => {
            eprintln!("skipped: strace may not trace here: {error}");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let api = up.api();
    let mut acknowledged = Vec::new();
    // A fixed number of calls bounds the test: the thirtieth sync comes long before.
    for _ in 0..1_000 {
        match api.post("/v1/tasks", &json!({"kind": "nobody"})).await {
            Ok(answer) if answer.status < 300 => acknowledged.extend(answer.ids()),
            Ok(answer) => {
                assert_ne!(answer.status, 200, "{answer:?}");
                break;
            }
            Err(_) => break,
        }
    }
    let status = up.process.wait(END_LIMIT).unwrap();
    up.process.join_readers();
    let said = up.process.transcript();
    assert_eq!(status.code(), Some(1), "a failed fsync ends the process: {said}");
    assert!(said.lines().any(|line| line.starts_with("error: ")), "it says why: {said}");
    drop(up);

    let up = Up::on(&store, NONE).unwrap();
    assert!(!acknowledged.is_empty() && acknowledged.len() < 1_000, "{}", acknowledged.len());
    for id in &acknowledged {
        let answer = up.api().get(&format!("/v1/tasks/{id}")).await.unwrap();
        assert_eq!(answer.status, 200, "{id}: {answer:?}");
    }
    // A healthy process continues from there at once.
    tokio::time::timeout(Duration::from_secs(30), up.api().get("/readyz")).await.unwrap().unwrap();
}
