#!/bin/sh
# The classic example on real containers, from a fresh clone: three tasks on a small Python service, done by scripted agents that
# edit files, run tests and use the bus. Shows the run, the report and the diffs; nothing outside its own directory is touched.
# Usage: scripts/demo.sh [--fail]   (--fail: the first task fails half-way, and holds the two others)
set -eu
. "$(dirname -- "$0")/env.sh"

sh scripts/setup.sh

DEMO=${BULKHEAD_DEMO_DIR:-${TMPDIR:-/tmp}/bulkhead-demo}
case "$DEMO" in /*/*) ;; *) echo "error: BULKHEAD_DEMO_DIR must be an absolute path below a directory, not \"$DEMO\"" >&2; exit 2 ;; esac
if [ -e "$DEMO" ] && [ ! -e "$DEMO/.bulkhead-demo" ]; then
  echo "error: $DEMO exists and was not made by the demo" >&2
  echo "hint: move it away, or choose another place with BULKHEAD_DEMO_DIR" >&2
  exit 2
fi
rm -rf "$DEMO"
mkdir -p "$DEMO"
touch "$DEMO/.bulkhead-demo"
cp -R examples/auth-service "$DEMO/auth-service"
cd "$DEMO/auth-service"
if [ "${1:-}" = --fail ]; then
  sed -i 's/^defaults:$/defaults:\n  env: {SCRIPTED_AGENT_FAIL: auth_refactor}/' bulkhead.yaml
fi
git init -q -b main
git add -A
git -c user.name=demo -c user.email=demo@example.org -c commit.gpgsign=false commit -q --no-verify -m 'The service as it was'

export BULKHEAD_STATE_DIR="$DEMO/state"
bulkhead() { node "$ROOT/dist/cli/main.js" "$@"; }

echo
echo "\$ bulkhead run tasks/"
status=0
bulkhead run tasks/ || status=$?
echo
echo "\$ bulkhead diff"
bulkhead diff | cat
echo
echo "Your copy of the service is in $DEMO/auth-service, as yet unchanged. Go on there with:"
echo "  cd $DEMO/auth-service && export BULKHEAD_STATE_DIR=$BULKHEAD_STATE_DIR"
echo "  $ROOT/node_modules/.bin/node $ROOT/dist/cli/main.js apply"
[ "${1:-}" = --fail ] && [ "$status" -eq 1 ] && exit 0
exit "$status"
