//! `windlass enqueue --from FILE`: one task a line, in batches.

use std::io::{BufRead, BufReader, Read as _};

use serde_json::json;
use windlass_server::api::{BatchRequest, EnqueueRequest, ErrorCode, ErrorDetail};

use super::enqueue::{BATCH_BYTES, BATCH_TASKS};
use crate::{
    backend::Backend,
    failure::{Exit, Failure},
    output::text,
    session::Session,
};

/// Bad lines that are told one by one; the rest is counted.
const BAD_LINES_SHOWN: u64 = 20;
/// Longest line that is read; a longer one is bad as a whole.
const LINE_MAX_BYTES: u64 = 64 << 20;

/// Enqueues every line. Bad lines are reported with their number and left out; the rest goes in.
pub async fn run(session: &Session, backend: &dyn Backend, file: &str) -> anyhow::Result<Exit> {
    let mut import = Import {
        session,
        backend,
        batch: Vec::new(),
        bytes: 0,
        enqueued: 0,
        existing: 0,
        bad: 0,
        warnings: Vec::new(),
    };
    let mut reader = open(file)?;
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        let read = (&mut reader).take(LINE_MAX_BYTES).read_until(b'\n', &mut line)?;
        if read == 0 {
            break;
        }
        number += 1;
        if read as u64 == LINE_MAX_BYTES && line.last() != Some(&b'\n') {
            import.bad(number, "the line is longer than 64 MiB");
            skip_line(&mut reader)?;
            continue;
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        match serde_json::from_slice::<EnqueueRequest>(&line) {
            Ok(request) => import.add(number, request, line.len()).await?,
            Err(error) => import.bad(number, &format!("not a task: {error}")),
        }
    }
    import.flush().await?;
    import.finish()
}

fn open(file: &str) -> anyhow::Result<Box<dyn BufRead + Send>> {
    if file == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let opened =
        std::fs::File::open(file).map_err(|error| Failure::usage(format!("cannot read {file}: {error}")))?;
    Ok(Box::new(BufReader::new(opened)))
}

fn skip_line(reader: &mut (dyn BufRead + Send)) -> std::io::Result<()> {
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

struct Import<'a> {
    session: &'a Session,
    backend: &'a dyn Backend,
    batch: Vec<(u64, EnqueueRequest)>,
    bytes: usize,
    enqueued: u64,
    existing: u64,
    bad: u64,
    warnings: Vec<String>,
}

impl Import<'_> {
    async fn add(&mut self, number: u64, request: EnqueueRequest, bytes: usize) -> anyhow::Result<()> {
        self.batch.push((number, request));
        self.bytes += bytes;
        if self.batch.len() >= BATCH_TASKS || self.bytes >= BATCH_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// Sends the batch. If one of its tasks is refused, each is sent alone, so that only the bad ones stay out.
    async fn flush(&mut self) -> anyhow::Result<()> {
        self.bytes = 0;
        let batch = std::mem::take(&mut self.batch);
        let Some((first, _)) = batch.first() else {
            return Ok(());
        };
        let first = *first;
        let tasks = batch.iter().map(|(_, request)| request.clone()).collect();
        match self.backend.enqueue_batch(BatchRequest { tasks }).await {
            Ok(answer) => {
                let existing = answer.tasks.iter().filter(|task| task.existing).count() as u64;
                self.existing += existing;
                self.enqueued += answer.tasks.len() as u64 - existing;
                self.warn(answer.warnings);
            }
            Err(error) if is_about_one_task(&error) => self.send_each(batch).await?,
            Err(error) => return Err(self.stopped(first, error).into()),
        }
        let done = self.enqueued + self.existing;
        self.session.out.progress(format!("{} enqueued", text::tasks(done)));
        Ok(())
    }

    async fn send_each(&mut self, batch: Vec<(u64, EnqueueRequest)>) -> anyhow::Result<()> {
        for (number, request) in batch {
            match self.backend.enqueue(request).await {
                Ok(answer) => {
                    let figure = if answer.existing { &mut self.existing } else { &mut self.enqueued };
                    *figure += 1;
                    self.warn(answer.warnings);
                }
                Err(error) if is_about_one_task(&error) => self.bad(number, &error.message),
                Err(error) => return Err(self.stopped(number, error).into()),
            }
        }
        Ok(())
    }

    fn warn(&mut self, warnings: Vec<String>) {
        for warning in warnings {
            if !self.warnings.contains(&warning) {
                self.session.out.warn(&warning);
                self.warnings.push(warning);
            }
        }
    }

    fn bad(&mut self, number: u64, problem: &str) {
        self.bad += 1;
        if self.bad <= BAD_LINES_SHOWN {
            self.session.out.warn(format!("line {number} left out: {problem}"));
        }
    }

    /// An error that is not about a task ends the import; the user must know from where to go on.
    fn stopped(&self, number: u64, error: ErrorDetail) -> Failure {
        self.session.out.end_progress();
        let failure = Failure::from(error);
        let done = text::tasks(self.enqueued + self.existing);
        let message = format!("{} (at line {number}, after {done} were enqueued)", failure.message);
        Failure { message, ..failure }
    }

    fn finish(self) -> anyhow::Result<Exit> {
        let out = self.session.out;
        out.end_progress();
        if out.is_json() {
            out.json(&json!({"enqueued": self.enqueued, "existing": self.existing, "left_out": self.bad,
                "warnings": self.warnings}))?;
        } else {
            let existing = match self.existing {
                0 => String::new(),
                n => format!(", {} already there", text::count(n)),
            };
            out.line(format!("{} enqueued{existing}", text::tasks(self.enqueued)))?;
        }
        if self.bad > 0 {
            let lines = if self.bad == 1 { "line was" } else { "lines were" };
            let message = format!("{} {lines} left out", text::count(self.bad));
            return Err(Failure::new(Exit::Failed, message)
                .hint("each line is one object like {\"kind\":\"echo\",\"payload\":{}}")
                .into());
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
