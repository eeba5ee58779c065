//! The lab's command line tool is `src/bin/sluice-lab`, the tests on the lab are in `tests/`. Nothing is exported.
