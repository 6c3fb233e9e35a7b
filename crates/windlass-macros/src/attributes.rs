//! Reads and checks `#[task(…)]`. An error points at the setting that is wrong.

use syn::{DeriveInput, LitInt, LitStr, meta::ParseNestedMeta, spanned::Spanned};

use crate::duration::parse_ms;

/// The settings of `#[task(…)]`, for the error that lists them.
const KNOWN: &str = "kind, queue, max_attempts, timeout, priority, retry_base, retry_max";
/// Longest name in bytes, as the core checks it at run time.
const NAME_MAX_BYTES: usize = 128;
/// Most attempts, as the core checks it at run time.
const MAX_ATTEMPTS_LIMIT: u32 = 1_000_000;

/// The settings of one task type; durations in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    pub(crate) kind: Option<String>,
    pub(crate) queue: Option<String>,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) timeout_ms: Option<u64>,
    pub(crate) priority: Option<i32>,
    pub(crate) retry_base_ms: Option<u64>,
    pub(crate) retry_max_ms: Option<u64>,
}

impl Attributes {
    pub(crate) fn read(input: &DeriveInput) -> syn::Result<Self> {
        let mut settings = Self::default();
        for attribute in input.attrs.iter().filter(|attribute| attribute.path().is_ident("task")) {
            attribute.parse_nested_meta(|meta| settings.read_one(&meta))?;
            if settings.retry_max_ms.is_some_and(|max| settings.retry_base_ms.is_some_and(|base| base > max))
            {
                return Err(syn::Error::new(attribute.span(), "`retry_max` is shorter than `retry_base`"));
            }
        }
        Ok(settings)
    }

    fn read_one(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
        match name.as_str() {
            "kind" => set(&mut self.kind, meta, name_of),
            "queue" => set(&mut self.queue, meta, name_of),
            "max_attempts" => set(&mut self.max_attempts, meta, attempts),
            "timeout" => set(&mut self.timeout_ms, meta, length),
            "priority" => set(&mut self.priority, meta, priority),
            "retry_base" => set(&mut self.retry_base_ms, meta, length),
            "retry_max" => set(&mut self.retry_max_ms, meta, length),
            _ => Err(meta.error(format!("unknown task attribute `{name}`; known are {KNOWN}"))),
        }
    }
}

/// Reads the value of one setting, once.
fn set<T>(
    place: &mut Option<T>,
    meta: &ParseNestedMeta<'_>,
    read: impl Fn(&ParseNestedMeta<'_>) -> syn::Result<T>,
) -> syn::Result<()> {
    if place.is_some() {
        return Err(meta.error("this task attribute is given twice"));
    }
    *place = Some(read(meta)?);
    Ok(())
}

fn name_of(meta: &ParseNestedMeta<'_>) -> syn::Result<String> {
    let literal: LitStr = meta.value()?.parse()?;
    let name = literal.value();
    let fault = if name.is_empty() {
        "must not be empty"
    } else if name.len() > NAME_MAX_BYTES {
        "is longer than 128 bytes"
    } else if name.chars().any(char::is_control) || name.trim() != name {
        "has control characters or spaces at its ends"
    } else if name.chars().any(is_unseen) {
        "has characters that are invisible or reorder text"
    } else {
        return Ok(name);
    };
    Err(syn::Error::new(literal.span(), format!("this name {fault}")))
}

/// The characters that `windlass_core::text::is_unsafe` names, apart from control characters. This
/// crate cannot use that one; a test of
/// `windlass` compares the two.
fn is_unseen(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn attempts(meta: &ParseNestedMeta<'_>) -> syn::Result<u32> {
    let literal: LitInt = meta.value()?.parse()?;
    match literal.base10_parse::<u32>() {
        Ok(attempts @ 1..=MAX_ATTEMPTS_LIMIT) => Ok(attempts),
        _ => Err(syn::Error::new(literal.span(), format!("max_attempts must be 1 to {MAX_ATTEMPTS_LIMIT}"))),
    }
}

fn priority(meta: &ParseNestedMeta<'_>) -> syn::Result<i32> {
    meta.value()?.parse::<LitInt>()?.base10_parse()
}

fn length(meta: &ParseNestedMeta<'_>) -> syn::Result<u64> {
    let value = meta.value()?;
    if let Ok(number) = value.fork().parse::<LitInt>() {
        // The literal as the user wrote it may have a type suffix: `30u64`.
        let message = format!(
            "a length of time must be text with a unit: write \"{}s\" for seconds, or ms, m, h, d instead of s",
            number.base10_digits()
        );
        return Err(syn::Error::new(number.span(), message));
    }
    let literal: LitStr = value.parse()?;
    parse_ms(&literal.value()).map_err(|message| syn::Error::new(literal.span(), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(attribute: &str) -> Result<Attributes, String> {
        let input = syn::parse_str(&format!("{attribute} struct SendEmail;")).unwrap();
        Attributes::read(&input).map_err(|error| error.to_string())
    }

    #[test]
    fn every_setting_is_read() {
        let settings = read(
            r#"#[task(kind = "mail", queue = "out", max_attempts = 5, timeout = "30s")]
               #[task(priority = -3, retry_base = "1s", retry_max = "10m")]"#,
        )
        .unwrap();
        assert_eq!(settings.kind.as_deref(), Some("mail"));
        assert_eq!(settings.queue.as_deref(), Some("out"));
        assert_eq!((settings.max_attempts, settings.priority), (Some(5), Some(-3)));
        assert_eq!(settings.timeout_ms, Some(30_000));
        assert_eq!((settings.retry_base_ms, settings.retry_max_ms), (Some(1_000), Some(600_000)));
    }

    #[test]
    fn a_wrong_setting_says_what_is_wrong() {
        let cases = [
            (r#"#[task(knd = "x")]"#, "unknown task attribute `knd`; known are kind, queue"),
            (r#"#[task(kind = "x", kind = "y")]"#, "given twice"),
            (r#"#[task(kind = "")]"#, "must not be empty"),
            (r#"#[task(queue = " a")]"#, "spaces at its ends"),
            (r#"#[task(kind = "a\u{202e}b")]"#, "are invisible or reorder text"),
            (r#"#[task(queue = "a\u{2028}b")]"#, "are invisible or reorder text"),
            ("#[task(kind = 3)]", "expected string literal"),
            ("#[task(max_attempts = 0)]", "must be 1 to 1000000"),
            ("#[task(max_attempts = -1)]", "must be 1 to 1000000"),
            (r#"#[task(timeout = "soon")]"#, "such as \"30s\""),
            ("#[task(timeout = 30)]", "write \"30s\" for seconds"),
            ("#[task(retry_base = 5u64)]", "write \"5s\" for seconds"),
            (r#"#[task(retry_max = "1m", retry_base = "1h")]"#, "shorter than `retry_base`"),
        ];
        for (attribute, message) in cases {
            let error = read(attribute).unwrap_err();
            assert!(error.contains(message), "{attribute}: {error}");
        }
    }
}
