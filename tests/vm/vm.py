#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Controls one virtual machine: starts it, runs commands over its second serial line (guest/agent.sh), cuts its power.

  vm.py start DIRECTORY IMAGE [qemu arguments]   boots DIRECTORY/disk.qcow2 (made over IMAGE/base.ext4 when absent)
  vm.py boot DIRECTORY DISK ARCH [qemu arguments]  boots a raw disk by UEFI, without a network; ARCH: x86_64, aarch64, or arm with
                                                 -kernel. The command line is a port of virtio, /dev/virtio-ports/agent
  vm.py resume DIRECTORY IMAGE [qemu arguments]  a new one, which continues from the state saved in IMAGE/booted.*
  vm.py keep DIRECTORY IMAGE                     saves the machine's state there, for resume; it is off then
  vm.py run DIRECTORY SECONDS COMMAND            runs a shell command in it; its output and exit status are ours
  vm.py cut DIRECTORY                            simulates a power cut: qemu is killed, nothing is flushed
  vm.py copy DIRECTORY NEW                       the state after a cut at this moment: NEW gets the disk and the third line
  vm.py wait-off DIRECTORY SECONDS               waits until it has switched itself off
  vm.py payload-bytes                            the size of the second disk that resume requires
"""
import base64
import json
import os
import signal
import socket
import subprocess
import sys
import time


PAYLOAD_BYTES = 1 << 30  # size of the second disk, whatever its content: a resumed machine expects disks of the same size


def pid_of(directory):
    try:
        pid = int(open(f"{directory}/pid").read())
        if b"qemu" in open(f"/proc/{pid}/cmdline", "rb").read():
            return pid
    except (OSError, ValueError):
        pass
    return None


def make_disk(disk, backing, backing_format):
    subprocess.run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", backing_format, "-b", backing, disk], check=True)


def start(directory, image, more):
    disk = f"{directory}/disk.qcow2"
    if not os.path.exists(disk):
        make_disk(disk, f"{image}/base.ext4", "raw")
    if not os.path.exists(f"{directory}/acks"):
        open(f"{directory}/acks", "w").close()
    for name in ("agent", "pid", "qmp"):
        if os.path.exists(f"{directory}/{name}"):
            os.unlink(f"{directory}/{name}")
    accel = os.environ.get("CORACLE_VM_ACCEL", "tcg")
    # Not thread=multi: with it, one processor may loop forever at the breakpoint that the kernel sets where another one patches
    # its code (the first memory cgroup, the first hook of netfilter), and the machine sometimes hangs.
    command = ["qemu-system-x86_64", "-accel", accel + (",thread=single" if accel == "tcg" else ""),
               "-cpu", "max" if accel == "tcg" else "host", "-smp", "2",
               "-m", "1024", "-display", "none", "-nodefaults", "-no-reboot", "-kernel", f"{image}/vmlinuz", "-initrd", f"{image}/initrd",
               "-append", "root=/dev/vda rw console=ttyS0 quiet loglevel=3 panic=1 systemd.show_status=0 "
                          "systemd.unified_cgroup_hierarchy=1 " + os.environ.get("CORACLE_VM_APPEND", ""),
               "-drive", f"file={disk},if=virtio,cache=writeback,format=qcow2",
               "-nic", "user,model=virtio-net-pci,restrict=on", "-device", "virtio-rng-pci",
               "-chardev", f"file,id=console,path={directory}/console.log,append=on", "-serial", "chardev:console",
               "-chardev", f"socket,id=agent,path={directory}/agent,server=on,wait=off", "-serial", "chardev:agent",
               "-chardev", f"file,id=acks,path={directory}/acks,append=on", "-serial", "chardev:acks",
               "-qmp", f"unix:{directory}/qmp,server=on,wait=off",
               *more]
    launch(directory, command)


def launch(directory, command):
    with open(f"{directory}/qemu.log", "ab") as log:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    with open(f"{directory}/pid", "w") as file:
        file.write(str(process.pid))
    time.sleep(0.5)
    if process.poll() is not None:
        sys.exit(f"qemu ended: {open(f'{directory}/qemu.log').read()[-2000:]}")


MACHINES = {  # machine, emulated processor, firmware; without one the kernel is among the arguments
    "x86_64": ("q35", "max", "/usr/share/ovmf/OVMF.fd"),
    "aarch64": ("virt", "cortex-a72", "/usr/share/qemu-efi-aarch64/QEMU_EFI.fd"),
    "arm": ("virt,highmem=off", "cortex-a15", None),
}


def boot(directory, disk, arch, more):
    for name in ("agent", "pid"):
        if os.path.exists(f"{directory}/{name}"):
            os.unlink(f"{directory}/{name}")
    machine, cpu, firmware = MACHINES[arch]
    accel = os.environ.get("CORACLE_VM_ACCEL", "tcg")
    if accel != "tcg" and os.uname().machine != arch:
        accel = "tcg"
    launch(directory, [
        f"qemu-system-{arch}", "-M", machine, "-accel", accel + (",thread=single" if accel == "tcg" else ""),
        "-cpu", cpu if accel == "tcg" else "host", "-smp", "2", "-m", "1024", "-display", "none", "-nodefaults", "-no-reboot",
        *(["-bios", firmware] if firmware else []), "-drive", f"file={disk},if=virtio,cache=writeback,format=raw", "-nic", "none", "-device", "virtio-rng-pci",
        "-chardev", f"file,id=console,path={directory}/console.log,append=on", "-serial", "chardev:console",
        "-chardev", f"socket,id=agent,path={directory}/agent,server=on,wait=off", "-device", "virtio-serial-pci",
        "-device", "virtserialport,chardev=agent,name=agent", *more])


# A saved machine: booted.qcow2 has the changes of its disk relative to base.ext4, and booted.state everything else. It can
# continue with the same qemu and the same devices, including disks of the same size.

def resume(directory, image, more):
    make_disk(f"{directory}/disk.qcow2", f"{image}/booted.qcow2", "qcow2")
    start(directory, image, [*more, "-incoming", f"exec:zstd -dcq {image}/booted.state"])


def keep(directory, image):
    qmp = socket.socket(socket.AF_UNIX)
    qmp.connect(f"{directory}/qmp")
    answers = qmp.makefile()

    def ask(command, **arguments):
        qmp.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        for line in answers:
            answer = json.loads(line)
            if "error" in answer:
                sys.exit(f"{command}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        sys.exit(f"{command}: qemu ended")

    answers.readline()  # its greeting
    ask("qmp_capabilities")
    ask("migrate", uri=f"exec:zstd -1 -T0 -q -f -o {image}/booted.state")
    while (status := ask("query-migrate")["status"]) != "completed":
        if status in ("failed", "cancelled"):
            sys.exit(f"the machine cannot be kept: {status}")
        time.sleep(0.1)
    ask("quit")
    wait_off(directory, 60)
    subprocess.run(["qemu-img", "rebase", "-q", "-u", "-F", "raw", "-b", "base.ext4", f"{directory}/disk.qcow2"], check=True)
    os.replace(f"{directory}/disk.qcow2", f"{image}/booted.qcow2")


class Line:
    """The serial line: requests and answers have names; unknown answers are ignored."""

    def __init__(self, directory, end):
        self.directory, self.end, self.received = directory, end, b""
        while True:
            if pid_of(directory) is None:
                sys.exit("the machine is off")
            try:
                self.socket = socket.socket(socket.AF_UNIX)
                self.socket.connect(f"{directory}/agent")
                return
            except OSError:
                if time.monotonic() > end:
                    sys.exit("the machine's serial line is not there")
                time.sleep(0.1)

    def ask(self, name, command):
        self.socket.sendall(f"\n{name} {base64.b64encode(command.encode()).decode()}\n".encode())

    def answer(self, name, until):
        """(status, output), or None after the timeout."""
        while time.monotonic() < min(until, self.end):
            self.socket.settimeout(0.5)
            try:
                piece = self.socket.recv(65536)
            except socket.timeout:
                continue
            if not piece:
                sys.exit("the machine went off")
            self.received += piece
            *lines, self.received = self.received.split(b"\n")
            for line in lines:
                parts = line.decode(errors="replace").strip().split(" ")
                if parts[0] == name and len(parts) >= 2 and parts[1].isdigit():  # not the echo of the command
                    return int(parts[1]), base64.b64decode(parts[2]) if len(parts) > 2 else b""
        return None


def run(directory, seconds, command):
    line = Line(directory, time.monotonic() + seconds)
    identity = f"{os.getpid()}-{time.monotonic_ns()}"
    tries = 0
    while True:  # data is lost before the agent listens, so something harmless is sent first
        tries += 1
        line.ask(f"{identity}-{tries}", "true")
        if line.answer(f"{identity}-{tries}", time.monotonic() + 3):
            break
        if time.monotonic() > line.end:
            print(f"no answer within {seconds} s", file=sys.stderr)
            return 124
    line.ask(identity, command)
    answer = line.answer(identity, line.end)
    if answer is None:
        print(f"no answer within {seconds} s: {command[:200]}", file=sys.stderr)
        return 124
    status, output = answer
    sys.stdout.buffer.write(output + (b"\n" if output and not output.endswith(b"\n") else b""))
    sys.stdout.flush()
    return status


def cut(directory):
    pid = pid_of(directory)
    if pid is not None:
        os.kill(pid, signal.SIGKILL)
    wait_off(directory, 30)


def copy(directory, new):
    """Pauses the machine meanwhile. Data in qemu's memory is not copied, since it would be lost with qemu."""
    pid = pid_of(directory)
    if pid is None:
        sys.exit("the machine is off")
    os.makedirs(new)
    os.kill(pid, signal.SIGSTOP)
    try:
        # All threads are stopped, also those that write to the disk.
        while any("T" != open(f"/proc/{pid}/task/{task}/stat").read().rsplit(")", 1)[1].split()[0]
                  for task in os.listdir(f"/proc/{pid}/task")):
            time.sleep(0.01)
        for name in ("acks", "disk.qcow2"):
            subprocess.run(["cp", "--sparse=always", f"{directory}/{name}", f"{new}/{name}"], check=True)
    finally:
        os.kill(pid, signal.SIGCONT)


def wait_off(directory, seconds):
    end = time.monotonic() + seconds
    while pid_of(directory) is not None:
        if time.monotonic() > end:
            sys.exit(f"still on after {seconds} s")
        time.sleep(0.1)


def main():
    verb, directory = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
    if verb == "start":
        start(directory, sys.argv[3], sys.argv[4:])
    elif verb == "boot":
        boot(directory, sys.argv[3], sys.argv[4], sys.argv[5:])
    elif verb == "resume":
        resume(directory, sys.argv[3], sys.argv[4:])
    elif verb == "keep":
        keep(directory, sys.argv[3])
    elif verb == "run":
        sys.exit(run(directory, float(sys.argv[3]), sys.argv[4]))
    elif verb == "payload-bytes":
        print(PAYLOAD_BYTES)
    elif verb == "cut":
        cut(directory)
    elif verb == "copy":
        copy(directory, sys.argv[3])
    elif verb == "wait-off":
        wait_off(directory, float(sys.argv[3]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
