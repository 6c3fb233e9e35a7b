//! Random numbers that can be repeated: a seed is printed with every failure.

/// SplitMix64: small, and good enough to choose times.
#[derive(Debug, Clone)]
pub struct Rng(u64);

impl Rng {
    /// Starts from a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A seed that differs from run to run, unless `WINDLASS_SEED` names one.
    pub fn seed() -> u64 {
        let given = std::env::var("WINDLASS_SEED").ok().and_then(|text| text.parse().ok());
        given.unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            now.map_or(1, |now| {
                u64::from(now.subsec_nanos()) ^ (now.as_secs() << 20) ^ u64::from(std::process::id())
            })
        })
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number from `low` up to but not including `high`.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next_u64() % (high - low).max(1)
    }
}
