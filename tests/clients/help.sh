#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# coraclectl has the commands and flags of Debian's newest kubectl, with the same short names and defaults: help.py walks the help
# of both. Needs no daemon and no root. TAP.
set -uo pipefail
bin=${CORACLE_BIN:?CORACLE_BIN names the build directory}
cache=${CORACLE_TEST_CACHE:-/var/tmp/coracle-tests}
here=$(cd "$(dirname "$0")" && pwd)
found=$("$here/../e2e/fetch_kubectl.sh" "$cache/kubectl" 2>/dev/null | sed -n 's/^sid \([^ ]*\) .*/\1/p')
[ -n "$found" ] || { echo "ok 1 - help # SKIP Debian sid's kubectl cannot be had"; exit 77; }
exec python3 "$here/help.py" "$found" "$bin/ctl/coraclectl" "$@"
