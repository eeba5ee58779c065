//! Whether anybody who waits should have been woken.

use proptest::test_runner::TestCaseError;

use crate::world::{WORKLOADS, World, moves};

impl World {
    /// Once at rest, looking at everybody afresh gets nobody any further: every wake-up that mattered took place.
    pub(crate) fn wake_ups_never_miss(&mut self) -> Result<(), TestCaseError> {
        if !self.comes_to_rest() {
            return Ok(());
        }
        let mut fresh = self.fresh(true);
        for _ in 0..WORKLOADS {
            let entries = fresh.cycle();
            if moves(&entries) {
                return Err(self.refute(&format!("missed:\n{}", fresh.trace)));
            }
        }
        Ok(())
    }
}
