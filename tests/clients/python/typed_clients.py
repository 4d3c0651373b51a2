# SPDX-License-Identifier: Apache-2.0
"""The generated clients, one for each group and version: objects by model and by dictionary, patches, errors, subresources, deletion."""
import json
import threading
from datetime import datetime, timedelta, timezone

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.leaderelection import electionconfig, leaderelection
from kubernetes.leaderelection.resourcelock.configmaplock import ConfigMapLock

from check import check, matches, refused, same, until


def deployment(name, replicas=0):
    labels = {"app": name}
    return client.V1Deployment(
        metadata=client.V1ObjectMeta(name=name, labels=labels),
        spec=client.V1DeploymentSpec(
            replicas=replicas, selector=client.V1LabelSelector(match_labels=labels),
            template=client.V1PodTemplateSpec(metadata=client.V1ObjectMeta(labels=labels), spec=client.V1PodSpec(
                containers=[client.V1Container(name="main", image="example.invalid/a:1", env=[client.V1EnvVar(name="A", value="1")])]))))


def run(ns):
    core, apps = client.CoreV1Api(), client.AppsV1Api()

    def config_map(name, data=None, **metadata):
        return core.create_namespaced_config_map(ns, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, **metadata), data=data))

    @check("the version API")
    def _():
        version = client.VersionApi().get_code()
        same("version", (version.major, version.minor), ("1", "36"))
        matches("gitVersion", version.git_version, r"^v1\.36\.\d+\+coracle")

    @check("the groups and the resources of each")
    def _():
        groups = {group.name: [version.version for version in group.versions] for group in client.ApisApi().get_api_versions().groups}
        same("autoscaling", groups["autoscaling"], ["v2", "v1"])
        names = {resource.name for resource in core.get_api_resources().resources}
        assert {"pods", "pods/log", "pods/exec", "serviceaccounts/token"} <= names, names

    @check("create, read, replace, patch, delete a ConfigMap by its model")
    def _():
        made = config_map("model", {"a": "1", "text": "grüße\n"}, labels={"part": "one"})
        same("data", made.data, {"a": "1", "text": "grüße\n"})
        assert isinstance(made.metadata.creation_timestamp, datetime)
        assert abs(datetime.now(timezone.utc) - made.metadata.creation_timestamp) < timedelta(minutes=5)
        made.data["a"] = "2"
        same("replaced", core.replace_namespaced_config_map("model", ns, made).data["a"], "2")
        same("patched", core.patch_namespaced_config_map("model", ns, {"data": {"a": None, "b": "3"}}).data, {"b": "3", "text": "grüße\n"})
        same("read", core.read_namespaced_config_map("model", ns).metadata.labels, {"part": "one"})
        same("deleted", core.delete_namespaced_config_map("model", ns).status, "Success")
        refused(404, "NotFound", 'configmaps "model" not found', core.read_namespaced_config_map, "model", ns)

    @check("a Deployment by its model: defaults, a strategic patch, a JSON patch")
    def _():
        made = apps.create_namespaced_deployment(ns, deployment("web"))
        same("defaults", (made.spec.strategy.type, made.spec.revision_history_limit, made.spec.template.spec.dns_policy), ("RollingUpdate", 10, "ClusterFirst"))
        patched = apps.patch_namespaced_deployment("web", ns, {"spec": {"template": {"spec": {"containers": [{"name": "main", "env": [{"name": "B", "value": "2"}]}]}}}})
        same("env", sorted((v.name, v.value) for v in patched.spec.template.spec.containers[0].env), [("A", "1"), ("B", "2")])
        patched = apps.patch_namespaced_deployment("web", ns, [{"op": "replace", "path": "/spec/minReadySeconds", "value": 3}] if patched.spec.min_ready_seconds is not None
                                                   else [{"op": "add", "path": "/spec/minReadySeconds", "value": 3}])
        same("minReadySeconds", patched.spec.min_ready_seconds, 3)

    @check("scale: read, replaced, patched")
    def _():
        scale = apps.read_namespaced_deployment_scale("web", ns)
        same("scale", (scale.spec.replicas, scale.status.selector), (None, "app=web"))  # this library does not distinguish 0 from
                                                                                        # null: it is left out
        same("patched", apps.patch_namespaced_deployment_scale("web", ns, {"spec": {"replicas": 1}}).spec.replicas, 1)
        same("Deployment", apps.read_namespaced_deployment("web", ns).spec.replicas, 1)
        apps.patch_namespaced_deployment_scale("web", ns, {"spec": {"replicas": 0}})

    @check("status: patched alone")
    def _():
        got = apps.patch_namespaced_deployment_status("web", ns, {"spec": {"paused": True}, "status": {"conditions": [{"type": "Checked", "status": "True"}]}})
        same("condition", [c.type for c in got.status.conditions if c.type == "Checked"], ["Checked"])
        same("paused", got.spec.paused, None)

    @check("errors: not found, exists, conflict, invalid with causes")
    def _():
        made = config_map("twice", {"a": "1"})
        refused(409, "AlreadyExists", 'configmaps "twice" already exists', config_map, "twice")
        core.patch_namespaced_config_map("twice", ns, {"data": {"a": "2"}})
        refused(409, "Conflict", 'Operation cannot be fulfilled on configmaps "twice": the object has been modified; please apply your changes to the latest version and try again',
                core.replace_namespaced_config_map, "twice", ns, made)
        bad = deployment("web-2", -1)
        bad.spec.template.spec.containers[0].name = "Not A Name"
        status = refused(422, "Invalid", None, apps.create_namespaced_deployment, ns, bad)
        same("causes", sorted((c["field"], c["reason"]) for c in status["details"]["causes"]), [("spec.replicas", "FieldValueInvalid"), ("spec.template.spec.containers[0].name", "FieldValueInvalid")])
        same("details", (status["details"]["kind"], status["details"]["group"], status["details"]["name"]), ("Deployment", "apps", "web-2"))

    @check("field validation: strict refuses, warn answers with a Warning header")
    def _():
        body = {"metadata": {"name": "strict"}, "dada": {}}
        refused(400, "BadRequest", 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dada"',
                core.create_namespaced_config_map, ns, body, field_validation="Strict")
        _, _, headers = core.create_namespaced_config_map_with_http_info(ns, body, field_validation="Warn")
        same("Warning", headers.get("Warning"), '299 - "unknown field \\"dada\\""')

    @check("dry run and generateName")
    def _():
        name = core.create_namespaced_config_map(ns, {"metadata": {"generateName": "dry-"}}, dry_run="All").metadata.name
        matches("name", name, r"^dry-[bcdfghjklmnpqrstvwxz2456789]{5}$")
        refused(404, "NotFound", None, core.read_namespaced_config_map, name, ns)

    @check("pages: limit and continue, remaining items, all of one moment")
    def _():
        for n in range(12):
            config_map("page-%02d" % n, labels={"paged": "yes"})
        names, token, revisions = [], None, set()
        while True:
            page = core.list_namespaced_config_map(ns, label_selector="paged=yes", limit=5, _continue=token)
            names += [item.metadata.name for item in page.items]
            revisions.add(page.metadata.resource_version)
            token = page.metadata._continue
            if not token:
                break
        same("names", names, ["page-%02d" % n for n in range(12)])
        same("moments", len(revisions), 1)
        first = core.list_namespaced_config_map(ns, limit=1)
        assert first.metadata.remaining_item_count >= 12, first.metadata

    @check("deletecollection by a label; selectors of fields")
    def _():
        same("by name", len(core.list_namespaced_config_map(ns, field_selector="metadata.name=page-03").items), 1)
        core.delete_collection_namespaced_config_map(ns, label_selector="paged=yes", field_selector="metadata.name!=page-03")
        same("left", [item.metadata.name for item in core.list_namespaced_config_map(ns, label_selector="paged").items], ["page-03"])

    @check("finalizers and owners: held, then gone, and what is owned follows")
    def _():
        owner = config_map("owner", finalizers=["example.com/hold"])
        config_map("owned", owner_references=[client.V1OwnerReference(api_version="v1", kind="ConfigMap", name="owner", uid=owner.metadata.uid)])
        core.delete_namespaced_config_map("owner", ns, propagation_policy="Background")
        assert core.read_namespaced_config_map("owner", ns).metadata.deletion_timestamp
        core.patch_namespaced_config_map("owner", ns, {"metadata": {"finalizers": None}})

        def gone():
            try:
                return core.read_namespaced_config_map("owned", ns).metadata.name
            except ApiException as error:
                return error.status == 404 or error.status
        until("what was owned is gone", gone)

    @check("a Secret's data is base64, its stringData becomes data")
    def _():
        got = core.create_namespaced_secret(ns, client.V1Secret(metadata=client.V1ObjectMeta(name="secret"), data={"a": "AAEC"}, string_data={"b": "text"}))
        same("data", got.data, {"a": "AAEC", "b": "dGV4dA=="})

    @check("a token of a service account, with which a client of its own is who it is")
    def _():
        core.create_namespaced_service_account(ns, {"metadata": {"name": "robot"}})
        token = core.create_namespaced_service_account_token("robot", ns, client.AuthenticationV1TokenRequest(
            spec=client.V1TokenRequestSpec(audiences=[], expiration_seconds=900))).status.token
        own = client.Configuration.get_default_copy()
        own.cert_file = own.key_file = None
        own.api_key = {"authorization": "Bearer " + token}
        with client.ApiClient(own) as robot:
            review = client.AuthenticationV1Api(robot).create_self_subject_review({})
            same("user", review.status.user_info.username, "system:serviceaccount:%s:robot" % ns)
            refused(403, "Forbidden", 'pods is forbidden: User "system:serviceaccount:%s:robot" cannot list resource "pods" in API group "" in the namespace "%s"' % (ns, ns),
                    client.CoreV1Api(robot).list_namespaced_pod, ns)

    @check("access reviews")
    def _():
        review = client.AuthorizationV1Api().create_self_subject_access_review(client.V1SelfSubjectAccessReview(
            spec=client.V1SelfSubjectAccessReviewSpec(resource_attributes=client.V1ResourceAttributes(namespace=ns, verb="delete", resource="pods"))))
        same("allowed", review.status.allowed, True)

    @check("leader election, by a ConfigMap as this library has it")
    def _():
        leads = threading.Event()
        election = leaderelection.LeaderElection(electionconfig.Config(
            ConfigMapLock("leader", ns, "one"), lease_duration=6, renew_deadline=4, retry_period=1, onstarted_leading=leads.set, onstopped_leading=None))
        threading.Thread(target=election.run, daemon=True).start()
        assert leads.wait(60)
        held = core.read_namespaced_config_map("leader", ns).metadata.annotations["control-plane.alpha.kubernetes.io/leader"]
        same("holder", json.loads(held)["holderIdentity"], "one")

    @check("a Lease, renewed with microseconds")
    def _():
        leases = client.CoordinationV1Api()
        when = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=timezone.utc)
        leases.create_namespaced_lease(ns, {"metadata": {"name": "lock"}, "spec": {"holderIdentity": "a", "leaseDurationSeconds": 15}})
        got = leases.patch_namespaced_lease("lock", ns, {"spec": {"renewTime": "2026-01-02T03:04:05.678901Z", "holderIdentity": "b"}})
        same("lease", (got.spec.renew_time, got.spec.holder_identity), (when, "b"))
