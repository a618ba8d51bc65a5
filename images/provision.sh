#!/bin/sh
# Makes a base image fit for attempts, as root, while the image is built: tools, the agent's user, its folders.
# Installs only what is missing, so a prepared base needs no network. Works with apt, apk and dnf.
set -eu

# program:debian-package:alpine-package:fedora-package
TOOLS="
git:git:git:git
socat:socat:socat:socat
curl:curl:curl:curl
jq:jq:jq:jq
python3:python3:python3:python3
timeout:coreutils:coreutils:coreutils
"

debian="" alpine="" fedora=""
for tool in $TOOLS; do
  program=${tool%%:*}
  command -v "$program" >/dev/null 2>&1 && continue
  rest=${tool#*:}
  debian="$debian ${rest%%:*}" rest=${rest#*:}
  alpine="$alpine ${rest%%:*}" fedora="$fedora ${rest#*:}"
done
# The toolbox's Node is linked against the C++ library; certificates are a folder, not a program.
find /usr/lib /lib -name 'libstdc++.so.6' 2>/dev/null | grep -q . ||
  { debian="$debian libstdc++6" alpine="$alpine libstdc++" fedora="$fedora libstdc++"; }
[ -e /etc/ssl/certs/ca-certificates.crt ] || [ -e /etc/pki/tls/certs/ca-bundle.crt ] ||
  { debian="$debian ca-certificates" alpine="$alpine ca-certificates" fedora="$fedora ca-certificates"; }

if [ -n "$debian" ]; then
  # The lists are meant to be split into words.
  # shellcheck disable=SC2086
  if command -v apt-get >/dev/null; then
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends $debian
    rm -rf /var/lib/apt/lists/*
  elif command -v apk >/dev/null; then
    apk add --no-cache $alpine
  elif command -v dnf >/dev/null; then
    dnf install -y --setopt=install_weak_deps=False $fedora && dnf clean all
  else
    echo "bulkhead: the base image lacks:$debian, and has neither apt-get, apk nor dnf; install them in the base" >&2
    exit 1
  fi
fi

# Written by hand: useradd and adduser differ between distributions, these two files do not.
grep -q '^[^:]*:[^:]*:10001:' /etc/group || echo 'agent:x:10001:' >>/etc/group
grep -q '^[^:]*:[^:]*:10001:' /etc/passwd ||
  echo 'agent:x:10001:10001:bulkhead agent:/home/agent:/bin/sh' >>/etc/passwd
mkdir -p /home/agent /workspace /opt/bulkhead /run/bulkhead
chown 10001:10001 /home/agent /workspace
chmod 0755 /home/agent /workspace
