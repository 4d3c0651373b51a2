# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# For tests that repeat the same action many times in a long run (tests/run.sh --long), to be sourced: when to stop, and the
# number of repetitions.
#   CORACLE_UNTIL      nothing new is started after this moment (seconds since 1970); unset: no limit
#   CORACLE_PROGRESS   a directory that keeps the counts between runs of one commit; unset: each run starts anew

time_is_left() { [ -z "${CORACLE_UNTIL:-}" ] || [ "$(date +%s)" -lt "$CORACLE_UNTIL" ]; }
done_before() { cat "${CORACLE_PROGRESS:-/nonexistent}/$1" 2>/dev/null || echo 0; }  # done_before NAME
keep_count() {  # keep_count NAME COUNT
  [ -n "${CORACLE_PROGRESS:-}" ] || return 0
  mkdir -p "$CORACLE_PROGRESS" && echo "$2" >"$CORACLE_PROGRESS/$1.new" && mv "$CORACLE_PROGRESS/$1.new" "$CORACLE_PROGRESS/$1"
}
