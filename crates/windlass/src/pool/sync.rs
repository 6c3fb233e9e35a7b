//! The primitives of [`crate::pool::slots`], in one place so that a model checker can replace them.
//!
//! `tests/slots_shuttle.rs` compiles the same file against shuttle's primitives.

pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
