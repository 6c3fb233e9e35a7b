//! Opening: the lock, the file, its schema, the writer's cache, and the tasks of dead workers.

use std::{
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use rusqlite::{Connection, OpenFlags};
use tokio::sync::watch;
use windlass_core::{
    LaneId, Name, State, TaskId, Timestamp, WorkerId,
    crash::{Group, is_suspect},
    source::hints::Subscribers,
};

use crate::{
    connection::{
        call::Queue,
        checkpoint::Checkpoints,
        disk::Disk,
        error::OpenError,
        lock::Lock,
        options::{Location, Options},
        reader::Readers,
        writer::Writer,
    },
    gates::job,
    leases::{
        epoch,
        remote::{self, Away},
        renew::Leases,
    },
    memory::{Held, HistoryFigures, Memory, Passed, Ready, Service, Use, Waiting},
    operate::awaited::Awaited,
    shared::{Meters, Shared},
    sql,
    upkeep::migrate::{self, Migrated, Migration},
};

/// The oldest SQLite whose write-ahead log is safe with several connections.
const SQLITE_MIN: (i32, &str) = (3_051_003, "3.51.3");
/// Page cache of the writer: small, so that memory does not grow with the backlog.
const CACHE_KIB: i64 = 2048;
/// Bytes of the log that stay on disk after it is emptied.
const LOG_BYTES_KEPT: i64 = 16 << 20;
/// Prepared statements that the writer keeps: all that it uses.
const STATEMENTS: usize = 128;
/// How long to wait for another program that writes to the file.
pub(crate) const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// A store that is ready to serve.
pub(crate) struct Opened {
    pub writer: Writer,
    pub migrated: Migrated,
    /// Tasks that were taken back from dead workers.
    pub recovered: u64,
}

/// Opens a store; blocks.
pub(crate) fn open(
    location: &Location,
    options: Options,
    migrations: &[Migration],
) -> Result<Opened, OpenError> {
    if rusqlite::version_number() < SQLITE_MIN.0 {
        return Err(OpenError::SqliteTooOld {
            found: rusqlite::version().to_owned(),
            needed: SQLITE_MIN.1.to_owned(),
        });
    }
    let path = location.path();
    if let Some(path) = path
        && !options.create
        && !path.exists()
    {
        return Err(OpenError::NoSuchStore(path.to_owned()));
    }
    let lock = path.map(|path| Lock::take(path, options.address.as_deref())).transpose()?;
    let conn = connect(path, migrations)?;
    let shown = path.unwrap_or(Path::new(":memory:"));
    let migrated = migrate::migrate(&conn, path, migrations)?;
    let read = |error| OpenError::sqlite(shown, "read", &error);
    // This process has the lock, so every local worker that is recorded is dead.
    let away = if options.nobody_lives { Vec::new() } else { remote::load(&conn).map_err(read)? };
    let memory = load(&conn, &away).map_err(read)?;
    let readers = path.map(Readers::open).transpose()?;
    let shared = Arc::new(Shared {
        queue: Queue::default(),
        leases: Leases::default(),
        awaited: Arc::new(Awaited::default()),
        subscribers: Subscribers::default(),
        options,
        fatal: watch::Sender::new(None),
        ended: watch::Sender::new(false),
        readers,
        lock: Mutex::new(lock),
        meters: Meters::default(),
    });
    remote::go_on(&away, &memory, &shared);
    let checkpoints = Checkpoints::new(path.is_some());
    let mut writer = Writer::new(conn, memory, Disk::new(path), checkpoints, shared);
    let recovered =
        writer.recover().map_err(|error| OpenError::sqlite(shown, "recover the tasks of", &error))?;
    Ok(Opened { writer, migrated, recovered })
}

/// A connection that writes. It refuses a file that is not a store before it changes anything in it.
pub(crate) fn connect(path: Option<&Path>, migrations: &[Migration]) -> Result<Connection, OpenError> {
    let shown = path.unwrap_or(Path::new(":memory:"));
    let sqlite = |error: rusqlite::Error| OpenError::sqlite(shown, "open", &error);
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = match path {
        Some(path) => Connection::open_with_flags(path, flags),
        None => Connection::open_in_memory(),
    }
    .map_err(sqlite)?;
    conn.busy_timeout(BUSY_TIMEOUT).map_err(sqlite)?;
    migrate::check(&conn, shown, migrations)?;
    set_up(&conn, path.is_some()).map_err(sqlite)?;
    Ok(conn)
}

fn set_up(conn: &Connection, is_file: bool) -> rusqlite::Result<()> {
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    // SQLite applies these two only while the file is empty.
    conn.pragma_update(None, "page_size", 4096)?;
    conn.pragma_update(None, "auto_vacuum", "incremental")?;
    if is_file {
        conn.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
        // The writer empties the log itself, after its answers, and so sees an error.
        conn.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(()))?;
        conn.pragma_update_and_check(None, "journal_size_limit", LOG_BYTES_KEPT, |_| Ok(()))?;
    }
    conn.pragma_update(None, "cache_size", -CACHE_KIB)?;
    conn.pragma_update(None, "temp_store", "memory")?;
    conn.pragma_update(None, "synchronous", "full")
}

/// Fills the writer's cache: one scan of the unfinished tasks.
fn load(conn: &Connection, away: &[Away]) -> rusqlite::Result<Memory> {
    let mut memory = Memory::new();
    let name = |text: String, place| {
        Name::stored("name", text).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(place, rusqlite::types::Type::Text, Box::new(error))
        })
    };
    let mut paused = conn.prepare(sql::LOAD_PAUSED)?;
    for queue in paused.query_map([], |row| row.get(0))? {
        memory.set_paused(&name(queue?, 0)?, true);
    }
    conn.execute(sql::UNRETIRE_LANES, [])?;
    let mut lanes = conn.prepare(sql::LOAD_LANES)?;
    for lane in lanes.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))? {
        let (id, queue, kind, retired) = lane?;
        memory.add_lane(&name(queue, 1)?, &name(kind, 2)?, LaneId(id));
        if retired {
            memory.set_use(LaneId(id), Use::Retired);
        }
    }
    let mut workers = conn.prepare(sql::LOAD_WORKERS)?;
    for worker in workers.query_map([], |row| row.get(0))? {
        let id = WorkerId(worker?);
        match away.iter().find(|away| away.id == id) {
            Some(away) => away.enter(&mut memory),
            // The worker is dead, so it takes nothing.
            None => memory.add_worker(id, Service::default()),
        }
    }
    memory.epoch = epoch::load(conn)?;
    load_figures(conn, &mut memory)?;
    load_gates(conn, &mut memory)?;
    load_tasks(conn, &mut memory)?;
    memory.commit();
    Ok(memory)
}

fn load_figures(conn: &Connection, memory: &mut Memory) -> rusqlite::Result<()> {
    conn.query_row(sql::LOAD_FIGURES, [], |row| {
        let stored: [i64; 5] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?];
        let [last_id, rows, bytes, last_task, last_kept] = stored;
        memory.last_id = TaskId::from_raw(last_id.max(last_task).max(last_kept));
        memory.set_history(HistoryFigures { rows: rows as u64, bytes: bytes as u64 });
        Ok(())
    })
}

fn load_gates(conn: &Connection, memory: &mut Memory) -> rusqlite::Result<()> {
    memory.last_step = conn.query_row(sql::LAST_FORGIVEN_STEP, [], |row| row.get(0))?;
    let mut statement = conn.prepare(sql::LOAD_JOBS)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let job = job::name(row, 0)?;
        memory.rooms.set_delayed(&job, row.get(1)?);
        memory.rooms.set_again(&job, None, row.get::<_, Option<i64>>(2)?.map(Timestamp::from_ms));
    }
    Ok(())
}

fn load_tasks(conn: &Connection, memory: &mut Memory) -> rusqlite::Result<()> {
    let mut tasks = conn.prepare(sql::LOAD_TASKS)?;
    let mut rows = tasks.query([])?;
    while let Some(row) = rows.next()? {
        let lane = LaneId(row.get(1)?);
        let state = State::from_code(row.get(2)?).unwrap_or(State::Dead);
        let crashes: u32 = row.get(3)?;
        memory.count(lane, state, 1);
        memory.ready_seq = memory.ready_seq.max(row.get::<_, Option<i64>>(4)?.unwrap_or(0));
        let group = Group::from_stored(row.get(17)?);
        // Numbers of groups come from the same sequence.
        memory.ready_seq = memory.ready_seq.max(i64::try_from(group.number()).unwrap_or(0));
        if state == State::Ready && is_suspect(crashes) {
            memory.count_suspects(lane, 1);
        }
        let step = row.get::<_, Option<i64>>(16)?.unwrap_or(0);
        memory.last_step = memory.last_step.max(step);
        let (job, priority) = (job::optional_name(row, 14)?, row.get(13)?);
        let id = TaskId::from_raw(row.get(0)?);
        match (&job, state) {
            (Some(job), State::Held) if row.get(18)? => {
                memory.rooms.count_aside(job, lane, 1);
                memory.count_aside(lane, 1);
            }
            (Some(job), State::Held) => memory.rooms.enter(job, lane, priority),
            (Some(job), State::Ready) => {
                let task = Waiting { id, priority, crashes };
                let seq = row.get::<_, Option<i64>>(4)?.unwrap_or(0);
                memory.rooms.enter_ready(job, Ready { lane, task, seq });
            }
            _ => {}
        }
        if state == State::Running {
            let workflow = job::optional_name(row, 15)?;
            let start_no = job.as_ref().map_or(0, |job| memory.rooms.add_running(job));
            let is_gated = job.is_some() || workflow.is_some();
            let held = Held {
                lease: row.get(5)?,
                attempt: row.get(6)?,
                max_attempts: row.get(19)?,
                crashes,
                group,
                claim_no: row.get::<_, Option<i64>>(8)?.unwrap_or(0) as u64,
                claimed_at: Timestamp::from_ms(row.get::<_, Option<i64>>(9)?.unwrap_or(0)),
                lane,
                payload_bytes: row.get(11)?,
                keyed: row.get(10)?,
                cancel: row.get::<_, Option<String>>(12)?.map(String::into_boxed_str),
                gate: is_gated.then(|| Box::new(Passed { job, workflow, step, priority, start_no })),
            };
            let worker = WorkerId(row.get::<_, Option<i64>>(7)?.unwrap_or(0));
            memory.hold(worker, id, held);
        }
        // These changes are never undone; a million undo records would take a lot of memory.
        memory.commit();
    }
    Ok(())
}
