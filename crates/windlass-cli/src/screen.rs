//! The first screen: the address, the store and the worker, what was recovered, and what to type next.

use std::time::Duration;

use serde_json::json;
use windlass_core::{Name, store::StoreInfo};
use windlass_server::public_url::PublicUrl;

use crate::{
    config::{Origin, Settings, table},
    output::{Output, text},
    version::VERSION,
};

/// What the screen shows.
pub struct Screen<'a> {
    /// The settings in force.
    pub settings: &'a Settings,
    /// The store.
    pub store: &'a StoreInfo,
    /// Kinds of the worker.
    pub kinds: &'a [Name],
    /// The API's address; none for a worker alone.
    pub address: Option<&'a str>,
    /// Where the pages are; none without a dashboard.
    pub dashboard: Option<&'a str>,
    /// Where a worker alone answers its monitor, if it does.
    pub monitor: Option<&'a str>,
}

impl Screen<'_> {
    /// Prints it.
    pub fn show(&self, out: Output) -> anyhow::Result<()> {
        if out.is_json() {
            return out.json(&self.json());
        }
        for line in self.lines() {
            out.line(line)?;
        }
        Ok(())
    }

    /// The lines as text.
    pub fn lines(&self) -> Vec<String> {
        // If the pages have an address of their own, browsers reach that one.
        let public = self.public_url().filter(|_| !self.is_apart());
        let mut lines = vec![match (self.address, &public) {
            (Some(_), Some(public)) => format!("windlass {VERSION} · {public}"),
            (Some(address), None) => format!("windlass {VERSION} · {address}"),
            (None, _) => format!("windlass {VERSION} · worker without API"),
        }];
        if let (Some(address), Some(_)) = (self.address, &public) {
            lines.push(format!("  listens  {address}"));
        }
        if self.address.is_some() {
            lines.push(format!("  pages    {}", self.pages()));
        }
        lines.push(format!("  store    {} ({}, {})", self.store.location, self.size(), self.durability()));
        let kinds: Vec<&str> = self.kinds.iter().map(Name::as_str).collect();
        let slots = self.settings.slots.number;
        lines.push(format!("  worker   {slots} slots ({}) · kinds {}", self.slots_rule(), kinds.join(", ")));
        let queues = self.settings.list(&table::QUEUES);
        if !queues.is_empty() {
            lines.push(format!("  queues   {}", text::clean(&queues.join(", "))));
        }
        lines.push(format!("  history  {}", self.history()));
        if let Some(monitor) = self.monitor {
            lines.push(format!("  metrics  {monitor}/metrics"));
        }
        if let Some(documents) = self.document_variables() {
            lines.push(format!("  from     {documents}"));
        }
        if self.store.recovered > 0 {
            let tasks = text::tasks(self.store.recovered);
            lines.push(format!("  recovered {tasks} that ran when the last process died; they run again"));
        }
        if let Some(address) = self.address {
            lines.push(format!(
                "try:  windlass enqueue echo --payload '{{\"hello\":\"world\"}}' --wait{}",
                self.server_flag(address)
            ));
        }
        lines
    }

    /// Where the dashboard is, and how to open it.
    fn pages(&self) -> String {
        let Some(link) = self.dashboard_link() else {
            return "off (dashboard in the settings, or --no-dashboard)".to_owned();
        };
        let open = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let behind = self.dashboard.filter(|_| self.is_apart() && self.public_url().is_some());
        let behind = behind.map(|at| format!(" (listens {at})")).unwrap_or_default();
        format!("{link}{behind} · {open} {link}")
    }

    fn is_apart(&self) -> bool {
        self.dashboard.is_some_and(|dashboard| Some(dashboard) != self.address)
    }

    /// The address that a browser opens.
    fn dashboard_link(&self) -> Option<String> {
        let dashboard = self.dashboard?;
        Some(self.public_url().unwrap_or_else(|| format!("{dashboard}/")))
    }

    /// The address at which browsers reach the API, if it is another one.
    fn public_url(&self) -> Option<String> {
        let public: Option<PublicUrl> = self.settings.text(&table::PUBLIC_URL).parse().ok();
        public.filter(|_| self.address.is_some()).map(|public| public.to_string())
    }

    fn json(&self) -> serde_json::Value {
        json!({
            "event": "started", "version": VERSION, "address": self.address, "pid": std::process::id(),
            "store": self.store, "slots": self.settings.slots.number, "slots_from": self.slots_rule(),
            "kinds": self.kinds, "monitor": self.monitor, "public_url": self.public_url(), "dashboard": self.dashboard_link(),
        })
    }

    fn size(&self) -> String {
        if self.store.created { "new".to_owned() } else { text::bytes(self.store.bytes) }
    }

    fn durability(&self) -> &'static str {
        if self.store.backend == "postgresql" {
            return if self.store.durable {
                "durable: the server flushes every commit"
            } else {
                "not durable: fsync or synchronous_commit is off on the server"
            };
        }
        if self.store.durable {
            "durable: fsync on every commit"
        } else {
            "durability normal: a power cut may lose the last commits"
        }
    }

    /// The rule that gave the number of slots.
    pub fn slots_rule(&self) -> String {
        self.settings.slots.rule.to_string()
    }

    fn history(&self) -> String {
        let retention = self.settings.retention();
        let dead = days(retention.dead_age);
        if self.settings.text(&table::HISTORY) == "off" {
            return format!("off · dead tasks {dead}");
        }
        let room = text::bytes(retention.history_max_bytes);
        format!("{} or {room} · dead tasks {dead}", days(retention.history_age))
    }

    /// Variables of the source documents that took effect. The rule of the slots already names its own
    /// variables.
    fn document_variables(&self) -> Option<String> {
        let names: Vec<&str> = self
            .settings
            .resolved
            .iter()
            .filter(|resolved| {
                ![table::SLOTS.key, table::WORKER_CONCURRENCY.key].contains(&resolved.setting.key)
            })
            .filter_map(|resolved| match resolved.origin {
                Origin::Document(name) => Some(name),
                _ => None,
            })
            .collect();
        (!names.is_empty()).then(|| names.join(", "))
    }

    /// The flag that commands need to find this server. They need none at the usual address, or for a
    /// store at the usual place.
    fn server_flag(&self, address: &str) -> String {
        let usual = address == format!("http://{}", table::LISTEN.default);
        let found = usual || self.settings.text(&table::STORE) == table::STORE.default;
        if found { String::new() } else { format!(" --server {address}") }
    }
}

fn days(age: Duration) -> String {
    let hours = age.as_secs() / 3_600;
    match hours {
        24 => "1 day".to_owned(),
        hours if hours >= 48 && hours % 24 == 0 => format!("{} days", hours / 24),
        _ => windlass_core::why::human(age),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store() -> StoreInfo {
        StoreInfo {
            backend: "sqlite".into(),
            location: "sqlite:windlass.db".into(),
            engine_version: "3".into(),
            schema_version: 1,
            bytes: 4_096,
            wal_bytes: 0,
            free_disk_bytes: 1,
            history_rows: 0,
            history_bytes: 0,
            durable: true,
            created: true,
            recovered: 0,
        }
    }

    #[test]
    fn the_first_screen_shows_every_line() {
        let settings = Settings::default();
        let kinds = ["http", "sleep", "echo"].map(|kind| Name::new("kind", kind).unwrap());
        let store = store();
        let screen = Screen {
            settings: &settings,
            store: &store,
            kinds: &kinds,
            address: Some("http://127.0.0.1:7878"),
            dashboard: Some("http://127.0.0.1:7878"),
            monitor: None,
        };
        assert_eq!(
            screen.lines(),
            [
                &format!("windlass {VERSION} · http://127.0.0.1:7878"),
                "  pages    http://127.0.0.1:7878/ · xdg-open http://127.0.0.1:7878/",
                "  store    sqlite:windlass.db (new, durable: fsync on every commit)",
                "  worker   1000 slots (default; --slots or --env to change) · kinds http, sleep, echo",
                "  history  7 days or 1 GiB · dead tasks 30 days",
                "try:  windlass enqueue echo --payload '{\"hello\":\"world\"}' --wait",
            ]
        );
    }

    #[test]
    fn the_first_screen_shows_recovered_tasks() {
        let settings = Settings::default();
        let store = StoreInfo { created: false, recovered: 3, ..store() };
        let (settings, store) = (&settings, &store);
        let screen = Screen { settings, store, kinds: &[], address: None, dashboard: None, monitor: None };
        let text = screen.lines().join("\n");
        assert!(text.contains("4 KiB") && text.contains("recovered 3 tasks"), "{text}");
    }
}
