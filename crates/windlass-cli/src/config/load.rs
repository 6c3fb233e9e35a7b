//! Merges flags, environment and file, and checks settings that depend on each other.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
};

use super::{
    file,
    nearest::nearest,
    setting::{Raw, Setting, Value},
    settings::{Origin, Resolved, Secret, Settings},
    slots::{self, Preset, Rule, Said},
    table,
};
use crate::failure::Failure;

/// What the settings are read from. Nothing here reads the process itself, so a test can bring its own
/// sources.
#[derive(Debug, Default)]
pub struct Sources {
    /// Flags that were given.
    pub flags: Vec<(&'static Setting, Raw)>,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// `--config`.
    pub config: Option<PathBuf>,
    /// The working folder.
    pub folder: PathBuf,
}

impl Sources {
    /// The sources of this process.
    pub fn of_process(config: Option<PathBuf>, flags: Vec<(&'static Setting, Raw)>) -> Self {
        let environment =
            std::env::vars_os().filter_map(|(k, v)| Some((k.into_string().ok()?, v.into_string().ok()?)));
        Self { flags, environment: environment.collect(), config, folder: PathBuf::new() }
    }
}

/// The variable that holds the token of commands.
const TOKEN: &str = "WINDLASS_TOKEN";
/// Variables of this program that are not settings.
const OTHER_VARIABLES: [&str; 7] = [
    TOKEN,
    "WINDLASS_STORE_FILE",
    "WINDLASS_BLESS",
    "WINDLASS_BIN",
    "WINDLASS_LONG",
    "WINDLASS_TEST_POSTGRES",
    "WINDLASS_TEST_RABBITMQ",
];

/// Reads everything.
///
/// # Errors
/// An invalid setting, by name; an unknown key of the file, by line.
pub fn load(sources: &Sources) -> Result<Settings, Failure> {
    let file = file::find_and_read(sources.config.as_deref(), &sources.folder)?;
    let mut settings = Settings { file: file.path.clone(), ..Settings::default() };
    for setting in table::ALL {
        let found = match written(setting, sources)? {
            Some(found) => Some(found),
            None => file.entries.iter().find(|entry| entry.key == setting.key).map(|entry| {
                let path = file.path.clone().unwrap_or_default();
                (entry.raw.clone(), Origin::File(path, entry.line))
            }),
        };
        let (value, origin) = match found {
            None => (setting.default_value(), Origin::Default),
            Some((raw, origin)) => {
                let read = match origin {
                    Origin::Flag(_) => setting.read_flag(&raw),
                    _ => setting.read(&raw),
                };
                let read = read.map_err(|problem| Failure::usage(format!("{problem} ({origin})")))?;
                if let Some(clamped) = read.clamped {
                    settings.warnings.push(format!("{} {clamped} ({origin})", setting.key));
                }
                (read.value, origin)
            }
        };
        settings.resolved.push(Resolved { setting, value, origin });
    }
    let token = sources.environment.get(TOKEN).map(|token| token.trim()).filter(|token| !token.is_empty());
    settings.token = token.map(|token| Secret(token.to_owned()));
    settings.warnings.extend(unknown_variables(&sources.environment));
    check_together(&mut settings)?;
    decide_slots(&mut settings);
    Ok(settings)
}

/// Decides the number of slots from all settings about slots, and shows it as the value of `slots`.
fn decide_slots(settings: &mut Settings) {
    let said = |setting| {
        let number = settings.given_number(setting)?;
        settings.is_given(setting).then(|| (number, settings.origin(setting)))
    };
    let (slots, warning) = slots::decide(Said {
        slots: said(&table::SLOTS),
        preset: Preset::named(&settings.text(&table::ENV)),
        concurrency: said(&table::WORKER_CONCURRENCY),
    });
    settings.warnings.extend(warning);
    if let Rule::Preset { preset, cut_by, .. } = &slots.rule {
        let origin = cut_by.map_or(Origin::Preset(preset.env), Origin::Document);
        for resolved in settings.resolved.iter_mut().filter(|one| one.setting.key == table::SLOTS.key) {
            resolved.value = Value::Number(u64::from(slots.number));
            resolved.origin = origin.clone();
        }
    }
    settings.slots = slots;
}

/// The value that flags or the environment give to a setting.
fn written(setting: &'static Setting, sources: &Sources) -> Result<Option<(Raw, Origin)>, Failure> {
    let flag = sources.flags.iter().find(|(flagged, _)| flagged.key == setting.key);
    if let (Some((_, raw)), Some(flag)) = (flag, setting.flag) {
        return Ok(Some((raw.clone(), Origin::Flag(flag))));
    }
    let variable = setting.variable();
    let value = sources.environment.get(&variable);
    if setting.key == table::STORE.key {
        let name = format!("{variable}_FILE");
        match (value, sources.environment.get(&name)) {
            (Some(_), Some(_)) => {
                return Err(
                    Failure::usage(format!("{variable} and {name} are both set")).hint("keep one of them")
                );
            }
            (None, Some(path)) => return read_value_file(path, &name).map(Some),
            _ => {}
        }
    }
    if let Some(value) = value {
        return Ok(Some((Raw::Text(value.clone()), Origin::Variable(variable))));
    }
    Ok(setting.document.and_then(|name| {
        let value = sources.environment.get(name)?;
        Some((Raw::Text(value.clone()), Origin::Document(name)))
    }))
}

fn read_value_file(path: &str, name: &str) -> Result<(Raw, Origin), Failure> {
    let text = std::fs::read_to_string(Path::new(path))
        .map_err(|error| Failure::usage(format!("cannot read {path}, which {name} names: {error}")))?;
    Ok((Raw::Text(text.trim().to_owned()), Origin::Variable(name.to_owned())))
}

fn unknown_variables(environment: &BTreeMap<String, String>) -> Vec<String> {
    let known: Vec<String> = table::ALL.iter().map(|setting| setting.variable()).collect();
    environment
        .keys()
        .filter(|name| name.starts_with("WINDLASS_"))
        .filter(|name| !known.contains(name) && !OTHER_VARIABLES.contains(&name.as_str()))
        .map(|name| match nearest(name, known.iter().map(String::as_str)) {
            Some(near) => format!("{name} is not a setting and has no effect; did you mean {near}?"),
            None => format!("{name} is not a setting and has no effect"),
        })
        .collect()
}

/// Rules that compare two settings.
fn check_together(settings: &mut Settings) -> Result<(), Failure> {
    let (ttl, beat) = (settings.duration(&table::LEASE_TTL_MS), settings.duration(&table::HEARTBEAT_MS));
    if beat > ttl / 3 {
        return Err(Failure::usage(format!(
            "heartbeat_ms is {} but may be at most a third of lease_ttl_ms, which is {}",
            beat.as_millis(),
            ttl.as_millis()
        ))
        .hint(format!("set lease_ttl_ms to at least {}", beat.as_millis() * 3)));
    }
    let (base, longest) = (settings.duration(&table::RETRY_BASE_MS), settings.duration(&table::RETRY_MAX_MS));
    if base > longest {
        return Err(Failure::usage(format!(
            "retry_base_ms is {} but may be at most retry_max_ms, which is {}",
            base.as_millis(),
            longest.as_millis()
        )));
    }
    check_addresses(settings)?;
    raise_poll_interval_max(settings)
}

/// Two listeners cannot share an address. The system says so only when the store is already open.
fn check_addresses(settings: &mut Settings) -> Result<(), Failure> {
    let address = |setting| settings.text(setting).parse::<SocketAddr>().ok();
    let (Some(api), Some(pages)) = (address(&table::LISTEN), address(&table::DASHBOARD_LISTEN)) else {
        return Ok(());
    };
    if settings.text(&table::DASHBOARD) == "off" {
        let warning = "dashboard_listen has no effect while dashboard is off";
        settings.warnings.push(warning.to_owned());
        return Ok(());
    }
    let is_every = |address: SocketAddr| address.ip().is_unspecified();
    let meet = api.ip() == pages.ip() || is_every(api) || is_every(pages);
    if meet && api.port() == pages.port() && api.port() != 0 {
        return Err(Failure::usage(format!("dashboard_listen {pages} and listen {api} are one address"))
            .hint("leave dashboard_listen out to have the pages beside the API, or give it another port"));
    }
    Ok(())
}

/// The idle poll cannot be shorter than the poll. A default is raised with a warning; a value that the
/// user set is refused.
fn raise_poll_interval_max(settings: &mut Settings) -> Result<(), Failure> {
    let poll = settings.duration(&table::POLL_INTERVAL_MS);
    let longest = settings.duration(&table::POLL_INTERVAL_MAX_MS);
    if poll <= longest {
        return Ok(());
    }
    let (poll_ms, longest_ms) = (poll.as_millis(), longest.as_millis());
    if settings.is_given(&table::POLL_INTERVAL_MAX_MS) {
        return Err(Failure::usage(format!(
            "poll_interval_ms is {poll_ms} but may be at most poll_interval_max_ms, which is {longest_ms}"
        )));
    }
    for resolved in &mut settings.resolved {
        if resolved.setting.key == table::POLL_INTERVAL_MAX_MS.key {
            resolved.value = Value::Duration(poll);
        }
    }
    settings.warnings.push(format!(
        "poll_interval_max_ms {longest_ms} ms is below poll_interval_ms; {poll_ms} ms is used"
    ));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sources(environment: &[(&str, &str)], toml: &str) -> (Sources, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("windlass.toml"), toml).unwrap();
        let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        (Sources { environment, folder: folder.path().to_owned(), ..Sources::default() }, folder)
    }

    #[test]
    fn flags_win_over_environment_over_file_over_default() {
        let (mut sources, _folder) = sources(&[("WINDLASS_SLOTS", "20")], "slots = 10\nmax_attempts = 4\n");
        sources.flags.push((&table::SLOTS, Raw::Text("30".to_owned())));
        let settings = load(&sources).unwrap();
        assert_eq!(settings.number(&table::SLOTS), 30);
        assert_eq!(settings.origin(&table::SLOTS), Origin::Flag("--slots"));
        sources.flags.clear();
        assert_eq!(load(&sources).unwrap().number(&table::SLOTS), 20);
        sources.environment.clear();
        let settings = load(&sources).unwrap();
        assert_eq!(settings.number(&table::SLOTS), 10);
        assert!(settings.origin(&table::SLOTS).to_string().ends_with("windlass.toml:1"));
        assert_eq!(settings.number(&table::MAX_ATTEMPTS), 4);
        assert_eq!(settings.origin(&table::MAX_CRASHES), Origin::Default);
    }

    #[test]
    fn our_variable_wins_over_the_name_in_the_documents() {
        let (mut sources, _folder) = sources(&[("MAX_CONCURRENT_TASKS", "7")], "slots = 10");
        let settings = load(&sources).unwrap();
        assert_eq!(settings.number(&table::SLOTS), 7);
        assert_eq!(settings.origin(&table::SLOTS).to_string(), "MAX_CONCURRENT_TASKS");
        sources.environment.insert("WINDLASS_SLOTS".into(), "8".into());
        assert_eq!(load(&sources).unwrap().number(&table::SLOTS), 8);
    }

    #[test]
    fn a_clamp_warns_with_both_numbers() {
        let (mut sources, _folder) = sources(&[("WINDLASS_SLOTS", "200000")], "");
        let settings = load(&sources).unwrap();
        assert_eq!(settings.number(&table::SLOTS), 100_000);
        assert_eq!(
            settings.warnings,
            ["slots 200000 is above the most allowed; 100000 is used (WINDLASS_SLOTS)"]
        );
        sources.environment.insert("WINDLASS_SLOTS".into(), "lots".into());
        let failure = load(&sources).unwrap_err();
        assert_eq!(failure.message, "slots must be a whole number, not \"lots\" (WINDLASS_SLOTS)");
    }

    #[test]
    fn a_preset_gives_the_slots_unless_they_are_given() {
        let (mut sources, _folder) = sources(&[("WINDLASS_ENV", "staging")], "worker_concurrency = 4\n");
        let settings = load(&sources).unwrap();
        assert_eq!((settings.number(&table::SLOTS), settings.slots.number), (80, 80));
        assert_eq!(settings.origin(&table::SLOTS).to_string(), "env staging");
        assert_eq!(settings.warnings, Vec::<String>::new());
        sources.environment.insert("WORKER_CONCURRENCY".into(), "2".into());
        assert_eq!(load(&sources).unwrap().slots.number, 40);
        sources.environment.insert("MAX_CONCURRENT_TASKS".into(), "30".into());
        let settings = load(&sources).unwrap();
        assert_eq!(settings.number(&table::SLOTS), 30);
        assert_eq!(settings.origin(&table::SLOTS), Origin::Document("MAX_CONCURRENT_TASKS"));
        assert_eq!(settings.warnings.len(), 1, "{:?}", settings.warnings);
        sources.environment.insert("WINDLASS_SLOTS".into(), "900".into());
        assert_eq!(load(&sources).unwrap().slots.number, 900);
    }

    #[test]
    fn a_heartbeat_longer_than_a_third_of_the_lease_is_refused() {
        let (sources, _folder) = sources(&[], "lease_ttl_ms = 3000\nheartbeat_ms = 1001\n");
        let failure = load(&sources).unwrap_err();
        assert!(failure.message.contains("heartbeat_ms") && failure.message.contains("lease_ttl_ms"));
        assert!(failure.hint.unwrap().contains("3003"));
    }

    #[test]
    fn the_store_may_stand_in_a_file_of_its_own() {
        let (mut sources, folder) = sources(&[], "");
        let path = folder.path().join("secret");
        std::fs::write(&path, "sqlite:/tmp/x.db\n").unwrap();
        let path = path.display().to_string();
        sources.environment.insert("WINDLASS_STORE_FILE".into(), path);
        assert_eq!(load(&sources).unwrap().text(&table::STORE), "sqlite:/tmp/x.db");
        sources.environment.insert("WINDLASS_STORE".into(), "sqlite:y.db".into());
        assert!(load(&sources).unwrap_err().message.contains("both set"));
    }

    #[test]
    fn a_mistyped_variable_warns_with_a_suggestion() {
        let (sources, _folder) = sources(&[("WINDLASS_SLOT", "5")], "");
        let warnings = load(&sources).unwrap().warnings;
        assert!(warnings[0].contains("did you mean WINDLASS_SLOTS?"), "{warnings:?}");
    }

    #[test]
    fn a_longer_poll_raises_only_a_default_idle_poll() {
        let (mut sources, _folder) = sources(&[("POLL_INTERVAL_MS", "5000")], "");
        let settings = load(&sources).unwrap();
        assert_eq!(settings.duration(&table::POLL_INTERVAL_MAX_MS), Duration::from_secs(5));
        assert_eq!(settings.warnings.len(), 1);
        sources.environment.insert("WINDLASS_POLL_INTERVAL_MAX_MS".into(), "2000".into());
        assert!(load(&sources).is_err());
    }

    #[test]
    fn a_named_file_that_is_not_there_is_an_error() {
        let sources = Sources { config: Some("/nonexistent/w.toml".into()), ..Sources::default() };
        assert!(load(&sources).unwrap_err().message.contains("/nonexistent/w.toml"));
    }
}
