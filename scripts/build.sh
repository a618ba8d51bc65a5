#!/bin/sh
# Compiles src/ to dist/ (incremental) and bundles the client that goes into the containers.
set -eu
. "$(dirname -- "$0")/env.sh"
install_dependencies

tsc -b
# The compiler leaves modes alone; npm sets this one only when the package is installed.
chmod +x dist/cli/main.js
node scripts/build-agent.ts
