//! A private PostgreSQL.

use std::net::TcpStream;

use rustix::process::{Pid, Signal, kill_process};
use windlass_scratch::{Cluster, ClusterOptions, Error, Mode, psql, shared_url};

use crate::processes::{is_alive, with_argument};

fn quick() -> ClusterOptions {
    ClusterOptions::new().without_fsync()
}

#[test]
fn role_of_tests_owns_its_database_and_is_no_superuser() {
    let cluster = Cluster::start(&quick()).unwrap();
    let who = "SELECT current_user, current_database(), rolsuper, rolcreaterole, rolcreatedb, \
               pg_get_userbyid(datdba) FROM pg_roles, pg_database \
               WHERE rolname = current_user AND datname = current_database()";
    assert_eq!(psql(&cluster.url(), who).unwrap(), "windlass|windlass|f|f|f|windlass");
    assert_eq!(psql(&cluster.superuser_url(), "SHOW is_superuser").unwrap(), "on");
    assert_eq!(cluster.psql("SHOW server_encoding; SHOW lc_collate").unwrap(), "UTF8\nC");
    psql(&cluster.url(), "CREATE SCHEMA mine; CREATE TABLE mine.t (x int)").unwrap();
}

#[test]
fn server_listens_on_one_loopback_address_only() {
    let cluster = Cluster::start(&quick()).unwrap();
    TcpStream::connect(("127.0.0.1", cluster.port())).unwrap();
    // Another address of the same machine: a server that listens on all addresses would answer here too.
    assert!(TcpStream::connect(("127.0.0.2", cluster.port())).is_err());
    assert_eq!(cluster.psql("SHOW listen_addresses").unwrap(), "127.0.0.1");
}

#[test]
fn superuser_needs_its_password_over_the_network() {
    let cluster = Cluster::start(&quick()).unwrap();
    let without = format!("postgres://postgres@127.0.0.1:{}/windlass", cluster.port());
    assert!(matches!(psql(&without, "SELECT 1"), Err(Error::Psql(_))));
}

#[test]
fn a_server_is_durable_by_default_and_takes_settings() {
    let cluster =
        Cluster::start(&ClusterOptions::new().max_connections(17).set("cluster_name", "it's")).unwrap();
    let sql = "SHOW fsync; SHOW synchronous_commit; SHOW max_connections; SHOW cluster_name";
    assert_eq!(cluster.psql(sql).unwrap(), "on\non\n17\nit's");
    assert_eq!(Cluster::start(&quick()).unwrap().psql("SHOW fsync").unwrap(), "off");
}

#[test]
fn bad_setting_is_named_in_the_error() {
    let error = Cluster::start(&quick().set("no_such_setting", "1")).unwrap_err();
    assert!(error.to_string().contains("no_such_setting"), "{error}");
}

#[test]
fn committed_row_survives_each_way_to_stop() {
    let cluster = Cluster::start(&ClusterOptions::new()).unwrap();
    let (port, first) = (cluster.port(), cluster.pid().unwrap());
    psql(&cluster.url(), "CREATE TABLE kept (x int)").unwrap();
    for (count, mode) in [(1, Mode::Immediate), (2, Mode::Fast)] {
        psql(&cluster.url(), "INSERT INTO kept VALUES (1)").unwrap();
        cluster.stop(mode).unwrap();
        assert_eq!((cluster.pid(), cluster.is_running()), (None, false));
        assert!(matches!(psql(&cluster.url(), "SELECT 1"), Err(Error::Psql(_))), "{mode:?}");
        cluster.start_again().unwrap();
        assert_eq!(psql(&cluster.url(), "SELECT count(*) FROM kept").unwrap(), count.to_string());
    }
    assert_eq!(cluster.port(), port);
    assert_ne!(cluster.pid(), Some(first));
    assert!(cluster.log().contains("database system was interrupted"), "the first stop was like a crash");
}

#[test]
fn killed_server_is_seen_and_starts_again() {
    let cluster = Cluster::start(&ClusterOptions::new()).unwrap();
    psql(&cluster.url(), "CREATE TABLE kept (x int)").unwrap();
    let pid = cluster.pid().unwrap();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::KILL).unwrap();
    while is_alive(pid) {
        std::thread::yield_now();
    }
    assert!(!cluster.is_running());
    cluster.start_again().unwrap();
    assert_eq!(psql(&cluster.url(), "SELECT count(*) FROM kept").unwrap(), "0");
}

#[test]
fn dropped_cluster_leaves_neither_process_nor_folder() {
    let cluster = Cluster::start(&quick()).unwrap();
    let folder = cluster.socket_dir().to_owned();
    assert!(folder.is_dir());
    // The server, and the shell that keeps it.
    assert_eq!(with_argument(folder.to_str().unwrap()).len(), 2);
    drop(cluster);
    assert!(!folder.exists());
    assert_eq!(with_argument(folder.to_str().unwrap()), Vec::<u32>::new());
}

#[test]
fn stopped_server_is_ended_as_well() {
    let cluster = Cluster::start(&quick()).unwrap();
    let pid = cluster.pid().unwrap();
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), Signal::STOP).unwrap();
    drop(cluster);
    assert!(!is_alive(pid));
}

#[test]
fn a_server_with_a_password_requires_it() {
    let cluster = Cluster::start(&quick().password("p@ss 'word\"")).unwrap();
    assert_eq!(psql(&cluster.url(), "SELECT current_user").unwrap(), "windlass");
    let without = format!("postgres://windlass@127.0.0.1:{}/windlass", cluster.port());
    assert!(matches!(psql(&without, "SELECT 1"), Err(Error::Psql(_))));
}

#[cfg(feature = "tls")]
#[test]
fn certificate_of_the_server_passes_every_check() {
    let cluster = Cluster::start(&quick().with_tls()).unwrap();
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    let url = cluster.tls_url().unwrap();
    assert_eq!(psql(&url, encrypted).unwrap(), "t");
    assert_eq!(psql(&url.replace("127.0.0.1", "localhost"), encrypted).unwrap(), "t");
    assert_eq!(psql(&format!("{}?sslmode=disable", cluster.url()), encrypted).unwrap(), "f");
    // An authority that did not sign it.
    let other = Cluster::start(&quick().with_tls()).unwrap();
    let wrong = url.replace(
        &cluster.ca_path().unwrap().display().to_string(),
        &other.ca_path().unwrap().display().to_string(),
    );
    let refused = psql(&wrong, encrypted).unwrap_err().to_string();
    assert!(refused.contains("SSL error"), "{refused}");
    assert!(Cluster::start(&quick()).unwrap().tls_url().is_none());
}

#[test]
fn shared_server_takes_schemas_of_tests() {
    let url = shared_url().unwrap();
    assert_eq!(shared_url().unwrap(), url, "one server for all callers of a process");
    let own = format!("scratch_{}", std::process::id());
    psql(&url, &format!("CREATE SCHEMA {own}; DROP SCHEMA {own}")).unwrap();
}

#[test]
fn statement_that_fails_ends_the_run_and_gives_its_reason() {
    let cluster = Cluster::start(&quick()).unwrap();
    let error = cluster.psql("SELECT 1; SELECT no_such_column; CREATE TABLE late (x int)").unwrap_err();
    let text = error.to_string();
    assert!(text.contains("no_such_column") && !text.contains('\n'), "{text}");
    assert_eq!(cluster.psql("SELECT to_regclass('late') IS NULL").unwrap(), "t");
}
