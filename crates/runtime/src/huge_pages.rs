//! Transparent huge pages, which the memory of these programs does not use.
//!
//! Objects come and go in pieces of a few hundred bytes. With pages of 2 MiB, of which one piece keeps the whole, the resident memory of a
//! manager is half as large again.

use rustix::thread::disable_transparent_huge_pages;

/// Ends the use of huge pages by this process, whatever the kernel's setting and the advice of the allocator. Pages that are huge
/// already stay so: to be called first.
pub fn disable() {
    // A kernel without the setting leaves the memory larger, and nothing else.
    let _ = disable_transparent_huge_pages(true);
}

#[cfg(test)]
mod tests {
    use rustix::thread::transparent_huge_pages_are_disabled;

    #[test]
    fn huge_pages_are_disabled_for_the_process() {
        super::disable();
        assert!(transparent_huge_pages_are_disabled().expect("known"));
    }
}
