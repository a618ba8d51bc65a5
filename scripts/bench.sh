#!/bin/sh
# Measures what the README claims, on this machine. Usage: scripts/bench.sh [arguments of bench/run.ts]
set -eu
. "$(dirname -- "$0")/env.sh"
sh scripts/setup.sh
exec node bench/run.ts "$@"
