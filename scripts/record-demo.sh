#!/bin/sh
# Records docs/demo.svg: plays the demo in a terminal of fixed size and keeps a few of its screens. Needs tmux.
set -eu
. "$(dirname -- "$0")/env.sh"
command -v tmux >/dev/null || { echo "error: recording needs tmux" >&2; exit 3; }

work=$(mktemp -d "${TMPDIR:-/tmp}/bulkhead-record-XXXXXX")
trap 'tmux -L bulkhead-record kill-server 2>/dev/null || true; rm -rf "$work"' EXIT INT TERM
cp -R examples/auth-service "$work/auth-service"
git -C "$work/auth-service" init -q -b main
git -C "$work/auth-service" add -A
git -C "$work/auth-service" -c user.name=demo -c user.email=demo@example.org commit -q -m start
cat >"$work/rc" <<RC
PS1='\$ '
export BULKHEAD_STATE_DIR=$work/state LANG=C.UTF-8
bulkhead() { $ROOT/node_modules/.bin/node $ROOT/dist/cli/main.js "\$@"; }
cd $work/auth-service
clear
RC
tmux -L bulkhead-record -u new-session -d -x 100 -y 34 "bash --noprofile --rcfile $work/rc -i"
n=0
shot() {
  n=$((n + 1))
  tmux -L bulkhead-record capture-pane -e -p >"$(printf '%s/frame%02d' "$work" "$n")"
}
type_line() { tmux -L bulkhead-record send-keys -l "$1"; tmux -L bulkhead-record send-keys Enter; }
sleep 1
type_line 'bulkhead run tasks/'
for _ in 1 2 3 4 5 6 7 8 9; do sleep 1.2; shot; done
sleep 3; shot
type_line 'clear; bulkhead diff --stat; bulkhead apply -y | tail -4; git status --short'
sleep 4; shot
node scripts/frames-to-svg.ts docs/demo.svg 1.2 "$work"/frame*
echo "docs/demo.svg: $n screens"
