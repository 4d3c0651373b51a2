# SPDX-License-Identifier: Apache-2.0
# Requests to the daemon of an end-to-end test, byte by byte, for hostile.py and heavy.py; and processes beside the test that
# measure what others notice of it. Call use() first.
import argparse, bisect, os, signal, socket, ssl, struct, tempfile, time

JSON = "Content-Type: application/json\r\n"
YAML = "Content-Type: application/yaml\r\n"
PROTOBUF = "Content-Type: application/vnd.kubernetes.protobuf\r\n"
JSON_PATCH = "Content-Type: application/json-patch+json\r\n"
MERGE_PATCH = "Content-Type: application/merge-patch+json\r\n"
STRATEGIC_PATCH = "Content-Type: application/strategic-merge-patch+json\r\n"
APPLY_PATCH = "Content-Type: application/apply-patch+yaml\r\n"
TABLE = "Accept: application/json;as=Table;v=v1;g=meta.k8s.io\r\n"
MAPS = "/api/v1/namespaces/default/configmaps"
OTHERS_WAIT_MAX = 0.05  # seconds that anybody else's request may wait because of an attack
WORST_WAIT_MAX = 3.0    # the same for the slowest single one, on a machine that may be a busy one

parser = argparse.ArgumentParser()
for _name in ("pid", "ca", "cert", "key"):
    parser.add_argument("--" + _name, required=True)
parser.add_argument("--port", type=int, default=6443)
parser.add_argument("--alone", action="store_true", help="nothing else runs on this machine: assert the times in full")

args = context = stranger = ADDRESS = None


def use():
    """Parses the arguments, and makes the administrator's context and one without a client certificate."""
    global args, context, stranger, ADDRESS
    args = parser.parse_args()
    ADDRESS = ("127.0.0.1", args.port)
    context = ssl.create_default_context(cafile=args.ca)
    context.load_cert_chain(args.cert, args.key)
    stranger = ssl.create_default_context(cafile=args.ca)
    return args


def connect(with_context=None, timeout=20):
    plain = socket.create_connection(ADDRESS, timeout=timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return (with_context or context).wrap_socket(plain, server_hostname="127.0.0.1")


def receive(connection):
    """The status and body of one response; (0, b"") if the connection ends first."""
    data = b""
    while b"\r\n\r\n" not in data:
        some = connection.recv(65536)
        if not some:
            return 0, b""
        data += some
    head, _, body = data.partition(b"\r\n\r\n")
    fields = {}
    for line in head.split(b"\r\n")[1:]:
        name, _, value = line.partition(b":")
        fields[name.strip().lower()] = value.strip()
    pieces, left = [body], int(fields.get(b"content-length", 0)) - len(body)
    while left > 0:
        some = connection.recv(1 << 20)
        if not some:
            break
        pieces.append(some)
        left -= len(some)
    return int(head.split()[1]), b"".join(pieces)


def send_raw(data, half_close=False, with_context=None, timeout=20):
    """Sends these bytes; returns the response's status, 0 without a response."""
    try:
        connection = connect(with_context, timeout)
    except (OSError, ssl.SSLError):
        return 0, b""
    try:
        try:
            connection.sendall(data)
        except OSError:
            pass  # the server may close halfway; its response can still be read
        if half_close:
            socket.socket.shutdown(connection, socket.SHUT_WR)
        return receive(connection)
    except (OSError, ssl.SSLError):
        return 0, b""
    finally:
        connection.close()


def request(method, target, body=b"", headers=""):
    if isinstance(body, str):
        body = body.encode()
    length = "Content-Length: %d\r\n" % len(body) if body or method in ("POST", "PUT", "PATCH") else ""
    return ("%s %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n" % (method, target, headers, length)).encode() + body


def ask(method, target, body=b"", headers="", with_context=None, timeout=20):
    return send_raw(request(method, target, body, headers), with_context=with_context, timeout=timeout)


def lives():
    return os.path.exists("/proc/%s" % args.pid) and ask("GET", "/livez")[0] == 200


def _kib(file, field):
    try:
        for line in open("/proc/%s/%s" % (args.pid, file)):
            if line.startswith(field + ":"):
                return int(line.split()[1]) << 10
    except OSError:
        pass
    return 0


def memory():
    """Of the daemon, in bytes: resident."""
    return _kib("status", "VmRSS")


def own_memory():
    """Of the daemon, in bytes: what it has allocated and touched. Pages of files, which the kernel takes back, do not count."""
    return _kib("status", "RssAnon")


def shared_memory():
    """Of the daemon, in bytes: resident, pages of files shared out among the programs that use them (PSS)."""
    return _kib("smaps_rollup", "Pss")


def processor_seconds():
    """That the daemon has used."""
    fields = open("/proc/%s/stat" % args.pid).read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Beside:
    """A function that repeats itself in a process of its own, so that neither this program's work nor Python's lock delays it. It
    records spans of time, each with a number."""

    RECORD = struct.Struct("ddi")

    def __init__(self, repeat):
        self.file = tempfile.TemporaryFile(buffering=0)
        parent = os.getpid()
        self.pid = os.fork()
        if self.pid == 0:
            try:
                repeat(lambda began, ended, number=0: os.write(self.file.fileno(), self.RECORD.pack(began, ended, number)),
                       lambda: os.getppid() == parent)
            finally:
                os._exit(0)

    def spans(self):
        """All so far: (began, ended, number)."""
        data = os.pread(self.file.fileno(), os.fstat(self.file.fileno()).st_size, 0)
        return list(self.RECORD.iter_unpack(data[: len(data) // self.RECORD.size * self.RECORD.size]))

    def latest(self):
        """When the latest one began."""
        at = os.fstat(self.file.fileno()).st_size // self.RECORD.size - 1
        return self.RECORD.unpack(os.pread(self.file.fileno(), self.RECORD.size, at * self.RECORD.size))[0] if at >= 0 else 0.0

    def end(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


def _disk(record, goes_on):
    """Writes a little to the store's disk repeatedly: writers have to wait for this disk, which other programs use too."""
    with tempfile.TemporaryFile(dir=os.path.dirname(args.ca)) as file:
        while goes_on():
            began = time.monotonic()
            file.seek(0)
            file.write(b"x" * 4096)
            file.flush()
            os.fsync(file.fileno())
            record(began, time.monotonic())
            time.sleep(0.02)


def _machine(record, goes_on):
    """Sends a few bytes to a process that sends them back: whoever asks anybody waits as long as this, because of what else runs
    on this machine."""
    here, there = socket.socketpair()
    if os.fork() == 0:
        here.close()
        while True:
            data = there.recv(4096)
            if not data:
                os._exit(0)
            there.sendall(data)
    there.close()
    due = time.monotonic()
    while goes_on():
        here.sendall(b"x" * 200)
        here.recv(4096)
        now = time.monotonic()
        record(due, now)
        due = now + 0.002
        time.sleep(0.002)


def _ask_all_the_time(record, goes_on):
    """Reads and writes as the administrator, one request after the other; every twentieth on a connection of its own, which counts
    as well. The number is the status, negative for a write."""
    connection, turn = None, 0
    while goes_on():
        turn += 1
        write = turn % 5 == 0
        status = 0
        began = time.monotonic()
        try:
            if turn % 20 == 0 and connection:
                connection.close()
                connection = None
            connection = connection or connect()
            connection.sendall(request("PUT", MAPS + "/witness", '{"metadata":{"name":"witness"},"data":{"turn":"%d"}}' % turn) if write
                               else request("GET", MAPS + "/witness"))
            status = receive(connection)[0]
        except (OSError, ssl.SSLError):
            pass
        record(began, time.monotonic(), -status if write else status)
        if status == 0:
            connection = None
            time.sleep(0.01)
        time.sleep(0.003)


class Witness:
    """A well-behaved client. What it waits for others than the daemon, for the disk and for a processor, is left out: that much waits
    whoever writes to this disk, or sends something to a process of this machine, at the same time."""

    def __init__(self):
        self.asked, self.disk, self.machine = Beside(_ask_all_the_time), Beside(_disk), Beside(_machine)
        self.calm = None  # the median and the 99th percentile of the waits of an undisturbed moment

    def end(self):
        for each in (self.asked, self.disk, self.machine):
            each.end()

    def rest(self, seconds):
        """Watches an undisturbed moment."""
        since = time.monotonic()
        time.sleep(seconds)
        self.calm = (0, 0)
        waits = self.waits(since)
        self.calm = (at(waits, 0.5), at(waits, 0.99))

    def wrong(self):
        """Requests that were not served: (when, status)."""
        return [(began, abs(status)) for began, _, status in self.asked.spans() if abs(status) != 200]

    def waits(self, since):
        """The seconds that requests waited for the daemon, of those that were in progress since then, sorted. Waits for the end of
        the one in progress now."""
        now, until = time.monotonic(), time.monotonic() + 30
        while time.monotonic() < until:
            if self.asked.latest() >= now:
                break
            time.sleep(0.01)
        else:
            return [30.0]
        spans, disk, machine = self.asked.spans(), self.disk.spans(), self.machine.spans()
        found = []
        for began, ended, status in spans:
            if ended > since:
                others = longest_of(machine, began, ended) + (longest_of(disk, began, ended) if status < 0 else 0)
                found.append(max(0.0, ended - began - others))
        return sorted(found)


def longest_of(spans, since, until):
    """The length of the longest one of those in progress in that time; they follow one another."""
    first = bisect.bisect_right(spans, since, key=lambda each: each[1])
    longest = 0.0
    for began, ended, _ in spans[first:]:
        if began >= until:
            break
        longest = max(longest, ended - began)
    return longest


def at(ordered, share):
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def bar(held, text):
    """A line for people, as the benchmarks print it: the measurement depends on what else runs on this machine."""
    print("bench: %-6s %s" % ("held" if held else "MISSED", text), flush=True)


def judge(witness, told, name, since):
    """Prints what the witness waited since then, and reports it: the median against that of the undisturbed moment, since this
    machine may be a busy one. Alone on a machine, nobody waits for more than OTHERS_WAIT_MAX at all. Returns the waits."""
    waits = witness.waits(since)
    middle, worst = at(waits, 0.5), waits[-1]
    bar(worst < OTHERS_WAIT_MAX, "%s: others waited %.1f ms in the middle, %.1f for one in a hundred, %.0f ms at the worst of %d (bar %.0f)" % (
        name, middle * 1e3, at(waits, 0.99) * 1e3, worst * 1e3, len(waits), OTHERS_WAIT_MAX * 1e3))
    limit = max(OTHERS_WAIT_MAX, 10 * witness.calm[0])
    if middle >= limit or (args.alone and worst >= OTHERS_WAIT_MAX):
        told(False, "%s: others do not wait" % name, "median %.3f s, limit %.3f; worst %.3f s" % (middle, limit, worst))
    return waits


def judge_all(witness, told, waits):
    """Reports the waits of all attacks together. One in a hundred of them may be longer: somebody else's work of a moment."""
    waits.sort()
    few, limit = at(waits, 0.99), max(OTHERS_WAIT_MAX, 10 * witness.calm[1])
    told(few < limit and waits[-1] < WORST_WAIT_MAX, "everybody else's requests stay under %.0f ms" % (limit * 1e3),
         "one in a hundred: %.3f s; the worst %.3f s" % (few, waits[-1]))


class Costs:
    """Measures the processor time of single requests in the daemon, with all that follows from them there. A request of the largest
    size may take PROCESSOR_MAX; on a slow machine, as many times what a plain request of that size takes as PLAIN_TIMES says."""

    PROCESSOR_MAX, PLAIN_TIMES, SETTLE_MAX = 1.0, 20, 40
    ERROR_MAX = 16 << 20  # bytes: an error may repeat what it is about, as Kubernetes' does

    def __init__(self, told):
        """`told` reports a result. Whatever else asks the daemon all the time must do so already."""
        self.told, self.base, self.slowest = told, 0.0, (0.0, "nothing")
        since, before = time.monotonic(), processor_seconds()
        time.sleep(2)
        self.base = (processor_seconds() - before) / (time.monotonic() - since)  # of a core, for others
        text = '{"metadata":{"name":"plain"},"data":{%s}}' % ",".join('"k%d":"v"' % i for i in range(200_000))
        self.plain = min(self.of(lambda: ask("POST", MAPS + "?dryRun=All", text, JSON))[1] for _ in range(3))
        self.most = max(self.PROCESSOR_MAX, self.PLAIN_TIMES * self.plain)
        print("# a plain request of the largest size takes %.0f ms of a core; others take %.0f %% of one" % (self.plain * 1e3, self.base * 100), flush=True)

    def of(self, send):
        """What `send` returns, the processor time until the daemon is quiet again, and whether it became quiet."""
        self._becomes_quiet()
        since, before = time.monotonic(), processor_seconds()
        got = send()
        quiet = self._becomes_quiet()
        return got, max(0.0, processor_seconds() - before - self.base * (time.monotonic() - since)), quiet

    def _becomes_quiet(self):
        until = time.monotonic() + self.SETTLE_MAX
        while time.monotonic() < until:
            window, at_begin = time.monotonic(), processor_seconds()
            time.sleep(0.1)
            if (processor_seconds() - at_begin) / (time.monotonic() - window) < self.base + 0.35:
                return True
        return False

    def timed(self, expect, name, want, *request_of, undo=None, **options):
        """Sends a request, whose answer `expect` checks. Returns the status. A cost above the limit is measured again, after `undo`, for
        the daemon may have been busy with something else: the least one counts."""
        for attempt in range(3):
            if attempt > 0 and undo:
                undo()
            again = self.of(lambda: ask(*request_of, timeout=60, **options))
            best = again if attempt == 0 else (best[0], min(best[1], again[1]), again[2])
            if best[1] <= self.PROCESSOR_MAX / 2 and best[2]:
                break
        self.report(expect, name, want, *best)
        return best[0][0]

    def report(self, expect, name, want, got, cost, quiet):
        self.slowest = max(self.slowest, (cost, name))
        if cost > self.PROCESSOR_MAX / 4:
            bar(cost <= self.PROCESSOR_MAX, "%s: %d after %.0f ms of a core (bar %.0f)" % (name, got[0], cost * 1e3, self.PROCESSOR_MAX * 1e3))
        expect(name, want, got)
        limit = self.PROCESSOR_MAX if args.alone else self.most
        if cost > limit or not quiet or (got[0] >= 400 and len(got[1]) > self.ERROR_MAX):
            self.told(False, "%s: costs little" % name, "%.2f s of a core, limit %.2f; quiet afterwards: %s; %d bytes of response" % (
                cost, limit, quiet, len(got[1])), got[1][:300])
