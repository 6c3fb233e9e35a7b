//! Every figure beside its bar, in one table. Each bench runs in a separate process.

use std::{io::Write as _, process::Command};

use anyhow::Context as _;
use serde_json::{Value, json};

use super::{
    amqp_bars,
    bars::{self, Bench},
    dashboard_bars,
};
use crate::program;

/// Runs the benches and prints the table. The exit code is 1 if a figure misses its bar.
pub(crate) fn run(quick: bool, only: &[String], json: bool) -> anyhow::Result<u8> {
    let benches: Vec<_> = all().collect();
    if let Some(unknown) = only.iter().find(|name| !benches.iter().any(|bench| bench.name == **name)) {
        let known: Vec<_> = benches.iter().map(|bench| bench.name).collect();
        anyhow::bail!("no bench {unknown:?}; one of {}", known.join(", "));
    }
    let mut out = std::io::stdout().lock();
    let (mut short, mut list) = (false, Vec::new());
    if !json {
        writeln!(out, "{:<58} {:<24} {:>10}  {:<9} verdict", "command", "figure", "value", "bar")?;
    }
    for bench in benches.iter().filter(|bench| only.is_empty() || only.iter().any(|name| name == bench.name))
    {
        let args = if quick { bench.quick } else { bench.full };
        let name = if is_demo(args) { "windlass" } else { "windlass-bench" };
        let command = format!("{name} {} --json", args.join(" "));
        let figures = measure(args).with_context(|| format!("{command} failed"))?;
        for figure in (bench.figures)(&figures).context("the bench printed other keys than expected")? {
            let verdict = if figure.ok { "OK" } else { "SHORT" };
            short |= !figure.ok;
            if json {
                list.push(json!({"command": command, "figure": figure.name, "value": figure.value, "bar": figure.bar, "ok": figure.ok}));
            } else {
                writeln!(
                    out,
                    "{command:<58} {:<24} {:>10.3}  {:<9} {verdict}",
                    figure.name, figure.value, figure.bar
                )?;
            }
        }
        if !json {
            writeln!(out, "    {figures}")?;
            out.flush()?;
        }
    }
    if json {
        writeln!(out, "{}", Value::Array(list))?;
    }
    Ok(u8::from(short))
}

/// Every bench, in the order of the table.
fn all() -> impl Iterator<Item = &'static Bench> {
    bars::EMBEDDED.iter().chain(bars::POSTGRES).chain(amqp_bars::BENCHES).chain(dashboard_bars::BENCHES)
}

/// Whether the figures are those of the demo, which users watch: the demo is a command of `windlass`
/// itself.
fn is_demo(args: &[&str]) -> bool {
    args.first() == Some(&"demo")
}

fn measure(args: &[&str]) -> anyhow::Result<Value> {
    let mut command =
        if is_demo(args) { program::windlass()? } else { Command::new(std::env::current_exe()?) };
    let output = command.args(args).arg("--json").output()?;
    anyhow::ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    serde_json::from_slice(&output.stdout).context("the bench printed no JSON")
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn arguments_of_every_bar_are_understood() {
        for bench in all() {
            for args in [bench.full, bench.quick].into_iter().filter(|args| !is_demo(args)) {
                let typed = ["windlass-bench"].iter().chain(args);
                assert!(Cli::try_parse_from(typed).is_ok(), "{args:?}");
            }
        }
    }
}
