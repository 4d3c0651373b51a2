#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The tests' agent in the virtual machine: reads commands from the second serial line, runs each, and sends the result.
#   in:  <id> <command, base64>          out: <id> <exit status> <output, base64>
exec 3<>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo 115200
export HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
echo "hello" >&3
while read -r id command <&3; do
  [ -n "${command:-}" ] || continue
  output=$(bash -c "$(echo "$command" | base64 -d)" 2>&1 3>&- </dev/null)
  status=$?
  printf '%s %s %s\n' "$id" "$status" "$(printf '%s' "$output" | tail -c 60000 | base64 -w 0)" >&3
done
