# Sourced by the scripts beside it: goes to the top of the checkout and puts the project's own Node and tools first on the PATH.
# shellcheck shell=sh
ROOT=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
cd "$ROOT"

# The PATH without any node_modules/.bin: npm must not run on the Node that `npm ci` is about to delete.
SYSTEM_PATH=$(printf '%s' "$PATH" | tr ':' '\n' | grep -v '/node_modules/.bin/*$' | paste -sd: -)
PATH=$ROOT/node_modules/.bin:$SYSTEM_PATH
export PATH

# Installs the locked dependencies where they are missing or older than the lock file. Node 20 and npm are enough for that;
# everything after it runs on the Node that comes with the dependencies.
install_dependencies() {
  if [ -x node_modules/.bin/node ] && [ -e node_modules/.package-lock.json ] &&
    [ ! package-lock.json -nt node_modules/.package-lock.json ]; then
    return 0
  fi
  if ! PATH=$SYSTEM_PATH command -v npm >/dev/null; then
    echo "error: npm is not on the PATH" >&2
    echo "hint: install Node 20 or newer with npm; the project brings its own Node from there on" >&2
    exit 3
  fi
  echo "dependencies: npm ci"
  # --include=dev: the build tools are needed also where NODE_ENV says production.
  PATH=$SYSTEM_PATH npm ci --include=dev --no-audit --no-fund --loglevel=error </dev/null
  # npm leaves the marker's time as it was where nothing had to change; the comparison above needs it to be newer.
  touch node_modules/.package-lock.json
}
