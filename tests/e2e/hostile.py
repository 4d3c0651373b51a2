#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Executes the attacks of hostile.sh: each one gets the right error or no response, the daemon's memory stays within limits, and a
# well-behaved client, the witness, is served all the time. Prints TAP.
import argparse, base64, gzip, json, os, resource, socket, ssl, struct, subprocess, tempfile, threading, time
from tap import leave, told

parser = argparse.ArgumentParser()
for name in ("pid", "ca", "cert", "key"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--port", type=int, default=6443)
parser.add_argument("--node", default="edge")
parser.add_argument("--node-address", default="10.55.0.2")
parser.add_argument("--dns", default="10.96.0.10")
parser.add_argument("--api-service", default="10.96.0.1")
parser.add_argument("--coraclectl", help="with its kubeconfig behind a colon: what people see is looked at too")
parser.add_argument("--requests", help="a directory with node-NAME.csr: certificate requests of system:node:NAME")
args = parser.parse_args()

ADDRESS = ("127.0.0.1", args.port)
MAPS = "/api/v1/namespaces/default/configmaps"
TENANT = "/api/v1/namespaces/tenant"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces/tenant"
JSON = "Content-Type: application/json\r\n"
YAML = "Content-Type: application/yaml\r\n"
PROTOBUF = "Content-Type: application/vnd.kubernetes.protobuf\r\n"
JSON_PATCH = "Content-Type: application/json-patch+json\r\n"
MERGE_PATCH = "Content-Type: application/merge-patch+json\r\n"
STRATEGIC_PATCH = "Content-Type: application/strategic-merge-patch+json\r\n"
APPLY_PATCH = "Content-Type: application/apply-patch+yaml\r\n"
MEMORY_GROWTH_MAX = 250 << 20  # at the peak, with megabytes of responses for clients that never read
WATCHERS_GROWTH_MAX = 64 << 20  # for a hundred watchers that never read; the goal is 16 MiB
WITNESS_WAITS_MAX = 3.0        # seconds; the machine may be busy, the goal is 50 ms
REQUEST_MAX = 5.0              # seconds for one expensive request

context = ssl.create_default_context(cafile=args.ca)
context.load_cert_chain(args.cert, args.key)
stranger = ssl.create_default_context(cafile=args.ca)  # without a client certificate


def connect(with_context=context, timeout=20):
    plain = socket.create_connection(ADDRESS, timeout=timeout)
    plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return with_context.wrap_socket(plain, server_hostname="127.0.0.1")


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
    while len(body) < int(fields.get(b"content-length", 0)):
        some = connection.recv(65536)
        if not some:
            break
        body += some
    return int(head.split()[1]), body


def send_raw(data, half_close=False, with_context=context):
    """Sends these bytes; returns the response's status, 0 without a response."""
    try:
        connection = connect(with_context)
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


class Disk(threading.Thread):
    """Writes a little to the store's disk repeatedly: writers have to wait for this disk, which other programs use too."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.writes = False, []  # start and end of each

    def run(self):
        with tempfile.TemporaryFile(dir=os.path.dirname(args.ca)) as file:
            while not self.stop:
                began = time.monotonic()
                file.seek(0)
                file.write(b"x" * 4096)
                file.flush()
                os.fsync(file.fileno())
                self.writes.append((began, time.monotonic()))
                time.sleep(0.1)

    def waited(self, since, until):
        """The longest time of one of its own writes, of those in progress in that time."""
        return max((end - began for began, end in list(self.writes) if end > since and began < until), default=0.0)


class Witness(threading.Thread):
    """Reads and writes as the administrator, one request after the other; every twentieth on a connection of its own, which counts as
    well. Remembers what it waited for and what went wrong; of writes, which wait for the disk, when they did as well."""

    def __init__(self):
        super().__init__(daemon=True)
        self.stop, self.waits, self.wrong, self.peak, self.writes = False, [], [], 0, []

    def since(self, turn):
        """The waiting times from then on, in seconds, including that of a request in progress."""
        done = len(self.waits) + 1
        end = time.monotonic() + 30
        while len(self.waits) < done and time.monotonic() < end:
            time.sleep(0.001)
        return self.waits[turn:] or [30.0]

    def run(self):
        connection, turn = connect(), 0
        while not self.stop:
            turn += 1
            body = b'{"metadata":{"name":"witness"},"data":{"turn":"%d"}}' % turn
            put = b"PUT " + MAPS.encode() + b"/witness HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body
            get = b"GET " + MAPS.encode() + b"/witness HTTP/1.1\r\nHost: x\r\n\r\n"
            began = time.monotonic()
            try:
                if turn % 20 == 0:
                    connection.close()
                    connection = connect()
                connection.sendall(put if turn % 5 == 0 else get)
                status, _ = receive(connection)
                if status != 200:
                    self.wrong.append("status %d" % status)
                if status == 0:
                    connection = connect()
            except (OSError, ssl.SSLError) as why:
                self.wrong.append(repr(why))
                try:
                    connection = connect()
                except (OSError, ssl.SSLError):
                    time.sleep(0.1)
            self.waits.append(time.monotonic() - began)
            if turn % 5 == 0:
                self.writes.append((len(self.waits) - 1, began, time.monotonic()))
            self.peak = max(self.peak, memory())
            time.sleep(0.003)


def expect(name, want, got):
    status, body = got
    good = status in want
    if good and status >= 400 and status != 404 and body[:1] == b"{":  # an error in JSON is a complete Status
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
        "a space before the colon": "Content-Length : 2\r\n", "a folded header": "X: a\r\n b\r\n", "a NUL": "X: a\0b\r\n", "a length and chunks after bare newlines": "X: a\nContent-Length: 2\nTransfer-Encoding: chunked\r\n",
    }.items():
        expect("contradictory or malformed: " + name, {400}, raw("POST %s HTTP/1.1\r\nHost: x\r\n%s\r\n{}" % (MAPS, text)))
    expect("an unknown transfer coding", {501}, raw("POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" % MAPS))
    expect("chunks of nonsense", {400}, raw("POST %s HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n0\r\n\r\n" % MAPS))
    expect("an unknown method", {400, 405}, raw("BREW %s HTTP/1.1\r\nHost: x\r\n\r\n" % MAPS))
    expect("another version", {505}, raw("GET %s HTTP/9.9\r\n\r\n" % MAPS))
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
    expect("a selector of many values", {200}, ask("GET", MAPS + "?labelSelector=a+in+(" + "b," * 300_000 + "b)"))
    expect("a selector of many terms", {200}, ask("GET", MAPS + "?labelSelector=" + ",".join("a!%%3D%d" % i for i in range(70_000))))
    for query in ("limit=99999999999999999999", "timeoutSeconds=1e9&watch=1", "resourceVersion=99999999999999999999999", "continue=%00", "fieldSelector=a%3D%5C"):
        expect("a query that cannot be: " + query, {400, 422}, ask("GET", MAPS + "?" + query))
    deep = "Range: bytes=" + ",".join("%d-%d" % (i, i) for i in range(8000))
    expect("a range of many parts", {200, 400, 413, 416}, ask("GET", MAPS, headers=deep + "\r\n"))
    expect("a stranger", {403}, ask("GET", MAPS, with_context=stranger))


def attack_endings():
    expect("a head that ends in the middle, half-closed", {0, 400}, send_raw(b"GET /api/v1/namespaces HT", half_close=True))
    expect("a body that ends in the middle, half-closed", {0, 400}, send_raw(b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n{" % MAPS.encode(), half_close=True))
    for _ in range(200):  # disconnects at every stage
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
    """Heads and bodies that arrive byte by byte, many at once."""
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
    """As many connections as this process may have, up to 10,000: most send nothing, some complete a TLS handshake and then send
    nothing."""
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
    """Clients with large responses that they never read, and watchers that never read, while the watched objects change."""
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


# ---- a tenant: an authenticated user with few rights ----

tokens = {}  # of service accounts, as headers


def make_tenant():
    made = [ask("POST", "/api/v1/namespaces", '{"metadata":{"name":"tenant"}}', JSON)[0]]
    for name, verbs in {"guest": ["*"], "editor": ["get", "update", "patch"]}.items():
        made.append(ask("POST", TENANT + "/serviceaccounts", json.dumps({"metadata": {"name": name}}), JSON)[0])
        made.append(ask("POST", RBAC + "/roles", json.dumps(
            {"metadata": {"name": name}, "rules": [{"apiGroups": [""], "resources": ["configmaps", "endpoints"], "verbs": verbs}]}), JSON)[0])
        made.append(ask("POST", RBAC + "/rolebindings", json.dumps(
            {"metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
             "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "tenant"}]}), JSON)[0])
        status, body = ask("POST", TENANT + "/serviceaccounts/%s/token" % name, '{"spec":{}}', JSON)
        made.append(status)
        if status == 201:
            tokens[name] = "Authorization: Bearer %s\r\n" % json.loads(body)["status"]["token"]
    made.append(ask("POST", TENANT + "/configmaps", '{"metadata":{"name":"there"}}', JSON)[0])
    told(all(status == 201 for status in made) and len(tokens) == 2, "a tenant is there", made)


def as_tenant(name, method, path, body=b"", headers=""):
    return ask(method, TENANT + path, body, headers + tokens.get(name, ""), with_context=stranger)


def administrator_is_served(what, seconds):
    """New connections of the administrator during an attack: all are served."""
    failed, asked, worst, until = [], 0, 0.0, time.monotonic() + seconds
    while time.monotonic() < until:
        began = time.monotonic()
        status = ask("GET", MAPS + "/witness")[0]
        worst = max(worst, time.monotonic() - began)
        asked += 1
        if status != 200:
            failed.append(status)
        time.sleep(0.02)
    print("#   %d requests of the administrator's on new connections, the slowest took %.0f ms" % (asked, worst * 1000), flush=True)
    told(not failed and asked > seconds, what, "%d of %d failed" % (len(failed), asked), failed[:10])


def lives():
    return os.path.exists("/proc/%s" % args.pid) and ask("GET", "/livez")[0] == 200


def attack_by_depth():
    """JSON patches that nest a list deeper and deeper."""
    doubling, depth = [{"op": "add", "path": "/x", "value": [[]]}], 2
    for _ in range(17):
        doubling.append({"op": "copy", "from": "/x", "path": "/x" + "/0" * depth})
        depth *= 2
    expect("a list copied into its own deepest place, again and again", {400, 413, 422}, ask("PATCH", MAPS + "/witness", json.dumps(doubling), JSON_PATCH))
    told(lives(), "and the daemon lives")
    step, adding, depth = "[" * 90 + "]" * 90, [{"op": "add", "path": "/x", "value": []}], 1
    for _ in range(150):
        adding.append({"op": "add", "path": "/x" + "/0" * depth, "value": json.loads(step)})
        depth += 90
    expect("a list that grows deeper with each operation", {400, 413, 422}, ask("PATCH", MAPS + "/witness", json.dumps(adding), JSON_PATCH))
    moving = [{"op": "add", "path": "/a%d" % i, "value": json.loads(step)} for i in range(100)]
    moving += [{"op": "move", "from": "/a%d" % (i + 1), "path": "/a0" + "/0" * (90 * (i + 1))} for i in range(99)]
    expect("lists moved into one another", {400, 413, 422}, ask("PATCH", MAPS + "/witness", json.dumps(moving), JSON_PATCH))
    told(lives(), "and it still lives")


def attack_without_rights():
    """A user who may update and patch may not create."""
    new = '{"metadata":{"name":"new"}}'  # PUT may create Endpoints, but not ConfigMaps
    expect("PUT of what is not there, without the right to create", {403}, as_tenant("editor", "PUT", "/endpoints/new", new, JSON))
    expect("PUT of what a PUT does not make", {404}, as_tenant("editor", "PUT", "/configmaps/new", new, JSON))
    applied = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"a":"b"}}'
    expect("server-side apply of what is not there, without it", {403},
           as_tenant("editor", "PATCH", "/configmaps/new?fieldManager=x", applied % "new", APPLY_PATCH))
    for kind in ("configmaps", "endpoints"):
        expect("nothing was made of " + kind, {404}, ask("GET", TENANT + "/%s/new" % kind))
    expect("PUT of what is there", {200}, as_tenant("editor", "PUT", "/configmaps/there", '{"metadata":{"name":"there"}}', JSON))
    expect("server-side apply of what is there", {200}, as_tenant("editor", "PATCH", "/configmaps/there?fieldManager=x", applied % "there", APPLY_PATCH))
    expect("who may create does so by apply", {201}, as_tenant("guest", "PATCH", "/configmaps/applied?fieldManager=x", applied % "applied", APPLY_PATCH))


def attack_by_another_system():
    """A pod for Windows, for which the restricted profile has fewer requirements, must not run here."""
    ask("POST", "/api/v1/namespaces", json.dumps({"metadata": {"name": "strict", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}), JSON)
    pods, until = "/api/v1/namespaces/strict/pods", time.monotonic() + 10
    while ask("GET", "/api/v1/namespaces/strict/serviceaccounts/default")[0] != 200 and time.monotonic() < until:
        time.sleep(0.05)
    pod = {"metadata": {"name": "w"}, "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "localhost/busybox:latest"}]}}
    expect("restricted refuses it as a pod for Linux", {403}, ask("POST", pods, json.dumps(pod), JSON))
    pod["spec"]["os"] = {"name": "windows"}
    status, body = ask("POST", pods, json.dumps(pod), JSON)
    if status != 201:
        return told(status in (403, 422), "a pod for Windows is refused", status, body)
    ran, reason, until = False, "", time.monotonic() + 20
    while time.monotonic() < until and not reason:
        shown = json.loads(ask("GET", pods + "/w")[1] or b"{}").get("status", {})
        ran = ran or any("running" in each.get("state", {}) or "terminated" in each.get("state", {}) for each in shown.get("containerStatuses", []))
        reason = shown.get("reason", "")
        time.sleep(0.05)
    told(not ran and reason == "PodOSNotSupported", "a pod for Windows does not run", ran, reason)
    ask("DELETE", pods + "/w?gracePeriodSeconds=0")


def dns_answers(name="kubernetes.default.svc.cluster.local"):
    query = struct.pack(">HHHHHH", 4711, 0x100, 1, 0, 0, 0) + b"".join(bytes([len(part)]) + part.encode() for part in name.split(".")) + b"\0\0\1\0\1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
        asker.settimeout(1)
        try:
            asker.sendto(query, (args.dns, 53))
            reply = asker.recv(4096)
        except OSError:
            return False
    return len(reply) > 12 and reply[3] & 15 == 0 and struct.unpack(">H", reply[6:8])[0] > 0


def api_answers(address, port):
    try:
        plain = socket.create_connection((address, port), timeout=5)
        connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
        status = receive(connection)[0]
        connection.close()
        return status == 200
    except (OSError, ssl.SSLError):
        return False


def attack_by_services():
    """Services with external addresses of others."""
    places = {"the cluster's DNS": (dns_answers, args.dns, [53]),
              "the API's Service": (lambda: api_answers(args.api_service, 443), args.api_service, [443]),
              "the API's own port": (lambda: api_answers(args.node_address, args.port), args.node_address, [args.port])}
    for what, (answers, address, ports) in places.items():
        if not answers():
            print("# %s does not answer here: not attacked" % what, flush=True)
            continue
        ports = [{"name": protocol.lower() + str(port), "port": port, "protocol": protocol} for port in ports for protocol in ("UDP", "TCP")]
        status, body = ask("POST", "/api/v1/namespaces/default/services", json.dumps(
            {"metadata": {"name": "a-thief"}, "spec": {"ports": ports, "externalIPs": [address]}}), JSON)
        good = 0
        for _ in range(20):  # the rules take effect a moment later
            good += answers()
            time.sleep(0.1)
        told(good == 20 and status in (201, 403, 422), "a Service that names %s takes nothing of it" % what, good, status, body)
        ask("DELETE", "/api/v1/namespaces/default/services/a-thief")


def timed(name, want, method, target, body, headers):
    began = time.monotonic()
    got = ask(method, target, body, headers)
    took = time.monotonic() - began
    print("#   %s: %d after %.0f ms" % (name, got[0], took * 1000), flush=True)
    expect(name, want, got)
    told(took < REQUEST_MAX, "%s: answered in seconds" % name, took)
    return got[0]


def attack_by_work():
    """Single expensive requests."""
    for i in range(3):
        ask("POST", MAPS, json.dumps({"metadata": {"name": "worked-%d" % i}}), JSON)
    finalizers = {"metadata": {"finalizers": ["example.com/f%d" % i for i in range(20000)]}}
    timed("20,000 finalizers by a strategic patch", {200, 413, 422}, "PATCH", MAPS + "/worked-0", json.dumps(finalizers), STRATEGIC_PATCH)
    timed("the same again", {200, 413, 422}, "PATCH", MAPS + "/worked-0", json.dumps(finalizers), STRATEGIC_PATCH)
    owners = {"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "Secret", "name": "n", "uid": "u%d" % i} for i in range(20000)]}}
    timed("20,000 ownerReferences by a strategic patch", {200, 413, 422}, "PATCH", MAPS + "/worked-1", json.dumps(owners), STRATEGIC_PATCH)
    timed("20,000 ownerReferences in an apply", {200, 201, 413, 422}, "PATCH", MAPS + "/worked-2?fieldManager=x", json.dumps(
        dict(owners, apiVersion="v1", kind="ConfigMap", metadata=dict(owners["metadata"], name="worked-2"))), APPLY_PATCH)
    for i in range(3):
        ask("PATCH", MAPS + "/worked-%d" % i, '{"metadata":{"finalizers":null,"ownerReferences":null}}', MERGE_PATCH)
        ask("DELETE", MAPS + "/worked-%d" % i)
    until = time.monotonic() + 10
    while ask("GET", "/api/v1/namespaces/default/serviceaccounts/default")[0] != 200 and time.monotonic() < until:
        time.sleep(0.05)
    pod = {"metadata": {"name": "crowd"}, "spec": {"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [
        {"name": "c%d" % i, "image": "localhost/none:1", "imagePullPolicy": "Never"} for i in range(15000)]}}
    pods = "/api/v1/namespaces/default/pods"
    if timed("a pod of 15,000 containers", {201, 400, 413, 422}, "POST", pods, json.dumps(pod), JSON) == 201:
        administrator_is_served("and everybody is served while it is there", 8)
        expect("it can be deleted", {200, 202}, ask("DELETE", pods + "/crowd?gracePeriodSeconds=0"))


def unfinished(count, with_context, headers, target):
    """Connections that announce a body and only send its beginning."""
    held = []
    for _ in range(count):
        try:
            connection = connect(with_context)
            connection.sendall(("POST %s HTTP/1.1\r\nHost: x\r\n%s%sContent-Length: 100000\r\n\r\n{" % (target, JSON, headers)).encode())
            held.append(connection)
        except (OSError, ssl.SSLError):
            pass  # an immediate refusal is fine too
    return held


def attack_by_unfinished_bodies():
    held = unfinished(220, stranger, "", MAPS)
    administrator_is_served("220 bodies of strangers that do not end: the administrator is served", 5)
    for connection in held:
        connection.close()
    held = unfinished(64, stranger, tokens.get("guest", ""), TENANT + "/configmaps")
    stop = threading.Event()

    def crawl():
        while not stop.wait(0.2):
            for connection in held:
                try:
                    connection.sendall(b" ")
                except (OSError, ssl.SSLError):
                    pass

    crawler = threading.Thread(target=crawl, daemon=True)
    crawler.start()
    administrator_is_served("64 slow bodies of one tenant's: the administrator is served", 8)
    stop.set()
    crawler.join()
    for connection in held:
        connection.close()


def attack_by_endless_bodies():
    """Endless chunks, and lengths that are never reached: the server closes the connection."""
    ended, sent = 0, []
    for i in range(8):
        try:
            connection = connect(stranger)
            length = "Transfer-Encoding: chunked\r\n" if i % 2 else "Content-Length: 9223372036854775807\r\n"
            connection.sendall(("POST %s/configmaps HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n" % (TENANT, JSON, tokens.get("guest", ""), length)).encode())
            piece = b"10000\r\n" + b" " * 65536 + b"\r\n" if i % 2 else b" " * 65536
            total = 0
            try:
                while total < 256 << 20:
                    connection.sendall(piece)
                    total += len(piece)
            except (OSError, ssl.SSLError):
                pass  # it disconnected, or refused and stopped reading
            sent.append(total)
            ended += total < 256 << 20
            connection.close()
        except (OSError, ssl.SSLError):
            ended += 1
    told(ended == 8, "bodies that never end are ended", ended, sent)


def attack_by_stalled_watchers():
    """A hundred watchers of large objects that never read, while those change."""
    big, before, peak = "x" * 200000, memory(), 0
    for i in range(5):
        ask("POST", TENANT + "/configmaps", json.dumps({"metadata": {"name": "large-%d" % i, "labels": {"large": "yes"}}, "data": {"a": big}}), JSON)
    held = []
    for _ in range(100):
        try:
            plain = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            plain.settimeout(20)
            plain.connect(ADDRESS)
            connection = stranger.wrap_socket(plain, server_hostname="127.0.0.1")
            connection.sendall(("GET %s/configmaps?watch=1&labelSelector=large HTTP/1.1\r\nHost: x\r\n%s\r\n" % (TENANT, tokens.get("guest", ""))).encode())
            held.append(connection)
        except (OSError, ssl.SSLError):
            pass
    changed = 0
    for turn in range(40):
        status = ask("PATCH", TENANT + "/configmaps/large-%d" % (turn % 5), json.dumps({"data": {"n": str(turn)}}), MERGE_PATCH)[0]
        changed += status == 200
        peak = max(peak, memory())
    time.sleep(1)
    peak = max(peak, memory())
    print("#   %d watchers, %d changes: %.1f MiB more at the worst" % (len(held), changed, (peak - before) / (1 << 20)), flush=True)
    told(changed == 40 and peak - before < WATCHERS_GROWTH_MAX, "a hundred watchers that never read take little memory", changed, peak - before)
    for connection in held:
        connection.close()
    ask("DELETE", TENANT + "/configmaps?labelSelector=large")


def attack_by_filling():
    """Megabytes of objects: each is stored, or refused because the store is full."""
    body = json.dumps({"metadata": {"generateName": "fill-", "labels": {"fill": "yes"}}, "data": {"a": "x" * 1000000}})
    answers = {}
    refused = b""
    for _ in range(60):
        status, said = ask("POST", TENANT + "/configmaps", body, JSON)
        answers[status] = answers.get(status, 0) + 1
        if status != 201:
            refused = said
            break
    print("#   answers: %s; memory %d MiB" % (answers, memory() >> 20), flush=True)
    told(not refused or b"space" in refused or b"quota" in refused.lower(), "sixty objects of a megabyte are kept, or refused for want of space", answers, refused)
    expect("and go", {200}, ask("DELETE", TENANT + "/configmaps?labelSelector=fill"))
    expect("after which there is space", {201}, ask("POST", TENANT + "/configmaps", '{"metadata":{"name":"space"}}', JSON))


def attack_as_node():
    """Impersonates a node."""
    node = "Impersonate-User: system:node:%s\r\nImpersonate-Group: system:nodes\r\nImpersonate-Group: system:authenticated\r\n" % args.node
    target = "/api/v1/nodes/" + args.node
    expect("a node may annotate itself", {200}, ask("PATCH", target, '{"metadata":{"annotations":{"example.com/a":"b"}}}', MERGE_PATCH + node))
    owner = '{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"x","uid":"y"}]}}'
    expect("a node may not give itself an owner", {403}, ask("PATCH", target, owner, MERGE_PATCH + node))
    expect("nor by a strategic patch", {403}, ask("PATCH", target, owner, STRATEGIC_PATCH + node))
    for name, want in {args.node: {201}, "other": {403}}.items():
        file = os.path.join(args.requests or "", "node-%s.csr" % name)
        if not args.requests or not os.path.exists(file):
            print("# no certificate request for %s: not tried" % name, flush=True)
            continue
        request = base64.b64encode(open(file, "rb").read()).decode()
        body = json.dumps({"metadata": {"name": "node-" + name}, "spec": {
            "request": request, "signerName": "kubernetes.io/kube-apiserver-client-kubelet", "usages": ["digital signature", "client auth"]}})
        expect("node %s asks for the certificate of %s" % (args.node, name), want,
               ask("POST", "/apis/certificates.k8s.io/v1/certificatesigningrequests", body, JSON + node))


def attack_the_terminal():
    """Text of a tenant must not reach the administrator's terminal as control sequences."""
    if not args.coraclectl:
        return
    loud = "\x1b]0;owned\x07\x1b[2J\x9b31mred\x7f\rover"
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    ask("PATCH", TENANT + "/configmaps/there", json.dumps({"metadata": {"annotations": {"example.com/note": loud}}, "data": {"key": loud}}), MERGE_PATCH)
    status, body = ask("POST", TENANT + "/events", json.dumps(
        {"metadata": {"name": "loud"}, "involvedObject": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "tenant", "name": "there"}, "type": "Warning",
         "reason": "Loud", "message": "before " + loud, "source": {"component": loud}, "firstTimestamp": now, "lastTimestamp": now, "count": 1}), JSON)
    if status != 201:
        return told(status in (400, 422), "an event with commands to the terminal is refused", status, body)
    program, _, kubeconfig = args.coraclectl.partition(":")
    for words in ("get events", "get events -o wide", "events", "describe configmap there", "get events -o custom-columns=M:.message,S:.source.component",
                  "get events -o jsonpath={.items[*].message}", "get configmap there --show-labels"):
        shown = subprocess.run([program, "--kubeconfig", kubeconfig, "-n", "tenant"] + words.split(), capture_output=True, timeout=30)
        text = (shown.stdout + shown.stderr).decode("utf-8", "replace")
        raw = sorted({hex(ord(c)) for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160})
        machine = "jsonpath" in words  # output for programs is not escaped, as in kubectl
        told(shown.returncode == 0 and (machine or not raw), "no command to the terminal in `%s`" % words, raw, text[:200])


def main():
    ask("POST", MAPS, '{"metadata":{"name":"witness"}}', JSON)
    told(ask("GET", MAPS + "/witness")[0] == 200, "the witness is there")
    make_tenant()
    witness = Witness()
    disk = Disk()
    disk.start()
    witness.start()
    attack_all(witness, 120, MEMORY_GROWTH_MAX, (attack_bodies, attack_heads, attack_endings, attack_slowly, attack_by_not_reading, attack_by_numbers))
    attack_all(witness, 240, MEMORY_GROWTH_MAX, (
        attack_by_depth, attack_without_rights, attack_by_another_system, attack_by_services, attack_by_work, attack_by_unfinished_bodies,
        attack_by_endless_bodies, attack_by_stalled_watchers, attack_by_filling, attack_as_node, attack_the_terminal))
    witness.stop = True
    witness.join()
    disk.stop = True
    disk.join()
    for turn, began, ended in witness.writes:
        witness.waits[turn] = max(0.0, witness.waits[turn] - disk.waited(began, ended))
    waits = sorted(witness.waits)
    print("# the disk took %.0f ms for a write at the worst" % (max(end - began for began, end in disk.writes) * 1000))
    print("# the witness, the disk's part left out, was served %d times; median %.1f ms, worst %.0f ms" % (len(waits), waits[len(waits) // 2] * 1000, waits[-1] * 1000))
    told(not witness.wrong, "the witness was always served", *witness.wrong[:5])
    told(waits[-1] < WITNESS_WAITS_MAX and waits[len(waits) // 2] < 0.25, "and never waited", waits[-1], waits[len(waits) // 2])
    told(lives(), "the daemon is the same as before, and lives")
    leave()


def attack_all(witness, seconds_max, growth_max, attacks):
    """Runs all attacks in turn. Prints for each its time, and the longest time that the witness waited meanwhile."""
    before, began = memory(), time.monotonic()
    witness.peak = 0
    for attack in attacks:
        since, turn = time.monotonic(), len(witness.waits)
        attack()
        waits = sorted(witness.since(turn))
        print("# %s: %.1f s, %d MiB; the witness waited %.1f ms in the middle, %.0f ms at the worst" % (
            attack.__name__, time.monotonic() - since, memory() >> 20, waits[len(waits) // 2] * 1000, waits[-1] * 1000), flush=True)
    time.sleep(1)
    growth = max(witness.peak, memory()) - before
    print("# memory: %d MiB before, %d MiB more at the worst, %d MiB now" % (before >> 20, growth >> 20, memory() >> 20))
    told(growth < growth_max, "memory stays within bounds", growth)
    told(time.monotonic() - began < seconds_max, "all of that in under %d seconds" % seconds_max, time.monotonic() - began)


main()
