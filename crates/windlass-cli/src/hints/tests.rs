//! Reads every command that the program can suggest from the source, and gives it to the real parser.

use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, Parser as _};

use super::*;
use crate::args::Cli;

/// Placeholders in suggested commands, and the value that the test uses for each.
const STANDS_FOR: [(&str, &str); 9] = [
    ("NAME", "x"),
    ("ID", "06FQJ4Y8XG000"),
    ("FILE", "x.json"),
    ("KIND", "echo"),
    ("KEY", "k"),
    ("URL", "http://127.0.0.1:1"),
    ("DURATION", "30s"),
    ("N", "3"),
    ("TIME", "2027-01-31T09:30:00Z"),
];

/// Every source file of the program, and of the crates whose texts it shows, without the tests.
fn sources() -> Vec<(PathBuf, String)> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut open: Vec<PathBuf> = ["cli", "server", "core", "sqlite", "postgres", "remote", "kinds", "amqp"]
        .iter()
        .map(|name| crates.join(format!("windlass-{name}/src")))
        .chain([crates.join("windlass/src")])
        .collect();
    let mut found = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|extension| extension == "rs") && !path.ends_with("tests.rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap_or_default().to_owned();
            found.push((path, code));
        }
    }
    assert!(found.len() > 200, "{} files", found.len());
    found
}

/// The string literals of a source, each with the text before it on its line.
fn literals(code: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut before = String::new();
    let mut letters = code.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '/' if letters.peek() == Some(&'/') => {
                letters.by_ref().find(|letter| *letter == '\n');
                before.clear();
            }
            // A character literal, not a string; a lifetime has no second quote at this place.
            '\'' => {
                let next: String = letters.clone().take(3).collect();
                if next.starts_with("\\\"'") {
                    letters.by_ref().nth(2);
                } else if next.starts_with("\"'") {
                    letters.by_ref().nth(1);
                }
            }
            '"' => {
                let mut text = String::new();
                while let Some(letter) = letters.next() {
                    match letter {
                        '"' => break,
                        '\\' => match letters.next() {
                            // A continued line goes on after the leading spaces of the next line.
                            Some('\n') => while letters.next_if(|letter| letter.is_whitespace()).is_some() {},
                            Some('n') => text.push('\n'),
                            Some(escaped) => text.push(escaped),
                            None => break,
                        },
                        letter => text.push(letter),
                    }
                }
                found.push((before.clone(), text));
            }
            '\n' => before.clear(),
            letter => before.push(letter),
        }
    }
    found
}

/// A command as a user would type it, with a value for every placeholder.
fn filled(command: &str, blank: &str) -> Vec<String> {
    let mut text = String::new();
    let mut depth = 0;
    for letter in command.chars() {
        match letter {
            '{' => depth += 1,
            '}' => {
                depth -= 1;
                text.push_str(blank);
            }
            letter if depth == 0 => text.push(letter),
            _ => {}
        }
    }
    let word = |word: &str| {
        let known = STANDS_FOR.iter().find(|(name, _)| *name == word.trim_matches('…'));
        known.map_or_else(|| word.to_owned(), |(_, value)| (*value).to_owned())
    };
    // As in a shell, a text between single quotes is one argument.
    let mut arguments = Vec::new();
    for (place, part) in text.split('\'').enumerate() {
        if place % 2 == 1 {
            arguments.push(part.to_owned());
        } else {
            arguments.extend(part.split_whitespace().map(word));
        }
    }
    arguments
}

fn parses(command: &str) -> Result<(), String> {
    let mut problem = String::new();
    // A placeholder can stand for a name, a task or a number.
    for blank in ["x", "06FQJ4Y8XG000", "3"] {
        match Cli::try_parse_from(filled(command, blank)) {
            Ok(_) => return Ok(()),
            Err(error) => problem = error.to_string().lines().next().unwrap_or_default().to_owned(),
        }
    }
    Err(problem)
}

/// The commands in a text: everything in backticks, and a text that begins with the name of one of our
/// commands, up to a comma.
fn commands(program: &Command, literal: &str) -> Vec<String> {
    let quoted = literal.split('`').skip(1).step_by(2).filter(|text| text.starts_with("windlass "));
    let mut found: Vec<String> = quoted.map(str::to_owned).collect();
    let text = outside(literal);
    for (at, _) in text.match_indices("windlass ") {
        let command = text.get(at..).unwrap_or_default().split([',', ';']).next().unwrap_or_default();
        let mut words = command.split_whitespace().skip(1);
        let known = words.next().and_then(|word| program.find_subcommand(word));
        // A name of two words is a command to type; "windlass top" alone may be the name of the tool.
        if known.is_some_and(Command::has_subcommands) && words.next().is_some() {
            found.push(command.to_owned());
        }
    }
    found
}

#[test]
fn every_command_that_a_text_names_can_be_typed() {
    let program = Cli::command();
    let (mut wrong, mut tried) = (Vec::new(), 0);
    for (path, code) in sources() {
        for (_, literal) in literals(&code) {
            for command in commands(&program, &literal) {
                tried += 1;
                if let Err(problem) = parses(&command) {
                    wrong.push(format!("{}: `{command}`: {problem}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(tried > 40, "only {tried} commands were found: the test does not read what it should");
}

/// Which command prints a hint is not known here, so a flag of any command passes. Debug builds check the
/// rest when a hint is printed.
#[test]
fn every_flag_of_a_hint_is_one_of_some_command() {
    fn collect(command: &Command, known: &mut Vec<String>) {
        known.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|command| collect(command, known));
    }
    let mut known = Vec::new();
    collect(&Cli::command(), &mut known);
    let mut wrong = Vec::new();
    for (path, code) in sources() {
        for (before, literal) in literals(&code) {
            if !before.contains("hint(") {
                continue;
            }
            for flag in flags(&outside(&literal)).into_iter().filter(|flag| !known.contains(flag)) {
                if !literal.starts_with("pg_dump") {
                    wrong.push(format!("{}: --{flag}", path.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_flag_that_the_command_lacks_is_noticed() {
    let program = Cli::command();
    let stray = |command: &str, hint: &str| {
        stray_flag(&program, &command.split(' ').map(str::to_owned).collect::<Vec<_>>(), hint)
    };
    assert_eq!(stray("backup", "name another file, or add --force"), Some("force".to_owned()));
    assert_eq!(stray("restore", "name another file, or add --force"), None);
    assert_eq!(stray("tasks cancel", "add --yes, or --dry-run to see how many"), None);
    assert_eq!(stray("jobs ls", "name another with --server, or `windlass up --listen ADDR`"), None);
}
