//! The only page for people: name, version, links. No script, no style, nothing to load.

use std::fmt::Write;

use axum::response::{Html, IntoResponse, Response};

use crate::public_url::Prefix;

const LINKS: [(&str, &str); 10] = [
    ("/v1/tasks", "tasks"),
    ("/v1/dead", "dead tasks by error"),
    ("/v1/queues", "queues"),
    ("/v1/jobs", "jobs"),
    ("/v1/workflows", "workflows"),
    ("/v1/schedules", "recurring tasks"),
    ("/v1/workers", "workers"),
    ("/v1/info", "this process and its store"),
    ("/readyz", "is it ready?"),
    ("/v1/openapi.json", "the whole API, as OpenAPI"),
];

/// The page with a version and a store.
pub(super) fn page(version: &str, store: Option<&str>, prefix: &Prefix) -> Response {
    Html(html(version, store, prefix)).into_response()
}

fn html(version: &str, store: Option<&str>, prefix: &Prefix) -> String {
    let mut page = String::from(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<title>Windlass</title>\n\
         </head>\n<body>\n",
    );
    // Writing to a string does not fail.
    let _ = writeln!(page, "<h1>Windlass {}</h1>", escaped(version));
    let _ = writeln!(page, "<p>Store: {}</p>\n<ul>", escaped(store.unwrap_or("not answering")));
    for (path, text) in LINKS {
        let _ = writeln!(page, "<li><a href=\"{}\">{}</a></li>", escaped(&prefix.link(path)), escaped(text));
    }
    page.push_str(
        "</ul>\n<p>Try: <code>windlass enqueue echo --payload '{\"hello\":\"world\"}' --wait</code></p>\n",
    );
    page.push_str("</body>\n</html>\n");
    page
}

/// Escapes a text for an element or a quoted attribute.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            other => safe.push(other),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_markup_shows_as_text() {
        let page = html("1.0", Some("/tmp/<img src=x onerror='a(\"&\")'>.db"), &Prefix::default());
        assert!(page.contains("/tmp/&lt;img src=x onerror=&#39;a(&quot;&amp;&quot;)&#39;&gt;.db"), "{page}");
        assert!(!page.contains("<img"));
    }

    #[test]
    fn the_page_leads_to_the_description_of_the_api() {
        assert!(html("1.0", None, &Prefix::default()).contains("<a href=\"/v1/openapi.json\">"));
    }

    #[test]
    fn the_page_holds_no_script_and_no_style() {
        let page = html("1.0", None, &Prefix::default());
        assert!(!page.contains("<script") && !page.contains("style") && page.contains("not answering"));
    }
}
