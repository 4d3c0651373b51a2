#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The unit files as systemd reads them, the scripts as their shells do, the presets as the daemon does. TAP.
set -uo pipefail
source=${CORACLE_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
n=0 bad=0
T=$(mktemp -d)
trap 'rm -rf "$T"' EXIT
ok() { n=$((n + 1)); echo "ok $n - $*"; }
not_ok() { n=$((n + 1)); bad=1; echo "not ok $n - $*"; }
check() { local name=$1 out; shift; if out=$("$@" 2>&1) && [ -z "$out" ]; then ok "$name"; else not_ok "$name"; echo "$out" | sed 's/^/  | /'; fi; }

if command -v systemd-analyze >/dev/null; then
  for unit in coracled.service coracle-pods.service; do  # the programs need not be installed to judge the units
    sed -E 's#^(Exec(Start|Stop)(Post)?)=-?[^ ]+#\1=/bin/true#' "$source/systemd/$unit" >"$T/$unit"
  done
  for unit in coracled.service coracle-pods.service; do
    check "systemd-analyze verify $unit" systemd-analyze verify --man=no "$T/$unit"
  done
  # What systemd would take from the daemon and may not, the unit gives a reason for.
  unexplained() {
    local option
    systemd-analyze security --offline=true --json=short "$T/coracled.service" | tr '{' '\n' |
      sed -n 's/^"set":false,"name":"\([A-Za-z]*\).*/\1/p' | sort -u |
      while read -r option; do grep -Eq "^#  (.* )?$option=" "$source/systemd/coracled.service" || echo "$option= is not explained"; done
  }
  if systemd-analyze security --help 2>&1 | grep -q -- --offline; then
    check "coracled.service says why it does without each protection that it lacks" unexplained
  else
    ok "coracled.service says why it does without each protection that it lacks # SKIP this systemd-analyze reads no files"
  fi
else
  ok "systemd-analyze verify # SKIP systemd-analyze is not here"
fi
for script in "$source"/systemd/* "$source"/systemd/card/* "$source"/systemd/debian/*; do
  [ -f "$script" ] || continue
  case $(head -n 1 "$script") in
    '#!/bin/sh')           check "${script##*/} is good sh" sh -n "$script" ;;
    '#!/usr/bin/env bash') check "${script##*/} is good bash" bash -n "$script" ;;
  esac
done
check "coraclectl.bash is good bash" bash -n "$source/ctl/shells/coraclectl.bash"
# The machine's settings, played by files.
mkdir -p "$T/bin" "$T/sysctl"
cat >"$T/bin/sysctl" <<'FAKE'
#!/bin/sh
case $1 in
  -n) cat "$SETTINGS/$2" ;;
  -q) [ "${3%%=*}" != read.only ] && printf '%s\n' "${3#*=}" >"$SETTINGS/${3%%=*}" ;;
esac
FAKE
chmod +x "$T/bin/sysctl"
printf '# a comment = 1\na.flag = 1\nb.count=8192\nc.same = 5\nd.absent = 1\n  read.only =  2 \ne.other = 7\n' >"$T/50-test.conf"
now() { (cd "$T/sysctl" && grep . -- * | tr '\n' ' '); }
sysctls() { PATH="$T/bin:$PATH" SETTINGS="$T/sysctl" "$source/systemd/sysctls" "$1" "$T/50-test.conf" "$T/record"; }
is() { local name=$1 want=$2 got=$3; if [ "$got" = "$want" ]; then ok "$name"; else not_ok "$name"; echo "  | wanted: $want"; echo "  | got:    $got"; fi; }
for setting in a.flag=0 b.count=128 c.same=5 read.only=1 e.other=6; do echo "${setting#*=}" >"$T/sysctl/${setting%%=*}"; done
before=$(now)
sysctls set
is "sysctls sets what a file says" "a.flag:1 b.count:8192 c.same:5 e.other:7 read.only:1 " "$(now)"
sysctls set  # an upgrade: what it finds now is ours
echo 9 >"$T/sysctl/e.other"
sysctls restore
is "sysctls sets back what was there before the first time, but what others have changed" "${before/e.other:6/e.other:9}" "$(now)"
check "and keeps no record" test ! -e "$T/record"
check "without a record nothing is set back" sysctls restore
# What is told at the consoles. Played: the journal, and who shows it.
mkdir "$T/run"
printf '#!/bin/sh\ncase "$*" in *--sync*) ;; *) cat "%s/said" ;; esac\n' "$T" >"$T/bin/journalctl"
printf '#!/bin/sh\necho "$*" >>"%s/shown"\n' "$T" >"$T/bin/agetty"
chmod +x "$T/bin/journalctl" "$T/bin/agetty"
notice() { env "${@:2}" PATH="$T/bin:$PATH" RUNTIME_DIRECTORY="$T/run" "$source/systemd/start-notice" "$1" 2>>"$T/told"; }
there() { ls "$T/run" | tr '\n' ' '; }
echo 'open the store: C:\new: no space left on device' >"$T/said"
notice ended SERVICE_RESULT=success EXIT_CODE=exited EXIT_STATUS=0
is "a daemon that was stopped did not fail" "" "$(there)"
for ((i = 0; i < 2; i++)); do notice ended SERVICE_RESULT=exit-code EXIT_CODE=exited EXIT_STATUS=1; done
is "a start that fails twice is not told" "failed-starts " "$(there)"
notice ready
is "one that succeeds ends the row, and shows nothing anew" "  " "$(there) $(cat "$T/shown" 2>/dev/null) $(cat "$T/told")"
for ((i = 0; i < 2; i++)); do notice ended SERVICE_RESULT=watchdog EXIT_CODE=killed EXIT_STATUS=ABRT; done
notice ended SERVICE_RESULT=exit-code EXIT_CODE=exited EXIT_STATUS=1
is "the third failure in a row is told with its reason, whose backslash is one" \
  'coracled does not start (3 tries); it is tried again until somebody stops it.|  open the store: C:\\new: no space left on device|' "$(head -n 2 "$T/run/start.issue" | tr '\n' '|')"
is "… also to the journal, as an error" "<3>coracled does not start (3 tries); it is tried again until somebody stops it: $(cat "$T/said"). Pods go on." "$(cat "$T/told")"
is "… and the prompts are drawn anew" "--reload" "$(cat "$T/shown")"
notice ended SERVICE_RESULT=exit-code EXIT_CODE=exited EXIT_STATUS=1
is "… and not at each further one" "--reload" "$(cat "$T/shown")"
notice ready
is "a start takes it back" " --reload --reload" "$(there) $(tr '\n' ' ' <"$T/shown" | sed 's/ $//')"
for ((i = 0; i < 3; i++)); do notice ended SERVICE_RESULT=exit-code EXIT_CODE=exited EXIT_STATUS=1; done
is "… it is there" "failed-starts start.issue " "$(there)"
notice ended SERVICE_RESULT=success EXIT_CODE=killed EXIT_STATUS=TERM
is "so does a stop, during a try: then nothing is tried again" " 4" "$(there) $(wc -l <"$T/shown")"
: >"$T/said"
notice ended SERVICE_RESULT=exit-code EXIT_CODE=exited EXIT_STATUS=2
is "a configuration that is wrong is told at once; without a word in the journal, how it ended" \
  'coracled does not start until this is corrected, and: systemctl start coracled.|  it ended: exit-code, exited 2|' "$(head -n 2 "$T/run/start.issue" | tr '\n' '|')"
is "it is that status after which systemd does not try again" "$(sed -n 's/^not_repeated=\([0-9]*\).*/\1/p' "$source/systemd/start-notice")" \
  "$(sed -n 's/^RestartPreventExitStatus=//p' "$source/systemd/coracled.service")"
is "what agetty reads leads to the notice" "$(sed -n 's|^L /etc/issue.d/[a-z.]* - - - - ||p' "$source/systemd/coracle.tmpfiles")" /run/coracle/start.issue
check "--help needs no root and no systemd" bash -c '"$1" --help | grep -q -- --purge' - "$source/systemd/install.sh"
check "an unknown option is named" bash -c '"$1" --nonsense 2>&1 | grep -q "unknown option --nonsense"' - "$source/systemd/install.sh"
exit $bad
