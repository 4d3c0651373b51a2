#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Steady load: steady_load.py ADDRESS PORT THREADS STOP-FILE. Each thread sends one request after another, each on a connection of its
own, until the file exists; prints how many were answered, by which server, and every one that failed."""
import collections, os, socket, sys, threading, time

address, port, threads, stop = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
answered, failed, lock = collections.Counter(), [], threading.Lock()


def ask():
    with socket.create_connection((address, port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        reply = b""
        while chunk := connection.recv(4096):
            reply += chunk
    if not reply.startswith(b"HTTP/1.1 200"):
        raise OSError(f"answer {reply[:60]!r}")
    return reply.rsplit(b"\r\n", 1)[-1].decode().strip()


def run():
    while not os.path.exists(stop):
        began = time.time()
        try:
            who = ask()
            with lock:
                answered[who] += 1
        except OSError as error:
            with lock:
                failed.append(f"{began:.3f} after {1000 * (time.time() - began):.0f} ms: {error}")
        time.sleep(0.002)


workers = [threading.Thread(target=run) for _ in range(threads)]
[one.start() for one in workers]
[one.join() for one in workers]
for line in failed[:20]:
    print("failed:", line)
print("by:", " ".join(f"{who}={count}" for who, count in sorted(answered.items())))
print(f"answered {sum(answered.values())} by {len(answered)} failed {len(failed)}")
sys.exit(1 if failed else 0)
