//! The keyboard alone.

use std::time::Duration;

use e2e::target::Target;
use serde_json::json;

use crate::rig::Rig;

const ENTER: &str = "\u{e007}";
const TAB: &str = "\u{e004}";
const ESCAPE: &str = "\u{e00c}";

#[tokio::test]
async fn with_the_keyboard_alone_a_dead_group_is_redriven() {
    let rig = Rig::with(&["--allow-target", "127.0.0.0/8"]).await;
    let target = Target::start(Duration::ZERO).await.unwrap();
    target.answer_with(400);
    let task = || json!({"kind": "http", "payload": {"url": target.url()}, "max_attempts": 1});
    let ids = [rig.add(task()).await, rig.add(task()).await];
    for id in &ids {
        rig.ended(id).await;
    }
    let keys = async |keys: &str| rig.browser.keys(keys).await.unwrap();
    let until = async |expression: &str| rig.browser.until(expression).await.unwrap();
    rig.open("/").await;
    // The help, and out of it.
    keys("?").await;
    until("document.querySelector('dialog[open]').innerText.includes('select the row')").await;
    keys(ESCAPE).await;
    until("!document.querySelector('dialog[open]')").await;
    // From the navigation to the page of dead tasks.
    keys("g").await;
    keys(&TAB.repeat(3)).await;
    keys(ENTER).await;
    until("location.pathname === '/dead'").await;
    rig.browser.shows("Bad Request").await.unwrap();
    // Why: the tasks of the group, and the first of them.
    keys("j").await;
    keys(ENTER).await;
    until("location.pathname === '/tasks' && document.querySelectorAll('tbody tr').length === 2").await;
    keys("j").await;
    keys(ENTER).await;
    until("document.querySelector('[data-why=dead]')").await;
    target.answer_with(200);
    // Back to the list by its filter: `/` leads to the first field, the state.
    keys("g").await;
    keys(&TAB.repeat(2)).await;
    keys(ENTER).await;
    until("location.pathname === '/tasks' && location.search === ''").await;
    keys("/").await;
    until("document.activeElement.name === 'state'").await;
    keys("dead").await;
    until("document.activeElement.value === 'dead'").await;
    // The filter is sent from a text field.
    keys(TAB).await;
    keys(ENTER).await;
    until("location.search === '?state=dead' && document.querySelectorAll('tbody tr').length === 2").await;
    // Both rows, down and up again, then the first action on what is selected.
    keys("jxjkjx").await;
    until("document.getElementById('picked-count').innerText === '2'").await;
    keys("a").await;
    until("document.activeElement.innerText === 'Retry them'").await;
    keys(ENTER).await;
    rig.browser.shows("2 tasks match").await.unwrap();
    until("document.activeElement.name === 'over'").await;
    keys(&TAB.repeat(2)).await;
    until("document.activeElement.id === 'ask-yes'").await;
    keys(ENTER).await;
    for id in &ids {
        rig.ended_as(id, "done").await;
    }
    rig.browser.close().await.unwrap();
}
