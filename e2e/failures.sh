#!/usr/bin/env bash
# Prints what failed in logs of `cargo test`: per test its name and the first lines of its output, then the errors of cargo itself. A log of
# CI may be cut to its end, and lanes that ran beside the failing one come after it there.
#
#   failures.sh LOG…
set -uo pipefail

for log in "$@"; do
  [ -f "$log" ] || continue
  awk -v log_name="$(basename "$log" .log)" '
    /^---- .* stdout ----$/ { test = $2; left = 6; printf "FAILED in %s: %s\n", log_name, test; next }
    /^failures:$/ { left = 0 }
    left > 0 && NF { print "    " substr($0, 1, 240); left-- }
    /^error(\[|:)/ || /^  process didn.t exit successfully/ { print log_name ": " substr($0, 1, 240) }
  ' "$log"
done
