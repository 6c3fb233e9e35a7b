//! What a page must not do: act on something else than its viewer saw, or lead to a foreign address.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::rig::Rig;

#[tokio::test]
async fn a_live_update_does_not_change_what_a_dialog_does() {
    let rig = Rig::empty().await;
    rig.add(json!({"kind": "echo"})).await;
    rig.open("/queues/default").await;
    rig.browser.press("Pause").await.unwrap();
    rig.browser.shows("Pause the queue default?").await.unwrap();
    // Another person pauses it meanwhile: the button behind the dialog becomes the one that resumes it.
    rig.call("POST", "/v1/queues/default/pause", json!({})).await;
    let button = "document.querySelector('main .top button').textContent === 'Resume'";
    rig.browser.until(button).await.unwrap();
    rig.browser.press("Do it").await.unwrap();
    rig.browser.until("document.querySelector('.toast')").await.unwrap();
    let queues = rig.call("GET", "/v1/queues", Value::Null).await;
    assert_eq!(queues["queues"][0]["paused"], json!(true), "{queues}");
    rig.browser.close().await.unwrap();
}

#[tokio::test]
async fn a_login_leads_only_to_pages_of_this_server() {
    let (rig, [token]) = Rig::guarded(&[], ["read"]).await;
    let foreign =
        ["//evil.example/", "/\t/evil.example/", "/\n\\evil.example", "/\\evil.example", "@evil.example/"];
    let encoded = |next: &str| {
        next.bytes().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "%{byte:02x}");
            text
        })
    };
    for next in foreign.into_iter().chain(["https://evil.example/", "javascript:document.title='x'", ""]) {
        rig.log_in(&token, &format!("?next={}", encoded(next))).await;
        rig.browser.until("document.querySelector('main h1')").await.unwrap();
        let place = rig.browser.run("return location.href", &[]).await.unwrap();
        assert_eq!(place, json!(format!("{}/", rig.up.address)), "{next:?}");
    }
    rig.log_in(&token, "?next=%2Ftasks%3Fstate%3Ddead").await;
    rig.browser.until("location.pathname + location.search === '/tasks?state=dead'").await.unwrap();
    rig.browser.close().await.unwrap();
}
