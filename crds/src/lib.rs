//! Kueue's and Sluice's API kinds.
