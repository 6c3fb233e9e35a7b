//! `kill -9` of a real server under load: `kill_rounds [ROUNDS] [SEED]` prints the counts.

use std::process::ExitCode;

use e2e::{kill::kill_rounds, rng::Rng};

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1);
    let rounds = arguments.next().map_or(Ok(20), |text| text.parse())?;
    let seed = arguments.next().map_or_else(|| Ok(Rng::seed()), |text| text.parse())?;
    let folder = tempfile::tempdir()?;
    let report = kill_rounds(folder.path(), rounds, seed).await?;
    println!("{report}");
    for line in report.ended_badly.iter().chain(&report.ran_after_done) {
        println!("  {line}");
    }
    Ok(if report.is_clean() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
