//! Access: tokens and what they may do, and who did what.

use maud::{Markup, html};

use super::{
    super::{
        parts::{Button, Tone, badge, empty, list, table, time, time_or, top},
        recent::Sheet,
        viewer::{Ask, Viewer, encoded},
    },
    part_failed,
};
use crate::{
    api::{CallView, TokenView},
    http::PageQuery,
    operations::Result,
};

/// Calls of a page.
const CALLS: u32 = 50;

pub(in super::super) async fn access(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let body = html! {
        (top(&html! { "Access" }, &html! {}))
        @if viewer.may("GET /v1/tokens") { (tokens(ask).await?) (activity(ask).await) }
        @else { div.why { p { "Only a token of scope admin may see who may do what." } } }
    };
    Ok(Sheet::new("Access", body))
}

async fn tokens(ask: &Ask) -> Result<Markup> {
    let viewer = &ask.viewer;
    let tokens = ask.operations().tokens().await?.tokens;
    Ok(html! {
        h2 { "Tokens" }
        @if tokens.is_empty() {
            (empty("There is no token.", "windlass token create --scope read --name dashboard"))
        } @else {
            (table("Tokens", &html! {
                th scope="col" { "Token" } th scope="col" { "Scopes" } th scope="col" { "Only for" } th scope="col" { "Made" } th scope="col" { "Ends" } th scope="col" { "Actions" }
            }, &html! { @for token in &tokens { (row(viewer, token)) } }))
        }
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
            td { (Button::new("Revoke", "DELETE /v1/tokens/{id}", format!("/v1/tokens/{}", encoded(id))).tone(Tone::Bad)
                .ask(format!("Revoke the token {}? Its callers are refused at once.", token.name.as_ref().map_or(id, |name| name.as_str()))).show(viewer)) }
        }
    }
}
