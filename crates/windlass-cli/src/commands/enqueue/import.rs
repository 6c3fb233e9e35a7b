//! `windlass enqueue --from FILE`: one task a line, in batches.
//!
//! Every line is checked before any is added, so a file with a mistake adds nothing.
//!
//! A file of more than one batch is added in several commits, and a crash between two of them leaves a
//! part. Each line without a key of its own therefore gets one, made of the name of the run and the
//! line's number. A second run with the same name then adds only what the first did not.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read as _, Seek as _},
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;
use windlass_server::api::{BatchRequest, EnqueueRequest, ErrorCode, ErrorDetail};

use super::{BATCH_BYTES, BATCH_TASKS};
use crate::{
    backend::Backend,
    failure::{Exit, Failure},
    output::{Output, text},
    session::Session,
};

/// Bad lines that are printed one by one; the others are only counted.
const BAD_LINES_SHOWN: u64 = 20;
/// Longest line that is read; a longer one counts as a bad line.
const LINE_MAX_BYTES: u64 = 64 << 20;
/// Longest name of a run: together with a line's number it must fit into a key.
const RUN_MAX_BYTES: usize = 128;

/// What happens with lines that are not valid tasks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bad {
    /// One bad line refuses the whole file.
    Refused,
    /// Bad lines are skipped.
    LeftOut,
}

/// Enqueues every valid line of a file, or none if a line is bad and bad lines may not be skipped.
pub async fn run(
    session: &Session,
    backend: &dyn Backend,
    file: &str,
    bad: Bad,
    run: Option<&str>,
) -> anyhow::Result<Exit> {
    let run = run_name(run)?;
    let mut lines = Lines::open(file)?;
    let mut import = Import::new(session.out, backend, file, &run);
    import.check(&mut lines).await?;
    if !import.bad.is_empty() && bad == Bad::Refused {
        return Err(import.refused().into());
    }
    lines.rewind()?;
    import.add_all(&mut lines).await?;
    import.finish()
}

/// The name of a run: the given one, or a new unique one.
fn run_name(given: Option<&str>) -> Result<String, Failure> {
    match given {
        Some(name) if name.is_empty() || name.len() > RUN_MAX_BYTES || name.chars().any(char::is_control) => {
            Err(Failure::usage(format!(
                "--run must have 1 to {RUN_MAX_BYTES} bytes and no control characters"
            )))
        }
        Some(name) => Ok(name.to_owned()),
        None => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(format!("{:x}-{:x}", since.as_nanos(), std::process::id()))
        }
    }
}

/// A file that is read twice, line by line. Standard input is copied into an unnamed temporary file
/// first.
struct Lines {
    reader: BufReader<File>,
    number: u64,
}

/// One line that is not empty.
enum Line {
    Task(Box<EnqueueRequest>, usize),
    Bad(String),
}

impl Lines {
    fn open(file: &str) -> anyhow::Result<Self> {
        let opened = if file == "-" {
            let mut kept = tempfile::tempfile()?;
            std::io::copy(&mut std::io::stdin().lock(), &mut kept)?;
            kept.rewind()?;
            kept
        } else {
            File::open(file).map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?
        };
        Ok(Self { reader: BufReader::new(opened), number: 0 })
    }

    fn rewind(&mut self) -> anyhow::Result<()> {
        self.reader.rewind()?;
        self.number = 0;
        Ok(())
    }

    /// The next line with its number; blank lines are skipped.
    fn next(&mut self) -> anyhow::Result<Option<(u64, Line)>> {
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = (&mut self.reader).take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LINE_MAX_BYTES && line.last() != Some(&b'\n') {
                skip_line(&mut self.reader)?;
                return Ok(Some((self.number, Line::Bad("the line is longer than 64 MiB".to_owned()))));
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let line = match serde_json::from_slice::<EnqueueRequest>(&line) {
                Ok(request) => Line::Task(Box::new(request), line.len()),
                Err(error) => Line::Bad(format!("not a task: {error}")),
            };
            return Ok(Some((self.number, line)));
        }
    }
}

fn skip_line(reader: &mut BufReader<File>) -> std::io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |end| end + 1);
        let over = end.is_some() || buffer.is_empty();
        reader.consume(used);
        if over {
            return Ok(());
        }
    }
}

/// Lines that are sent in one call.
#[derive(Default)]
struct Batch {
    tasks: Vec<(u64, EnqueueRequest)>,
    bytes: usize,
}

impl Batch {
    fn push(&mut self, number: u64, request: EnqueueRequest, bytes: usize) {
        self.tasks.push((number, request));
        self.bytes += bytes;
    }

    fn is_full(&self) -> bool {
        self.tasks.len() >= BATCH_TASKS || self.bytes >= BATCH_BYTES
    }

    fn request(&self, dry_run: bool) -> BatchRequest {
        BatchRequest { tasks: self.tasks.iter().map(|(_, request)| request.clone()).collect(), dry_run }
    }
}

struct Import<'a> {
    out: Output,
    backend: &'a dyn Backend,
    file: &'a str,
    run: &'a str,
    /// The numbers of bad lines.
    bad: std::collections::BTreeSet<u64>,
    enqueued: u64,
    existing: u64,
    warnings: Vec<String>,
}

impl<'a> Import<'a> {
    fn new(out: Output, backend: &'a dyn Backend, file: &'a str, run: &'a str) -> Self {
        let (bad, warnings) = Default::default();
        Self { out, backend, file, run, bad, enqueued: 0, existing: 0, warnings }
    }

    /// Checks every line; nothing is added.
    async fn check(&mut self, lines: &mut Lines) -> anyhow::Result<()> {
        let mut batch = Batch::default();
        while let Some((number, line)) = lines.next()? {
            match line {
                Line::Task(request, bytes) => batch.push(number, *request, bytes),
                Line::Bad(problem) => self.bad(number, &problem),
            }
            if batch.is_full() {
                self.check_batch(std::mem::take(&mut batch)).await?;
            }
        }
        self.check_batch(batch).await
    }

    /// Checks a whole batch. If it is refused, checks each task alone to find the bad ones.
    async fn check_batch(&mut self, batch: Batch) -> anyhow::Result<()> {
        if batch.tasks.is_empty() {
            return Ok(());
        }
        match self.backend.enqueue_batch(batch.request(true)).await {
            Ok(_) => return Ok(()),
            Err(error) if is_about_one_task(&error) => {}
            Err(error) => return Err(error.into()),
        }
        for (number, request) in batch.tasks {
            let alone = BatchRequest { tasks: vec![request], dry_run: true };
            match self.backend.enqueue_batch(alone).await {
                Ok(_) => {}
                Err(error) if is_about_one_task(&error) => {
                    self.bad(number, error.message.trim_start_matches("tasks[0]: "));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn bad(&mut self, number: u64, problem: &str) {
        self.bad.insert(number);
        if self.bad.len() as u64 <= BAD_LINES_SHOWN {
            self.out.warn(format!("line {number}: {problem}"));
        }
    }

    /// The failure when nothing was added because some lines are bad.
    fn refused(&self) -> Failure {
        let n = self.bad.len() as u64;
        let lines = if n == 1 { "line is" } else { "lines are" };
        Failure::new(Exit::Failed, format!("{} {lines} not valid tasks; nothing was enqueued", text::count(n))).hint(format!(
            "each line is one object like {{\"kind\":\"echo\",\"payload\":{{}}}}; `windlass enqueue --from {} --skip-bad` leaves \
             the bad ones out",
            self.file
        ))
    }

    /// Adds every line that is not bad, batch by batch.
    async fn add_all(&mut self, lines: &mut Lines) -> anyhow::Result<()> {
        let mut batch = Batch::default();
        while let Some((number, line)) = lines.next()? {
            if let Line::Task(mut request, bytes) = line
                && !self.bad.contains(&number)
            {
                request.key.get_or_insert_with(|| format!("import:{}:{number}", self.run));
                batch.push(number, *request, bytes);
            }
            if batch.is_full() {
                self.send(std::mem::take(&mut batch)).await?;
            }
        }
        self.send(batch).await
    }

    async fn send(&mut self, batch: Batch) -> anyhow::Result<()> {
        let Some((first, _)) = batch.tasks.first() else { return Ok(()) };
        let answer = self.backend.enqueue_batch(batch.request(false)).await;
        let answer = answer.map_err(|error| self.stopped(*first, error))?;
        let existing = answer.tasks.iter().filter(|task| task.existing).count() as u64;
        self.existing += existing;
        self.enqueued += answer.tasks.len() as u64 - existing;
        for warning in answer.warnings {
            if !self.warnings.contains(&warning) {
                self.out.warn(&warning);
                self.warnings.push(warning);
            }
        }
        self.out.progress(format!("{} enqueued", text::tasks(self.enqueued + self.existing)));
        Ok(())
    }

    /// The failure when only a part of the file was added. It must tell the user how to add exactly the
    /// rest.
    fn stopped(&self, number: u64, error: ErrorDetail) -> Failure {
        self.out.end_progress();
        let failure = Failure::from(error);
        let done = text::tasks(self.enqueued + self.existing);
        let message = format!("{} (at line {number}, after {done} were enqueued)", failure.message);
        let again = format!(
            "`windlass enqueue --from {} --run {}` adds what is missing, and nothing twice",
            self.file, self.run
        );
        Failure { message, ..failure }.hint(again)
    }

    fn finish(self) -> anyhow::Result<Exit> {
        let out = self.out;
        out.end_progress();
        let left_out = self.bad.len() as u64;
        if out.is_json() {
            out.json(&json!({"enqueued": self.enqueued, "existing": self.existing, "left_out": left_out,
                "run": self.run, "warnings": self.warnings}))?;
        } else {
            let existing = match self.existing {
                0 => String::new(),
                n => format!(", {} already there", text::count(n)),
            };
            let left_out = match left_out {
                0 => String::new(),
                n => format!(", {} left out", text::count(n)),
            };
            out.line(format!("{} enqueued{existing}{left_out}", text::tasks(self.enqueued)))?;
        }
        Ok(Exit::Done)
    }
}

fn is_about_one_task(error: &ErrorDetail) -> bool {
    matches!(
        error.code,
        ErrorCode::Invalid
            | ErrorCode::TooLarge
            | ErrorCode::KeyConflict
            | ErrorCode::Conflict
            | ErrorCode::Unsupported
    )
}
