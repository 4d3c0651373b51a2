#!/bin/sh
# Fields of config.json, each checked from inside the container or by the caller.
#   oci_fields_live.sh CORACLE_OCI
oci=$(realpath "$1")
if [ "$(id -u)" != 0 ]; then echo "skipped: needs root"; exit 77; fi
busybox=$(command -v busybox) || { echo "skipped: needs busybox-static"; exit 77; }
command -v python3 >/dev/null || { echo "skipped: needs python3"; exit 77; }
grep -q ' - cgroup2 ' /proc/self/mountinfo || { echo "skipped: needs cgroup v2"; exit 77; }

work=$(mktemp -d /var/tmp/coracle-oci-XXXXXX)
chmod 755 "$work"
failed=0
run() { "$oci" --root "$work/root" "$@"; }
expect() { # NAME WANT GOT
  if [ "$2" = "$3" ]; then echo "ok - $1"; else echo "not ok - $1: want '$2', got '$3'"; failed=1; fi
}
# soon COMMAND...: repeats it until it succeeds, for at most a minute
soon() {
  for _ in $(seq 1200); do "$@" && return; sleep 0.05; done
  echo "# in vain: $*"
}
is_stopped() { run state "$1" | grep -q stopped; }
clean() {
  for id in $(run list -q); do run delete --force "$id"; done
  rm -rf "$work"
}
trap clean EXIT

mkdir -p "$work/b/rootfs/bin" "$work/b/rootfs/data/d"
cp "$busybox" "$work/b/rootfs/bin/busybox"
for name in sh sleep cat echo id touch stat mount umount tty uname cut ls readlink seq head ip grep mkdir sed env unshare; do ln -s busybox "$work/b/rootfs/bin/$name"; done
echo below > "$work/b/rootfs/data/d/f"
chmod 750 "$work/b/rootfs/data"
run spec --bundle "$work/b"
mv "$work/b/config.json" "$work/base.json"
# config SHELL-COMMAND [PYTHON]: writes a bundle that runs the command; PYTHON changes the configuration `c`.
config() {
  COMMAND=$1 CHANGE=${2:-} python3 - "$work/base.json" "$work/b/config.json" <<'P'
import json, os, sys
c = json.load(open(sys.argv[1]))
c["process"]["terminal"] = False
c["process"]["args"] = ["sh", "-c", os.environ["COMMAND"]]
maps = [{"containerID": 0, "hostID": 100000, "size": 65536}]
def mount(destination, type, source, *options): c["mounts"].append({"destination": destination, "type": type, "source": source, "options": list(options)})
def namespace(type, path=""): c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != type] + [{"type": type, **({"path": path} if path else {})}]
def user_namespace():
    namespace("user")
    c["linux"]["uidMappings"] = c["linux"]["gidMappings"] = maps
def hook(kind, command, **more):
    made = {"path": "/bin/sh", "args": ["sh", "-c", command], "env": ["PATH=/bin:/usr/bin"], **more}
    c.setdefault("hooks", {}).setdefault(kind, []).append({k: v for k, v in made.items() if v is not None})
exec(os.environ["CHANGE"])
json.dump(c, open(sys.argv[2], "w"))
P
}
see() { # NAME WANT COMMAND [PYTHON]
  config "$3" "${4:-}"
  expect "$1" "$2" "$(run run --bundle "$work/b" x 2>&1)"
  run delete --force x
}

# ---- errors ----
config true 'mount("/a\nb", "nosuchfs", "x")'
expect "an error is one line, whatever a path holds" 'coracle-oci: mounts: /a\nb: mount: No such device' "$(run run --bundle "$work/b" x 2>&1)"

# ---- limits ----
limit_of() {  # FILE, a controller's, of container x's cgroup in whichever hierarchy has it; nothing where it is in none
  pid=$(run state x | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])')
  python3 - "$pid" "$1" <<'P'
import os, sys
for line in open(f"/proc/{sys.argv[1]}/cgroup").read().splitlines():
    _, controllers, path = line.split(":", 2)
    controller = sys.argv[2].split(".")[0]
    roots = [f"/sys/fs/cgroup/{controller}"] if controller in controllers.split(",") else ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] if not controllers else []
    for root in roots:
        if os.path.exists(f"{root}{path}/{sys.argv[2]}"): print(open(f"{root}{path}/{sys.argv[2]}").read().strip())
P
}
for row in "1.0.2 max" "1.2.1 max" "1.3.0 1"; do
  config 'exec sleep 100' "c['ociVersion'] = '${row% *}'; c['linux'].setdefault('resources', {})['pids'] = {'limit': 0}"
  run run --detach --bundle "$work/b" x </dev/null >/dev/null 2>&1
  most=$(limit_of pids.max)
  if [ -n "$most" ]; then expect "a pids.limit of 0 in a configuration of ${row% *}" "${row#* }" "$most"; fi
  run delete --force x
done

config 'exec sleep 100' 'c["linux"].setdefault("resources", {})["memory"] = {"limit": 64 << 20}'
run run --detach --bundle "$work/b" x </dev/null >/dev/null 2>&1
if [ -n "$(limit_of cpuset.cpus)$(limit_of cpuset.cpus.effective)" ]; then
  run update --cpuset-cpus 0 x && run update --cpuset-mems 0 x
  expect "update of the processors and the memory nodes" "0 0" "$(limit_of cpuset.cpus) $(limit_of cpuset.mems)"
else
  echo "ok - update of the processors and the memory nodes # SKIP there is no controller"
fi
if [ -n "$(limit_of memory.limit_in_bytes)$(limit_of memory.max)" ]; then
  expect "a limit of memory is among the statistics" 67108864 \
    "$(run events --stats x | python3 -c 'import json, sys; print(json.load(sys.stdin)["data"]["memory"]["usage"]["limit"])')"
  run update --memory 32M x
  expect "and can be updated" 33554432 "$(limit_of memory.limit_in_bytes)$(limit_of memory.max)"
  run update --memory 32M --memory-swap 64M x
  expect "and taken away, with that of swap" " 9223372036854771712" "$(run update --memory -1 x 2>&1) $(limit_of memory.limit_in_bytes)$(limit_of memory.max | sed 's/max/9223372036854771712/')"
else
  echo "ok - a limit of memory is among the statistics # SKIP there is no controller"
fi
run delete --force x

# An idle cgroup has no shares: the one that is given takes the place of the other.
config 'exec sleep 100' 'c["linux"].setdefault("resources", {})["cpu"] = {"shares": 512}'
run run --detach --bundle "$work/b" x </dev/null >/dev/null 2>&1
if [ -n "$(limit_of cpu.idle)" ]; then
  expect "update makes a container with shares idle" " 1" "$(run update --cpu-idle 1 x 2>&1) $(limit_of cpu.idle)"
  expect "which it stays when something else is updated" " 1" "$(run update --cpu-burst 0 --cpu-quota '' x 2>&1) $(limit_of cpu.idle)"
  expect "until it has shares" " 0" "$(run update --cpu-share 200 x 2>&1) $(limit_of cpu.idle)"
else
  echo "ok - update makes a container with shares idle # SKIP there is no controller, or an older kernel"
fi
expect "update refuses what needs resctrl" "coracle-oci: --l3-cache-schema: resctrl is not supported" "$(run update --l3-cache-schema L3:0=3 x 2>&1)"
expect "unless it is nothing" "" "$(run update --mem-bw-schema '' x 2>&1)"
run delete --force x

# ---- namespaces ----
see "a user namespace maps ids" "0 0 100000 65536" 'echo $(id -u) $(cat /proc/self/uid_map)' 'user_namespace()'
see "what is made for it is its root's" "0 0 0 0" 'echo $(stat -c %u /dev /dev/null /dev/shm /data)' 'user_namespace(); mount("/data", "tmpfs", "tmpfs")'
see "mounts of the runtime's stay, whatever privileges are held inside" "no no mounted" \
  'umount /proc/acpi 2>/dev/null || echo -n "no "; mount -o remount,rw,bind /proc/sys 2>/dev/null || echo -n "no "; mount -t tmpfs x /dev/shm && echo mounted' \
  'user_namespace(); c["process"]["capabilities"] = {k: ["CAP_SYS_ADMIN", "CAP_CHOWN"] for k in ("bounding", "effective", "permitted")}'
see "settings of what belongs to a user namespace are set" "1 1234 63" \
  'cd /proc/sys; echo $(cat kernel/shm_rmid_forced kernel/msgmax net/ipv4/ip_default_ttl)' \
  'user_namespace(); c["linux"]["sysctl"] = {"kernel.shm_rmid_forced": "1", "kernel.msgmax": "1234", "net.ipv4.ip_default_ttl": "63"}'
see "a device that is asked for stays the host's in a user namespace" "65534 660 no 0" \
  'echo $(stat -c "%u %a" /dev/memory; head -c 1 /dev/memory >/dev/null 2>&1 || echo no; stat -c %u /dev/null)' \
  'user_namespace(); c["linux"]["devices"] = [{"path": "/dev/memory", "type": "c", "major": 1, "minor": 1, "fileMode": 0o660, "uid": 0, "gid": 0}]
c["linux"]["resources"] = {"devices": [{"allow": True, "access": "rwm"}]}'
see "clocks are moved" "yes" '[ "$(cut -d. -f1 /proc/uptime)" -gt 1000000000 ] && echo yes' 'namespace("time"); c["linux"]["timeOffsets"] = {"boottime": {"secs": 1000000000}}'
config 'sleep 1000'
run run -d --bundle "$work/b" first
pid=$(run state first | sed -n 's/.*"pid": \(.*\),/\1/p')
see "namespaces are joined by path" "same same same" \
  'for n in pid net ipc; do [ "$(readlink /proc/self/ns/$n)" = "$(readlink /proc/1/ns/$n)" ] && echo -n "same "; done | head -c 14' \
  "[namespace(t, '/proc/$pid/ns/' + f) for t, f in (('pid', 'pid'), ('network', 'net'), ('ipc', 'ipc'))]; c['linux']['maskedPaths'] = []"
run exec first sh -c 'echo there > /dev/shm/mark'
see "and so are mounts" "there" 'cat /dev/shm/mark' "namespace('mount', '/proc/$pid/ns/mnt')"
run delete --force first

# An unprivileged engine may not join a namespace that the container shares with the machine: exec joins only those that differ.
config 'sleep 1000' 'for m in c["mounts"]: m["options"] = [o for o in m.get("options", []) if not o.startswith("gid=")]'
if unshare --user --map-root-user --mount true 2>/dev/null; then
  expect "exec by the root of a user namespace" "in" "$(oci=$oci root=$work/root bundle=$work/b said=$work/said unshare --user --map-root-user --mount sh -c \
    '"$oci" --root "$root" run -d --bundle "$bundle" x >"$said" 2>&1 </dev/null || cat "$said"; "$oci" --root "$root" exec x echo in' 2>&1)"
  run delete --force x
  # The container has no privileges over the host's cgroup namespace: a process that leaves it cannot return.
  config 'readlink /proc/self/ns/cgroup; ls -d /sys/fs/cgroup/*/ 2>/dev/null | grep -c .; grep -o " /sys/fs/cgroup .* cgroup2" /proc/self/mountinfo | cut -d " " -f 2' \
    'c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "cgroup"]
for m in c["mounts"]: m["options"] = [o for o in m.get("options", []) if not o.startswith("gid=")]'
  expect "and it shares the machine's cgroup namespace, but sees its own cgroup" "$(readlink /proc/self/ns/cgroup)
0
/sys/fs/cgroup" "$(oci=$oci root=$work/root bundle=$work/b unshare --user --map-root-user --mount sh -c '"$oci" --root "$root" run --bundle "$bundle" x' 2>&1)"
  run delete --force x
fi
see "a container without a cgroup namespace sees its own cgroup" "$(readlink /proc/self/ns/cgroup) 0" \
  'top=/sys/fs/cgroup; grep -q " $top .* tmpfs " /proc/self/mountinfo && top="$top/*"; echo $(readlink /proc/self/ns/cgroup) $(ls -d $top/*/ 2>/dev/null | grep -c .)' \
  'c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "cgroup"]'

if grep -q " - cgroup .*memory" /proc/self/mountinfo; then
  for ways in "" 'c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "cgroup"]' 'user_namespace()'; do
    see "where cgroup v1 holds the controllers, their limits are seen inside${ways:+ ($ways)}" "67108864 33 no 1 Read-only file system no-devices" \
      'cd /sys/fs/cgroup; echo $(cat memory/memory.limit_in_bytes pids/pids.max) $(ls -d memory/*/ 2> /dev/null || echo no) $(grep -c " /sys/fs/cgroup/unified .* cgroup2 " /proc/self/mountinfo) $(mkdir evil 2>&1 | sed "s/.*: //") $([ -e devices ] || echo no-devices)' \
      "c['linux'].setdefault('resources', {}).update({'memory': {'limit': 64 << 20}, 'pids': {'limit': 33}}); $ways"
  done
  config 'exec sleep 1000'
  run run -d --bundle "$work/b" x < /dev/null > /dev/null
  group=$(sed -n 's/^[0-9]*:[^:]*memory[^:]*://p' "/proc/$(run ps -f json x | tr -dc '0-9,' | cut -d , -f 1)/cgroup")
  mkdir "$(awk '/ - cgroup .*memory/ {print $5; exit}' /proc/self/mountinfo)$group/in"
  expect "exec stands in a cgroup of one hierarchy" "/in /" \
    "$(echo $(run exec --cgroup memory:in x sed -n 's/^[0-9]*:[^:]*\(memory\|pids\)[^:]*:/\1 /p' /proc/self/cgroup 2>&1 | sort | cut -d' ' -f2))"
  run delete --force x
else
  echo "ok - where cgroup v1 holds the controllers, their limits are seen inside # SKIP it does not"
  writable='for m in c["mounts"]: m["options"] = [o for o in m.get("options", []) if o != "ro" or m["type"] != "cgroup"]'
  see "a writable cgroup belongs to the root of the user namespace" "0 65534 made" \
    'cd /sys/fs/cgroup; echo $(stat -c %u cgroup.procs cgroup.freeze) $(mkdir in && echo made)' "user_namespace()
$writable"
fi

see "loopback of a new network namespace is up" "LOOPBACK,UP,LOWER_UP" 'ip -o link show dev lo | grep -o "LOOPBACK[A-Z_,]*"'
see "loopback of one that belongs to a user namespace, too" "LOOPBACK,UP,LOWER_UP" 'ip -o link show dev lo | grep -o "LOOPBACK[A-Z_,]*"' 'user_namespace()'

see "without a mount namespace of its own it stands in its root all the same" "bin data" 'echo $(ls -d /bin /data /sys/kernel 2>/dev/null | cut -c 2-)' \
  'c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "mount"]; c["mounts"] = []; c["linux"]["maskedPaths"] = c["linux"]["readonlyPaths"] = []; c["root"]["readonly"] = False'
expect "and leaves no mount behind" "" "$(grep "$work/b/rootfs" /proc/self/mountinfo)"
# The machine's own /proc may not be in its mount namespace: then the kernel would let a user namespace inside mount one without masks.
for way in "" --no-pivot; do
  config 'unshare -U -r -m -p -f mount -t proc proc /data 2>/dev/null && echo mounted || echo refused'
  expect "a user namespace inside mounts no /proc without masks${way:+ ($way)}" "refused" "$(run run $way --bundle "$work/b" x 2>&1)"
done
config 'sleep 1000 & echo' 'c["linux"]["namespaces"] = [n for n in c["linux"]["namespaces"] if n["type"] != "pid"]'
run run -d --bundle "$work/b" x < /dev/null > /dev/null 2>&1
soon is_stopped x
expect "in its caller's process namespace the others outlive the first" 1 "$(run ps -f json x | tr ',' '\n' | grep -c '[0-9]')"
run kill x KILL
killed=$?
has_nothing() { [ "$(run ps -f json x)" = '[]' ]; }
soon has_nothing
expect "and are killed when it is gone" "0 0" "$killed $(run ps -f json x | tr ',' '\n' | grep -c '[0-9]')"
run delete --force x

# ---- mounts ----
mkdir -p "$work/b/rootfs/etc"
ln -s ../run/systemd/resolve/stub-resolv.conf "$work/b/rootfs/etc/resolv.conf"
echo "nameserver 10.0.0.1" > "$work/resolv.conf"
see "a file is mounted where a link leads that leads nowhere yet" "nameserver 10.0.0.1 1" 'echo $(cat /etc/resolv.conf) $(grep -c " /run/systemd/resolve/stub-resolv.conf " /proc/self/mountinfo)' \
  "mount('/etc/resolv.conf', 'bind', '$work/resolv.conf', 'bind', 'ro'); c['root']['readonly'] = False"
rm -rf "$work/b/rootfs/etc/resolv.conf" "$work/b/rootfs/run"
see "tmpcopyup begins with what is below" "below 750" 'echo $(cat /data/d/f) $(stat -c %a /data)' 'mount("/data", "tmpfs", "tmpfs", "tmpcopyup")'
see "a tmpfs without a mode is as open as what it covers" "750 1777 700 1777" 'stat -c %a /data /data/made /closed /open | tr "\n" " " | sed "s/ $//"' \
  'mount("/data", "tmpfs", "tmpfs"); mount("/data/made", "tmpfs", "tmpfs"); mount("/closed", "tmpfs", "tmpfs", "mode=700"); mount("/open", "tmpfs", "tmpfs", "mode=1777")'
see "a source that an earlier mount covers is what the container sees" "empty below" 'echo $(cat /seen/f 2>/dev/null || echo empty; cat /kept/f)' \
  "mount('/kept', 'bind', '$work/b/rootfs/data/d', 'bind'); mount('/data', 'tmpfs', 'tmpfs', 'mode=755'); mount('/data/d', 'tmpfs', 'tmpfs', 'mode=755'); mount('/seen', 'bind', '$work/b/rootfs/data/d', 'bind', 'ro')"
see "and may have attributes that are alternatives" "noatime" 'grep " /seen " /proc/self/mountinfo | grep -o noatime' \
  "mount('/data', 'tmpfs', 'tmpfs', 'mode=755'); mount('/data/d', 'tmpfs', 'tmpfs', 'mode=755'); mount('/seen', 'bind', '$work/b/rootfs/data/d', 'bind', 'noatime')"
see "mounts are listed in their order" "/one /two /three" 'echo $(sed -n "s/^[^ ]* [^ ]* [^ ]* [^ ]* \(.one\|.two\|.three\) .*/\1/p" /proc/self/mountinfo)' \
  "mount('/one', 'bind', '$work/b/rootfs/data', 'bind'); mount('/two', 'tmpfs', 'tmpfs'); mount('/three', 'bind', '$work/b/rootfs/bin', 'bind')"
see "a read-only /dev has what belongs there, and nothing more" "0 devpts no" \
  'echo x >/dev/null; echo "$? $(grep -o " /dev/pts .* devpts" /proc/self/mountinfo | sed "s/.* //") $(touch /dev/x 2>/dev/null || echo no)"' \
  'next(m for m in c["mounts"] if m["destination"] == "/dev")["options"].append("ro")'
mkdir -m 777 "$work/volume"
touch "$work/volume/f"
chown 3:4 "$work/volume/f"
see "an id-mapped volume shows its files by its map" "3 4" 'stat -c "%u %g" /data/f' "user_namespace(); mount('/data', 'bind', '$work/volume', 'bind', 'idmap')"
for way in private shared; do
  see "mappings of a mount's own need no option, and it may be $way" "5 6 ${way#private}" 'echo "$(stat -c "%u %g" /data/f) $(grep " /data " /proc/self/mountinfo | grep -o shared)"' \
    "mount('/data', 'bind', '$work/volume', 'bind', '$way'); c['mounts'][-1].update({k: [{'containerID': 0, 'hostID': 2, 'size': 10}] for k in ('uidMappings', 'gidMappings')})"
done
see "data of a bind says nothing" "f" 'ls /data' "mount('/data', 'bind', '$work/volume', 'bind', 'mode=755')"
ln -s point-to-nowhere "$work/link"
ln -s "$work/resolv.conf" "$work/to-file"
ln -s point-to-nowhere "$work/b/rootfs/link"
copied="mount('/data/made/link', 'bind', '$work/link', 'rbind', 'copy-symlink')"
see "a source that is a link is made anew" "point-to-nowhere" 'readlink /data/made/link' "$copied"
see "it may be there already" "point-to-nowhere" 'readlink /data/made/link' "$copied"
ln -sf elsewhere "$work/b/rootfs/data/made/link"
see "but no other one" "coracle-oci: mounts: /data/made/link: mount: File exists" true "$copied"
rm -r "$work/b/rootfs/data/made"
see "what is no link is bound" "nameserver 10.0.0.1" 'cat /data/file' "mount('/data/file', 'bind', '$work/resolv.conf', 'bind', 'copy-symlink')"
rm "$work/b/rootfs/data/file"
for user in "" "user_namespace(); "; do
  see "a destination that is a link is covered itself (${user%(*})" "nameserver 10.0.0.1" 'cat /link' \
    "${user}mount('/link', 'bind', '$work/to-file', 'bind', 'dest-nofollow')"
  see "with a link, too (${user%(*})" "$work/resolv.conf" 'readlink /link' \
    "${user}mount('/link', 'bind', '$work/to-file', 'bind', 'dest-nofollow', 'src-nofollow')"
done
rm "$work/b/rootfs/link"
on_kernel_s="'bind', '$work/link', 'bind', 'dest-nofollow', 'src-nofollow')"
see "but none of the kernel's" 'coracle-oci: config.json: mounts: nothing may be mounted at "/proc/self"' true "mount('/proc/self', $on_kernel_s"
ln -s /proc "$work/b/rootfs/kernel"
see "by another name, too" "coracle-oci: mounts: /kernel/self: mount: Operation not permitted" true "mount('/kernel/self', $on_kernel_s"
rm "$work/b/rootfs/kernel"
rmdir "$work/b/rootfs/proc"
ln -s /data "$work/b/rootfs/proc"
see "nor where the image leads somewhere else" "coracle-oci: mounts: /proc: must be mounted on ordinary directory: Too many levels of symbolic links" true
rm "$work/b/rootfs/proc"
mkdir "$work/other"
cp -a "$work/b/rootfs/bin" "$work/other"
over="c['mounts'].insert(0, {'destination': '/', 'type': 'bind', 'source': '$work/other', 'options': ['rbind', 'ro']}); c['root']['readonly'] = False"
see "what the first mount binds over / is the root" "bin no /proc" 'echo $(ls -d bin data 2>/dev/null) $(touch /made 2>/dev/null || echo no) $(ls -d /proc)' "$over"
see "with nothing that a root cannot have" 'coracle-oci: config.json: mounts: destination "/" is the root'"'s place" true "$over; c['mounts'][0]['options'].append('nosuid')"

if unshare --mount true 2> /dev/null; then
  mkdir "$work/shared"
  for way in slave rslave private; do
    config 'exec sleep 1000' "c['linux']['rootfsPropagation'] = '$way'; c['root'] = {'path': '$work/shared/rootfs', 'readonly': False}"
    seen=$(oci=$oci root=$work/root bundle=$work/b shared=$work/shared unshare --mount --propagation private sh -c '
      mount -t tmpfs shared "$shared" && mount --make-shared "$shared" && cp -a "$bundle/rootfs" "$shared" && mkdir "$shared/rootfs/late"
      "$oci" --root "$root" run -d --bundle "$bundle" x < /dev/null 2>&1 > /dev/null
      mount -t tmpfs late "$shared/rootfs/late"
      "$oci" --root "$root" exec x cat /proc/self/mountinfo
      "$oci" --root "$root" delete --force x' 2>&1)
    case $way in private) want="no" ;; *) want="slave late" ;; esac
    expect "a root that is a slave gets what is mounted on the machine later ($way)" "$want" \
      "$(echo $(echo "$seen" | awk '$5 == "/" { print $7 ~ /^master:/ ? "slave" : "no" } $5 == "/late" { print "late" }'))"
  done
else
  echo "ok - a root that is a slave gets what is mounted on the machine later # SKIP needs mount namespaces"
fi

# ---- the process ----
see "scheduler, priority and personality" "3 i686" 'echo $(cut -d" " -f41 /proc/self/stat) $(uname -m)' \
  'c["process"]["scheduler"] = {"policy": "SCHED_BATCH"}; c["process"]["ioPriority"] = {"class": "IOPRIO_CLASS_BE", "priority": 6}; c["linux"]["personality"] = {"domain": "LINUX32"}'
see "HOME is that of the container's passwd" "/there" 'echo $HOME' "import os; os.makedirs('$work/b/rootfs/etc', exist_ok=True); open('$work/b/rootfs/etc/passwd', 'w').write('me:x:0:0::/there:/bin/sh\n')"
see "an empty HOME is none" "/there" 'echo $HOME' 'c["process"]["env"] += ["HOME=/override", "HOME="]'
mkdir -p "$work/b/rootfs/usr/share"
mv "$work/b/rootfs/etc/passwd" "$work/b/rootfs/usr/share/passwd"
ln -s /../usr/share/passwd "$work/b/rootfs/etc/passwd"
see "and of the file that this is a link to" "/there" 'echo $HOME'
see "one variable, one value" "1 three" 'echo $(env | grep -c ^ONE=) $ONE' 'c["process"]["env"] += ["ONE=two", "ONE=three"]'
see "a device is made, and who may use it is what the rules say" "crw-rw-rw- no" 'echo $(ls -l /dev/own | cut -c 1-10) $(head -c 1 /dev/own >/dev/null 2>&1 && echo yes || echo no)' \
  'c["linux"]["devices"] = [{"path": "/dev/own/", "type": "c", "major": 1, "minor": 1, "fileMode": 0o666}]; c["linux"]["resources"] = {"devices": [{"allow": False, "access": "rwm"}]}'
# A label of processes that nothing enforces is refused.
if ! [ -e /sys/fs/selinux/enforce ]; then
  see "a label of SELinux where there is none" "coracle-oci: process.selinuxLabel: this kernel has no SELinux switched on" 'echo ran' 'c["process"]["selinuxLabel"] = "u:r:t:s0"'
  see "one for mounts is told and left out" "coracle-oci: linux.mountLabel: this kernel has no SELinux switched on
ran" 'echo ran' 'c["linux"]["mountLabel"] = "u:r:t:s0"'
fi
# Without a value it is the caller's.
with_score() { sh -c 'echo 300 > /proc/self/oom_score_adj; exec "$@"' sh "$oci" --root "$work/root" "$@"; }
config 'cat /proc/self/oom_score_adj'
expect "without an oomScoreAdj the caller's stays" 300 "$(with_score run --bundle "$work/b" x)"
config 'exec sleep 1000'
run run -d --bundle "$work/b" x < /dev/null > /dev/null
expect "that of an exec, too" "300 $(cat /proc/self/oom_score_adj)" "$(with_score exec x cat /proc/self/oom_score_adj) $(run exec x cat /proc/self/oom_score_adj)"
run delete --force x
config 'exec sleep 1000' 'c["process"]["oomScoreAdj"] = 700'
run run -d --bundle "$work/b" x < /dev/null > /dev/null
echo '{"args": ["cat", "/proc/self/oom_score_adj"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}' > "$work/process.json"
expect "an exec has its container's" "700 700" "$(run exec x cat /proc/self/oom_score_adj) $(run exec --process "$work/process.json" x)"
sed 's|"cat", "/proc/self/oom_score_adj"|"grep", "CapEff", "/proc/self/status"|' "$work/process.json" > "$work/another.json"
expect "and its capabilities" "$(run exec x grep CapEff /proc/self/status)" "$(run exec --process "$work/another.json" x)"
sed -i 's/"cwd"/"capabilities": {}, "cwd"/' "$work/another.json"
expect "unless it has others, or none" "CapEff: 0000000000000000" "$(run exec --process "$work/another.json" x | tr '\t' ' ')"
sed -i 's/"cwd"/"oomScoreAdj": 800, "cwd"/' "$work/process.json"
expect "or its own" 800 "$(run exec --process "$work/process.json" x)"
run delete --force x
# A device number that no driver has: whoever may open it hears that.
see "rules of devices count in their order" "Operation not permitted
No such device or address" 'for d in one two; do (: < /dev/$d) 2>&1 | sed "s/.*: //"; done' \
  'rule = lambda allow, minor=None: {"allow": allow, "access": "rwm", **({"type": "c", "major": 240, "minor": minor} if minor else {})}
c["linux"]["devices"] = [{"path": path, "type": "c", "major": 240, "minor": minor} for path, minor in (("/dev/one", 1), ("/dev/two", 2))]
c["linux"]["resources"] = {"devices": [rule(True, 1), rule(False), rule(True, 2)]}'
see "an affinity of execs is not the container's" "$(grep Cpus_allowed_list /proc/self/status | cut -f 2)" 'grep Cpus_allowed_list /proc/self/status | cut -f 2' 'c["process"]["execCPUAffinity"] = {"final": "0"}'
config 'id -G' "c['annotations'] = {'run.oci.keep_original_groups': '1'}"
expect "supplementary groups are kept where an annotation asks for it" "0 7 8" "$(setpriv --groups 0,7,8 "$oci" --root "$work/root" run --bundle "$work/b" x 2>&1)"
config 'id -G'
expect "and nowhere else" "0" "$(setpriv --groups 0,7,8 "$oci" --root "$work/root" run --bundle "$work/b" x 2>&1)"
config 'echo other'
mv "$work/b/config.json" "$work/other.json"
config 'echo own'
expect "another configuration than the bundle's" "other" "$(run run --config "$work/other.json" --bundle "$work/b" x 2>&1)"
cat > "$work/pidfd.py" <<'P'
import array, os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(sys.argv[1])
listener.listen(1)
started = subprocess.Popen(sys.argv[2:], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
connection, _ = listener.accept()
_, control, _, _ = connection.recvmsg(100, socket.CMSG_SPACE(4))
fd = array.array("i", control[0][2])[0]
started.wait()
print(next(line for line in open(f"/proc/self/fdinfo/{fd}") if line.startswith("Pid:")).split()[1])
P
config 'sleep 1000'
expect "a descriptor of the process goes to the socket that asks for it" same \
  "$(pid=$(python3 "$work/pidfd.py" "$work/p" "$oci" --root "$work/root" run -d --bundle "$work/b" --pid-file "$work/pid" --pidfd-socket "$work/p" x); [ "$pid" = "$(cat "$work/pid")" ] && echo same)"
rm "$work/p"
expect "that of an exec, too" same \
  "$(pid=$(python3 "$work/pidfd.py" "$work/p" "$oci" --root "$work/root" exec -d --pid-file "$work/pid" --pidfd-socket "$work/p" x sleep 1000); [ "$pid" = "$(cat "$work/pid")" ] && echo same)"
run delete --force x
rm "$work/p"
config 'sleep 1000' "c['annotations'] = {'run.oci.pidfd_receiver': '$work/p'}"
expect "or of an annotation" same \
  "$(pid=$(python3 "$work/pidfd.py" "$work/p" "$oci" --root "$work/root" run -d --bundle "$work/b" --pid-file "$work/pid" x); [ "$pid" = "$(cat "$work/pid")" ] && echo same)"
run delete --force x
unknown='c["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["read", "no_such_call"], "action": "SCMP_ACT_LOG"}]}'
see "a call that nobody knows is left out of a filter" "ran" 'echo ran' "$unknown"
see "or an error where an annotation asks for that" 'coracle-oci: linux.seccomp.syscalls: "no_such_call" is unknown to libseccomp' 'echo ran' \
  "$unknown; c['annotations'] = {'run.oci.seccomp_fail_unknown_syscall': '1'}"
see "but not where it says 0" "ran" 'echo ran' "$unknown; c['annotations'] = {'run.oci.seccomp_fail_unknown_syscall': '0'}"
see "an unknown capability is told and left out" 'coracle-oci: process.capabilities: "CAP_WISH" is unknown to this machine
ran' 'echo ran' 'c["process"]["capabilities"]["bounding"].append("CAP_WISH")'
config 'cat <&3; echo $(ls /proc/self/fd)'
expect "descriptors are handed on" "kept
0 1 2 3 4" "$(echo kept > "$work/kept"; run run --preserve-fds 1 --bundle "$work/b" x 3< "$work/kept")"
config 'ls /proc/self/fd'
expect "and no other" "0 1 2 3" "$(run run --bundle "$work/b" x 7< "$work/kept" | tr '\n' ' ' | sed 's/ $//')"
run run --preserve-fds 2 --bundle "$work/b" x 3< "$work/kept" 4<&- 2> "$work/said"
expect "one that is not open is named" "coracle-oci: --preserve-fds: descriptor 4 is not open" "$(cat "$work/said")"

# The descriptors of an activated socket belong to the process in LISTEN_PID. Passing on another process' count would keep our own
# descriptors open.
config 'echo ${LISTEN_FDS:-none} ${LISTEN_PID:-none} $(ls /proc/self/fd)'
expect "activated sockets are handed on" "1 1 0 1 2 3 4" \
  "$(sh -c 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"' sh "$oci" --root "$work/root" run --bundle "$work/b" x 3< "$work/kept")"
expect "and others after them" "1 1 0 1 2 3 4 5" \
  "$(sh -c 'LISTEN_FDS=1 LISTEN_PID=$$ exec "$@"' sh "$oci" --root "$work/root" run --preserve-fds 1 --bundle "$work/b" x 3< "$work/kept" 4< "$work/kept")"
expect "those of another process are not" "none none 0 1 2 3" "$(LISTEN_FDS=20 LISTEN_PID=1 run run --bundle "$work/b" x)"
expect "one that is not there is told" "coracle-oci: LISTEN_FDS: descriptor 3 is not open" \
  "$(sh -c 'LISTEN_FDS=20 LISTEN_PID=$$ exec "$@"' sh "$oci" --root "$work/root" run --bundle "$work/b" x 2>&1)"

# A service manager that waits for readiness: start, run in the background and run in the foreground pass it on, and nothing else.
cat > "$work/notify.py" <<'P'
# notify.py SOCKET PID_FILE COMMAND…: the manager listens at SOCKET. The process sends two messages by its own socket.
import array, os, socket, subprocess, sys, time
where, pid_file, command = sys.argv[1], sys.argv[2], sys.argv[3:]
manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind(where)
manager.settimeout(120)
started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, "NOTIFY_SOCKET": where})
while not (os.path.exists(pid_file) and open(pid_file).read()): time.sleep(0.02)
pid = open(pid_file).read()
process = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for _ in range(3000):  # start binds it
    try: process.connect(f"/proc/{pid}/root/run/notify/notify.sock"); break
    except OSError: time.sleep(0.02)
process.send(b"STATUS=begins")
process.send(b"STATUS=stands\nREADY=1")
main, _, _, _ = manager.recvmsg(4096)
who = {pid: "container", str(started.pid): "runtime"}
name = main.decode().split("\n")[0].removeprefix("MAINPID=")
barrier = b"without"
if name == pid:  # the runtime's command ends, so it waits until the barrier's descriptor is closed
    barrier, control, _, _ = manager.recvmsg(4096, socket.CMSG_SPACE(4))
waits = started.poll() is None
if name == pid: os.close(array.array("i", control[0][2])[0])
has_variable = b"NOTIFY_SOCKET=/run/notify/notify.sock" in open(f"/proc/{pid}/environ", "rb").read().split(b"\0")
print(who.get(name, name), main.decode().split("\n")[1:], barrier.decode(), "waits" if waits else "is gone", has_variable)
if who.get(name) == "runtime": os.kill(int(pid), 9)
print(started.wait(120))
P
config 'exec sleep 1000'
NOTIFY_SOCKET=$work/manager run create --pid-file "$work/pid" --bundle "$work/b" x < /dev/null > /dev/null
expect "readiness goes on by start" "container ['READY=1', ''] BARRIER=1 waits True
0" "$(python3 "$work/notify.py" "$work/manager" "$work/pid" "$oci" --root "$work/root" start x)"
run delete --force x
rm -f "$work/manager" "$work/pid"
expect "by run in the background" "container ['READY=1', ''] BARRIER=1 waits True
0" "$(python3 "$work/notify.py" "$work/manager" "$work/pid" "$oci" --root "$work/root" run -d --pid-file "$work/pid" --bundle "$work/b" x)"
run delete --force x
rm -f "$work/manager" "$work/pid"
expect "by run in the foreground" "runtime ['READY=1', ''] without waits True
137" "$(python3 "$work/notify.py" "$work/manager" "$work/pid" "$oci" --root "$work/root" run --pid-file "$work/pid" --bundle "$work/b" x)"
rm -f "$work/manager" "$work/pid"
config 'echo ${NOTIFY_SOCKET:-none}'
expect "a process that ends without readiness ends the wait" "0 " \
  "$(NOTIFY_SOCKET=$work/manager timeout 120 "$oci" --root "$work/root" run -d --bundle "$work/b" x < /dev/null 2> "$work/said" > /dev/null; echo "$? $(cat "$work/said")")"
run delete --force x
see "without a manager there is no socket" none 'echo ${NOTIFY_SOCKET:-none}'

# ---- network devices, and seccomp notification ----
if command -v ip >/dev/null && unshare -n true 2>/dev/null; then
  config 'ip -o -4 addr show dev eth7 | head -c 40 | grep -o "[0-9.]*/24"; ip link show v0 2>&1 | head -n 1' 'c["linux"]["netDevices"] = {"v0": {"name": "eth7"}}'
  expect "a network device is moved, renamed, and keeps its address" "10.9.9.1/24
ip: can't find device 'v0'" "$(oci=$oci root=$work/root bundle=$work/b unshare -n sh -c 'ip link add v0 type veth peer name v1 && ip addr add 10.9.9.1/24 dev v0 && ip link set v0 up && "$oci" --root "$root" run --bundle "$bundle" x' 2>&1)"
  config 'ip -o -4 addr show dev net0 | grep -o "10[0-9.]*/24"' 'c["linux"]["netDevices"] = {"v0": {"name": "net%d"}}'
  expect "one with a template gets the first free name, and no address that is lent" "10.9.9.1/24" "$(oci=$oci root=$work/root bundle=$work/b unshare -n sh -c 'ip link add v0 type veth peer name v1 && ip addr add 10.9.9.1/24 dev v0 && ip link set v0 up; ip addr add 10.8.8.1/24 dev v0 valid_lft 1000 preferred_lft 1000 2> /dev/null; "$oci" --root "$root" run --bundle "$bundle" x' 2>&1)"
  config true 'c["linux"]["netDevices"] = {"v0": {"name": "lo"}}'
  expect "one whose name is taken stays" "coracle-oci: linux.netDevices: v0: link lo: File exists
1" "$(oci=$oci root=$work/root bundle=$work/b unshare -n sh -c 'ip link add v0 type veth peer name v1; "$oci" --root "$root" run --bundle "$bundle" x; ip -o link show v0 | grep -c v0' 2>&1)"
  config true 'c["linux"]["netDevices"] = {"nothere": {}}'
  expect "one that is not there is named" "coracle-oci: linux.netDevices: nothere: link nothere: No such device" "$(oci=$oci root=$work/root bundle=$work/b unshare -n "$oci" --root "$work/root" run --bundle "$work/b" x 2>&1)"
else
  echo "ok - a network device is moved # SKIP needs ip and network namespaces"
fi
config 'mkdir /made; echo "$?"' "c['linux']['seccomp'] = {'defaultAction': 'SCMP_ACT_ALLOW', 'listenerPath': '$work/answers', 'listenerMetadata': 'mine', 'syscalls': [{'names': ['mkdir', 'mkdirat'], 'action': 'SCMP_ACT_NOTIFY'}]}"
cat > "$work/answer.py" <<'P'
# Stands at listenerPath, and answers the one call: "operation not supported".
import array, fcntl, json, socket, struct, subprocess, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(sys.argv[1])
listener.listen(1)
child = subprocess.Popen(sys.argv[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
listener.settimeout(120)
connection, _ = listener.accept()
text, control, _, _ = connection.recvmsg(1 << 16, 64)
message = json.loads(text)
fd = array.array("i", control[0][2])[0]
print(message["fds"], message["metadata"], message["state"]["status"], message["pid"] == message["state"]["pid"])
call = bytearray(80)
fcntl.ioctl(fd, 0xC0502100, call)  # SECCOMP_IOCTL_NOTIF_RECV
fcntl.ioctl(fd, 0xC0182101, struct.pack("QqiI", struct.unpack_from("Q", call)[0], 0, -95, 0))  # SECCOMP_IOCTL_NOTIF_SEND
print(child.communicate(timeout=120)[0].decode(), end="")
P
expect "system calls are answered for by who listens" "['seccompFd'] mine creating True
mkdir: can't create directory '/made': Operation not supported
1" "$(python3 "$work/answer.py" "$work/answers" "$oci" --root "$work/root" run --bundle "$work/b" x)"

# exec sends its listener too: the state has the container's id, the pid is that of the executed process.
config 'sleep 1000' "c['linux']['seccomp'] = {'defaultAction': 'SCMP_ACT_ALLOW', 'listenerPath': '$work/execs', 'syscalls': [{'names': ['mkdir', 'mkdirat'], 'action': 'SCMP_ACT_NOTIFY'}]}"
cat > "$work/listen.py" <<'P'
# Stands at listenerPath, takes what comes, and answers nothing.
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(sys.argv[1])
listener.listen(1)
print("listens", flush=True)
kept = []
while True:
    connection, _ = listener.accept()
    kept.append(connection.recvmsg(1 << 16, 64)[1])
P
python3 "$work/listen.py" "$work/execs" > "$work/listens" &
listens=$!
soon grep -q listens "$work/listens"
run run -d --bundle "$work/b" x
kill $listens
wait $listens 2> /dev/null
rm "$work/execs"
expect "and so are those of an exec" "['seccompFd']  running False
mkdir: can't create directory '/made': Operation not supported
1" "$(python3 "$work/answer.py" "$work/execs" "$oci" --root "$work/root" exec x sh -c 'mkdir /made; echo "$?"')"
run delete --force x

# ---- hooks ----
config 'echo main >> /log' "
for kind in ('prestart', 'createRuntime', 'createContainer', 'poststart', 'poststop'):
    hook(kind, f'echo {kind} \$(sed \"s/.*status...\\\\([a-z]*\\\\).*/\\\\1/\") >> $work/log')
hook('startContainer', 'echo startContainer >> /log')
mount('/log', 'bind', '$work/log', 'bind')
c['root']['readonly'] = False
"
touch "$work/log"
run create --bundle "$work/b" x && run start x
soon is_stopped x
run delete x
expect "hooks run in their order, and know the state" "prestart created,createRuntime creating,createContainer creating,startContainer,poststop stopped" \
  "$(grep -v 'poststart\|main' "$work/log" | tr '\n' ',' | sed 's/,$//')"
expect "poststart is after the start" "main
poststart running" "$(grep 'poststart\|main' "$work/log" | sort)"
config 'echo main' "
for kind in ('prestart', 'createRuntime', 'createContainer', 'startContainer', 'poststart', 'poststop'):
    hook(kind, f'cat > /\$PLACE/{kind}', env=['PATH=/bin:/usr/bin', 'PLACE=' + ('states' if kind == 'startContainer' else '$work/states')])
c['annotations'] = {'a': 'b'}
mount('/states', 'bind', '$work/states', 'bind')"
mkdir -p "$work/states" "$work/b/rootfs/states"
run run --bundle "$work/b" x > /dev/null
expect "the state that hooks get says which container it is" "createContainer creating 1
createRuntime creating pid
poststart running pid
poststop stopped 0
prestart created pid
startContainer created 1" "$(python3 - "$work/states" "$work/b" <<'P'
import json, os, sys
for kind in sorted(os.listdir(sys.argv[1])):
    s = json.load(open(f"{sys.argv[1]}/{kind}"))
    assert (s["id"], s["bundle"], s["annotations"]) == ("x", sys.argv[2], {"a": "b"}) and s["ociVersion"], s
    print(kind, s["status"], s["pid"] if s["pid"] < 2 else "pid")
P
)"
config 'echo never' 'hook("createContainer", "exit 3")'
expect "a hook that fails ends it" "coracle-oci: error running createContainer hook #0: /bin/sh ended with exit code 3" "$(run create --bundle "$work/b" x 2>&1)"
for kind in prestart createRuntime createContainer; do
  config 'echo never' "hook('$kind', 'echo of no use; echo why not >&2; exit 3')"
  expect "what a failing hook says is part of the error: $kind" "coracle-oci: error running $kind hook #0: /bin/sh ended with exit code 3: of no use\nwhy not" "$(run create --bundle "$work/b" x 2>&1)"
done
: > "$work/log"
for kind in prestart createRuntime createContainer startContainer; do
  config 'echo never' "hook('$kind', 'exit 3'); hook('poststop', 'echo $kind \$(sed \"s/.*status...\\\\([a-z]*\\\\).*/\\\\1/\") >> $work/log')"
  run run --bundle "$work/b" x > /dev/null 2>&1
done
expect "what the hooks before one that fails have made is for the poststop hooks" \
  "prestart stopped,createRuntime stopped,createContainer stopped,startContainer stopped," "$(tr '\n' ',' < "$work/log")"
config 'echo never' 'hook("startContainer", "echo why not >&2; exit 3")'
run create --bundle "$work/b" x > /dev/null
expect "and of the last of them" "coracle-oci: error running startContainer hook #0: /bin/sh ended with exit code 3: why not" "$(run start x 2>&1)"
run delete --force x
see "what a hook says that succeeds is not the container's" "main" 'echo main' 'for kind in ("createRuntime", "createContainer", "startContainer"): hook(kind, "echo hook; echo hook >&2")'
config 'echo never' 'hook("createContainer", "", path="/no/such/hook")'
expect "a hook that is not there is named" "coracle-oci: error running createContainer hook #0: /no/such/hook: No such file or directory" "$(run create --bundle "$work/b" x 2>&1)"
: > "$work/log"
config true "
for kind in ('createRuntime', 'createContainer', 'poststop'): hook(kind, f'echo {kind} \$OURS \$(pwd) >> $work/log', env=None)
hook('startContainer', 'echo startContainer \$OURS \$THEIRS >> /log', env=None)
hook('poststart', 'echo poststart \$OURS >> $work/log', env=[])
c['process']['env'].append('THEIRS=process')
mount('/log', 'bind', '$work/log', 'bind')"
(cd /; OURS=runtime "$oci" --root "$work/root" run --bundle "$work/b" x)
expect "hooks without variables have the runtime's, the last before the start the process's, and begin in the bundle" \
  "createRuntime runtime $work/b,createContainer runtime $work/b,startContainer process,poststart,poststop runtime $work/b" "$(tr '\n' ',' < "$work/log" | sed 's/,$//')"
# As hooks that add a driver's libraries do: by the pid in the state, and the bundle's root.
config true "
for kind in ('createRuntime', 'createContainer'): hook(kind, f'sed \"s/.*pid..\\\\([0-9]*\\\\).*/\\\\1/; s/^1$/{kind} first/; s/^[0-9]*$/{kind} another/\" >> $work/log; echo >> $work/log')
hook('startContainer', 'sed \"s/.*pid..\\\\([0-9]*\\\\).*/\\\\1/; s/^1$/startContainer first/\" >> /log; echo >> /log')
mount('/log', 'bind', '$work/log', 'bind')"
: > "$work/log"
run run --bundle "$work/b" x
expect "the pid in a hook's state is the one of the namespaces that it runs in" "createRuntime another,createContainer first,startContainer first" \
  "$(tr '\n' ',' < "$work/log" | sed 's/,$//')"
cat > "$work/bring.sh" <<'P'
pid=$(sed 's/.*"pid":\([0-9]*\).*/\1/')
exec nsenter -t "$pid" -m sh -c "echo brought > ${0%/*}/b/rootfs/data/brought"
P
config 'cat /data/brought /data/d/f 2>/dev/null' "
hook('createRuntime', 'sh $work/bring.sh')
hook('createContainer', 'test -e $work/b/rootfs/proc/self && cat rootfs/data/brought >> $work/log')
mount('/data', 'tmpfs', 'tmpfs')"
: > "$work/log"
expect "hooks see the container's mounts where the bundle's root is" "brought" "$(run run --bundle "$work/b" x 2>&1)"
expect "from inside of its mount namespace, too" "brought" "$(cat "$work/log")"
expect "and the bundle is as it was" "" "$(ls "$work/b/rootfs/data" | grep brought)"
# With a user namespace, createContainer hooks are root of it, and what they mount is the container's. The pid is the container's.
config 'cat /data/made; stat -c %u /data/made; grep -c " /data " /proc/self/mountinfo; umount /proc/acpi 2>/dev/null || echo locked' "
user_namespace()
hook('createRuntime', 'echo \$(id -u) \$(readlink /proc/self/ns/user) >> $work/log')
hook('createContainer', 'echo \$(id -u) \$(tr -s \" \" < /proc/self/uid_map) \$(cat rootfs/proc/1/comm > /dev/null && echo sees) \$(sed \"s/.*pid..\\\\([0-9]*\\\\).*/\\\\1/\") >> $work/log; mount -t tmpfs x rootfs/data && echo by-hook > rootfs/data/made')
c['process']['capabilities'] = {k: ['CAP_SYS_ADMIN'] for k in ('bounding', 'effective', 'permitted')}
next(m for m in c['mounts'] if m['destination'] == '/dev')['options'].append('ro')"
: > "$work/log"
chmod 666 "$work/log"
for way in "" --no-pivot; do
  : > "$work/log"
  expect "hooks in a user namespace mount for the container${way:+ ($way)}" "by-hook 0 1 locked" "$(echo $(run run $way --bundle "$work/b" x 2>&1))"
  expect "and are its root" "0 $(readlink /proc/self/ns/user) 0 0 100000 65536 sees 1" "$(echo $(cat "$work/log"))"
done
config 'echo never' 'user_namespace(); hook("createContainer", "echo why not; exit 3")'
expect "their failures are told as those of others" "coracle-oci: error running createContainer hook #0: /bin/sh ended with exit code 3: why not" "$(run create --bundle "$work/b" x 2>&1)"
# The user namespace's copy of the mounts: a mount that cannot be bound would not be in it when hooks are run.
for hooks in "" "hook('createContainer', 'id -u >> $work/log')"; do
  : > "$work/log"
  config 'sed -n "s/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* \(shared\|unbindable\).*/\1 \2/p" /proc/self/mountinfo; mount -o bind /data /bin 2>&1 | sed "s/.*: //"' "
user_namespace()
c['process']['capabilities'] = {k: ['CAP_SYS_ADMIN'] for k in ('bounding', 'effective', 'permitted')}
for place in '/data', '/covered/x': mount(place, 'tmpfs', 'tmpfs', 'unbindable')
mount('/data/d', 'bind', '$work/volume', 'rbind', 'runbindable')
mount('/covered', 'tmpfs', 'tmpfs', 'shared')
mount('/covered/in', 'bind', '$work/volume', 'rbind', 'rshared')
$hooks"
  expect "mounts of a user namespace are unbindable and shared as they are told${hooks:+, with a hook}" \
    "/data unbindable /data/d unbindable /covered shared /covered/in shared Invalid argument${hooks:+ 0}" "$(echo $(run run --bundle "$work/b" x 2>&1; cat "$work/log"))"
done
# The same beneath a directory that only somebody outside of the user namespace may enter, and where a mask covers the mount.
mkdir -p "$work/closed/in"
chown 5000:5000 "$work/closed"
chmod 700 "$work/closed"
for hooks in "" "hook('createContainer', 'id -u >> $work/log')"; do
  : > "$work/log"
  config 'sed -n "s/^[^ ]* [^ ]* [^ ]* [^ ]* \([^ ]*\) .* \(shared\|unbindable\).*/\1 \2/p" /proc/self/mountinfo; ls /closed 2>&1 | sed "s/.*: //"; ls /hidden' "
user_namespace()
mount('/closed', 'bind', '$work/closed', 'rbind')
mount('/closed/in', 'tmpfs', 'tmpfs', 'shared')
mount('/hidden/in', 'tmpfs', 'tmpfs', 'unbindable')
c['linux'].setdefault('maskedPaths', []).append('/hidden')
$hooks"
  expect "also where the user namespace may not enter, or sees nothing${hooks:+, with a hook}" \
    "/closed/in shared Permission denied${hooks:+ 0}" "$(echo $(run run --bundle "$work/b" x 2>&1; cat "$work/log"))"
  run delete --force x
done
no_fork='c["linux"]["seccomp"] = {"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38}, {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 1}]}'
for gains in True False; do
  config 'echo main' "$no_fork; c['process']['noNewPrivileges'] = $gains; hook('startContainer', 'mkdir /made')"
  expect "the last hook is confined as the process is (noNewPrivileges $gains)" "coracle-oci: error running startContainer hook #0: /bin/sh ended with exit code 1: mkdir: can't create directory '/made': Operation not permitted" \
    "$(run run --bundle "$work/b" x 2>&1)"
done
: > "$work/log"
config 'sleep 1000' "hook('poststart', 'echo too late; exit 4'); hook('poststop', 'echo poststop >> $work/log')"
run create --bundle "$work/b" x < /dev/null > /dev/null
expect "a failing poststart is an error" "coracle-oci: error running poststart hook #0: /bin/sh ended with exit code 4: too late" "$(run start x 2>&1)"
expect "and takes the container away" "poststop" "$(run list -q)$(cat "$work/log")"
run run -d --bundle "$work/b" x < /dev/null > /dev/null 2> "$work/said"
expect "run says so, too" "1 coracle-oci: error running poststart hook #0: /bin/sh ended with exit code 4: too late" "$? $(cat "$work/said")"
expect "and leaves nothing" "" "$(run list -q)"
config 'echo never' 'hook("createRuntime", "exec sleep 60", timeout=1)'
expect "a hook that takes too long does, too" "coracle-oci: error running createRuntime hook #0: /bin/sh took longer than its timeout" "$(run create --bundle "$work/b" x 2>&1)"
expect "and nothing is left" "" "$(run list -q)"

# ---- terminals ----
config 'tty; [ -c /dev/console ] && echo console' 'c["process"]["terminal"] = True'
run create --bundle "$work/b" x 2> "$work/said"
expect "a terminal needs somebody who holds it" "coracle-oci: process.terminal is set: --console-socket is missing" "$(cat "$work/said")"
cat > "$work/console.py" <<'P'
import array, os, socket, subprocess, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(sys.argv[1])
listener.listen(1)
started = subprocess.Popen(sys.argv[2:])
connection, _ = listener.accept()
_, control, _, _ = connection.recvmsg(100, socket.CMSG_SPACE(4))
terminal = array.array("i", control[0][2])[0]
said = b""
try:
    while True:
        read = os.read(terminal, 1000)
        if not read: break
        said += read
except OSError:
    pass
started.wait()
print(said.decode().replace("\r\n", " ").strip())
P
expect "it is sent to the console socket" "/dev/pts/0 console" "$(python3 "$work/console.py" "$work/s" "$oci" --root "$work/root" run -d --bundle "$work/b" --console-socket "$work/s" x)"
run delete --force x

# ---- other commands ----
expect "the version says which specification, as the features do" \
  "spec: $(run features | python3 -c 'import json, sys; print(json.load(sys.stdin)["ociVersionMax"])')" "$(run --version | grep spec)"
expect "it is -V, too" "$(run --version)" "$(run -V)"
(cd "$work" && run spec --bundle b --file own.json && run spec --bundle b -f own.json && run spec -f "$work/at.json")
expect "spec writes to another file, and over it" "sh sh" "$(python3 -c 'import json, sys; print(*[json.load(open(f))["process"]["args"][0] for f in sys.argv[1:]])' "$work/b/own.json" "$work/at.json")"
ln -s at.json "$work/link.json"
: >"$work/at.json"
run spec -f "$work/link.json"
expect "what is named is written to, not replaced" "link 4" "$([ -L "$work/link.json" ] && echo link) $(grep -c '"type": "\(pid\|ipc\|uts\|mount\)"' "$work/at.json")"
expect "so that it may be a device" sh "$(run spec -f /dev/stdout | python3 -c 'import json, sys; print(json.load(sys.stdin)["process"]["args"][0])')"
rm -f "$work/b/own.json" "$work/at.json" "$work/link.json"
config 'exec sleep 1000'
run create --no-subreaper --bundle "$work/b" x < /dev/null > /dev/null
expect "create takes what run takes" created "$(run state x | sed -n 's/.*"status": "\(.*\)",/\1/p')"
expect "activated sockets are not an exec's" "in" \
  "$(sh -c 'LISTEN_FDS=9 LISTEN_PID=$$ exec "$@"' sh "$oci" --root "$work/root" exec x echo in 2>&1)"
run delete --force x
expect "features name the annotations that change what it does" "org.systemd.property. run.oci.keep_original_groups run.oci.pidfd_receiver run.oci.seccomp_fail_unknown_syscall run.oci.systemd.subgroup" \
  "$(run features | python3 -c 'import json, sys; print(*sorted(json.load(sys.stdin)["potentiallyUnsafeConfigAnnotations"]))')"
# ---- as images and engines know it from runc and crun ----
mkdir -m 700 "$work/b/rootfs/private"
closed='c["process"]["user"] = {"uid": 42, "gid": 42, "umask": 0o27}; c["process"]["cwd"] = "/private"'
see "a working directory that is closed to the user is entered" "/private no" 'echo $(pwd) $(ls / /private > /dev/null 2>&1 || echo no)' "$closed"
config 'sleep 1000' "$closed"
run run -d --bundle "$work/b" x < /dev/null > /dev/null
echo '{"args": ["sh", "-c", "umask"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}' > "$work/process.json"
expect "by an exec, too" "/private" "$(run exec x sh -c pwd 2>&1)"
expect "whose umask is the container's" "0027 0027" "$(umask 0; echo $(run exec x sh -c umask; run exec --process "$work/process.json" x))"
run delete --force x
config 'echo $(stat -c %a /made /made/up)' 'mount("/made/up/here", "tmpfs", "tmpfs")'
expect "directories are made with their mode, whatever the caller's umask is" "755 755" "$(umask 077; run run --bundle "$work/b" x 2>&1)"
see "a path that is listed twice is covered once" "1 1" 'echo $(for path in /data /bin; do grep -c " $path " /proc/self/mountinfo; done)' \
  'c["linux"]["maskedPaths"] = ["/data", "/data"]; c["linux"]["readonlyPaths"] = ["/bin", "/bin"]'
see "a tmpfs shows the mode that it has from its directory" "750 mode=750" \
  'echo $(stat -c %a /data) $(grep " /data " /proc/self/mountinfo | grep -o "mode=[0-7]*")' 'mount("/data", "tmpfs", "tmpfs")'
config 'sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status; exec sleep 1000'
if [ "$(nproc)" -gt 1 ] && [ "$(nproc)" = "$(nproc --all)" ] && command -v taskset > /dev/null; then
  all=$(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status)
  : > "$work/out"
  taskset -c 0 "$oci" --root "$work/root" run -d --bundle "$work/b" x < /dev/null > "$work/out"
  for _ in $(seq 100); do [ -s "$work/out" ] && break; sleep 0.05; done
  expect "it runs on all processors, and so does an exec, when the caller may not" "$all $all" \
    "$(cat "$work/out") $(taskset -c 0 "$oci" --root "$work/root" exec x sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status)"
  run delete --force x
fi

config 'sleep 1000' 'c["linux"]["personality"] = {"domain": "LINUX32"}'
run run -d --bundle "$work/b" x
expect "exec has the personality of its container" i686 "$(run exec x uname -m)"
mkdir "$work/root/broken"
echo '{' > "$work/root/broken/state.json"
expect "a container that cannot be read does not hide the others" "1 x running yes" \
  "$(run list -f json > "$work/list" 2> "$work/said"; echo "$? $(python3 -c 'import json, sys; print(*[s for c in json.load(open(sys.argv[1])) for s in (c["id"], c["status"])])' "$work/list") $(grep -q '^coracle-oci: container broken: ' "$work/said" && echo yes)")"
rm -r "$work/root/broken"
echo '{"args": ["sh", "-c", "echo $HOME $(id -u)"], "cwd": "/", "env": ["PATH=/bin"], "user": {"uid": 0, "gid": 0}}' > "$work/process.json"
expect "a process that is given has the home of its user" "/there 0" "$(run exec --process "$work/process.json" x)"
sed -i 's/"uid": 0/"uid": 9/' "$work/process.json"
expect "and another user another one" "/ 9" "$(run exec --process "$work/process.json" x)"
run delete --force x
config 'sleep 1000'
run run -d --bundle "$work/b" x
expect "exec has the home of its user" "/ /there /set" "$(run exec -u 7:8 x sh -c 'echo $HOME') $(run exec x sh -c 'echo $HOME') $(run exec -e HOME=/set x sh -c 'echo $HOME')"
expect "a variable of exec is in place of the container's" "1 /bin:/own" "$(run exec -e PATH=/bin:/other -e PATH=/bin:/own x sh -c 'echo $(env | grep -c ^PATH=) $PATH')"
expect "a variable has a value" 'coracle-oci: --env "WHO" is not NAME=value' "$(run exec -e WHO x true 2>&1)"
expect "a capability of exec is root's by executing" "CapInh 0000000000000000 CapAmb 0000000000000000" \
  "$(run exec -c CAP_SYS_ADMIN x grep -E 'Cap(Inh|Amb)' /proc/self/status | tr -d ':' | tr '\t\n' '  ' | sed 's/ $//')"
config 'sleep 1000' 'c["process"]["capabilities"] = {"bounding": ["CAP_KILL", "CAP_SYSLOG"], "permitted": ["CAP_KILL"], "effective": ["CAP_KILL"], "inheritable": ["CAP_KILL", "CAP_SYSLOG"]}'
run run -d --bundle "$work/b" other < /dev/null > /dev/null
expect "and ambient where it is inheritable" "CapPrm 0000000400000020 CapAmb 0000000400000000" \
  "$(run exec -c CAP_SYSLOG other grep -E 'Cap(Prm|Amb)' /proc/self/status | tr -d ':' | tr '\t\n' '  ' | sed 's/ $//')"
run delete --force other
config 'grep CapAmb /proc/self/status' 'c["process"]["capabilities"] = {"bounding": ["CAP_KILL"], "permitted": ["CAP_KILL"], "effective": ["CAP_KILL", "CAP_CHOWN"], "inheritable": ["CAP_KILL"], "ambient": ["CAP_KILL", "CAP_SYSLOG"]}'
expect "what cannot be granted is told" "coracle-oci: process.capabilities: not granted: effective CAP_CHOWN
coracle-oci: process.capabilities: can't raise ambient capability CAP_SYSLOG: it is not both permitted and inheritable
CapAmb: 0000000000000020" "$(run run --bundle "$work/b" other 2>&1 | tr '\t' ' ')"
expect "another user's by being ambient" "CapEff 0000000000200000 CapAmb 0000000000200000" \
  "$(run exec -u 7 -c CAP_SYS_ADMIN x grep -E 'Cap(Eff|Amb)' /proc/self/status | tr -d ':' | tr '\t\n' '  ' | sed 's/ $//')"
expect "exec tells its failures from those of the program" "1 255 255 255" \
  "$(echo $(run exec x sh -c 'exit 1' 2> /dev/null; echo $?; run exec x no-such-program 2> /dev/null; echo $?; run exec --pid-file /no/such/file x true 2> /dev/null; echo $?; run exec none true 2> /dev/null; echo $?))"
expect "its controller is one of cgroup v1" 'coracle-oci: unknown controller "none"' "$(run exec --cgroup none:in x true 2>&1)"
expect "and so is each, if there are several" 'coracle-oci: --cgroup "in": its controller is missing' "$(run exec --cgroup pids:in --cgroup in x true 2>&1)"
expect "a cgroup for exec is inside the container's" 'coracle-oci: --cgroup: bad sub cgroup path "in/../..": `..` components are not allowed' "$(run exec --cgroup in/../.. x true 2>&1)"
expect "a cgroup that is not there is told" "1" "$(run exec --cgroup none-such x true 2>&1 | grep -c 'error adding pid of the process to cgroups: cgroup .*No such file or directory')"
expect "exec as another user" "7 8" "$(run exec -u 7:8 x sh -c 'echo $(id -u) $(id -g)')"
run exec -u 7x x id 2> "$work/said"
expect "a user is a number, whole" 'coracle-oci: --user "7x" is not uid[:gid]' "$(cat "$work/said")"
run exec -d --pid-file "$work/pid" x sleep 1000
expect "exec goes to the background" "sleep 1000" "$(tr '\0' ' ' < "/proc/$(cat "$work/pid")/cmdline" | sed 's/ $//')"
expect "exec stands in the container's cgroups, in every hierarchy" "$(cat "/proc/$(run ps -f json x | tr -dc '0-9,' | cut -d , -f 1)/cgroup")" \
  "$(cat "/proc/$(cat "$work/pid")/cgroup")"
expect "ps knows both" 2 "$(run ps -f json x | tr ',' '\n' | grep -c '[0-9]')"
run pause x
expect "paused" paused "$(run state x | sed -n 's/.*"status": "\(.*\)",/\1/p')"
expect "exec refuses a paused one" '255 coracle-oci: container "x" is paused: cannot exec in a paused container (use --ignore-paused to override)' \
  "$(run exec x true > "$work/said" 2>&1; echo "$? $(cat "$work/said")")"
run resume x
expect "statistics" stats "$(run events --stats x | sed -n 's/.*"type":"\([a-z]*\)".*/\1/p')"
# As runc does: whoever may write to the hierarchy can move a container's process and remove its cgroup.
hierarchy=$(awk '/ - cgroup2 / { print $5; exit }' /proc/self/mountinfo)
config 'exec sleep 1000'
run run -d --bundle "$work/b" moved --pid-file "$work/pid" < /dev/null > /dev/null
group=$(sed -n 's/^0:://p' "/proc/$(cat "$work/pid")/cgroup")
mkdir "$hierarchy$group-next" && cat "$work/pid" > "$hierarchy$group-next/cgroup.procs" && rmdir "$hierarchy$group"
run exec -d --pid-file "$work/pid" moved sleep 1000
expect "an exec stands where the first process is when the container's cgroup is gone" "$group-next" \
  "$(sed -n 's/^0:://p' "/proc/$(cat "$work/pid")/cgroup")"
expect "which is no reason to keep it" "" "$(run delete --force moved 2>&1)"
soon rmdir "$hierarchy$group-next" 2> /dev/null
if [ -r /proc/keys ]; then
  config 'exec sleep 1000' 'c["linux"]["maskedPaths"] = []'
  run run -d --bundle "$work/b" keys < /dev/null > /dev/null
  run run -d --no-new-keyring --bundle "$work/b" kept < /dev/null > /dev/null
  expect "an exec has a session keyring of its own, unless its container has its launcher's" "2 0" \
    "$(echo $(run exec keys grep -c '_ses[.]keys' /proc/keys; run exec kept grep -c '_ses[.]kept' /proc/keys))"
  run delete --force keys
  run delete --force kept
else
  echo "ok - an exec has a session keyring of its own # SKIP the kernel has none"
fi
# The scope of a container whose cgroup is gone is stopped all the same.
config 'exec sleep 1000'
"$oci" --cgroup-manager disabled --root "$work/root" run -d --bundle "$work/b" scoped < /dev/null > /dev/null
run kill scoped KILL
soon is_stopped scoped
sed -i 's|"cgroup":{[^}]*}|"cgroup":{"manager":"systemd","path":"/coracle-gone/container","unit":"coracle-gone.scope","user":true}|' "$work/root/scoped/state.json"
cat > "$work/systemd.py" <<'P'
# Stands where a user's systemd does, and prints which of its methods was called for which scope. It answers nothing.
import os, re, socket, sys
os.makedirs(f"{sys.argv[1]}/systemd")
listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
listener.bind(f"{sys.argv[1]}/systemd/private")
listener.listen(1)
print("listens", flush=True)
connection, _ = listener.accept()
connection.recv(1000)
connection.send(b"DATA\r\nOK 0123456789abcdef0123456789abcdef\r\n")
heard = b""
while b".scope" not in heard: heard += connection.recv(1000)
print(*(found.decode() for found in re.findall(rb"StopUnit|[a-z-]+\.scope", heard)), flush=True)
P
python3 "$work/systemd.py" "$work/user" > "$work/heard" &
listens=$!
soon grep -q listens "$work/heard"
XDG_RUNTIME_DIR=$work/user timeout 120 "$oci" --root "$work/root" delete scoped 2> "$work/said"
code=$?
soon grep -q '[.]scope' "$work/heard"
kill $listens 2> /dev/null
wait $listens 2> /dev/null
expect "a scope whose cgroup is gone is stopped" "0 listens StopUnit coracle-gone.scope" "$code $(echo $(cat "$work/heard"))"
run checkpoint x 2>/dev/null
expect "checkpoint is refused" 1 $?
timeout 120 "$oci" --root "$work/root" events --interval 50ms x > "$work/events" &
tells_more() { [ "$(grep -c stats "$work/events")" -gt 1 ]; }
soon tells_more
kill $! 2> /dev/null
wait $! 2> /dev/null
expect "statistics come by the interval" yes "$([ "$(grep -c '"type":"stats"' "$work/events")" -gt 1 ] && echo yes)"
expect "an interval is a duration" 'coracle-oci: --interval "soon" is not a duration like 5s' "$(run events --interval soon x 2>&1)"
expect "of a flag that stands twice the last counts" "running" "$(run --root /no/such --root "$work/root" state x | sed -n 's/.*"status": "\(.*\)",/\1/p')"
expect "a signal has a number or a name, in any case" "" "$(for signal in 0 28 WINCH SIGWINCH sigwinch Winch 64 RTMAX-1 sigrtmax; do run kill x "$signal" 2>&1; done)"
expect "and nothing else" 'coracle-oci: unknown signal "SIGNONE"' "$(run kill x SIGNONE 2>&1)"
expect "a limit is a number" 'coracle-oci: --memory "64 elephants" is not a number' "$(run update --memory '64 elephants' x 2>&1)"
for each in 64x 5ib 1e -5 1.5.5 k; do
  expect "a limit is a number: $each is none" "coracle-oci: --memory \"$each\" is not a number" "$(run update --memory=$each x 2>&1)"
done
expect "a log that cannot be opened is an error" "coracle-oci: --log: open /no/such/log: No such file or directory" "$(run --log /no/such/log state x 2>&1)"
config true 'c["process"]["capabilities"]["bounding"].append("CAP_WISH")'
expect "warnings can be left out" "" "$(run --log-level error run --bundle "$work/b" warned 2>&1)"
expect "and debugging is a level of the log, too" "launch" "$(run --log-level debug --log-format '' run --bundle "$work/b" warned 2>&1 | grep -o 'launch$')"
expect "a level has a name" "1" "$(run --log-level chatty list 2>&1 | grep -c 'log-level')"
run --log "file:$work/log.text" state none 2> /dev/null
expect "what a log is may be said" 'msg="container \"none\" does not exist"' "$(grep -o 'msg=.*' "$work/log.text")"
expect "and it may be the machine's" 'coracle-oci: container "none" does not exist
0' "$(cd "$work" && run --log syslog:oci-test state none 2>&1; ls "$work" | grep -c syslog)"
run --log "$work/log.json" --log-format json delete x 2>/dev/null
expect "the log says why, as JSON" error "$(python3 -c 'import json,sys; print(json.loads(open(sys.argv[1]).read().splitlines()[-1])["level"])' "$work/log.json")"
run kill x KILL
soon is_stopped x
expect "all processes of one that has ended are none" 0 "$(run kill --all x KILL 2>&1; echo "$?")"
expect "it is not killed alone" 'coracle-oci: container not running: "x" is stopped' "$(run kill x KILL 2>&1)"
expect "a root without containers is not made by asking" 'coracle-oci: container "x" does not exist
coracle-oci: --root none does not exist
0
none' "$(cd "$work" && "$oci" --root none state x 2>&1; "$oci" --root none list 2>&1; "$oci" --root none delete --force x; echo "$?"; [ -e none ] || echo none)"
expect "it has no events" 'coracle-oci: container "x" is stopped, not running' "$(run events --stats x 2>&1)"
run delete --force x
config 'exec sleep 1000'
for id in one-a one-b other; do run run -d --bundle "$work/b" "$id" < /dev/null > /dev/null; done
expect "an expression stands for several" "0 0 other" \
  "$(run kill --regex '^one-' KILL; echo "$? $(run delete --force --regex 'one-(a|b)$'; echo $?) $(run list -q)")"
expect "what is refused is told" 'coracle-oci: container other: container "other" is running, not stopped; delete --force ends it
1' "$(run delete --regex . 2>&1; echo $?)"
expect "an expression can be read" 'coracle-oci: --regex: "(" is no regular expression' "$(run delete --regex '(' 2>&1)"
run delete --force other
exit $failed
