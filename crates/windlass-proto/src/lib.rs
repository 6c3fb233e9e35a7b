//! The gRPC API of Windlass: generated messages and services of `proto/windlass/v1`, and conversions to the
//! types of `windlass-core`.
//!
//! The code in `src/generated` is checked in; a test compares it with freshly generated code
//! (`WINDLASS_BLESS=1` writes it).

pub mod convert;

/// The messages and services of `windlass.v1`.
#[allow(
    missing_docs,
    clippy::pedantic,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "generated code"
)]
pub mod v1 {
    include!("generated/windlass.v1.rs");
}

/// The descriptors of `windlass.v1` and its imports: reflection serves them, and tests compare with them.
pub const DESCRIPTORS: &[u8] = include_bytes!("generated/windlass.v1.bin");

/// The trailer that carries a [`v1::Error`].
pub const ERROR_TRAILER: &str = "windlass-error-bin";
