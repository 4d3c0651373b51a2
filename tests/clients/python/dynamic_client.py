# SPDX-License-Identifier: Apache-2.0
"""The dynamic client, which finds kinds only by discovery: every kind listed, every object of objects.yaml applied, patched,
deleted."""
import json
import os

import yaml
from kubernetes import client, dynamic, utils
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ConflictError, NotFoundError
from kubernetes.dynamic.resource import ResourceList

from check import check, matches, same

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"


def run(ns, directory):
    api = client.ApiClient()
    by_discovery = dynamic.DynamicClient(api)
    maps = by_discovery.resources.get(api_version="v1", kind="ConfigMap")

    @check("the dynamic client's discovery: kinds, plurals, short names, verbs, subresources")
    def _():
        deployments = by_discovery.resources.get(api_version="apps/v1", kind="Deployment")
        same("deployments", (deployments.name, deployments.namespaced, sorted(deployments.subresources)), ("deployments", True, ["scale", "status"]))
        same("by short name", by_discovery.resources.get(short_names=["cm"]).kind, "ConfigMap")
        same("the server's version", by_discovery.version["kubernetes"]["minor"], "36")

    @check("every kind that can be listed is listed, and its items are of that kind")
    def _():
        seen = 0
        for resource in by_discovery.resources.search():
            if isinstance(resource, ResourceList) or "list" not in resource.verbs:  # discovery makes a kind of each kind's list, too
                continue
            found = resource.get()
            same("%s of %s" % (resource.name, resource.group_version), (found.kind, found.apiVersion), (resource.kind + "List", resource.group_version))
            matches("resourceVersion of " + resource.name, found.metadata.resourceVersion, r"^\d*$")
            seen += 1
        assert seen > 0

    with open(os.path.join(directory, "objects.yaml")) as file:
        objects = list(yaml.safe_load_all(file.read().replace("$NAMESPACE", ns)))
    for body in objects:
        kind = (body["apiVersion"] + " " + body["kind"])

        @check(kind + ": applied twice, patched, refused when stale, deleted")
        def _():
            resource = by_discovery.resources.get(api_version=body["apiVersion"], kind=body["kind"])
            name = body["metadata"]["name"]
            where = {"namespace": ns} if resource.namespaced else {}
            first = resource.server_side_apply(body, field_manager="python", **where)
            same("kind", (first.kind, first.apiVersion, first.metadata.name), (body["kind"], body["apiVersion"], name))
            same("manager", [m.operation for m in first.metadata.managedFields if m.manager == "python"], ["Apply"])
            for _ in range(5):  # a controller may have written in between
                before = resource.get(name=name, **where)
                again = resource.server_side_apply(body, field_manager="python", **where)
                if again.metadata.resourceVersion == before.metadata.resourceVersion:
                    break
            same("resourceVersion when applied again", again.metadata.resourceVersion, before.metadata.resourceVersion)
            patched = resource.patch(body={"metadata": {"annotations": {"clients.example/a": "b"}}}, name=name, content_type="application/merge-patch+json", **where)
            same("annotation", patched.metadata.annotations["clients.example/a"], "b")
            stale = before.to_dict()
            try:
                resource.replace(body=stale, name=name, **where)
                raise AssertionError("a stale replacement was accepted")
            except ConflictError as error:
                matches("message", error.summary(), "the object has been modified")
            resource.delete(name=name, body={"propagationPolicy": "Background", "gracePeriodSeconds": 0}, **where)
            try:
                left = resource.get(name=name, **where)
                assert left.metadata.deletionTimestamp and (left.metadata.finalizers or left.spec.finalizers), left
            except NotFoundError:
                pass

    @check("a conflict of managers, and force")
    def _():
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared"}, "data": {"a": "1"}}
        maps.server_side_apply(body, namespace=ns, field_manager="one")
        body["data"]["a"] = "2"
        try:
            maps.server_side_apply(body, namespace=ns, field_manager="two")
            raise AssertionError("no conflict")
        except ConflictError as error:
            same("message", json.loads(error.body)["message"], 'Apply failed with 1 conflict: conflict with "one": .data.a')
        got = maps.server_side_apply(body, namespace=ns, field_manager="two", force_conflicts=True)
        same("managers", [m.manager for m in got.metadata.managedFields], ["two"])

    @check("a file of many documents, created by the library's own utility")
    def _():
        made = utils.create_from_yaml(api, yaml_objects=[
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-yaml"}},
            {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "from-yaml"}}]},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "from-yaml"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {
                "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "example.invalid/a:1"}]}}}}], namespace=ns)
        same("made", [group[0].metadata.name for group in made], ["from-yaml"] * 3)
        try:
            utils.create_from_yaml(api, yaml_objects=[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "from-yaml"}}], namespace=ns)
            raise AssertionError("made twice")
        except utils.FailToCreateError as error:
            same("reason", error.api_exceptions[0].status, 409)

    @check("a table, asked for by the Accept header")
    def _():
        answer = by_discovery.request("get", "/api/v1/namespaces/%s/configmaps/shared" % ns, header_params={"Accept": TABLE}, serialize=False)
        table = yaml.safe_load(answer.data)
        same("table", (table["kind"], [c["name"] for c in table["columnDefinitions"]], table["rows"][0]["cells"][:2]), ("Table", ["Name", "Data", "Age"], ["shared", 1]))

    @check("a path that there is not, and a method that is not allowed")
    def _():
        for method, path, want in (("get", "/apis/nothing.example/v1", 404), ("put", "/api/v1/namespaces/%s/configmaps" % ns, 405)):
            try:
                by_discovery.request(method, path, body={} if method == "put" else None)
                raise AssertionError(path)
            except ApiException as error:
                same(path, error.status, want)
            except dynamic.exceptions.DynamicApiError as error:
                same(path, error.status, want)
