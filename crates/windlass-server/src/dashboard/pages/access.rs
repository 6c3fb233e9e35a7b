//! Access: tokens and what they may do, sessions of browsers, and who did what.

use maud::{Markup, html};
use windlass_core::{Scope, token::BOUND_MAX};

use super::{
    super::{
        parts::{Button, Tone, badge, empty, list, table, time, time_or, top},
        recent::Sheet,
        viewer::{Ask, Viewer, encoded},
    },
    part_failed,
};
use crate::{
    access::Auth,
    api::{CallView, SessionView, TokenView},
    http::PageQuery,
    operations::Result,
};

/// Calls of a page.
const CALLS: u32 = 50;

pub(in super::super) async fn access(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let body = html! {
        (top(&html! { "Access" }, &html! {}))
        @if ask.server.auth() == Auth::Open {
            div.why { p { "This server asks for no token: every program that reaches it may do everything. " code { "auth = \"tokens\"" } " changes that." } }
        }
        @if viewer.may("GET /v1/tokens") { (tokens(ask).await?) }
        @else { div.why { p { "Only a token of scope admin may see the tokens, and who did what." } } }
        (sessions(ask).await?)
        @if viewer.may("GET /v1/activity") { (activity(ask).await) }
    };
    Ok(Sheet::new("Access", body))
}

async fn tokens(ask: &Ask) -> Result<Markup> {
    let viewer = &ask.viewer;
    let tokens = ask.server.tokens().await?.tokens;
    Ok(html! {
        h2 { "Tokens" }
        @if tokens.is_empty() {
            (empty("There is no token.", "windlass token create --scope read --name dashboard"))
        } @else {
            (table("Tokens", &html! {
                th scope="col" { "Token" } th scope="col" { "Scopes" } th scope="col" { "Only for" } th scope="col" { "Made" } th scope="col" { "Ends" }
                th scope="col" { "Last used here" } th scope="col" { "Actions" }
            }, &html! { @for token in &tokens { (row(viewer, token)) } }))
            p.soft.small { "“Last used here” is what this server has seen since it started." }
        }
        (create(viewer))
    })
}

/// The last calls that changed something.
async fn activity(ask: &Ask) -> Markup {
    let viewer = &ask.viewer;
    let look = async {
        let query: PageQuery = ask.query()?;
        ask.operations().activity(query.after_number()?, Some(CALLS)).await
    };
    let shown = match look.await {
        Ok(shown) => shown,
        Err(error) => return part_failed("The activity", &error),
    };
    html! {
        h2 { "Activity" }
        @if shown.calls.is_empty() {
            (empty("No call has changed anything yet. The last thousand that do are shown here, on every server of a fleet.", ""))
        } @else {
            (list("Activity", &html! {
                th scope="col" { "When" } th scope="col" { "Who" } th scope="col" { "Call" } th scope="col" { "About" } th scope="col" { "Result" }
            }, &html! { @for call in &shown.calls { (call_row(call)) } }))
            @if let Some(next) = shown.next { a.button rel="next" href=(viewer.link(&format!("/access?after={next}"))) { "Older" } }
        }
    }
}

fn call_row(call: &CallView) -> Markup {
    let (tone, sign) = if call.result == "done" { (Tone::Good, "✓") } else { (Tone::Bad, "✕") };
    html! {
        tr data-key={ "call " (call.id) } {
            td { (time(call.at)) }
            th scope="row" { (call.who) }
            td.mono { (call.call) }
            td.wide.mono { (call.about) }
            td { (badge(tone, sign, &call.result)) }
        }
    }
}

fn row(viewer: &Viewer, token: &TokenView) -> Markup {
    let id = token.id.as_str();
    html! {
        tr data-key=(id) {
            th scope="row" { @if let Some(name) = &token.name { (name) br; } span.mono.soft { (id) } }
            td { (token.scopes.join(", ")) }
            td {
                @for queue in &token.queues { "queue " (queue) br; }
                @for kind in &token.kinds { "kind " (kind) br; }
                @if token.queues.is_empty() && token.kinds.is_empty() { span.soft { "everything" } }
            }
            td { (time(token.created_at)) }
            td { @if token.expired { (badge(Tone::Bad, "✕", "expired")) " " } (time_or(token.expires_at, "never")) }
            td { (time_or(token.last_used_at, "not yet")) }
            td { (Button::new("Revoke", "DELETE /v1/tokens/{id}", format!("/v1/tokens/{}", encoded(id))).tone(Tone::Bad)
                .ask(format!("Revoke the token {}? Its callers are refused at once, and its sessions end.", token.name.as_ref().map_or(id, |name| name.as_str()))).show(viewer)) }
        }
    }
}

/// A form that makes a token. The script shows the secret once, with a button that copies it.
fn create(viewer: &Viewer) -> Markup {
    html! {
        @if viewer.may("POST /v1/tokens") {
            details.panel data-keep="new-token" {
                summary { "Make a token" }
                form.send data-call="POST" data-url=(viewer.link("/v1/tokens")) data-secret="token" {
                    label { "Name" input name="name" data-kind="text-or-none" autocomplete="off" spellcheck="false" maxlength="128"; }
                    fieldset {
                        legend { "May" }
                        @for scope in Scope::ALL {
                            label.check { input type="checkbox" name="scopes" value=(scope.as_str()) data-kind="word"; (scope.as_str()) }
                        }
                    }
                    label { "Only these queues, with commas between" input name="queues" data-kind="words" autocomplete="off" spellcheck="false"; }
                    label { "Only these kinds, with commas between" input name="kinds" data-kind="words" autocomplete="off" spellcheck="false"; }
                    label { "Ends after so many days" input name="expires_in_ms" type="number" min="1" max="3660" data-kind="days"; }
                    button.main type="submit" { "Make it" }
                    p.soft.small { "admin includes the others. Queues and kinds (at most " (BOUND_MAX) " each) bind the scopes enqueue and work only." }
                }
            }
        }
    }
}

async fn sessions(ask: &Ask) -> Result<Markup> {
    let viewer = &ask.viewer;
    if !viewer.may("GET /v1/sessions") {
        return Ok(html! {});
    }
    let caller = viewer.caller();
    let found = ask.operations().sessions(caller).await?;
    let of = if caller.is_admin() { "Sessions of browsers" } else { "Sessions of your token" };
    Ok(html! {
        h2 { (of) }
        @if found.sessions.is_empty() {
            div.panel.empty { p { "No browser is logged in." } }
        } @else {
            (table(of, &html! {
                th scope="col" { "Session" } th scope="col" { "Token" } th scope="col" { "May" } th scope="col" { "Since" } th scope="col" { "Last seen" }
                th scope="col" { "Ends" } th scope="col" { "Actions" }
            }, &html! { @for session in &found.sessions { (session_row(viewer, session)) } }))
            @if found.more { p.soft { "There are older ones." } }
        }
    })
}

fn session_row(viewer: &Viewer, session: &SessionView) -> Markup {
    let id = session.id.as_str();
    let question = if session.current {
        "End your own session? This browser is then logged out.".to_owned()
    } else {
        format!("End the session {id}? Its browser has to log in again.")
    };
    html! {
        tr data-key={ "session " (id) } {
            th scope="row" { span.mono { (id) } @if session.current { br; (badge(Tone::Live, "●", "this browser")) } }
            td { @if let Some(name) = &session.name { (name) br; } span.mono.soft { (session.token) } }
            td { (session.scopes.join(", ")) }
            td { (time(session.created_at)) }
            td { (time(session.last_seen_at)) }
            td { (time(session.expires_at)) }
            td { (Button::new("End", "DELETE /v1/sessions/{id}", format!("/v1/sessions/{}", encoded(id))).tone(Tone::Bad).ask(question).show(viewer)) }
        }
    }
}
