//! Commands in hints must work when typed. They stand in backticks, and a test parses them. A flag
//! outside backticks must belong to the command that prints the hint.

use clap::Command;

/// A flag that stands in a hint outside the commands in backticks, and that the printing command does not
/// have.
pub fn stray_flag(program: &Command, command: &[String], hint: &str) -> Option<String> {
    let mut known: Vec<&Command> = vec![program];
    for name in command {
        known.extend(known.last().and_then(|last| last.find_subcommand(name)));
    }
    let has =
        |flag: &str| known.iter().any(|known| known.get_arguments().any(|arg| arg.get_long() == Some(flag)));
    flags(&outside(hint)).into_iter().find(|flag| !has(flag))
}

/// The text without its parts in backticks.
fn outside(text: &str) -> String {
    text.split('`').step_by(2).collect::<Vec<_>>().join(" ")
}

/// The long flags in a text, without their dashes.
fn flags(text: &str) -> Vec<String> {
    let words = text.split(|letter: char| letter.is_whitespace() || "()[]\"',;:/".contains(letter));
    let flags = words.filter_map(|word| word.strip_prefix("--"));
    flags
        .map(|flag| flag.split('=').next().unwrap_or(flag).trim_end_matches('.').to_owned())
        .filter(|flag| !flag.is_empty())
        .collect()
}

#[cfg(test)]
mod tests;
