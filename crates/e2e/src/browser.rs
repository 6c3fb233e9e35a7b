//! A real browser: Chromium without a window, driven over WebDriver.

pub mod proxy;
pub mod story;

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    http::Api,
    process::{self, Process, START_LIMIT},
};

/// How long a page may take to show what a test waits for: generous, because test machines are busy.
const SHOW_LIMIT: Duration = Duration::from_mins(1);
/// How often the driver is started again because another process has its port.
const PORT_TRIES: usize = 10;
/// How often a page is looked at while a test waits for it.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// The key by which WebDriver names an element.
const ELEMENT: &str = "element-6066-11e4-a52e-4f735466cecf";

/// A browser with one tab, which ends with its test.
pub struct Browser {
    api: Api,
    session: String,
    // The driver ends before its folder goes.
    _driver: Process,
    _profile: TempDir,
}

/// How the tab looks.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// Width of the page in pixels.
    pub width: u32,
    /// Whether the viewer's system asks for dark pages.
    pub dark: bool,
}

/// Starts the driver and answers its port. It takes a port that is free on one of its two addresses, and ends if
/// another process has that port on the second one.
fn driver() -> Result<(Process, u16)> {
    let mut refused = None;
    for _ in 0..PORT_TRIES {
        let mut command = process::command("chromedriver");
        command.arg("--port=0");
        let mut driver = Process::start_group(command)?;
        let port = driver.wait_for(START_LIMIT, |line| {
            line.split_once("started successfully on port ")?.1.trim_end_matches('.').parse().ok()
        });
        match port {
            Ok(port) => return Ok((driver, port)),
            Err(error) if error.to_string().contains("Address already in use") => refused = Some(error),
            Err(error) => return Err(error),
        }
    }
    Err(refused.context("the driver was not started")?)
}

impl Browser {
    /// Starts a browser with an empty profile. It talks to this machine only.
    ///
    /// # Errors
    /// If Chromium or its driver is missing or does not start.
    pub async fn start() -> Result<Self> {
        let profile = tempfile::tempdir()?;
        let (driver, port) = driver()?;
        let api = Api::new(format!("http://127.0.0.1:{port}"));
        let mut arguments: Vec<String> = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--force-device-scale-factor=1",
            "--hide-scrollbars",
            "--no-proxy-server",
            "--disable-extensions",
            // Nothing outside of this machine is ever asked.
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost",
        ]
        .map(str::to_owned)
        .to_vec();
        arguments.push(format!("--user-data-dir={}", profile.path().display()));
        let wish = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments},
            // A debug build on a busy machine draws every page in some seconds.
            "timeouts": {"script": SHOW_LIMIT.as_millis() as u64},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }}});
        let answer = api.post("/session", &wish).await?;
        let session = answer.body.pointer("/value/sessionId").and_then(Value::as_str);
        let session = session.with_context(|| format!("no session: {}", answer.body))?.to_owned();
        Ok(Self { api, session, _driver: driver, _profile: profile })
    }

    async fn send(&self, path: &str, body: &Value) -> Result<Value> {
        let answer = self.api.post(&format!("/session/{}{path}", self.session), body).await?;
        ensure!(answer.status == 200, "{path}: {}", answer.body);
        Ok(answer.body.get("value").cloned().unwrap_or_default())
    }

    /// Calls a function of the browser's own protocol.
    async fn devtools(&self, call: &str, parameters: Value) -> Result<Value> {
        self.send("/goog/cdp/execute", &json!({"cmd": call, "params": parameters})).await
    }

    /// Opens an address and waits until it is loaded.
    ///
    /// # Errors
    /// If the browser cannot load it.
    pub async fn open(&self, address: &str) -> Result<()> {
        self.send("/url", &json!({"url": address})).await.map(|_| ())
    }

    /// Empties the cache: the next page loads everything again.
    ///
    /// # Errors
    /// If the browser refuses.
    pub async fn forget(&self) -> Result<()> {
        self.devtools("Network.clearBrowserCache", json!({})).await.map(|_| ())
    }

    /// Sets width and theme.
    ///
    /// # Errors
    /// If the browser refuses.
    pub async fn look(&self, look: Look) -> Result<()> {
        let height = if look.width < 800 { 812 } else { 900 };
        let mobile = look.width < 800;
        let size = json!({"width": look.width, "height": height, "deviceScaleFactor": 1, "mobile": mobile});
        self.devtools("Emulation.setDeviceMetricsOverride", size).await?;
        let theme = if look.dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": theme}]});
        self.devtools("Emulation.setEmulatedMedia", features).await?;
        Ok(())
    }

    /// Runs the body of a function in the page and returns its result. The page's policy does not apply to it.
    ///
    /// # Errors
    /// If it throws.
    pub async fn run(&self, script: &str, arguments: &[Value]) -> Result<Value> {
        self.send("/execute/sync", &json!({"script": script, "args": arguments})).await
    }

    /// The same for a script that ends later: its last argument is the function to call then.
    ///
    /// # Errors
    /// If it throws or does not end.
    pub async fn run_to_end(&self, script: &str) -> Result<Value> {
        self.send("/execute/async", &json!({"script": script, "args": []})).await
    }

    /// Waits until an expression in the page is true, or returns what it shows instead.
    ///
    /// # Errors
    /// If it does not become true in time.
    pub async fn until(&self, expression: &str) -> Result<()> {
        let deadline = Instant::now() + SHOW_LIMIT;
        let script = format!("return !!({expression})");
        while self.run(&script, &[]).await.ok() != Some(Value::Bool(true)) {
            if Instant::now() >= deadline {
                let shown = self.text("body").await.unwrap_or_default();
                bail!("never became true: {expression}\nthe page shows:\n{shown}");
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Waits until the page shows a text.
    ///
    /// # Errors
    /// If it does not in time.
    pub async fn shows(&self, text: &str) -> Result<()> {
        self.until(&format!("document.body.innerText.includes({})", json!(text))).await
    }

    /// The text of the first element that a selector finds.
    ///
    /// # Errors
    /// If there is none.
    pub async fn text(&self, selector: &str) -> Result<String> {
        let text =
            self.run("return document.querySelector(arguments[0]).innerText", &[json!(selector)]).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Presses, as a viewer does, the link or button with this text that is seen first.
    ///
    /// # Errors
    /// If there is none.
    pub async fn press(&self, text: &str) -> Result<()> {
        let script = "return [...document.querySelectorAll('a, button, summary')]\
            .find((one) => one.innerText.trim() === arguments[0] && one.offsetParent)";
        self.press_found(script, text).await
    }

    /// Presses the first element that a selector finds.
    ///
    /// # Errors
    /// If there is none.
    pub async fn press_at(&self, selector: &str) -> Result<()> {
        self.press_found("return document.querySelector(arguments[0])", selector).await
    }

    async fn press_found(&self, script: &str, what: &str) -> Result<()> {
        let deadline = Instant::now() + SHOW_LIMIT;
        loop {
            let found = self.run(script, &[json!(what)]).await?;
            if let Some(id) = found.get(ELEMENT).and_then(Value::as_str) {
                let pressed = self.send(&format!("/element/{id}/click"), &json!({})).await;
                if pressed.is_ok() || Instant::now() >= deadline {
                    return pressed.map(|_| ());
                }
            }
            ensure!(
                Instant::now() < deadline,
                "there is no {what:?} to press on\n{}",
                self.text("body").await?
            );
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Types into the first field that a selector finds, in place of what is there.
    ///
    /// # Errors
    /// If there is none.
    pub async fn fill(&self, selector: &str, text: &str) -> Result<()> {
        let found = self.run("return document.querySelector(arguments[0])", &[json!(selector)]).await?;
        let id =
            found.get(ELEMENT).and_then(Value::as_str).with_context(|| format!("no field {selector}"))?;
        self.send(&format!("/element/{id}/clear"), &json!({})).await?;
        self.send(&format!("/element/{id}/value"), &json!({"text": text})).await.map(|_| ())
    }

    /// Presses keys, one after another; `\u{e007}` is Enter.
    ///
    /// # Errors
    /// If the browser refuses.
    pub async fn keys(&self, keys: &str) -> Result<()> {
        let presses: Vec<_> = keys
            .chars()
            .flat_map(|key| {
                [json!({"type": "keyDown", "value": key}), json!({"type": "keyUp", "value": key})]
            })
            .collect();
        let actions = json!({"actions": [{"type": "key", "id": "keys", "actions": presses}]});
        self.send("/actions", &actions).await.map(|_| ())
    }

    /// What the page wrote to the console since the last look: errors and refusals of its policy are there.
    ///
    /// # Errors
    /// If the browser does not say.
    pub async fn console(&self) -> Result<Vec<String>> {
        let log = self.send("/se/log", &json!({"type": "browser"})).await?;
        Ok(log.as_array().into_iter().flatten().map(Value::to_string).collect())
    }

    /// The addresses that the tab asked for since the last look.
    ///
    /// # Errors
    /// If the browser does not say.
    pub async fn requests(&self) -> Result<Vec<String>> {
        let log = self.send("/se/log", &json!({"type": "performance"})).await?;
        let mut addresses = Vec::new();
        for entry in log.as_array().into_iter().flatten() {
            let text = entry.get("message").and_then(Value::as_str).unwrap_or_default();
            let message: Value = serde_json::from_str(text).unwrap_or_default();
            if message.pointer("/message/method").and_then(Value::as_str) == Some("Network.requestWillBeSent")
            {
                let url = message.pointer("/message/params/request/url").and_then(Value::as_str);
                addresses.extend(url.map(str::to_owned));
            }
        }
        Ok(addresses)
    }

    /// A picture of the whole page as PNG.
    ///
    /// # Errors
    /// If the browser cannot draw it.
    pub async fn picture(&self) -> Result<Vec<u8>> {
        let wish = json!({"format": "png", "captureBeyondViewport": true});
        let drawn = self.devtools("Page.captureScreenshot", wish).await?;
        let picture = drawn.get("data").and_then(Value::as_str).context("no picture")?;
        Ok(BASE64_STANDARD.decode(picture)?)
    }

    /// Ends the browser.
    ///
    /// # Errors
    /// If it does not answer.
    pub async fn close(self) -> Result<()> {
        self.api.delete(&format!("/session/{}", self.session)).await?;
        Ok(())
    }
}
