#!/bin/sh
# Everything that needs no engine, in under half a minute: format and lint, types, dead code, unit and contract tests.
# Usage: scripts/check.sh [--no-tests]
set -eu
. "$(dirname -- "$0")/env.sh"
install_dependencies

step() {
  echo "check: $*"
  "$@"
}
step biome ci --colors=off --max-diagnostics=50
step tsc -b
step tsc -p tsconfig.test.json
step knip --no-progress
[ "${1:-}" = --no-tests ] || step vitest run --project unit --project contract
