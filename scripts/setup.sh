#!/bin/sh
# From a fresh clone to a machine that can run tasks: dependencies, build, engine, image, toolbox. Safe to repeat.
# Usage: scripts/setup.sh [options of `bulkhead setup`]
set -eu
. "$(dirname -- "$0")/env.sh"

if ! command -v git >/dev/null; then
  echo "error: git is not on the PATH" >&2
  echo "hint: install git 2.38 or newer" >&2
  exit 3
fi
install_dependencies
sh scripts/build.sh
exec node dist/cli/main.js setup "$@"
