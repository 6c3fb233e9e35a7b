//! The demo: the counts of its sites, and that it leaves nothing behind.

use std::{
    io::{BufRead as _, BufReader, Read as _},
    process::Child,
};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{command, windlass};

#[test]
fn no_demo_site_sees_more_requests_than_its_job_allows() {
    let folder = tempfile::tempdir().unwrap();
    let store = ["--store", "sqlite:demo.db", "--json"];
    let run = ["demo", "--jobs", "4", "--concurrency", "2", "--seconds", "4"];
    let said = windlass(folder.path(), &[&run[..], &store[..]].concat()).done();
    assert_eq!(said.stderr, "", "no bars in a pipe");
    let figures = said.json();
    assert_eq!(figures["max_concurrency_seen"], 2, "{figures}");
    assert!(figures["slots_peak"].as_u64().unwrap() <= 8, "{figures}");
    assert_eq!(figures["slots_total"], 500, "{figures}");
    // A store that the user named must be left as it was.
    let jobs = windlass(folder.path(), &[&["jobs", "ls"][..], &store[..]].concat()).done().json();
    assert_eq!(jobs["jobs"].as_array().map(Vec::len), Some(0), "{jobs}");
}

#[test]
fn a_preset_with_few_slots_bounds_what_all_sites_together_see() {
    let folder = tempfile::tempdir().unwrap();
    let run =
        ["demo", "--jobs", "6", "--concurrency", "3", "--seconds", "3", "--env", "development", "--json"];
    let figures = windlass(folder.path(), &run).done().json();
    assert_eq!(figures["slots_total"], 10, "{figures}");
    assert!(figures["slots_peak"].as_u64().unwrap() <= 10, "{figures}");
    assert!(figures["max_concurrency_seen"].as_u64().unwrap() <= 3, "{figures}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its store lies elsewhere and is gone");
}

#[test]
fn demo_on_a_server_leaves_no_schema_behind() {
    let (folder, url) = (tempfile::tempdir().unwrap(), windlass_scratch::shared_url().unwrap());
    let run = ["demo", "--jobs", "2", "--concurrency", "1", "--seconds", "2", "--json", "--store", &url];
    let demo = command(folder.path(), &run).spawn().unwrap();
    let schema = format!("windlass_demo_{}", demo.id());
    let said = demo.wait_with_output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let left = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{schema}'");
    assert_eq!(windlass_scratch::psql(&url, &left).unwrap(), "0");
}

/// A demo that runs until it is told to end, and the process of its sites.
fn start() -> (Child, u32, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let run = ["demo", "--jobs", "2", "--concurrency", "1", "--seconds", "3600"];
    // A demo that is killed leaves its store behind; here it lies in the test's folder and is removed
    // with it.
    let mut demo = command(folder.path(), &run).env("TMPDIR", folder.path()).spawn().unwrap();
    let mut title = String::new();
    BufReader::new(demo.stderr.as_mut().unwrap()).read_line(&mut title).unwrap();
    assert_eq!(title, "2 sites answering in 1–2 s · 2 jobs × 1 · 500 slots\n");
    let sites = child_of(demo.id());
    (demo, sites, folder)
}

/// The one process that a process has started.
fn child_of(parent: u32) -> u32 {
    let is_child = |pid: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        status
            .lines()
            .any(|line| line.strip_prefix("PPid:").is_some_and(|of| of.trim() == parent.to_string()))
    };
    let processes = std::fs::read_dir("/proc").unwrap();
    let pids = processes.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let children: Vec<u32> = pids.filter(is_child).collect();
    assert_eq!(children.len(), 1, "{children:?}");
    children[0]
}

/// Whether a process runs. A process that has ended but was not yet waited for does not run.
fn runs(pid: u32) -> bool {
    std::fs::read_link(format!("/proc/{pid}/exe")).is_ok()
}

#[test]
fn ctrl_c_ends_the_demo_early_with_its_summary() {
    let (mut demo, sites, _folder) = start();
    kill_process(Pid::from_raw(demo.id().cast_signed()).unwrap(), Signal::INT).unwrap();
    let mut said = String::new();
    demo.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(demo.wait().unwrap().code(), Some(0), "{said}");
    assert!(said.contains(" pages, ") && said.contains("No site ever saw more than"), "{said}");
    assert!(!runs(sites));
}

#[test]
fn the_sites_end_with_a_demo_that_is_killed() {
    let (mut demo, sites, _folder) = start();
    demo.kill().unwrap();
    demo.wait().unwrap();
    while runs(sites) {
        std::thread::yield_now();
    }
}
