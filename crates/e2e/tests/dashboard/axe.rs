//! axe-core, which finds what people with disabilities cannot use. It comes from PyPI, once, into the folder
//! of the build.

use std::process::Command;

use e2e::{browser::Browser, process};
use serde_json::Value;

/// The package that has axe-core 4.12.1 in it.
const PACKAGE: &str = "axe-playwright-python==0.1.8";

fn ran(command: Command) {
    let said = process::run(command).unwrap();
    assert_eq!(said.code, Some(0), "axe-core could not be had from PyPI: {said:?}");
}

/// The script of axe-core.
pub fn script() -> String {
    let built = process::windlass().unwrap();
    let place = built.parent().unwrap().join("axe-4.12.1.js");
    if let Ok(script) = std::fs::read_to_string(&place) {
        return script;
    }
    let folder = tempfile::tempdir().unwrap();
    let python = std::env::var("WINDLASS_TEST_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let mut environment = process::command(python);
    environment.args(["-m", "venv"]).arg(folder.path().join("venv"));
    ran(environment);
    let mut pip = process::command(folder.path().join("venv/bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps", "--target"]);
    pip.arg(folder.path()).arg(PACKAGE);
    ran(pip);
    let script = std::fs::read_to_string(folder.path().join("axe_playwright_python/axe.min.js")).unwrap();
    // Two tests may do this at once: each puts a whole file there.
    let whole = place.with_extension(std::process::id().to_string());
    std::fs::write(&whole, &script).unwrap();
    std::fs::rename(&whole, &place).unwrap();
    script
}

/// What axe-core finds on the page against WCAG 2.2 AA, one line for each finding.
pub async fn findings(browser: &Browser, script: &str) -> Vec<String> {
    browser.run(script, &[]).await.unwrap();
    let found = browser
        .run_to_end(
            "const end = arguments[arguments.length - 1];
             const rules = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'];
             axe.run(document, { runOnly: { type: 'tag', values: rules } }).then(
               (report) => end(report.violations.map((one) =>
                 `${one.id}: ${one.help}: ${one.nodes.slice(0, 3).map((node) => node.html + ' ' + node.failureSummary).join(' | ')}`)),
               (error) => end([`axe did not run: ${error}`]));",
        )
        .await
        .unwrap();
    let lines = found.as_array().into_iter().flatten();
    lines.map(|line| Value::as_str(line).unwrap_or_default().to_owned()).collect()
}
