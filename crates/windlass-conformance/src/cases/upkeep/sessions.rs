//! Sessions of browsers: each has a token, and none outlives it.

use std::time::Duration;

use windlass_core::{
    Error, Name, NewSession, NewToken, Scope, Scopes, SessionRecord, Store, TokenHash,
    session::{SEEN_EVERY, SESSION_TTL, SESSIONS_MAX},
    store::Retention,
    token::Bound,
};

use crate::{
    cases::rig::{Rig, name},
    harness::Harness,
};

const HOUR: Duration = Duration::from_hours(1);

fn hash(id: &str) -> TokenHash {
    let mut hash = [7; 32];
    hash[..id.len()].copy_from_slice(id.as_bytes());
    TokenHash(hash)
}

fn session(id: &str, token: &str) -> NewSession {
    NewSession { id: name(id), token: name(token), hash: hash(id), ttl: SESSION_TTL }
}

async fn add_token(store: &dyn Store, id: &str, ttl: Option<Duration>) {
    let bound = Bound { queues: vec![name("mail")], kinds: Vec::new() };
    let scopes = Scopes::of([Scope::Work]);
    let token = NewToken { id: name(id), name: Some(name("ci")), hash: hash(id), scopes, bound, ttl };
    store.tokens().add(&token).await.unwrap();
}

/// Whether this store keeps sessions: a store behind a server must not show them.
async fn keeps_sessions(harness: &dyn Harness, rig: &Rig<'_>) -> bool {
    if !harness.keeps_tokens() {
        let looked = rig.store.tokens().sessions().find(&name("a")).await;
        assert!(matches!(looked, Err(Error::Unsupported(_))), "{looked:?}");
    }
    harness.keeps_tokens()
}

fn ids(sessions: &[SessionRecord]) -> Vec<&Name> {
    sessions.iter().map(|session| &session.id).collect()
}

pub async fn a_session_is_found_with_its_token(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let sessions = rig.store.tokens().sessions();
    assert_eq!(sessions.add(&session("s", "a")).await, Ok(None), "there is no such token");
    add_token(&*rig.store, "a", None).await;
    let added = sessions.add(&session("s", "a")).await.unwrap().unwrap();
    assert_eq!((&added.id, added.hash), (&name("s"), hash("s")));
    assert_eq!(Some(&added.token), rig.store.tokens().find(&name("a")).await.unwrap().as_ref());
    assert_eq!(added.expires_at, added.created_at.after(SESSION_TTL));
    assert_eq!(added.seen_at, added.created_at);
    assert!(added.valid_for() > HOUR && !added.is_unseen());
    let found = sessions.find(&name("s")).await.unwrap().unwrap();
    assert_eq!(SessionRecord { read_at: added.read_at, ..found }, added);
    assert_eq!(sessions.add(&session("s", "a")).await, Ok(None), "the id is taken");
    assert_eq!(sessions.end(&name("s")).await, Ok(true));
    assert_eq!(sessions.end(&name("s")).await, Ok(false));
    assert_eq!(sessions.find(&name("s")).await, Ok(None));
}

pub async fn a_session_ends_no_later_than_its_token(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let sessions = rig.store.tokens().sessions();
    add_token(&*rig.store, "short", Some(HOUR)).await;
    let added = sessions.add(&session("s", "short")).await.unwrap().unwrap();
    assert_eq!(Some(added.expires_at), added.token.expires_at);
    harness.advance(HOUR).await;
    let found = sessions.find(&name("s")).await.unwrap().unwrap();
    assert_eq!(found.valid_for(), Duration::ZERO);
    assert_eq!(sessions.list(None, 10).await, Ok(vec![]));
    assert_eq!(sessions.add(&session("t", "short")).await, Ok(None), "the token has expired");
}

pub async fn a_revoked_token_ends_its_sessions(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let (tokens, sessions) = (rig.store.tokens(), rig.store.tokens().sessions());
    add_token(&*rig.store, "a", None).await;
    add_token(&*rig.store, "b", None).await;
    for (id, token) in [("s", "a"), ("t", "a"), ("u", "b")] {
        sessions.add(&session(id, token)).await.unwrap().unwrap();
    }
    assert_eq!(tokens.remove(&name("a")).await, Ok(true));
    assert_eq!(sessions.find(&name("s")).await, Ok(None));
    assert_eq!(ids(&sessions.list(None, 10).await.unwrap()), [&name("u")]);
    add_token(&*rig.store, "a", None).await;
    assert_eq!(sessions.find(&name("s")).await, Ok(None), "the same id does not bring it back");
}

pub async fn sessions_of_a_token_are_bounded_and_the_oldest_ends(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let sessions = rig.store.tokens().sessions();
    add_token(&*rig.store, "a", None).await;
    add_token(&*rig.store, "b", None).await;
    sessions.add(&session("other", "b")).await.unwrap().unwrap();
    for n in 0..=SESSIONS_MAX {
        sessions.add(&session(&format!("s{n}"), "a")).await.unwrap().unwrap();
        harness.advance(Duration::from_millis(2)).await;
    }
    let kept = sessions.list(Some(&name("a")), 1_000).await.unwrap();
    assert_eq!(kept.len(), SESSIONS_MAX as usize);
    assert_eq!((&kept[0].id, &kept[99].id), (&name("s100"), &name("s1")), "newest first");
    assert_eq!(sessions.find(&name("s0")).await, Ok(None));
    assert!(sessions.find(&name("other")).await.unwrap().is_some());
    assert_eq!(ids(&sessions.list(None, 1).await.unwrap()), [&name("s100")]);
}

pub async fn the_last_use_of_a_session_is_recorded(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let sessions = rig.store.tokens().sessions();
    add_token(&*rig.store, "a", None).await;
    sessions.add(&session("s", "a")).await.unwrap().unwrap();
    harness.advance(SEEN_EVERY).await;
    assert!(sessions.find(&name("s")).await.unwrap().unwrap().is_unseen());
    sessions.see(&name("s")).await.unwrap();
    let seen = sessions.find(&name("s")).await.unwrap().unwrap();
    assert!(!seen.is_unseen() && seen.seen_at >= seen.created_at.after(SEEN_EVERY));
    sessions.see(&name("none")).await.unwrap();
}

pub async fn sessions_that_have_ended_are_removed(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    let sessions = rig.store.tokens().sessions();
    add_token(&*rig.store, "a", None).await;
    sessions.add(&session("old", "a")).await.unwrap().unwrap();
    harness.advance(SESSION_TTL).await;
    sessions.add(&session("new", "a")).await.unwrap().unwrap();
    assert!(sessions.find(&name("old")).await.unwrap().is_some(), "until the duty has removed it");
    while rig.store.retain(&Retention::default()).await.unwrap().more {}
    assert_eq!(sessions.find(&name("old")).await, Ok(None));
    assert!(sessions.find(&name("new")).await.unwrap().is_some());
}

pub async fn sessions_are_there_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_sessions(harness, &rig).await {
        return;
    }
    add_token(&*rig.store, "a", None).await;
    let added = rig.store.tokens().sessions().add(&session("s", "a")).await.unwrap().unwrap();
    let Some(rig) = rig.reopen().await else { return };
    let found = rig.store.tokens().sessions().find(&name("s")).await.unwrap().unwrap();
    assert_eq!(SessionRecord { read_at: added.read_at, ..found }, added);
}
