//! Writes the implementation of `windlass::Task`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{DeriveInput, spanned::Spanned};

use crate::attributes::Attributes;

pub(crate) fn expand(input: &DeriveInput) -> syn::Result<TokenStream> {
    if !input.generics.params.is_empty() {
        let message = "a task has one kind, so its type cannot have parameters";
        return Err(syn::Error::new(input.generics.span(), message));
    }
    let settings = Attributes::read(input)?;
    let name = &input.ident;
    let kind = settings.kind.clone().unwrap_or_else(|| snake_case(&name.to_string()));
    let queue = settings.queue.iter().map(|queue| quote!(const QUEUE: &'static str = #queue;));
    let max_attempts = settings.max_attempts.iter().map(|attempts| {
        quote!(const MAX_ATTEMPTS: ::core::option::Option<u32> = ::core::option::Option::Some(#attempts);)
    });
    let timeout = settings.timeout_ms.iter().map(|ms| {
        quote! {
            const TIMEOUT: ::core::option::Option<::core::time::Duration> =
                ::core::option::Option::Some(::core::time::Duration::from_millis(#ms));
        }
    });
    let priority = settings.priority.iter().map(|priority| quote!(const PRIORITY: i32 = #priority;));
    let retry = retry(&settings);
    Ok(quote! {
        #[automatically_derived]
        impl ::windlass::Task for #name {
            const KIND: &'static str = #kind;
            #(#queue)*
            #(#max_attempts)*
            #(#timeout)*
            #(#priority)*
            #retry
        }
    })
}

fn retry(settings: &Attributes) -> Option<TokenStream> {
    if settings.retry_base_ms.is_none() && settings.retry_max_ms.is_none() {
        return None;
    }
    let base = settings
        .retry_base_ms
        .iter()
        .map(|ms| quote!(policy.base = ::core::time::Duration::from_millis(#ms);));
    let max =
        settings.retry_max_ms.iter().map(|ms| quote!(policy.max = ::core::time::Duration::from_millis(#ms);));
    Some(quote! {
        fn retry() -> ::core::option::Option<::windlass::RetryPolicy> {
            let mut policy = ::windlass::RetryPolicy::default();
            #(#base)*
            #(#max)*
            ::core::option::Option::Some(policy)
        }
    })
}

/// `SendEmail` → `send_email`, `HTTPCall2` → `http_call2`.
fn snake_case(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    let mut text = String::with_capacity(name.len() + 4);
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|before| letters.get(before));
        let after = letters.get(at + 1);
        let starts_word = letter.is_uppercase()
            && before.is_some_and(|before| {
                (before.is_lowercase() || before.is_numeric())
                    || (before.is_uppercase() && after.is_some_and(|after| after.is_lowercase()))
            });
        if starts_word {
            text.push('_');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_defaults_to_the_type_name_in_snake_case() {
        let names = [
            ("SendEmail", "send_email"),
            ("HTTPCall2", "http_call2"),
            ("Echo", "echo"),
            ("V2Resize", "v2_resize"),
            ("already_snake", "already_snake"),
        ];
        for (name, kind) in names {
            assert_eq!(snake_case(name), kind);
        }
    }

    #[test]
    fn a_generic_type_is_refused() {
        let input = syn::parse_str("struct Page<T>(T);").unwrap();
        assert!(expand(&input).unwrap_err().to_string().contains("cannot have parameters"));
    }

    #[test]
    fn only_given_settings_are_written() {
        let input = syn::parse_str("#[task(retry_max = \"1m\")] struct Echo;").unwrap();
        let text = expand(&input).unwrap().to_string();
        assert!(text.contains("\"echo\"") && text.contains("policy . max"), "{text}");
        assert!(!text.contains("policy . base") && !text.contains("QUEUE"), "{text}");
    }
}
