//! Where the pages of the dashboard are, and that they may be off.

use std::net::TcpListener;

use crate::support::{Running, command, finish, windlass};

/// The line of the first screen about pages.
fn pages_line(up: Running) -> String {
    up.signal(rustix::process::Signal::INT);
    let said = up.end().done();
    said.stdout
        .lines()
        .find(|line| line.starts_with("  pages "))
        .unwrap_or_else(|| panic!("{said:?}"))
        .to_owned()
}

fn status(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    first_line(address, path)
}

/// The first line of an answer.
fn first_line(address: &str, path: &str) -> String {
    use std::io::{Read as _, Write as _};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn without_a_dashboard_the_first_screen_says_off() {
    let up = Running::up(&["--no-dashboard"]);
    assert!(status(&format!("{}/queues", up.address)).contains("404"));
    assert!(status(&format!("{}/v1/queues", up.address)).contains("200"));
    assert_eq!(pages_line(up), "  pages    off (dashboard in the settings, or --no-dashboard)");
}

#[test]
fn pages_apart_are_served_where_the_first_screen_says() {
    let up = Running::up(&["--dashboard-listen", "127.0.0.1:0", "--json"]);
    let started: serde_json::Value = serde_json::from_str(&up.first_line).unwrap();
    let (api, pages) = (started["address"].as_str().unwrap(), started["dashboard"].as_str().unwrap());
    assert!(status(&format!("{api}/queues")).contains("404"));
    assert!(status(&format!("{pages}queues")).contains("200"), "{pages}");
    up.say(&["tasks", "ls"]).done();
    up.signal(rustix::process::Signal::INT);
    up.end().done();
}

#[test]
fn a_taken_port_of_the_pages_is_refused_before_anything_is_made() {
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = other.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["up", "--listen", "127.0.0.1:0", "--dashboard-listen", &taken];
    windlass(folder.path(), &arguments).failed(4, &[&taken, "is taken", "--dashboard-listen"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn pages_follow_the_rules_of_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let up = |pages: &str| {
        windlass(folder.path(), &["up", "--listen", "127.0.0.1:7", "--dashboard-listen", pages])
    };
    up("0.0.0.0:0").failed(4, &["0.0.0.0:0 can be reached by others", "--insecure"]);
    up("127.0.0.1:7").failed(2, &["dashboard_listen 127.0.0.1:7 and listen 127.0.0.1:7 are one address"]);
    up("nowhere").failed(2, &["dashboard_listen must be an address with a port"]);
    windlass(folder.path(), &["up", "--no-dashboard", "--dashboard-listen", "127.0.0.1:0"])
        .failed(2, &["--no-dashboard"]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn the_settings_of_the_dashboard_are_checked_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    let doctor = |text: &str| {
        std::fs::write(folder.path().join("windlass.toml"), text).unwrap();
        let said = windlass(folder.path(), &["doctor"]);
        said.stdout.lines().find(|line| line.contains("  dashboard  ")).unwrap_or_default().to_owned()
    };
    windlass(folder.path(), &["migrate"]).done();
    assert!(doctor("").ends_with("on the address of the API"));
    assert!(doctor("dashboard = false\n").contains("off: "));
    assert!(
        doctor("dashboard_listen = \"127.0.0.1:7879\"\n")
            .ends_with("on an address of its own, 127.0.0.1:7879")
    );
    assert!(doctor("dashboard_listen = \"0.0.0.0:7879\"\n").contains("would refuse without --insecure"));
    std::fs::write(
        folder.path().join("windlass.toml"),
        "dashboard = false\ndashboard_listen = \"127.0.0.1:9\"\n",
    )
    .unwrap();
    let said = windlass(folder.path(), &["config", "check"]).done();
    assert!(said.stderr.contains("dashboard_listen has no effect while dashboard is off"), "{said:?}");
    assert!(
        said.stdout.lines().any(|line| line.starts_with("dashboard ") && line.contains("off")),
        "{said:?}"
    );
    let mut check = command(folder.path(), &["config", "check"]);
    check.env("WINDLASS_DASHBOARD", "maybe");
    finish(check).failed(2, &["dashboard must be one of on, off, not \"maybe\""]);
}
