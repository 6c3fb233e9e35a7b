//! `#[derive(Task)]` for Windlass; import it as `windlass::Task`, together with the trait of that name.
//!
//! Reading order: `attributes` reads and checks `#[task(…)]`, `duration` reads its durations, `expand` writes
//! the implementation.

mod attributes;
mod duration;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `windlass::Task` for a payload, next to the payload.
///
/// Every setting of `#[task(…)]` is optional:
///
/// | setting | meaning | default |
/// |---|---|---|
/// | `kind = "send_email"` | which handler runs it | the type's name in snake case |
/// | `queue = "mail"` | where it waits | `"default"` |
/// | `max_attempts = 5` | attempts granted | the store's (10) |
/// | `timeout = "30s"` | how long an attempt may take | no limit |
/// | `priority = 0` | higher first | 0 |
/// | `retry_base = "1s"` | delay after the first failure | the store's (1 s) |
/// | `retry_max = "10m"` | longest delay | the store's (10 min) |
///
/// Lengths of time are a whole number and one of `ms`, `s`, `m`, `h`, `d`.
#[proc_macro_derive(Task, attributes(task))]
pub fn derive_task(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input).unwrap_or_else(syn::Error::into_compile_error).into()
}
