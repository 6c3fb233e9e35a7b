//! A proxy that causes faults.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    net::{SocketAddr, TcpStream},
    time::{Duration, Instant},
};

#[cfg(feature = "tls")]
use windlass_scratch::{Cluster, ClusterOptions};
use windlass_scratch::{Proxy, Target, psql, shared_url};

/// How long an expected event may take: generous, because test machines are busy.
const LIMIT: Duration = Duration::from_mins(1);
const SETTLEMENTS: &str = "windlass settlements";

/// A proxy in front of the shared server, and a table there.
struct Setting {
    proxy: Proxy,
    direct: String,
    table: String,
}

impl Setting {
    fn new(name: &str) -> Self {
        let direct = shared_url().unwrap();
        let proxy = Proxy::start(&direct).unwrap();
        let table = format!("proxy_{name}_{}", std::process::id());
        psql(&direct, &format!("CREATE TABLE {table} (x int PRIMARY KEY)")).unwrap();
        Self { proxy, direct, table }
    }

    /// Runs statements through the proxy as an application; `$t` stands for the table.
    fn run(&self, application: &str, sql: &str) -> Result<String, String> {
        let url = format!("{}?application_name={}", self.proxy.url(), application.replace(' ', "%20"));
        psql(&url, &self.sql(sql)).map_err(|error| error.to_string())
    }

    fn sql(&self, sql: &str) -> String {
        sql.replace("$t", &self.table)
    }

    /// The contents of the table, read without the proxy.
    fn rows(&self) -> String {
        psql(&self.direct, &self.sql("SELECT coalesce(string_agg(x::text, ',' ORDER BY x), '') FROM $t"))
            .unwrap()
    }

    /// Asks the server, without the proxy, until the answer is yes.
    fn wait_until(&self, question: &str) {
        let deadline = Instant::now() + LIMIT;
        while psql(&self.direct, &self.sql(question)).unwrap() != "t" {
            assert!(Instant::now() < deadline, "{question}");
        }
    }

    fn client(&self, application: &str) -> Client {
        Client::log_in(self.proxy.address(), application)
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        // A session that lost its client must not keep the table locked.
        self.proxy.cut_all();
        let _ = psql(&self.direct, &self.sql("DROP TABLE $t"));
    }
}

/// A client that sends exactly the given data, in one piece.
struct Client {
    stream: TcpStream,
    /// What the server expects in a cancel request.
    key: Vec<u8>,
}

impl Client {
    fn log_in(address: SocketAddr, application: &str) -> Self {
        let mut client = Self { stream: TcpStream::connect(address).unwrap(), key: Vec::new() };
        client.stream.set_read_timeout(Some(LIMIT)).unwrap();
        let settings = format!("user\0windlass\0database\0windlass\0application_name\0{application}\0\0");
        client.send_packet(196_608, settings.as_bytes());
        while let Some((kind, body)) = client.message() {
            match kind {
                b'K' => client.key = body,
                b'Z' => return client,
                _ => {}
            }
        }
        panic!("no login");
    }

    fn send_packet(&mut self, code: u32, rest: &[u8]) {
        let length = u32::try_from(8 + rest.len()).unwrap();
        let packet = [&length.to_be_bytes()[..], &code.to_be_bytes(), rest].concat();
        self.stream.write_all(&packet).unwrap();
    }

    fn send(&mut self, messages: &[(u8, &[u8])]) {
        let mut bytes = Vec::new();
        for (kind, body) in messages {
            bytes.push(*kind);
            bytes.extend(u32::try_from(4 + body.len()).unwrap().to_be_bytes());
            bytes.extend(*body);
        }
        self.stream.write_all(&bytes).unwrap();
    }

    /// Sends statements, each as a request of its own, without waiting for an answer.
    fn send_queries(&mut self, queries: &[String]) {
        let bodies: Vec<String> = queries.iter().map(|sql| format!("{sql}\0")).collect();
        let messages: Vec<(u8, &[u8])> = bodies.iter().map(|body| (b'Q', body.as_bytes())).collect();
        self.send(&messages);
    }

    fn message(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut head = [0; 5];
        match self.stream.read_exact(&mut head) {
            Ok(()) => {}
            // Silence for the whole limit is a failure; a cut is an end.
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "no answer");
                return None;
            }
        }
        let length = u32::from_be_bytes(*head[1..].first_chunk().unwrap());
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body).unwrap();
        Some((head[0], body))
    }

    /// The kinds of messages up to the end of an answer, with the status at the end; `!` is a lost
    /// connection.
    fn answer(&mut self) -> String {
        let mut kinds = String::new();
        loop {
            let Some((kind, body)) = self.message() else { return kinds + "!" };
            kinds.push(char::from(kind));
            if kind == b'Z' {
                let _ = write!(kinds, "{}", char::from(body[0]));
                return kinds;
            }
        }
    }
}

/// The address in a URL.
fn address_of(url: &str) -> SocketAddr {
    url.rsplit('@').next().unwrap().split('/').next().unwrap().parse().unwrap()
}

#[track_caller]
fn assert_lost(result: &Result<String, String>) {
    let reason = result.as_ref().unwrap_err();
    assert!(reason.contains("server closed the connection unexpectedly"), "{reason}");
}

#[test]
fn a_commit_whose_answer_is_dropped_takes_effect() {
    let setting = Setting::new("commit");
    setting.proxy.drop_answers(Target::All, 1);
    let sql = "BEGIN; INSERT INTO $t VALUES (1); COMMIT; INSERT INTO $t VALUES (2)";
    assert_lost(&setting.run("any", sql));
    assert!(setting.proxy.wait_dropped(1, LIMIT));
    assert_eq!(setting.rows(), "1");
    setting.run("any", "INSERT INTO $t VALUES (3)").unwrap();
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1,3", 1));
}

#[test]
fn as_many_answers_are_dropped_as_were_ordered() {
    let setting = Setting::new("count");
    setting.proxy.drop_answers(Target::All, 2);
    assert_lost(&setting.run("one", "INSERT INTO $t VALUES (1)"));
    assert_lost(&setting.run("two", "INSERT INTO $t VALUES (2)"));
    setting.run("three", "INSERT INTO $t VALUES (3)").unwrap();
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1,2,3", 2));
}

#[test]
fn drop_meets_only_the_application_of_its_name() {
    let setting = Setting::new("target");
    setting.proxy.drop_answers(Target::application(SETTLEMENTS), 1);
    setting.run("windlass", "INSERT INTO $t VALUES (1)").unwrap();
    setting.run("windlass settlements of another", "INSERT INTO $t VALUES (2)").unwrap();
    assert_eq!(setting.proxy.dropped(), 0);
    assert_lost(&setting.run(SETTLEMENTS, "INSERT INTO $t VALUES (3)"));
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1,2,3", 1));
}

#[test]
fn tags_choose_the_statements_whose_answers_are_dropped() {
    let setting = Setting::new("tags");
    setting.proxy.drop_answers_tagged(Target::All, 1, &["DELETE", "SELECT 1"]);
    let with = "WITH added AS (INSERT INTO $t VALUES (2), (3) RETURNING x) SELECT x FROM added";
    assert_eq!(setting.run("any", &format!("INSERT INTO $t VALUES (1); {with}")).unwrap(), "2\n3");
    assert_lost(&setting.run("any", &with.replace("(2), (3)", "(4)")));
    assert_eq!(setting.rows(), "1,2,3,4");
    // In a transaction the statement decides, and the answer to its commit is dropped.
    setting.proxy.drop_answers_tagged(Target::All, 1, &["DELETE"]);
    setting.run("any", "BEGIN; SELECT 1; COMMIT").unwrap();
    assert_lost(&setting.run("any", "BEGIN; DELETE FROM $t WHERE x < 4; SELECT 1; COMMIT"));
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("4", 2));
}

#[test]
fn request_that_changed_nothing_keeps_its_answer() {
    let setting = Setting::new("nothing");
    setting.run("any", "INSERT INTO $t VALUES (1)").unwrap();
    setting.proxy.drop_answers(Target::All, 1);
    let reason = setting.run("any", "INSERT INTO $t VALUES (1)").unwrap_err();
    assert!(reason.contains("duplicate key"), "{reason}");
    setting.run("any", "BEGIN; INSERT INTO $t VALUES (2); ROLLBACK").unwrap();
    let mut client = setting.client("any");
    client.send_queries(&["BEGIN", "SELECT 1 / 0", "COMMIT", ""].map(str::to_owned));
    let answers = [client.answer(), client.answer(), client.answer(), client.answer()];
    assert_eq!(answers, ["CZT", "EZE", "CZI", "IZI"]);
    // Two statements of one request are one transaction: the first is undone with the second.
    client.send_queries(&[setting.sql("INSERT INTO $t VALUES (2); SELECT x / 0 FROM $t")]);
    assert_eq!(client.answer(), "CTEZI");
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1", 0));
}

#[test]
fn only_requests_after_the_order_lose_their_answer() {
    let setting = Setting::new("before");
    let mut client = setting.client("any");
    let parse = format!("\0{}\0\0\0", setting.sql("INSERT INTO $t VALUES (1)"));
    let (bind, execute) = (b"\0\0\0\0\0\0\0\0", b"\0\0\0\0\0");
    // A Flush makes the server answer before the request ends.
    client.send(&[(b'P', parse.as_bytes()), (b'B', bind), (b'E', execute), (b'H', b"")]);
    let early = [client.message(), client.message(), client.message()];
    assert_eq!(early.map(|message| message.unwrap().0), *b"12C");
    setting.proxy.drop_answers(Target::All, 1);
    client.send(&[(b'S', b"")]);
    assert_eq!(client.answer(), "ZI");
    // A statement is prepared, which changes nothing, and then executed.
    let parse = parse.replace("(1)", "(2)");
    client.send(&[(b'P', parse.as_bytes()), (b'S', b"")]);
    assert_eq!(client.answer(), "1ZI");
    client.send(&[(b'B', bind), (b'E', execute), (b'S', b"")]);
    assert_eq!(client.answer(), "!");
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1,2", 1));
}

#[test]
fn requests_sent_at_once_are_distinguished() {
    let setting = Setting::new("pipeline");
    let mut client = setting.client("any");
    setting.proxy.drop_answers_tagged(Target::All, 1, &["UPDATE"]);
    let queries = ["SELECT 1", "INSERT INTO $t VALUES (1)", "BEGIN", "UPDATE $t SET x = 2", "COMMIT"];
    client.send_queries(&queries.map(|sql| setting.sql(sql)));
    let answers = [client.answer(), client.answer(), client.answer(), client.answer(), client.answer()];
    assert_eq!(answers, ["TDCZI", "CZI", "CZT", "CZT", "!"]);
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("2", 1));
}

#[test]
fn copied_rows_are_stored_although_the_answer_is_lost() {
    let setting = Setting::new("copy");
    let mut client = setting.client("any");
    let parse = format!("\0{}\0\0\0", setting.sql("COPY $t FROM STDIN"));
    let copy: [(u8, &[u8]); 4] =
        [(b'P', parse.as_bytes()), (b'B', b"\0\0\0\0\0\0\0\0"), (b'E', b"\0\0\0\0\0"), (b'S', b"")];
    client.send(&copy);
    let early = [client.message(), client.message(), client.message()];
    assert_eq!(early.map(|message| message.unwrap().0), *b"12G");
    client.send(&[(b'd', b"1\n"), (b'c', b""), (b'S', b"")]);
    assert_eq!(client.answer(), "CZI");
    setting.proxy.drop_answers(Target::All, 1);
    client.send(&copy);
    let early = [client.message(), client.message(), client.message()];
    assert_eq!(early.map(|message| message.unwrap().0), *b"12G");
    client.send(&[(b'd', b"2\n"), (b'c', b""), (b'S', b"")]);
    assert_eq!(client.answer(), "!");
    // The same as a simple query.
    setting.proxy.drop_answers(Target::All, 1);
    let mut client = setting.client("any");
    client.send_queries(&[setting.sql("COPY $t FROM STDIN")]);
    assert_eq!(client.message().unwrap().0, b'G');
    client.send(&[(b'd', b"3\n"), (b'c', b"")]);
    assert_eq!(client.answer(), "!");
    assert_eq!((setting.rows().as_str(), setting.proxy.dropped()), ("1,2,3", 2));
}

#[test]
fn black_hole_is_silent_for_old_and_new_connections() {
    let setting = Setting::new("hole");
    let (proxy, mut old) = (&setting.proxy, setting.client("any"));
    proxy.black_hole(true);
    old.send_queries(&[setting.sql("INSERT INTO $t VALUES (1)")]);
    assert!(proxy.wait_for(LIMIT, |counts| counts.swallowed == 1), "the request");
    let timeout = format!("{}?connect_timeout=2", proxy.url());
    let reason = psql(&timeout, "SELECT 1").unwrap_err().to_string();
    assert!(reason.contains("timeout expired"), "{reason}");
    // The client has closed it, but the server does not learn that.
    assert_eq!((proxy.counts().swallowed, proxy.connections()), (2, 2));

    proxy.black_hole(false);
    assert_eq!(setting.run("new", "SELECT 1").unwrap(), "1");
    assert!(proxy.wait_for(LIMIT, |counts| counts.connections == 2), "the new one ends");
    // The old connection is still open and silent: the cut is its first event.
    assert_eq!(proxy.cut(&Target::application("any")), 1);
    assert_eq!(old.answer(), "!");
    assert_eq!(proxy.cut_all(), 1);
    assert_eq!(setting.rows(), "");
}

#[test]
fn black_hole_swallows_an_answer_that_is_under_way() {
    let setting = Setting::new("answer");
    let (mut client, mut other) = (setting.client("any"), setting.client("other"));
    other.send_queries(&["BEGIN".to_owned(), setting.sql("LOCK TABLE $t")]);
    assert_eq!([other.answer(), other.answer()], ["CZT", "CZT"]);
    client.send_queries(&[setting.sql("INSERT INTO $t VALUES (1)")]);
    // The request waits at the server. The lock that it waits for shows that it was passed on.
    setting.wait_until("SELECT count(*) = 1 FROM pg_locks WHERE relation = '$t'::regclass AND NOT granted");
    setting.proxy.black_hole(true);
    setting.proxy.cut(&Target::application("other"));
    assert!(setting.proxy.wait_for(LIMIT, |counts| counts.swallowed == 1), "the answer");
    assert_eq!(setting.rows(), "1");
    assert_eq!(setting.proxy.cut_all(), 1);
    assert_eq!(client.answer(), "!");
}

#[test]
fn cut_connections_are_gone_and_new_ones_work() {
    let setting = Setting::new("cut");
    let mut clients = [setting.client("one"), setting.client("two"), setting.client("two")];
    assert_eq!(setting.proxy.cut(&Target::application("one")), 1);
    assert_eq!(clients[0].answer(), "!");
    clients[1].send_queries(&["SELECT 1".to_owned()]);
    assert_eq!(clients[1].answer(), "TDCZI");
    assert_eq!((setting.proxy.cut_all(), setting.proxy.connections()), (2, 0));
    assert_eq!([clients[1].answer(), clients[2].answer()], ["!", "!"]);
    assert_eq!(setting.run("two", "SELECT 1").unwrap(), "1");
}

#[test]
fn refused_connections_are_closed_and_old_ones_stay() {
    let setting = Setting::new("refuse");
    let mut client = setting.client("any");
    setting.proxy.refuse(true);
    setting.run("any", "SELECT 1").unwrap_err();
    client.send_queries(&["SELECT 1".to_owned()]);
    assert_eq!(client.answer(), "TDCZI");
    setting.proxy.refuse(false);
    assert_eq!(setting.run("any", "SELECT 1").unwrap(), "1");
}

#[test]
fn delayed_answer_is_late_for_a_statement_that_was_executed() {
    let setting = Setting::new("delay");
    let mut witness = Client::log_in(address_of(&setting.direct), "witness");
    witness.send_queries(&["LISTEN executed".to_owned()]);
    assert_eq!(witness.answer(), "CZI");
    let mut client = setting.client("any");
    setting.proxy.delay(Duration::from_hours(1));
    client.send_queries(&[setting.sql("INSERT INTO $t VALUES (1); NOTIFY executed")]);
    assert_eq!(witness.message().unwrap().0, b'A');
    assert_eq!(setting.rows(), "1");
    assert_eq!(setting.proxy.cut_all(), 1);
    assert_eq!(client.answer(), "!");
    setting.proxy.delay(Duration::from_millis(1));
    assert_eq!(setting.run("any", "SELECT x FROM $t").unwrap(), "1");
}

#[test]
fn request_to_cancel_reaches_the_server() {
    let setting = Setting::new("cancel");
    let mut client = setting.client(&setting.table);
    client.send_queries(&["SELECT pg_sleep(3600)".to_owned()]);
    setting.wait_until("SELECT wait_event = 'PgSleep' FROM pg_stat_activity WHERE application_name = '$t'");
    let mut other = Client { stream: TcpStream::connect(setting.proxy.address()).unwrap(), key: Vec::new() };
    other.send_packet(80_877_102, &client.key);
    let answer = client.answer();
    assert!(answer.ends_with("EZI"), "{answer}");
}

#[cfg(feature = "tls")]
#[test]
fn encrypted_connection_passes_and_is_cut() {
    let cluster = Cluster::start(&ClusterOptions::new().without_fsync().with_tls()).unwrap();
    let proxy = Proxy::start(&cluster.tls_url().unwrap()).unwrap();
    let encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
    assert_eq!(psql(&proxy.url(), encrypted).unwrap(), "t");
    assert!(proxy.wait_for(LIMIT, |counts| counts.connections == 0));
    proxy.delay(Duration::from_hours(1));
    std::thread::scope(|scope| {
        let lost = scope.spawn(|| psql(&proxy.url(), encrypted));
        assert!(proxy.wait_for(LIMIT, |counts| counts.connections == 1));
        assert_eq!(proxy.cut_all(), 1);
        lost.join().unwrap().unwrap_err();
    });
}

#[test]
fn dropped_proxy_ends_every_connection_on_both_sides() {
    let setting = Setting::new("drop");
    let proxy = Proxy::start(&setting.direct).unwrap();
    let address = proxy.address();
    let mut clients = [(); 2].map(|()| Client::log_in(address, &setting.table));
    proxy.delay(Duration::from_hours(1));
    clients[0].send_queries(&["SELECT 1".to_owned()]);
    proxy.black_hole(true);
    let mut silent = TcpStream::connect(address).unwrap();
    assert!(proxy.wait_for(LIMIT, |counts| counts.connections == 3));
    drop(proxy);
    assert_eq!([clients[0].answer(), clients[1].answer()], ["!", "!"]);
    assert_eq!(silent.read(&mut [0]).unwrap(), 0);
    setting.wait_until("SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = '$t'");
}

#[test]
fn url_that_names_no_server_is_refused() {
    for url in ["host=localhost", "postgres://windlass@localhost/windlass"] {
        let reason = Proxy::start(url).unwrap_err().to_string();
        assert!(reason.contains("postgres://role@host:port/database"), "{reason}");
    }
}
