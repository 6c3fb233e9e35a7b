//! Draws the pictures of the documents, from a server with example data: `pictures FOLDER [SECONDS]`.

use std::{path::PathBuf, time::Duration};

use anyhow::{Context as _, Result, ensure};
use e2e::{
    browser::{Browser, Look, story},
    http::Api,
    up::Up,
};
use serde_json::json;
use tokio::time::{Instant, sleep};

/// How long the server is busy before it is drawn, so that its charts show something.
const BUSY_FOR_S: u64 = 150;
/// Most bytes of all pictures together.
const BYTES_MAX: usize = 300_000;
/// Pause between two batches of tasks.
const BATCH_EVERY: Duration = Duration::from_millis(500);

#[tokio::main]
async fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder: PathBuf = arguments.next().context("usage: pictures FOLDER [SECONDS]")?.into();
    let seconds = arguments.next().map_or(Ok(BUSY_FOR_S), |text| text.parse())?;
    let place = tempfile::tempdir()?;
    let up = Up::on(&place.path().join("windlass.db"), ["--slots", "40"])?;
    let story = story::tell(&up.address, None).await?;
    busy(&up.api(), Duration::from_secs(seconds)).await?;
    let browser = Browser::start().await?;
    browser.look(Look { width: 1200, dark: false }).await?;
    std::fs::create_dir_all(&folder)?;
    let mut bytes = 0;
    for (name, path) in [("overview", "/".to_owned()), ("task", format!("/tasks/{}", story.dead))] {
        browser.open(&format!("{}{path}", up.address)).await?;
        browser.until("document.querySelector('main h1') && document.querySelector('time[title]')").await?;
        let picture = browser.picture().await?;
        bytes += picture.len();
        println!("{name}.png: {} bytes", picture.len());
        std::fs::write(folder.join(format!("{name}.png")), picture)?;
    }
    ensure!(bytes <= BYTES_MAX, "the pictures have {bytes} bytes, more than {BYTES_MAX}");
    browser.close().await
}

/// Adds tasks for some time, in waves, as a day in a shop has them.
async fn busy(api: &Api, span: Duration) -> Result<()> {
    let until = Instant::now() + span;
    let mut batch = 0_u32;
    while Instant::now() < until {
        let wave = 13.0 + 9.0 * (f64::from(batch) / 14.0).sin() + f64::from(batch % 5);
        let task = |n: usize| {
            let error =
                (n == 0 && batch.is_multiple_of(6)).then_some("the card processor answered 429: slow down");
            json!({"kind": "charge-card", "queue": "billing", "payload": {"ms": 200 + 50 * (n % 7), "error": error},
                "retry": {"base_ms": 5_000, "max_ms": 60_000}})
        };
        let tasks: Vec<_> = (0..wave as usize).map(task).collect();
        let answer = api.post("/v1/tasks", &json!({"tasks": tasks})).await?;
        ensure!(answer.status == 201, "{answer:?}");
        batch += 1;
        sleep(BATCH_EVERY).await;
    }
    Ok(())
}
