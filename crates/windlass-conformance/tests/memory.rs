//! The suite on the in-memory store: the model passes its own rules.

windlass_conformance::suite!(windlass_conformance::MemoryHarness::new());
