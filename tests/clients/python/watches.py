# SPDX-License-Identifier: Apache-2.0
"""Watches with the library's Watch, which resumes by itself when one ends; informers with a list and a watch; a server that
stops."""
import threading
import time

import urllib3
from kubernetes import client, dynamic, watch
from kubernetes.client.exceptions import ApiException

from check import ask, check, matches, same, until


class Informer:
    """A cache of the ConfigMaps of a namespace, as Python operators have one: list, watch from there, list again when
    required."""

    def __init__(self, core, ns):
        self.core, self.ns, self.cache, self.told, self.lists = core, ns, {}, [], 0
        self.ended = False
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while not self.ended:
            try:
                listed = self.core.list_namespaced_config_map(self.ns)
                self.lists += 1
                self.cache = {item.metadata.name: item for item in listed.items}
                for event in watch.Watch().stream(self.core.list_namespaced_config_map, self.ns, resource_version=listed.metadata.resource_version):
                    item = event["object"]
                    self.told.append(event["type"] + " " + item.metadata.name)
                    if event["type"] == "DELETED":
                        self.cache.pop(item.metadata.name, None)
                    else:
                        self.cache[item.metadata.name] = item
                    if self.ended:
                        return
            except (ApiException, urllib3.exceptions.HTTPError, OSError):
                time.sleep(0.1)


def run(ns):
    core = client.CoreV1Api()

    def make(name, **labels):
        return core.create_namespaced_config_map(ns, {"metadata": {"name": name, "labels": labels}})

    @check("a watch: added, modified, deleted, as models and as the raw object")
    def _():
        now = core.list_namespaced_config_map(ns).metadata.resource_version
        make("seen")
        core.patch_namespaced_config_map("seen", ns, {"data": {"a": "b"}})
        core.delete_namespaced_config_map("seen", ns)
        seen, watcher = [], watch.Watch()
        for event in watcher.stream(core.list_namespaced_config_map, ns, resource_version=now, timeout_seconds=60):
            seen.append((event["type"], event["object"].metadata.name, event["raw_object"]["kind"]))
            if len(seen) == 3:
                watcher.stop()
        same("events", seen, [("ADDED", "seen", "ConfigMap"), ("MODIFIED", "seen", "ConfigMap"), ("DELETED", "seen", "ConfigMap")])

    @check("a watch with a selector and a timeout ends by itself")
    def _():
        make("red", colour="red")
        make("blue", colour="blue")
        started = time.monotonic()
        seen = [event["object"].metadata.name for event in watch.Watch().stream(core.list_namespaced_config_map, ns, label_selector="colour=red", timeout_seconds=2)]
        same("seen", seen, ["red"])
        assert 1.5 < time.monotonic() - started < 60, time.monotonic() - started

    @check("bookmarks, and a list that is streamed")
    def _():
        seen, watcher = [], watch.Watch()
        for event in watcher.stream(core.list_namespaced_config_map, ns, allow_watch_bookmarks=True, send_initial_events=True, resource_version_match="NotOlderThan", timeout_seconds=60):
            raw = event["raw_object"]
            seen.append(event["type"])
            if event["type"] == "BOOKMARK":
                same("annotations", raw["metadata"]["annotations"], {"k8s.io/initial-events-end": "true"})
                matches("resourceVersion", raw["metadata"]["resourceVersion"], r"^[1-9]\d*$")
                watcher.stop()
        same("kinds", seen, ["ADDED"] * (len(seen) - 1) + ["BOOKMARK"])

    @check("the dynamic client's watch")
    def _():
        maps = dynamic.DynamicClient(client.ApiClient()).resources.get(api_version="v1", kind="ConfigMap")
        names = {event["object"].metadata.name for event in maps.watch(namespace=ns, timeout=2)}
        assert {"red", "blue"} <= names, names

    @check("a watch from a past that is gone: 410, Expired")
    def _():
        old = core.list_namespaced_config_map(ns, limit=1)
        core.create_namespaced_config_map(ns, {"metadata": {"name": "ballast"}})
        for n in range(400):
            core.patch_namespaced_config_map("ballast", ns, {"data": {"n": str(n), "text": "x" * 700000}})
            try:
                core.list_namespaced_config_map(ns, limit=1, resource_version=old.metadata.resource_version, resource_version_match="Exact")
            except ApiException as error:
                same("status", error.status, 410)
                break
        else:
            raise AssertionError("nothing has expired")
        try:
            for event in watch.Watch().stream(core.list_namespaced_config_map, ns, resource_version=old.metadata.resource_version, timeout_seconds=60):
                raise AssertionError(event["type"])
            raise AssertionError("the watch ended in silence")
        except ApiException as error:
            same("status", error.status, 410)
            matches("reason", error.reason, r"^Expired: too old resource version: \d+ \(\d+\)$")

    @check("an informer of one's own: many writers, and a cache that agrees in the end")
    def _():
        informer = Informer(core, ns)
        until("it has listed", lambda: informer.lists > 0)
        writers = [threading.Thread(target=lambda start: [make("many-%d-%d" % (start, n)) for n in range(20)], args=(start,)) for start in range(4)]
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        core.delete_collection_namespaced_config_map(ns, label_selector="colour")

        def agrees():
            now = {item.metadata.name: item.metadata.resource_version for item in core.list_namespaced_config_map(ns).items}
            cached = {name: item.metadata.resource_version for name, item in list(informer.cache.items())}
            return now == cached or sorted(set(now.items()) ^ set(cached.items()))[:5]
        until("the cache agrees", agrees)
        informer.ended = True
        same("lists", informer.lists, 1)


def run_restart(ns):
    core = client.CoreV1Api()

    @check("the server goes away and comes back: the informer goes on, and misses nothing")
    def _():
        core.create_namespaced_config_map(ns, {"metadata": {"name": "stays"}})
        core.create_namespaced_config_map(ns, {"metadata": {"name": "goes"}})
        informer = Informer(core, ns)
        until("it has listed", lambda: "goes" in informer.cache)
        ask("stop")
        try:
            core.list_namespaced_config_map(ns, _request_timeout=2)
            raise AssertionError("answered")
        except (urllib3.exceptions.HTTPError, OSError):
            pass
        same("kept", sorted(informer.cache), ["goes", "kube-root-ca.crt", "stays"])
        ask("start")
        core.create_namespaced_config_map(ns, {"metadata": {"name": "new"}})
        core.delete_namespaced_config_map("goes", ns)
        until("the cache agrees", lambda: sorted(informer.cache) == ["kube-root-ca.crt", "new", "stays"] or sorted(informer.cache))
        informer.ended = True
