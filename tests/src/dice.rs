//! Random numbers that their seed determines. Each suite prints its seed; `KAAS_TEST_SEED` runs it again.

/// A stream of numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// A stream from a seed of this run, which is printed with `suite`.
    pub fn of_run(suite: &str) -> Dice {
        let seed = match std::env::var("KAAS_TEST_SEED") {
            Ok(seed) => seed.parse().expect("KAAS_TEST_SEED is a number"),
            Err(_) => crate::time::arbitrary(),
        };
        eprintln!("{suite}: KAAS_TEST_SEED={seed}");
        Dice(seed)
    }

    /// A stream of its own for a part of the run.
    pub fn split(&mut self) -> Dice {
        Dice(self.number())
    }

    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.number() % bound as u64) as usize
    }

    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.number() as u8).collect()
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
