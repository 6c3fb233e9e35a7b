//! Names with invisible characters are refused in every request that takes a name.

use serde_json::json;
use windlass_core::text::is_unsafe;

use crate::harness::{Answer, Api};

/// The first and the last character of every range of unsafe characters.
pub fn unsafe_letters() -> Vec<char> {
    let is_edge = |letter: &char| {
        let next_to = |code: u32| char::from_u32(code).is_some_and(is_unsafe);
        let code = u32::from(*letter);
        is_unsafe(*letter) && !(next_to(code.wrapping_sub(1)) && next_to(code + 1))
    };
    ('\0'..=char::MAX).filter(is_edge).collect()
}

fn in_path(text: &str) -> String {
    text.bytes().fold(String::new(), |done, byte| format!("{done}%{byte:02X}"))
}

/// Sends a name in every request that creates something with a name.
async fn entrances(api: &Api, name: &str) -> Vec<(&'static str, Answer)> {
    let path = in_path(name);
    let schedule = |task: serde_json::Value| json!({"cron": "0 3 * * *", "task": task});
    let mut answers = Vec::new();
    for field in ["kind", "queue", "job", "workflow"] {
        let mut task = json!({"kind": "a"});
        task[field] = json!(name);
        answers.push((field, api.post("/v1/tasks", task.to_string()).await));
        answers.push((field, api.post("/v1/tasks", json!({"tasks": [task]}).to_string()).await));
        answers.push((field, api.put("/v1/schedules/s", schedule(task)).await));
    }
    answers
        .push(("schedule", api.put(&format!("/v1/schedules/{path}"), schedule(json!({"kind": "a"}))).await));
    answers.push(("job", api.put(&format!("/v1/jobs/{path}"), json!({"concurrency": 3})).await));
    answers.push(("queue", api.post_nothing(&format!("/v1/queues/{path}/pause")).await));
    let token = json!({"scopes": ["read"], "name": name});
    answers.push(("token", api.post("/v1/tokens", token.to_string()).await));
    answers
}

#[tokio::test]
async fn a_name_with_an_unsafe_character_is_refused_everywhere() {
    let api = Api::start().await;
    for (entrance, answer) in entrances(&api, "plain").await {
        assert!((200..300).contains(&answer.status), "{entrance}: {} {}", answer.status, answer.text());
    }
    let letters = unsafe_letters();
    assert!(letters.len() > 30, "{letters:?}");
    for letter in letters {
        for (entrance, answer) in entrances(&api, &format!("a{letter}b")).await {
            assert_eq!(answer.error(400).0, "invalid", "{entrance} {letter:?}");
        }
    }
}
