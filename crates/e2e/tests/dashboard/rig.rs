//! A server with a browser before it, and tasks of every state.

use std::path::PathBuf;

use e2e::{
    browser::{
        Browser,
        story::{self, Story},
    },
    process,
    up::Up,
};
use serde_json::Value;
use tempfile::TempDir;

/// Every page with its name, as far as it needs no id.
pub const PAGES: [(&str, &str); 17] = [
    ("overview", "/"),
    ("queues", "/queues"),
    ("queue", "/queues/orders"),
    ("tasks", "/tasks"),
    ("task-dead", "/tasks/{dead}"),
    ("dead", "/dead"),
    ("runs", "/runs"),
    ("jobs", "/jobs"),
    ("job", "/jobs/api.shop.example"),
    ("workflows", "/workflows"),
    ("workflow", "/workflows/order-17"),
    ("schedules", "/schedules"),
    ("schedule", "/schedules/nightly"),
    ("workers", "/workers"),
    ("consumers", "/consumers"),
    ("access", "/access"),
    ("store", "/store"),
];

pub struct Rig {
    pub up: Up,
    pub browser: Browser,
    /// A task that is dead.
    pub dead: String,
    folder: TempDir,
    /// What the rig's own calls show, if the server asks for tokens.
    token: Option<String>,
    story: Option<Story>,
}

impl Rig {
    /// A server with one worker and no task.
    pub async fn empty() -> Self {
        Self::with(&[]).await
    }

    /// The same with more arguments.
    pub async fn with(arguments: &[&str]) -> Self {
        Self::at(tempfile::tempdir().unwrap(), arguments, None).await
    }

    /// A server that asks for tokens, and one token of each of these scopes. The rig calls with one of its own.
    pub async fn guarded<const N: usize>(arguments: &[&str], scopes: [&str; N]) -> (Self, [String; N]) {
        let folder = tempfile::tempdir().unwrap();
        said(&folder, &["migrate"]);
        let own = said(&folder, &["token", "create", "--scope", "admin"]);
        let tokens = scopes.map(|scope| said(&folder, &["token", "create", "--scope", scope]));
        let rig = Self::at(folder, &[&["--auth", "tokens"], arguments].concat(), Some(own)).await;
        (rig, tokens)
    }

    async fn at(folder: TempDir, arguments: &[&str], token: Option<String>) -> Self {
        let up = Up::on(&folder.path().join("windlass.db"), arguments.iter().copied()).unwrap();
        let browser = Browser::start().await.unwrap();
        Self { up, browser, dead: String::new(), folder, token, story: None }
    }

    /// A server with tasks of every state.
    pub async fn full() -> Self {
        let mut rig = Self::empty().await;
        rig.fill().await;
        rig
    }

    /// Adds tasks of every state, and something for every page.
    pub async fn fill(&mut self) {
        let story = story::tell(&self.up.address, self.token.as_deref()).await.unwrap();
        self.dead.clone_from(&story.dead);
        self.story = Some(story);
    }

    /// The file of the store.
    pub fn store(&self) -> PathBuf {
        self.folder.path().join("windlass.db")
    }

    /// Kills the server.
    pub fn stop(&mut self) {
        self.up.process.kill().unwrap();
    }

    /// Starts a server again on the same store and the same address.
    pub fn restart(&mut self) {
        self.restart_with(&[]);
    }

    /// The same with other arguments.
    pub fn restart_with(&mut self, arguments: &[&str]) {
        self.stop();
        let mut command = process::command(process::windlass().unwrap());
        command.args(["up", "--store", &format!("sqlite:{}", self.store().display())]);
        command
            .args(["--listen", self.up.address.trim_start_matches("http://")])
            .args(arguments)
            .current_dir(self.folder.path());
        self.up = Up::start(command).unwrap();
    }

    pub async fn call(&self, method: &str, path: &str, body: Value) -> Value {
        let mut api = self.up.api();
        if let Some(token) = &self.token {
            api = api.with_token(token);
        }
        let answer = match method {
            "PUT" => api.put(path, &body).await,
            "GET" => api.get(path).await,
            _ => api.post(path, &body).await,
        };
        let answer = answer.unwrap();
        assert!(answer.status < 300, "{method} {path}: {answer:?}");
        answer.body
    }

    pub async fn add(&self, task: Value) -> String {
        self.call("POST", "/v1/tasks", task).await["id"].as_str().unwrap().to_owned()
    }

    /// Waits until a task has ended.
    pub async fn ended(&self, id: &str) {
        let answer = self.call("GET", &format!("/v1/tasks/{id}/wait?timeout_ms=30000"), Value::Null).await;
        assert_eq!(answer["ended"].as_array().unwrap().len(), 1, "{id} did not end: {answer}");
    }

    /// Waits until a task has this state.
    pub async fn ended_as(&self, id: &str, state: &str) {
        loop {
            let task = self.call("GET", &format!("/v1/tasks/{id}"), Value::Null).await;
            if task["state"] == state {
                return;
            }
            self.browser.until("true").await.unwrap();
        }
    }

    /// Waits until the activity has a call: a server writes the last ones a moment later.
    pub async fn noted(&self, about: &str) {
        loop {
            let activity = self.call("GET", "/v1/activity", Value::Null).await;
            if activity["calls"].as_array().unwrap().iter().any(|call| call["about"] == about) {
                return;
            }
            self.browser.until("true").await.unwrap();
        }
    }

    /// Shows a token on the page of the login, and waits for the page behind it.
    pub async fn log_in(&self, token: &str, next: &str) {
        self.open(&format!("/login{next}")).await;
        self.browser.fill("input[name=token]", token).await.unwrap();
        self.browser.press("Log in").await.unwrap();
        self.browser.until("!document.getElementById('login')").await.unwrap();
    }

    pub async fn open(&self, path: &str) {
        self.visit(&self.address(path)).await;
    }

    /// Opens any address and waits until its page can be used: the browser may say before that it is loaded.
    pub async fn visit(&self, address: &str) {
        self.browser.open(address).await.unwrap();
        self.browser.until("document.body.dataset.ready !== undefined").await.unwrap();
    }

    pub fn address(&self, path: &str) -> String {
        format!("{}{}", self.up.address, path.replace("{dead}", &self.dead))
    }
}

/// What a command says about the store in this folder.
fn said(folder: &TempDir, arguments: &[&str]) -> String {
    let mut command = process::command(process::windlass().unwrap());
    let store = format!("sqlite:{}", folder.path().join("windlass.db").display());
    command.args(arguments).args(["--store", &store]).current_dir(folder.path());
    let said = process::run(command).unwrap();
    assert_eq!(said.code, Some(0), "{arguments:?}: {said:?}");
    said.stdout.trim().to_owned()
}
