#!/bin/sh
# Runs the long tests one after the other, each a program of its own: test/soak/*.soak.ts. Arguments are passed to each.
set -eu
. "$(dirname -- "$0")/env.sh"
sh scripts/setup.sh
failed=0 ran=0
for soak in test/soak/*.soak.ts; do
  [ -e "$soak" ] || continue
  echo "soak: $soak"
  ran=$((ran + 1))
  node "$soak" "$@" || failed=$((failed + 1))
done
echo "soak: $((ran - failed)) of $ran passed"
[ "$ran" -gt 0 ] && [ "$failed" -eq 0 ]
