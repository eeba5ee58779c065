#!/usr/bin/env bash
# Parts of `make test-real`. Their ends are lines of a file: `ran`, `skipped` or `FAILED`, name, seconds, reason.
#
#   part.sh FILE run NAME COMMAND…   runs a part; exit code 77 and a reason say that the machine cannot run it
#   part.sh FILE summary             prints the ends; fails if a part has failed or none was reached, or if one of REQUIRED_PARTS, names
#                                    between commas, has not run
set -uo pipefail

ends=$1

note() {
  if ! printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$SECONDS" "$3" >>"$ends"; then
    echo "part \"$2\": its end, $1, is not noted in $ends" >&2
    return 1
  fi
  echo "part \"$2\": $1 after $SECONDS s${3:+: $3}"
}

run() {
  local name=$1 output code reasons
  shift
  output=$(mktemp)
  # shellcheck disable=SC2064
  trap "rm -f '$output'" EXIT
  "$@" | tee "$output"
  code=${PIPESTATUS[0]}
  reasons=$(sed -n -E 's/^(real nodes cannot run here|kind: SKIPPED, nothing was done|SKIPPED): //p' "$output" | paste -s -d ';' | sed 's/;/; /g')
  if [ "$code" = 0 ]; then
    note ran "$name" ""
  elif [ "$code" = 77 ] && [ -n "$reasons" ]; then
    note skipped "$name" "$reasons"
  else
    note FAILED "$name" "exit code $code"
    return 1
  fi
}

count() {
  cut -f 1 "$ends" | grep -c -x "$1"
}

# Says which required parts have not run, and succeeds if there is one.
lacks_required() {
  local part required lacks=1
  IFS=, read -r -a required <<<"${REQUIRED_PARTS:-}"
  for part in "${required[@]}"; do
    cut -f 1,2 "$ends" | grep -x -F "ran"$'\t'"$part" >/dev/null && continue
    echo "make test-real: \"$part\" of REQUIRED_PARTS has not run; REQUIRED_PARTS= requires none" >&2
    lacks=0
  done
  return "$lacks"
}

summary() {
  if [ ! -s "$ends" ]; then
    echo "make test-real: no part was run" >&2
    return 1
  fi
  echo "make test-real: ran $(($(count ran) + $(count FAILED))) parts, skipped $(count skipped), failed $(count FAILED)"
  while IFS=$'\t' read -r end name seconds reason; do
    echo "  $name: $end, $seconds s${reason:+: $reason}"
  done <"$ends"
  ! lacks_required && [ "$(count FAILED)" = 0 ]
}

"$2" "${@:3}"
