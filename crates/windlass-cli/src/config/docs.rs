//! Prints the table of settings as a commented file and as a page of the documentation.

use std::fmt::Write as _;

use super::{
    setting::{Kind, Setting},
    table,
};

/// A windlass.toml with every setting, each commented out at its default.
pub fn example_file() -> String {
    let mut text = String::from(
        "# Settings of Windlass. A flag wins over a WINDLASS_* variable, that over this file, that over the default.\n\
         # Every line that starts with a setting's name after '# ' shows its default.\n",
    );
    let mut inside = "";
    for setting in table::ALL {
        let (group, name) = setting.key.split_once('.').unwrap_or(("", setting.key));
        if group != inside {
            inside = group;
            let _ = write!(text, "\n[{group}]\n");
        }
        let _ = write!(text, "\n# {}\n", setting.doc);
        let bounds = setting.kind.bounds();
        let others: Vec<String> = [
            (!bounds.is_empty()).then_some(bounds),
            setting.flag.map(str::to_owned),
            Some(setting.variable()),
            setting.document.map(str::to_owned),
        ]
        .into_iter()
        .flatten()
        .collect();
        let _ = write!(text, "# ({})\n# {name} = {}\n", others.join("; "), toml_default(setting));
    }
    text
}

fn toml_default(setting: &Setting) -> String {
    match setting.kind {
        Kind::Names | Kind::Networks | Kind::Hosts | Kind::Variables | Kind::Thresholds => "[]".to_owned(),
        _ if setting.default.parse::<f64>().is_ok() => setting.default.to_owned(),
        _ => format!("{:?}", setting.default),
    }
}

/// docs/configuration.md.
pub fn page() -> String {
    let mut text = String::from(
        "<!-- Written by `windlass config docs`; a test compares it with the table in the program. -->\n\
         # Configuration\n\n\
         Flags win over the environment, that over `windlass.toml`, that over the default. The file is `--config FILE`,\n\
         else `./windlass.toml`, else `/etc/windlass/windlass.toml`. `windlass config init` writes one with every setting;\n\
         `windlass config check` shows what is in force and where each value came from.\n\n\
         - An unknown key of the file is refused with its line and the nearest known key.\n\
         - A number outside of its bounds is moved to the nearest bound with a warning that has both numbers. Zero where one is\n  \
           the least, text where a number belongs, and an unknown word are refused with the setting's name.\n\
         - A time is written with its unit: `30s`, `5m`, `12h`. A number alone is taken only where the name has the unit: milliseconds\n  \
           (`drain_timeout_ms = 30000`, `WINDLASS_DRAIN_TIMEOUT_MS`) or days (`_days`). A flag has none in its name: `--drain-timeout 30` is\n  \
           refused, and so is `mail=250` in `kind_latency_thresholds`. Bytes may be written `64KiB`.\n\
         - A `WINDLASS_*` variable wins over the other name in its row. One of those others that took effect is shown at start.\n\
         - `WINDLASS_STORE_FILE` names a file that holds the store's address.\n\
         - `WINDLASS_TOKEN` holds the token that commands show to a server; it is no setting, so that no file has to hold it.\n\
         - `heartbeat_ms` is at most a third of `lease_ttl_ms`.\n\
         - Slots: `slots` if it is given; else the preset's product (with `worker_concurrency` as its second factor, if that is given);\n  \
           else 1000. With a preset `MAX_CONCURRENT_TASKS` is an upper bound that warns when it cuts. The start-up line says which rule applied.\n\n\
         | key | flag | variable | default | bounds | meaning |\n|---|---|---|---|---|---|\n",
    );
    for setting in table::ALL {
        let flag = setting.flag.map_or(String::new(), |flag| format!("`{flag}`"));
        let document = setting.document.map_or(String::new(), |name| format!(", `{name}`"));
        let default =
            if setting.default.is_empty() { "none".into() } else { format!("`{}`", setting.default) };
        let _ = writeln!(
            text,
            "| `{}` | {flag} | `{}`{document} | {default} | {} | {} |",
            setting.key,
            setting.variable(),
            setting.kind.bounds(),
            setting.doc.replace('|', "\\|")
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, file, load};

    fn is_list(setting: &Setting) -> bool {
        matches!(setting.kind, Kind::Names | Kind::Networks | Kind::Variables)
    }

    #[test]
    fn the_example_file_has_every_setting_and_is_valid() {
        let uncommented: String = example_file()
            .lines()
            .filter(|line| {
                !line.starts_with("# (") && !line.starts_with("# Every") && !line.ends_with("= \"\"")
            })
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.contains(" = ") => format!("{rest}\n"),
                Some(_) => String::new(),
                None => format!("{line}\n"),
            })
            .collect();
        let entries = file::parse(&uncommented).unwrap();
        for setting in table::ALL.iter().filter(|setting| !setting.default.is_empty() || is_list(setting)) {
            assert!(entries.iter().any(|entry| entry.key == setting.key), "{}", setting.key);
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("windlass.toml"), uncommented).unwrap();
        let sources = Sources { folder: folder.path().to_owned(), ..Sources::default() };
        let settings = load(&sources).unwrap();
        assert_eq!(settings.warnings, Vec::<String>::new());
        assert_eq!(settings.rules(), windlass_core::Rules::default());
    }

    #[test]
    fn the_page_in_docs_matches_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            std::fs::write(path, page()).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            written == page(),
            "docs/configuration.md is out of date: run `windlass config docs > docs/configuration.md`"
        );
    }
}
