#!/bin/sh
# The whole proof, from a fresh clone: sets the machine up, checks, runs every test against the real engine.
# Ends with the line "N passed, N failed"; non-zero when anything failed, was skipped, or nothing ran.
set -eu
. "$(dirname -- "$0")/env.sh"

sh scripts/setup.sh
sh scripts/check.sh --no-tests

# A test that finds no engine must fail, not step aside.
export BULKHEAD_REQUIRE_ENGINE=1
results=$(mktemp "${TMPDIR:-/tmp}/bulkhead-tests-XXXXXX")
trap 'rm -f "$results"' EXIT INT TERM
status=0
vitest run --reporter=default --reporter=json --outputFile.json="$results" "$@" </dev/null || status=$?
node scripts/summarize-tests.ts "$results" "$status"
