//! What the program tells people to type must work. Commands in hints stand in backticks and are parsed by a test; a flag that stands
//! alone must be one of the command that says it.

use clap::Command;

/// A flag of a hint, outside of the commands in backticks, that the command which says it does not have.
pub fn stray_flag(program: &Command, command: &[String], hint: &str) -> Option<String> {
    let mut known: Vec<&Command> = vec![program];
    for name in command {
        known.extend(known.last().and_then(|last| last.find_subcommand(name)));
    }
    let has =
        |flag: &str| known.iter().any(|known| known.get_arguments().any(|arg| arg.get_long() == Some(flag)));
    flags(&outside(hint)).into_iter().find(|flag| !has(flag))
}

/// The text without what stands in backticks.
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
