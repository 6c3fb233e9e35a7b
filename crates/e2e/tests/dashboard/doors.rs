//! Every door to the pages: behind a proxy, read-only, and with each scope. What is shown works, and what
//! would be refused is not there.

use e2e::browser::{Browser, proxy::Proxy};
use serde_json::{Value, json};

use crate::rig::Rig;

/// What a walk over all links found.
struct Walk {
    pages: Vec<String>,
    /// Method, address and body of every button and form.
    calls: Vec<Value>,
}

/// Follows every link of the viewer who is logged in.
async fn walk(browser: &Browser) -> Walk {
    let found = browser.run_to_end(include_str!("crawl.js")).await.unwrap();
    assert_eq!(found["wrong"], json!([]));
    let texts = |name: &str| found[name].as_array().cloned().unwrap_or_default();
    let pages = texts("pages").iter().filter_map(|page| page.as_str().map(str::to_owned)).collect();
    Walk { pages, calls: texts("calls") }
}

/// Makes every call that a button or form makes, as the viewer. None is refused; what an earlier one has removed
/// may be gone.
async fn press_all(browser: &Browser, walk: &Walk, token: &str) -> usize {
    let ends_session = |url: &str| url.contains("/sessions/") || url.ends_with("/logout");
    let mut pressed = 0;
    for call in &walk.calls {
        let (method, url) = (call["method"].as_str().unwrap(), call["url"].as_str().unwrap());
        // They end the session with which the others are tried.
        if ends_session(url) || (!token.is_empty() && url.contains(&token[3..19])) {
            continue;
        }
        let body = if method == "GET" { "undefined".to_owned() } else { call["body"].to_string() };
        let script = format!(
            "const end = arguments[arguments.length - 1];
             fetch({url:?}, {{ method: {method:?}, headers: {{ 'content-type': 'application/json' }}, body: {body} }})
               .then((answer) => end(answer.status), (error) => end(String(error)))"
        );
        let status = browser.run_to_end(&script).await.unwrap();
        let refused = [json!(401), json!(403), json!(405), json!(429)].contains(&status);
        assert!(status.as_u64().is_some_and(|status| status < 500) && !refused, "{status}: {call}");
        pressed += 1;
    }
    pressed
}

#[tokio::test]
async fn behind_a_proxy_every_link_stays_below_the_prefix() {
    let proxy = Proxy::start("/ops/windlass").await.unwrap();
    let (mut rig, [token]) = Rig::guarded(&["--public-url", &proxy.address], ["admin"]).await;
    proxy.forward_to(&rig.up.address);
    rig.fill().await;
    rig.visit(&format!("{}/tasks?state=dead", proxy.address)).await;
    // The login leads back to the page that was asked for.
    rig.browser.fill("input[name=token]", &token).await.unwrap();
    rig.browser.press("Log in").await.unwrap();
    rig.browser
        .until("location.pathname + location.search === '/ops/windlass/tasks?state=dead'")
        .await
        .unwrap();
    let found = walk(&rig.browser).await;
    assert!(found.pages.len() > 30, "{:?}", found.pages);
    rig.visit(&format!("{}/queues/mail", proxy.address)).await;
    rig.browser.press("Resume").await.unwrap();
    rig.browser.until("document.querySelector('main .top button').textContent === 'Pause'").await.unwrap();
    assert_eq!(proxy.strays(), Vec::<String>::new());
    assert_eq!(rig.browser.console().await.unwrap(), Vec::<String>::new());
    // A link that was made up does not lead out of the prefix.
    rig.visit(&format!("{}/login?next=/../../other", proxy.address)).await;
    rig.browser.fill("input[name=token]", &token).await.unwrap();
    rig.browser.press("Log in").await.unwrap();
    rig.browser.until("location.pathname === '/ops/windlass/'").await.unwrap();
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_read_only_server_shows_no_button_that_changes() {
    let mut rig = Rig::empty().await;
    rig.fill().await;
    rig.restart_with(&["--read-only"]);
    rig.open("/").await;
    rig.browser.shows("read-only").await.unwrap();
    let found = walk(&rig.browser).await;
    let changes: Vec<_> = found.calls.iter().filter(|call| call["method"] != "GET").collect();
    assert!(changes.is_empty() && found.pages.len() > 30, "{changes:?}");
    assert!(press_all(&rig.browser, &found, "").await > 0, "the audit only reads");
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn each_scope_is_shown_only_what_it_may_do() {
    let scopes = ["read", "enqueue", "work", "admin"];
    let (mut rig, tokens) = Rig::guarded(&[], scopes).await;
    rig.fill().await;
    for (scope, token) in scopes.into_iter().zip(&tokens) {
        rig.log_in(token, "").await;
        let sees = matches!(scope, "read" | "admin");
        if !sees {
            rig.browser.shows("scope").await.unwrap();
            assert_eq!(
                rig.browser.run("return document.querySelectorAll('[data-call]').length", &[]).await.unwrap(),
                json!(0)
            );
            continue;
        }
        let found = walk(&rig.browser).await;
        assert!(found.pages.len() > 30, "{scope}: {:?}", found.pages);
        let pressed = press_all(&rig.browser, &found, token).await;
        // A viewer who may only read may still ask for an audit.
        assert!(if scope == "admin" { pressed > 50 } else { pressed == 1 }, "{scope}: {pressed}");
    }
    rig.browser.close().await.unwrap();
}
