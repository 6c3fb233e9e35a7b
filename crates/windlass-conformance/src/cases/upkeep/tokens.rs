//! Tokens of the API: stored by hash, found by id, gone when removed.

use std::{sync::Arc, time::Duration};

use windlass_core::{
    Error, NewToken, Scope, Scopes, TokenHash,
    token::{Bound, TOKENS_MAX},
};

use crate::{
    cases::rig::{Rig, name},
    harness::Harness,
};

const HOUR: Duration = Duration::from_hours(1);

fn token(id: &str, scopes: impl IntoIterator<Item = Scope>, ttl: Option<Duration>) -> NewToken {
    let mut hash = [0; 32];
    hash[..id.len()].copy_from_slice(id.as_bytes());
    let (scopes, bound) = (Scopes::of(scopes), Bound::default());
    NewToken { id: name(id), name: Some(name("ci")), hash: TokenHash(hash), scopes, bound, ttl }
}

/// Whether this store keeps tokens: a store behind a server must not show them.
async fn keeps_tokens(harness: &dyn Harness, rig: &Rig<'_>) -> bool {
    if !harness.keeps_tokens() {
        let (looked, listed) = (rig.store.tokens().find(&name("a")).await, rig.store.tokens().list().await);
        assert!(matches!(looked, Err(Error::Unsupported(_))), "{looked:?}");
        assert!(matches!(listed, Err(Error::Unsupported(_))), "{listed:?}");
    }
    harness.keeps_tokens()
}

pub async fn a_token_is_found_as_it_was_added(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    assert_eq!(tokens.find(&name("a")).await, Ok(None));
    let now = harness.now().await;
    let new = token("a", [Scope::Enqueue, Scope::Read], Some(HOUR));
    let added = tokens.add(&new).await.unwrap();
    assert_eq!(
        (&added.id, &added.name, added.hash, added.scopes),
        (&new.id, &new.name, new.hash, new.scopes)
    );
    assert!(added.created_at >= now && !added.is_expired);
    assert_eq!(added.expires_at, Some(added.created_at.after(HOUR)));
    assert_eq!(tokens.find(&name("a")).await, Ok(Some(added)));
    let nameless = NewToken { name: None, ..token("b", Scope::ALL, None) };
    let added = tokens.add(&nameless).await.unwrap();
    assert_eq!((added.name.clone(), added.expires_at), (None, None));
    assert_eq!(tokens.find(&name("b")).await, Ok(Some(added)));
}

pub async fn the_limits_of_a_token_are_kept(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    let bound = Bound { queues: vec![name("mail"), name("a,b \"c\"")], kinds: vec![name("a")] };
    let new = NewToken { bound: bound.clone(), ..token("a", [Scope::Work], None) };
    let added = tokens.add(&new).await.unwrap();
    assert_eq!((&added.bound, added.scopes), (&bound, Scopes::of([Scope::Work])));
    assert_eq!(tokens.find(&name("a")).await, Ok(Some(added.clone())));
    assert_eq!(tokens.list().await, Ok(vec![added]));
}

pub async fn two_tokens_may_share_a_name_and_are_removed_one_by_one(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    let old = tokens.add(&token("old", [Scope::Work], None)).await.unwrap();
    let new = tokens.add(&token("new", [Scope::Work], None)).await.unwrap();
    let mut both = [old.clone(), new.clone()];
    both.sort_by(|a, b| (a.created_at, &a.id).cmp(&(b.created_at, &b.id)));
    assert_eq!(tokens.list().await.unwrap(), both);
    assert_eq!(tokens.remove(&name("old")).await, Ok(true));
    assert_eq!(tokens.remove(&name("old")).await, Ok(false));
    assert_eq!(tokens.find(&name("old")).await, Ok(None));
    assert_eq!(tokens.list().await, Ok(vec![new]));
}

pub async fn a_token_expires_by_the_clock_of_the_store(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    let short = tokens.add(&token("short", [Scope::Read], Some(HOUR))).await.unwrap();
    tokens.add(&token("long", [Scope::Read], Some(HOUR * 3))).await.unwrap();
    assert!(!tokens.find(&name("short")).await.unwrap().unwrap().is_expired);
    harness.advance(HOUR).await;
    assert!(tokens.find(&name("short")).await.unwrap().unwrap().is_expired);
    assert!(!tokens.find(&name("long")).await.unwrap().unwrap().is_expired);
    let listed = tokens.list().await.unwrap();
    let listed = listed.iter().find(|token| token.id == short.id).unwrap();
    assert!(listed.is_expired, "and it is still listed");
}

pub async fn an_id_belongs_to_one_token(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    let first = tokens.add(&token("a", [Scope::Read], None)).await.unwrap();
    let again = tokens.add(&token("a", [Scope::Admin], None)).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
    assert_eq!(tokens.list().await, Ok(vec![first]), "and the first is as it was");
}

pub async fn tokens_are_bounded(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let tokens = rig.store.tokens();
    let mut callers = Vec::new();
    for n in 0..TOKENS_MAX {
        let store = Arc::clone(&rig.store);
        callers.push(tokio::spawn(async move {
            store.tokens().add(&token(&format!("t{n}"), [Scope::Read], None)).await.unwrap();
        }));
    }
    for caller in callers {
        caller.await.unwrap();
    }
    let more = tokens.add(&token("more", [Scope::Read], None)).await;
    assert!(matches!(more, Err(Error::Conflict(_))), "{more:?}");
    assert_eq!(tokens.remove(&name("t7")).await, Ok(true));
    tokens.add(&token("more", [Scope::Read], None)).await.unwrap();
}

pub async fn tokens_are_there_after_a_restart(harness: &dyn Harness) {
    let rig = Rig::open(harness).await;
    if !keeps_tokens(harness, &rig).await {
        return;
    }
    let added = rig.store.tokens().add(&token("a", [Scope::Admin], None)).await.unwrap();
    let Some(rig) = rig.reopen().await else { return };
    assert_eq!(rig.store.tokens().list().await, Ok(vec![added]));
}
