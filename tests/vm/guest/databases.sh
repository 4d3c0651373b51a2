#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Functions for tests/vm/databases.sh. Called with the name of a database, it writes rows, and reports the acknowledged ones on
# the third serial line.
id_in_image() { awk -F : -v user="$1" '$1 == user {print $3}' /opt/databases/etc/passwd; }
group_in_image() { awk -F : -v user="$1" '$1 == user {print $4}' /opt/databases/etc/passwd; }
set_of() {  # set_of NAME USER READY COMMAND: a StatefulSet with one pod and a claim at /data
  cat <<Y
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: $1}
spec:
  serviceName: $1
  selector: {matchLabels: {app: $1}}
  template:
    metadata: {labels: {app: $1}}
    spec:
      terminationGracePeriodSeconds: 20
      # OnRootMismatch: PostgreSQL refuses a directory that its group may write, as fsGroup makes it with each new pod else.
      securityContext: {runAsUser: $(id_in_image "$2"), runAsGroup: $(group_in_image "$2"), fsGroup: $(group_in_image "$2"), fsGroupChangePolicy: OnRootMismatch}
      containers:
      - name: $1
        image: localhost/databases:latest
        imagePullPolicy: Never
        command: [bash, -ec, '$4']
        readinessProbe: {exec: {command: [bash, -c, '$3']}, periodSeconds: 2, timeoutSeconds: 30}
        volumeMounts: [{name: data, mountPath: /data}]
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 512Mi}}}
Y
}
sets() {
  set_of postgres postgres 'psql -h /tmp -U postgres -c "select 1"' \
    'PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); [ -s /data/database/PG_VERSION ] || initdb -A trust -D /data/database >/dev/null; exec postgres -D /data/database -c unix_socket_directories=/tmp -c jit=off -c listen_addresses='
  set_of mariadb mysql 'mariadb --no-defaults -u root -S /tmp/socket -e "select 1"' \
    '[ -d /data/database/mysql ] || mariadb-install-db --no-defaults --datadir=/data/database --auth-root-authentication-method=normal >/dev/null; exec mariadbd --no-defaults --datadir=/data/database --socket=/tmp/socket --pid-file=/tmp/pid --skip-networking'
}
set_is_ready() { is "$(coraclectl get statefulset "$1" -o 'jsonpath={.status.readyReplicas} {.status.updatedReplicas}')" "1 1"; }
sql() {  # sql DATABASE [coraclectl exec's options]: the client reads statements and stops at the first that fails
  local database=$1
  shift
  case $database in
    postgres) coraclectl exec "$@" postgres-0 -- psql -h /tmp -U postgres -qtA -v ON_ERROR_STOP=1 ;;
    mariadb)  coraclectl exec "$@" mariadb-0 -- mariadb --no-defaults -u root -S /tmp/socket -N --unbuffered ;;
  esac
}
make_tables() {
  sql postgres -i <<<'create table if not exists kept (n bigint primary key);' &&
    sql mariadb -i <<<'create database if not exists d; create table if not exists d.kept (n bigint primary key) engine=innodb;'
}
rows() {  # rows DATABASE: "row DATABASE NUMBER" for each
  local table=kept out
  [ "$1" = postgres ] || table=d.kept
  out=$(sql "$1" -i <<<"select n from $table;") && sed "s/^/row $1 /" <<<"$out"
}
statements() {  # statements DATABASE: a row after the other; after each, it is named. Ends when nobody reads them
  local n
  for ((n = $(date +%s) * 100000; ; n++)); do
    case $1 in
      postgres) printf 'insert into kept values (%d);\n\\echo row postgres %d\n' "$n" "$n" || return ;;
      mariadb)  printf "insert into d.kept values (%d); select 'row mariadb %d';\n" "$n" "$n" || return ;;
    esac
    sleep 0.1
  done
}
if [ "${BASH_SOURCE[0]}" = "$0" ]; then
  . /root/lib.sh
  stty -F /dev/ttyS2 raw -echo 115200
  while :; do
    statements "$1" | sql "$1" -i >/dev/ttyS2
    sleep 1
  done
fi
