//! The frame of every page: navigation, the place for content, and what the script needs.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    Page, assets,
    recent::Drawn,
    viewer::{Ask, Viewer},
};
use crate::public_url::Prefix;

/// A drum with a rope: the sign of the program, also as the icon of the tab.
const SIGN: &str = "<svg viewBox=\"0 0 24 24\" aria-hidden=\"true\"><path fill=\"none\" stroke=\"currentColor\" \
     stroke-width=\"2\" d=\"M4 5v14M20 5v14M4 8h16M4 16h16M8 8v8M12 8v8M16 8v8\"/></svg>";
const ICON: &str = "data:image/svg+xml,%3Csvg xmlns='http%3A%2F%2Fwww.w3.org/2000/svg' viewBox='0 0 24 24'%3E%3Cpath \
     fill='none' stroke='%230b57b8' stroke-width='2' d='M4 5v14M20 5v14M4 8h16M4 16h16M8 8v8M12 8v8M16 8v8'/%3E%3C/svg%3E";

/// A whole page.
pub(super) fn whole(ask: &Ask, page: Option<Page>, drawn: &Drawn) -> Markup {
    let (viewer, links) = (&ask.viewer, ask.viewer.links());
    let version = ask.operations().health().version;
    html! {
        (head(links, &drawn.title))
        body data-prefix=(links.link("")) {
            a.skip href="#content" { "Skip to the content" }
            p.lost id="lost" role="alert" hidden { "The server does not answer. What you see may be old." }
            (side(viewer, page, &version))
            main id="content" tabindex="-1" data-live { (PreEscaped(&drawn.body)) }
            (furniture())
        }
    }
}

/// A page without navigation, for a viewer whom the server does not know.
pub(super) fn bare(links: &Prefix, title: &str, content: &Markup) -> Markup {
    html! {
        (head(links, title))
        body data-prefix=(links.link("")) { main.login id="content" { div { (content) } } }
    }
}

/// The page on which a viewer shows a token.
pub(super) fn login(links: &Prefix) -> Markup {
    html! {
        (head(links, "Log in"))
        body data-prefix=(links.link("")) {
            main.login id="content" {
                form id="login" data-call="POST" data-url=(links.link("/v1/login")) {
                    h1 { "Windlass" }
                    p.soft { "This server asks for a token. It is exchanged for a session of this browser, and not kept." }
                    label { "Token" input type="password" name="token" required autofocus autocomplete="off" spellcheck="false"; }
                    button.main type="submit" { "Log in" }
                    p.soft.small { "Make one with " code { "windlass token create --scope read" } "; scope admin can also change things." }
                    noscript { p { "The login needs JavaScript." } }
                }
            }
            (furniture())
        }
    }
}

fn head(links: &Prefix, title: &str) -> Markup {
    html! {
        (DOCTYPE)
        (PreEscaped("<html lang=\"en\">"))
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { (title) " · Windlass" }
            link rel="icon" href=(PreEscaped(ICON));
            link rel="stylesheet" href=(links.link(&assets::style_path()));
            script type="module" src=(links.link(&assets::script_path())) {}
        }
    }
}

fn side(viewer: &Viewer, page: Option<Page>, version: &str) -> Markup {
    html! {
        header.side {
            a.brand href=(viewer.link("/")) { (PreEscaped(SIGN)) "Windlass" }
            nav aria-label="Pages" {
                ul {
                    @for entry in Page::MENU {
                        @let is_here = page.map(Page::section) == Some(entry);
                        li { a href=(viewer.link(entry.route())) aria-current=[is_here.then_some("page")] { (entry.label()) } }
                    }
                }
            }
            div.foot {
                @if viewer.is_read_only() { span.state.warn { "⊘ read-only" } }
                @if let Some(name) = viewer.name() {
                    span.about { (name) }
                    button type="button" data-call="POST" data-url=(viewer.link("/v1/logout")) data-then=(viewer.link("/login")) { "Log out" }
                }
                span.about { "Windlass " (version) }
                span.about { kbd { "?" } " shows the keys" }
            }
        }
    }
}

/// Places for messages, questions and help, filled by the script.
fn furniture() -> Markup {
    html! {
        div.toasts id="toasts" role="status" aria-live="polite" {}
        dialog id="ask" aria-labelledby="ask-title" {
            h2 id="ask-title" {}
            div id="ask-body" {}
            div.actions {
                button type="button" id="ask-no" { "Back" }
                button.main type="button" id="ask-yes" { "Do it" }
            }
        }
        dialog id="keys" aria-labelledby="keys-title" {
            h2 id="keys-title" { "Keys" }
            dl {
                @for (key, what) in KEYS { dt { kbd { (key) } } dd { (what) } }
            }
            div.actions { button type="button" data-close { "Close" } }
        }
    }
}

const KEYS: [(&str, &str); 8] = [
    ("/", "to the first filter or search field"),
    ("j", "one row down"),
    ("k", "one row up"),
    ("Enter", "open the row"),
    ("x", "select the row"),
    ("a", "to the first action of what is selected, of the row or of the page"),
    ("g", "to the navigation"),
    ("?", "this help"),
];
