#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# PostgreSQL and MariaDB, each as a StatefulSet with a claim, in images made of Debian packages. Rows are written all the time,
# and the acknowledged ones are recorded outside of the virtual machine. Meanwhile the daemon is killed, volumes are expanded, the
# sets are updated, the daemon is upgraded in place, and the power is cut; each time every acknowledged row must be there.
# TAP; skipped as a whole, with the reason, without qemu. It takes a quarter of an hour on 2 cores, and twice that the first time.
#   CORACLE_VM_CUTS   number of power cuts (3)
set -uo pipefail
title="databases in a virtual machine"
. "$(dirname "$0")/machine.sh"
cuts=${CORACLE_VM_CUTS:-3}

diagnose() { on 60 'journalctl -u coracled --no-pager -n 30; coraclectl get sts,pods,pvc,pv -o wide; coraclectl get events | tail -n 20; for s in postgres mariadb; do coraclectl logs $s-0 --tail=20; done; systemctl status --no-pager "write-*" | tail -n 30' | sed 's/^/  | /'; }

payload_of_build lib.sh databases.sh
chmod +x "$T/payload/root/databases.sh"
words="lib.sh databases.sh"
pack
boot --databases

check "files are installed" 120 "$unpack"'. /root/lib.sh && coracled --version' || exit 1
check "the service is ready" 300 'systemctl daemon-reload; systemd-tmpfiles --create coracle.conf; systemctl enable --quiet --now coracled && until_true 100 ready' || { diagnose; exit 1; }
check "an image is made of the packages" 900 'coraclectl image pack /opt/databases localhost/databases:latest --cmd bash' || { diagnose; exit 1; }
check "both databases run" 900 'sets | coraclectl apply -f - && until_true 300 set_is_ready postgres && until_true 200 set_is_ready mariadb && until_true 30 make_tables' || { diagnose; exit 1; }

# rows_of DATABASE: the number of its acknowledged rows.
rows_of() { grep -cx "row $1 [0-9]*" "$T/acks"; }
start_writing() { on 60 'for s in postgres mariadb; do systemctl reset-failed write-$s 2>/dev/null; systemd-run --quiet --unit=write-$s /root/databases.sh $s; done' || not_ok "the writers start"; }
# more_rows: waits until both databases have acknowledged five more rows.
more_rows() {
  local postgres mariadb waited
  postgres=$(rows_of postgres) mariadb=$(rows_of mariadb)
  for ((waited = 0; waited < 900; waited++)); do
    if [ "$(rows_of postgres)" -ge $((postgres + 5)) ] && [ "$(rows_of mariadb)" -ge $((mariadb + 5)) ]; then return 0; fi
    sleep 0.2
  done
  return 1
}
all_rows_are_there() {  # all_rows_are_there AFTER_WHAT: no row that was acknowledged so far is missing, and writing continues
  local said there missing
  said=$(grep -x 'row \(postgres\|mariadb\) [0-9]*' "$T/acks" | sort -u)
  there=$(on 200 'told 100 rows postgres && told 100 rows mariadb' | sort -u)
  missing=$(comm -23 <(echo "$said") <(echo "$there"))
  if [ -n "$said" ] && [ -z "$missing" ]; then ok "$1: all $(wc -l <<<"$said") acknowledged rows are there"
  else not_ok "$1: of $(wc -l <<<"$said") acknowledged rows are missing: $(head -n 10 <<<"$missing" | tr '\n' ' ')"; tail -n 5 <<<"$there" | sed 's/^/  | /'; diagnose; fi
}
go_on() { if more_rows; then ok "$1: rows are written on"; else not_ok "$1: rows are written on"; diagnose; fi; }

both_run='until_true 200 ready && until_true 300 set_is_ready postgres && until_true 300 set_is_ready mariadb'
undisturbed="is \"\$(ls -d $(on 30 container_pids | xargs -n 1 printf '/proc/%s ') 2>/dev/null | wc -l)\" 2"  # later there are clients, too
start_writing
go_on "both are written to"

for ((kill = 1; kill <= 3; kill++)); do
  check "SIGKILL $kill of the daemon: the databases' containers are the same" 120 "until_true 60 ready; systemctl kill -s KILL --kill-who=main coracled; sleep 1; $both_run && $undisturbed" || diagnose
  go_on "SIGKILL $kill"
done
all_rows_are_there "after the kills"

check "claims that ask for more get it while their pods run" 120 'for s in postgres mariadb; do coraclectl patch pvc data-$s-0 --type=merge -p "{\"spec\":{\"resources\":{\"requests\":{\"storage\":\"768Mi\"}}}}" || exit 1; done; for s in postgres mariadb; do until_true 40 eval "is \"\$(coraclectl get pvc data-$s-0 -o jsonpath={.status.capacity.storage})\" 768Mi" || exit 1; done' || diagnose
go_on "expansion"

check "upgrade in place: the same files installed over the running ones, the pods run on" 200 "tar -C / -xf /dev/vdb usr && systemctl daemon-reload && systemctl restart coracled && $both_run && $undisturbed" || diagnose
go_on "upgrade"
all_rows_are_there "after expansion and upgrade"

check "a rolling update replaces both pods" 400 'for s in postgres mariadb; do coraclectl patch statefulset $s -p "{\"spec\":{\"template\":{\"metadata\":{\"annotations\":{\"round\":\"2\"}}}}}" || exit 1; done; for s in postgres mariadb; do coraclectl rollout status statefulset/$s --timeout=600s && until_true 100 set_is_ready $s || exit 1; is "$(coraclectl get pod $s-0 -o "jsonpath={.metadata.annotations.round}")" 2 || exit 1; done' || diagnose
go_on "rolling update"
all_rows_are_there "after the rolling update"

for ((cut = 1; cut <= cuts; cut++)); do
  more_rows || not_ok "power cut $cut: rows are written before"
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  "$vm/vm.py" cut "$T"
  boot --databases
  check "power cut $cut: both databases come back" 600 "$both_run" || diagnose
  all_rows_are_there "power cut $cut"
  start_writing
  go_on "power cut $cut"
done
echo "measured: $cuts power cuts, $(rows_of postgres) rows of PostgreSQL and $(rows_of mariadb) of MariaDB acknowledged"

check "sets and claims are deleted, and their directories with them" 200 'systemctl stop write-postgres write-mariadb; coraclectl delete statefulset postgres mariadb >/dev/null && coraclectl delete pvc data-postgres-0 data-mariadb-0 >/dev/null && until_true 100 eval "is \"\$(ls -A /var/lib/coracle/volumes | grep -vFx -e .coracle -e .coracle.projects | wc -l)\" 0 && is \"\$(coraclectl get pv --no-headers 2>/dev/null | wc -l)\" 0"' || diagnose
echo "1..$n"
[ "$failures" -eq 0 ]
