//! The checked-in code matches the `.proto` files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{fs, path::Path};

const FILES: [&str; 5] = [
    "windlass/v1/task.proto",
    "windlass/v1/tasks.proto",
    "windlass/v1/workers.proto",
    "windlass/v1/control.proto",
    "windlass/v1/store.proto",
];

#[test]
fn the_generated_code_matches_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile(FILES, [root.join("../../proto")]).unwrap();
    let fresh = Path::new(env!("CARGO_TARGET_TMPDIR")).join("generated");
    fs::create_dir_all(&fresh).unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        .out_dir(&fresh)
        .compile_fds(descriptors.clone())
        .unwrap();
    let bytes = prost::Message::encode_to_vec(&descriptors);
    let code = fs::read(fresh.join("windlass.v1.rs")).unwrap();
    for (name, made) in [("windlass.v1.rs", code), ("windlass.v1.bin", bytes)] {
        let kept = root.join("src/generated").join(name);
        if std::env::var_os("WINDLASS_BLESS").is_some() {
            fs::write(&kept, &made).unwrap();
        }
        assert!(
            fs::read(&kept).unwrap_or_default() == made,
            "{name} is stale: run this with WINDLASS_BLESS=1"
        );
    }
}
