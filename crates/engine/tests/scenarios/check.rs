//! Plays a fixture and compares its trace.

use expect_test::Expect;

use crate::play::Player;

/// Cycles that run when a fixture does not say how many.
const ENOUGH: usize = 20;

/// Plays a fixture and compares the trace.
pub(crate) fn check(fixture: &str, expect: &Expect) {
    let mut player = Player::new();
    let mut explicit = false;
    for line in fixture.lines().map(str::trim).filter(|line| !line.is_empty()) {
        explicit |= line.starts_with("cycle");
        player.line(line);
    }
    for _ in 0..ENOUGH {
        if explicit || (player.cycle().is_empty() && !player.engine.has_pending_heads()) {
            break;
        }
    }
    expect.assert_eq(&player.trace);
}
