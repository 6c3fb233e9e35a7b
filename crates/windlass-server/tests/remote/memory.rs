//! Over gRPC on the model.

use windlass_conformance::MemoryHarness;

use crate::harness::Remote;

windlass_conformance::suite!(Remote::new(MemoryHarness::new()));
