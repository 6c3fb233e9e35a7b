//! Access: tokens and what they may do.

use maud::{Markup, html};

use super::super::{
    parts::{Button, Tone, badge, empty, table, time, time_or, top},
    recent::Sheet,
    viewer::{Ask, Viewer, encoded},
};
use crate::{api::TokenView, operations::Result};

pub(in super::super) async fn access(ask: &Ask) -> Result<Sheet> {
    let viewer = &ask.viewer;
    let body = html! {
        (top(&html! { "Access" }, &html! {}))
        @if viewer.may("GET /v1/tokens") { (tokens(ask).await?) }
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
