//! What pages load: one style sheet and one script. The address of each contains a digest of its content, so
//! a browser may keep it for ever.

use std::sync::LazyLock;

use axum::{
    extract::Path,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, header};
use ring::digest::{SHA256, digest};

use crate::api::{ErrorCode, ErrorDetail};

const STYLE: &str = include_str!("../../assets/windlass.css");
const SCRIPT: &str = include_str!("../../assets/windlass.js");

/// Names of the style sheet and of the script.
static NAMES: LazyLock<(String, String)> =
    LazyLock::new(|| (hashed("windlass", STYLE, "css"), hashed("windlass", SCRIPT, "js")));

pub(super) fn style_path() -> String {
    format!("/assets/{}", NAMES.0)
}

pub(super) fn script_path() -> String {
    format!("/assets/{}", NAMES.1)
}

fn hashed(name: &str, content: &str, end: &str) -> String {
    let digest = digest(&SHA256, content.as_bytes());
    let first = digest.as_ref().first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes));
    format!("{name}.{first:08x}.{end}")
}

/// One asset. A name with another digest is of another version: this server does not have it.
pub(super) async fn asset(Path(file): Path<String>) -> Response {
    let (content, kind) = if file == NAMES.0 {
        (STYLE, "text/css; charset=utf-8")
    } else if file == NAMES.1 {
        (SCRIPT, "text/javascript; charset=utf-8")
    } else {
        return ErrorDetail::new(ErrorCode::NotFound, "there is no such file")
            .hint("load the page again: the server may have another version now")
            .into_response();
    };
    let mut response = content.into_response();
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_asset_changes_with_its_content() {
        assert_ne!(hashed("a", "1", "js"), hashed("a", "2", "js"));
        assert!(
            style_path().starts_with("/assets/windlass.")
                && style_path().rsplit_once('.').is_some_and(|(_, end)| end == "css")
        );
    }

    #[test]
    fn assets_fit_the_bar_and_load_nothing_from_elsewhere() {
        assert!(STYLE.len() + SCRIPT.len() < 60_000);
        for text in [STYLE, SCRIPT] {
            assert!(!text.contains("://") && !text.contains("@import") && !text.contains("eval("));
        }
    }
}
