#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# What hostile.sh runs: each attack gets the right error or no answer at all, the daemon's memory stays within bounds, and a
# well-behaved client, the witness, is served all the while. Prints TAP.
import argparse, gzip, json, os, resource, socket, ssl, struct, sys, threading, time

parser = argparse.ArgumentParser()
for name in ("pid", "ca", "cert", "key"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--port", type=int, default=6443)
args = parser.parse_args()

ADDRESS = ("127.0.0.1", args.port)
MAPS = "/api/v1/namespaces/default/configmaps"
JSON = "Content-Type: application/json\r\n"
YAML = "Content-Type: application/yaml\r\n"
PROTOBUF = "Content-Type: application/vnd.kubernetes.protobuf\r\n"
MEMORY_GROWTH_MAX = 250 << 20  # at the worst moment, with megabytes of answers on the way to those who never read
STALLED_GROWTH_MAX = 24 << 20  # of a hundred watchers: sockets' and TLS's buffers, a thread each, and what the store keeps of the past
WITNESS_WAITS_MAX = 3.0        # seconds; the machine may be busy with other things

context = ssl.create_default_context(cafile=args.ca)
context.load_cert_chain(args.cert, args.key)
stranger = ssl.create_default_context(cafile=args.ca)  # without a certificate

count = failures = 0


def told(good, name, *why):
    global count, failures
    count += 1
    failures += not good
    print(("ok" if good else "not ok"), count, "-", name, flush=True)
    if not good:
        for line in why:
            print("  |", str(line)[:400], flush=True)


def connect(with_context=context, timeout=20):
    plain = socket.create_connection(ADDRESS, timeout=timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return with_context.wrap_socket(plain, server_hostname="127.0.0.1")


def receive(connection):
    """The status and body of one answer; (0, b"") when the connection ends first."""
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
    while len(body) < int(fields.get(b"content-length", 0)):
        some = connection.recv(65536)
        if not some:
            break
        body += some
    return int(head.split()[1]), body


def send_raw(data, half_close=False, with_context=context):
    """What comes back for these bytes; 0 when it is nothing."""
    try:
        connection = connect(with_context)
    except (OSError, ssl.SSLError):
        return 0, b""
    try:
        try:
            connection.sendall(data)
        except OSError:
            pass  # it may hang up in the middle; its answer is there to be read
        if half_close:
            socket.socket.shutdown(connection, socket.SHUT_WR)
        return receive(connection)
    except (OSError, ssl.SSLError):
        return 0, b""
    finally:
        connection.close()


def ask(method, target, body=b"", headers="", with_context=context):
    if isinstance(body, str):
        body = body.encode()
    length = "Content-Length: %d\r\n" % len(body) if body or method in ("POST", "PUT", "PATCH") else ""
    return send_raw(("%s %s HTTP/1.1\r\nHost: x\r\n%s%s\r\n" % (method, target, headers, length)).encode() + body, with_context=with_context)


def memory():
    for line in open("/proc/%s/status" % args.pid):
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) << 10
    return 0


class Witness(threading.Thread):
    """Reads and writes, one request after the other, on one connection; remembers what it waited for and what went wrong."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.waits, self.wrong, self.peak = False, [], [], 0

    def run(self):
        connection, turn = connect(), 0
        while not self.stop:
            turn += 1
            body = b'{"metadata":{"name":"witness"},"data":{"turn":"%d"}}' % turn
            put = b"PUT " + MAPS.encode() + b"/witness HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            get = b"GET " + MAPS.encode() + b"/witness HTTP/1.1\r\nHost: x\r\n\r\n"
            began = time.monotonic()
            try:
                connection.sendall(put if turn % 5 == 0 else get)
                status, _ = receive(connection)
                if status != 200:
                    self.wrong.append("status %d" % status)
                if status == 0:
                    connection = connect()
            except (OSError, ssl.SSLError) as why:
                self.wrong.append(repr(why))
                connection = connect()
            self.waits.append(time.monotonic() - began)
            self.peak = max(self.peak, memory())
            time.sleep(0.01)


def expect(name, want, got):
    status, body = got
    good = status in want
    if good and status >= 400 and status != 404 and body[:1] == b"{":  # what is refused in JSON is a whole Status
        try:
            shown = json.loads(body.decode("utf-8", "strict"))
            good = shown.get("kind") == "Status" and shown.get("code") == status and bool(shown.get("message"))
        except ValueError:
            good = False
    told(good, name, "want %s, got %d" % (sorted(want), status), body)


def attack_bodies():
    post = lambda body, headers=JSON: ask("POST", MAPS, body, headers)
    whole = json.dumps({"metadata": {"name": "x"}, "data": {"a": "b" * 1000}})
    expect("JSON that is cut short", {400}, post(whole[: len(whole) // 2]))
    expect("JSON followed by more", {400}, post(whole + "}"))
    expect("JSON nested 100,000 deep in arrays", {400}, post("[" * 100000))
    expect("JSON nested 100,000 deep in objects", {400}, post('{"a":' * 100000))
    expect("a deep value inside an object", {400}, post('{"metadata":{"name":"x"},"data":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}"))
    expect("YAML nested 100,000 deep", {400}, post("[" * 100000, YAML))
    expect("YAML nested by indentation", {400}, post("".join(" " * i + "a:\n" for i in range(1500)), YAML))
    bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join("%s: &%s [%s]\n" % (n, n, ",".join(["*" + p] * 9)) for p, n in zip("abcdefgh", "bcdefghi"))
    expect("a YAML bomb", {400, 413}, post(bomb, YAML))
    expect("several YAML documents", {400}, post("a: 1\n---\nb: 2\n", YAML))
    envelope = lambda raw: b"k8s\0" + b"\x0a\x0f\x0a\x02v1\x12\x09ConfigMap" + b"\x12" + varint(len(raw)) + raw
    expect("protobuf without its magic", {400}, post(b"\x0a\x00", PROTOBUF))
    expect("protobuf that is cut short", {400}, post(envelope(b"\x0a\x7fabc"), PROTOBUF))
    expect("protobuf with a length beyond everything", {400}, post(b"k8s\0\x12" + b"\xff" * 9 + b"\x01", PROTOBUF))
    expect("protobuf groups nested 100,000 deep", {400}, post(envelope(b"\x0b" * 100000), PROTOBUF))
    expect("protobuf with bad UTF-8", {400}, post(envelope(b"\x0a\x04\x0a\x02\xff\xfe"), PROTOBUF))
    expect("bad UTF-8 in JSON", {400}, post(b'{"metadata":{"name":"x"},"data":{"a":"\xff\xfe"}}'))
    expect("bad UTF-8 in YAML", {400}, post(b"metadata: {name: x}\ndata: {a: \xff\xfe}\n", YAML))
    expect("a lone surrogate", {201, 400}, post('{"metadata":{"name":"surrogate"},"data":{"a":"\\ud800"}}'))
    expect("a number without end", {400, 422}, post('{"metadata":{"name":"x","generation":' + "9" * 100000 + "}}"))
    expect("an infinite number", {400, 422}, post('{"metadata":{"name":"x","generation":1e999}}'))
    for name, text in {"an array": "[]", "a string": '"x"', "null": "null", "a number": "5"}.items():
        expect("a body that is " + name, {400}, post(text))
    for name, text in {"metadata": '{"metadata":5}', "labels": '{"metadata":{"name":"x","labels":["a"]}}', "kind": '{"kind":[],"metadata":{"name":"x"}}',
                       "data": '{"metadata":{"name":"x"},"data":{"a":{}}}', "finalizers": '{"metadata":{"name":"x","finalizers":{"a":1}}}'}.items():
        expect("a wrong type: " + name, {400}, post(text))
    expect("a body beyond the limit", {413}, post(b" " * (4 << 20)))
    expect("a gzip bomb", {400, 413, 415}, post(gzip.compress(b" " * (64 << 20)), JSON + "Content-Encoding: gzip\r\n"))
    expect("half a million empty items", {400, 413, 422}, post('{"metadata":{"name":"x","finalizers":[' + '"",' * 500000 + '""]}}'))
    expect("a JSON patch that doubles", {413, 422}, ask("PATCH", MAPS + "/witness", json.dumps(
        [{"op": "add", "path": "/data/a", "value": "x" * 100000}] + [{"op": "copy", "from": "/data", "path": "/data/b%d" % i} for i in range(30)]),
        "Content-Type: application/json-patch+json\r\n"))
    expect("options that are no options", {400}, ask("DELETE", MAPS + "/witness", "[]", JSON))


def varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def attack_heads():
    line = "GET %s HTTP/1.1\r\nHost: x\r\n" % MAPS
    raw = lambda text: send_raw(text if isinstance(text, bytes) else text.encode())
    expect("a head of a megabyte", {0, 400, 413, 431}, raw(line + "X: " + "x" * (1 << 20) + "\r\n\r\n"))
    expect("ten thousand headers", {0, 400, 413, 431}, raw(line + "X: y\r\n" * 10000 + "\r\n"))
    expect("a URL of 60 KB", {404}, raw("GET /api/v1/" + "a" * 60000 + " HTTP/1.1\r\nHost: x\r\n\r\n"))
    expect("a path of a thousand segments", {400, 404}, raw("GET /api/v1" + "/a" * 1000 + " HTTP/1.1\r\nHost: x\r\n\r\n"))
    for name, text in {
        "two lengths": "Content-Length: 2\r\nContent-Length: 3\r\n", "a length and chunks": "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        "a negative length": "Content-Length: -1\r\n", "a length with a sign": "Content-Length: +2\r\n",
        "a length without end": "Content-Length: 99999999999999999999999\r\n", "a list of lengths": "Content-Length: 2, 2\r\n",
        "a space before the colon": "Content-Length : 2\r\n", "a folded header": "X: a\r\n b\r\n", "a NUL": "X: a\0b\r\n", "a bare newline": "X: a\nY: b\r\n",
    }.items():
        expect("contradictory or malformed: " + name, {400}, raw("POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n{}" % (MAPS, text)))
    expect("an unknown transfer coding", {400, 415, 501}, raw("POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" % MAPS))
    expect("chunks of nonsense", {400}, raw("POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n" % MAPS))
    expect("an unknown method", {400, 405}, raw("BREW %s HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS))
    expect("another version", {400, 415, 505}, raw("GET %s HTTP/9.9\r\n\r\n" % MAPS))
    expect("no host", {400}, raw("GET %s HTTP/1.1\r\n\r\n" % MAPS))
    expect("a proxy's request", {200}, raw("GET http://x/api HTTP/1.1\r\nHost: x\r\n\r\n"))
    expect("bytes that are no request", {0, 400}, raw(bytes(range(128, 256)) * 100 + b"\r\n\r\n"))
    expect("a body that a GET does not need", {200}, raw(line + "Content-Length: 2\r\n\r\n{}"))
    expect("broken percent-encoding", {400}, raw("GET %s?labelSelector=%%zz HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS))
    expect("a slash that hides in a segment", {400}, raw("GET /api/v1/namespaces/..%2f..%2fx HTTP/1.1\r\nHost: x\r\n\r\n"))
    expect("bad UTF-8 in a query", {200, 400}, raw("GET %s?labelSelector=%%ff%%fe HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS))
    expect("two hosts", {400}, raw(line + "Host: a\r\nHost: b\r\n\r\n"))
    expect("a token without end", {400, 401, 413}, ask("GET", MAPS, headers="Authorization: Bearer " + "x" * 50000 + "\r\n", with_context=stranger))
    expect("a selector without end", {400, 413}, ask("GET", MAPS + "?labelSelector=" + "a," * 7000))
    expect("a selector of many values", {400, 413}, ask("GET", MAPS + "?labelSelector=a+in+(" + "b," * 5000 + "b)"))
    for query in ("limit=99999999999999999999", "timeoutSeconds=1e9&watch=1", "resourceVersion=99999999999999999999999", "continue=%00", "fieldSelector=a%3D%5C"):
        expect("a query that cannot be: " + query, {400, 422}, ask("GET", MAPS + "?" + query))
    deep = "Range: bytes=" + ",".join("%d-%d" % (i, i) for i in range(8000))
    expect("a range of many parts", {200, 400, 413, 416}, ask("GET", MAPS, headers=deep + "\r\n"))
    expect("a stranger", {403}, ask("GET", MAPS, with_context=stranger))


def attack_endings():
    expect("a head that ends in the middle, half-closed", {0, 400}, send_raw(b"GET /api/v1/namespaces HT", half_close=True))
    expect("a body that ends in the middle, half-closed", {0, 400}, send_raw(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{" % MAPS.encode(), half_close=True))
    for _ in range(200):  # come and gone, at every stage
        plain = socket.create_connection(ADDRESS)
        plain.sendall(b"\x16\x03\x01\x02\x00\x01\x00")
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        plain.close()
    for _ in range(50):
        connection = connect()
        connection.sendall(b"GET %s?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS.encode())
        connection.close()
    told(True, "connections that are cut at every stage")


def attack_slowly():
    """Heads and bodies that come byte by byte, many at once."""
    slow = [connect() for _ in range(60)]
    began = time.monotonic()
    text = b"GET %s HTTP/1.1\r\nHost: x\r\nX-Slow: " % MAPS.encode()
    for turn in range(30):
        for i, connection in enumerate(slow):
            try:
                if i % 2:
                    connection.sendall(text[turn : turn + 1])
                elif turn == 0:
                    connection.sendall(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" % MAPS.encode())
                else:
                    connection.sendall(b" ")
            except (OSError, ssl.SSLError):
                pass
        time.sleep(0.1)
    for connection in slow:
        connection.close()
    told(time.monotonic() - began < 30, "sixty clients that send byte by byte")


def attack_by_numbers():
    """As many connections as this process may have, up to 10,000: most say nothing, some speak TLS and then say nothing."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    wanted = min(10000, hard - 200)
    held = []
    for i in range(wanted):
        try:
            if i % 50 == 0:
                held.append(connect(stranger if i % 100 else context, timeout=5))
            else:
                held.append(socket.create_connection(ADDRESS, timeout=5))
        except (OSError, ssl.SSLError):
            pass
    reached = len(held)
    print("# %d connections of %d wanted were made" % (reached, wanted), flush=True)
    good = ask("GET", MAPS + "/witness")[0]
    told(reached > wanted * 9 // 10 and good == 200, "%d connections at once" % wanted, reached, good)
    for connection in held:
        try:
            connection.close()
        except OSError:
            pass


def attack_by_not_reading():
    """Clients that ask for much and never read, and watchers that never read, while the watched changes."""
    body = json.dumps({"metadata": {"generateName": "big-", "labels": {"big": "yes"}}, "data": {"a": "x" * 100000}})
    for _ in range(30):
        if ask("POST", MAPS, body, JSON)[0] != 201:
            return told(False, "making what is large")
    unread = []
    for i in range(80):
        connection = connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        if i < 30:
            connection.sendall(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS.encode() * 20)
        else:
            connection.sendall(b"GET %s?watch=1 HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS.encode())
        unread.append(connection)
    until = time.monotonic() + 6
    changes = 0
    while time.monotonic() < until:
        status = ask("PATCH", MAPS + "/witness", '{"data":{"n":"%d"}}' % changes, "Content-Type: application/merge-patch+json\r\n")[0]
        changes += status == 200
    told(changes > 20, "thirty clients and fifty watchers that never read", changes)
    for connection in unread:
        connection.close()
    status = ask("DELETE", MAPS + "?labelSelector=big")[0]
    told(status == 200, "and everything can be taken away again", status)


def attack_by_unfinished_bodies():
    """220 strangers and 64 of the administrator's own requests whose bodies do not come."""
    head = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{" % MAPS.encode()
    unfinished = []
    for i in range(284):
        connection = connect(context if i < 64 else stranger)
        connection.sendall(head)
        unfinished.append(connection)
    waits, wrong = [], []
    for _ in range(100):
        since = time.monotonic()
        status = ask("GET", MAPS + "/witness")[0]
        waits.append(time.monotonic() - since)
        if status != 200:
            wrong.append(status)
    waits.sort()
    print("# beside unfinished bodies: median %.1f ms, worst %.0f ms" % (waits[50] * 1000, waits[-1] * 1000))
    told(not wrong, "284 bodies that do not come keep nobody out", *wrong)
    told(waits[50] < 0.05, "and nobody waits for them", waits[50])
    status = receive(unfinished[283])[0]
    told(status == 403, "a stranger is answered before his body is there", status)
    status, body = receive(unfinished[0])
    told(status == 408 and b'"code":408' in body, "a body that crawls is ended", status, body)
    for connection in unfinished:
        connection.close()


def attack_by_stalled_watchers():
    """A hundred watchers of an object of 200 KB that never read, while it changes."""
    body = lambda turn: json.dumps({"metadata": {"name": "large"}, "data": {"a": "x" * 200000, "turn": str(turn)}})
    if ask("POST", MAPS, body(0), JSON)[0] != 201:
        return told(False, "making what is large")
    before, stalled = memory(), []
    for _ in range(100):
        connection = connect()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(b"GET %s?watch=1&fieldSelector=metadata.name%%3Dlarge HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS.encode())
        stalled.append(connection)
    changed = sum(ask("PUT", MAPS + "/large", body(turn), JSON)[0] == 200 for turn in range(1, 121))
    growth = memory() - before
    print("# a hundred stalled watchers: %.1f MiB" % (growth / (1 << 20)))
    told(changed == 120, "a hundred watchers that never read hold up no writer", changed)
    told(growth < STALLED_GROWTH_MAX, "and little memory", growth)
    for connection in stalled:
        connection.close()
    ask("DELETE", MAPS + "/large")


def main():
    ask("POST", MAPS, '{"metadata":{"name":"witness"}}', JSON)
    told(ask("GET", MAPS + "/witness")[0] == 200, "the witness is there")
    before, began = memory(), time.monotonic()
    witness = Witness()
    witness.start()
    for attack in (attack_bodies, attack_heads, attack_endings, attack_slowly, attack_by_unfinished_bodies, attack_by_stalled_watchers,
                   attack_by_not_reading, attack_by_numbers):
        since = time.monotonic()
        attack()
        print("# %s: %.1f s, %d MiB" % (attack.__name__, time.monotonic() - since, memory() >> 20), flush=True)
    time.sleep(1)
    witness.stop = True
    witness.join()
    waits = sorted(witness.waits)
    print("# the witness was served %d times; median %.1f ms, worst %.0f ms" % (len(waits), waits[len(waits) // 2] * 1000, waits[-1] * 1000))
    told(not witness.wrong, "the witness was always served", *witness.wrong[:5])
    told(waits[-1] < WITNESS_WAITS_MAX and waits[len(waits) // 2] < 0.25, "and never waited", waits[-1], waits[len(waits) // 2])
    growth = max(witness.peak, memory()) - before
    print("# memory: %d MiB before, %d MiB more at the worst, %d MiB now" % (before >> 20, growth >> 20, memory() >> 20))
    told(growth < MEMORY_GROWTH_MAX, "memory stays within bounds", growth)
    told(os.path.exists("/proc/%s" % args.pid) and ask("GET", "/livez")[0] == 200, "the daemon is the same as before, and lives")
    told(time.monotonic() - began < 120, "all in under two minutes", time.monotonic() - began)
    print("1..%d" % count)
    return failures > 0


sys.exit(main())
