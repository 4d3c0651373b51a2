#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Writes until the power is cut, and reports the acknowledged writes on the third serial line.
#   writer.sh ROUND
. /root/lib.sh
round=$1 i=0
exec 4>/dev/ttyS2
stty -F /dev/ttyS2 raw -echo 115200
[ -d /root/cut ] || rootfs /root/cut
while :; do
  i=$((i + 1))
  if coraclectl create configmap "cut-$round-$i" --from-literal="v=$round-$i" >/dev/null 2>&1; then echo "object cut-$round-$i" >&4; fi
  if [ $((i % 4)) -eq 1 ]; then
    echo "$round-$i" >/root/cut/round
    if coraclectl image pack /root/cut "localhost/cut:$round-$i" >/dev/null 2>&1; then echo "image localhost/cut:$round-$i" >&4; fi
  fi
  if [ $((i % 3)) -eq 0 ]; then
    echo "going cut-$round-$((i - 1))" >&4  # from here on it may be gone, whether or not that is acknowledged
    if coraclectl delete configmap "cut-$round-$((i - 1))" >/dev/null 2>&1; then echo "gone cut-$round-$((i - 1))" >&4; fi
  fi
done
