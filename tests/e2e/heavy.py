#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Sends the requests of heavy.sh. Each is as large as a body may be and makes one thing very numerous or very deep, so that work which
# grows with the square of the input, or with its depth, shows. It is accepted or refused, costs at most a second of a core with all
# that follows in the daemon, and so do reading and deleting what was made; the witness, an ordinary client, does not wait. Prints TAP.
#
# Costs are measured as processor time, which other programs' work hardly changes; on a slow machine the limit is a multiple of the
# cost of a plain request (raw_api.py, Costs). hostile.py explains how the witness is judged. --alone: the limits hold in full.
import base64, json, time
import raw_api
from raw_api import (APPLY_PATCH, JSON, JSON_PATCH, MAPS, MERGE_PATCH, PROTOBUF, STRATEGIC_PATCH, TABLE, YAML, Witness, ask, bar, judge, judge_all, lives)
from protobuf import envelope, item
from tap import expect, leave, told

BODY_MAX = 3 << 20
raw_api.parser.add_argument("--only", default="", help="objects whose name has this in it, and nothing else")
args = raw_api.use()
GOOD = {200, 201, 400, 403, 409, 413, 422, 429}  # the last two: refused, too large or too much; 409: an allocation failed
NAMESPACE = "/namespaces/default/"
costs = None


def text(value):
    return json.dumps(value, separators=(",", ":"))


def many(make, count):
    """A list of `count` items, or of as many as fit into a body."""
    size = max(len(text(make(i))) for i in (count - 1, count * 255 // 256, 65_534)) + 1
    return [make(i) for i in range(min(count, (BODY_MAX - 20_000) // size))]


def names(count, value="v"):
    return {each: value for each in many(lambda i: "k%d" % i, min(count, 150_000))}


def container(**more):
    return dict({"name": "c", "image": "localhost/busybox:latest", "imagePullPolicy": "Never", "command": ["sleep", "1000"]}, **more)


def pod_spec(**more):  # of a pod that runs, if what it asks for lets it
    return dict({"automountServiceAccountToken": False, "terminationGracePeriodSeconds": 0, "containers": [container()]}, **more)


def terms(count, key="matchExpressions"):
    return many(lambda i: {key: [{"key": "k%d" % i, "operator": "In", "values": ["v"]}]}, count)


def pods():
    requirement = lambda i: {"key": "k%d" % i, "operator": "NotIn", "values": ["v%d" % i]}
    affine = lambda i: {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"k%d" % i: "v"}}}
    yield "labels", {}, {"labels": names(10 ** 6)}
    yield "small annotations", {}, {"annotations": names(20_000)}
    yield "a managed field entry each", {}, {"managedFields": many(lambda i: {
        "manager": "m%d" % i, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:labels": {"f:k%d" % i: {}}}}}, 10 ** 6)}
    yield "variables", {"containers": [container(env=many(lambda i: {"name": "K%d" % i, "value": "$(K%d)" % (i - 1)}, 100_000))]}, {}
    yield "variables of one name", {"containers": [container(env=many(lambda i: {"name": "K", "value": "%d" % i}, 100_000))]}, {}
    yield "sources of variables", {"containers": [container(envFrom=many(lambda i: {"prefix": "P%d" % i, "configMapRef": {"name": "c%d" % i}}, 100_000))]}, {}
    yield "ports", {"containers": [container(ports=many(lambda i: {"containerPort": i % 65535 + 1, "protocol": ("TCP", "UDP", "SCTP")[i % 3]}, 10 ** 6))]}, {}
    yield "host ports", {"containers": [container(ports=many(lambda i: {"containerPort": 80, "hostPort": i % 65535 + 1}, 65_000))]}, {}
    yield "volumes that nobody mounts", {"volumes": many(lambda i: {"name": "v%d" % i, "emptyDir": {}}, 15_000)}, {}
    yield "volumes and mounts", {"volumes": many(lambda i: {"name": "v%d" % i, "configMap": {"name": "c"}}, 15_000),
                                 "containers": [container(volumeMounts=many(lambda i: {"name": "v%d" % i, "mountPath": "/m/%d" % i}, 15_000))]}, {}
    yield "mounts of one volume", {"volumes": [{"name": "v", "emptyDir": {}}], "containers": [container(
        volumeMounts=many(lambda i: {"name": "v", "mountPath": "/m/%d" % i, "subPath": "s%d" % i}, 10 ** 6))]}, {}
    in_memory = many(lambda i: {"name": "v%d" % i, "emptyDir": {"medium": "Memory"}}, 15_000)
    yield "volumes in memory", {"volumes": in_memory}, {}
    yield "volumes in memory and mounts", {"volumes": in_memory, "containers": [container(
        volumeMounts=[{"name": each["name"], "mountPath": "/m/" + each["name"]} for each in in_memory])]}, {}
    yield "projected sources", {"volumes": [{"name": "v", "projected": {"sources": many(lambda i: {"configMap": {"name": "c%d" % i, "items": [
        {"key": "k", "path": "p%d" % i}]}}, 10 ** 6)}}]}, {}
    yield "items of a volume", {"volumes": [{"name": "v", "configMap": {"name": "c", "items": many(lambda i: {"key": "k%d" % i, "path": "p/%d" % i}, 10 ** 6)}}]}, {}
    yield "claims", {"volumes": many(lambda i: {"name": "v%d" % i, "persistentVolumeClaim": {"claimName": "c%d" % i}}, 15_000)}, {}
    yield "tolerations", {"tolerations": many(lambda i: {"key": "k%d" % i, "operator": "Exists", "effect": "NoSchedule"}, 10 ** 6)}, {}
    yield "equal tolerations", {"tolerations": many(lambda i: {"key": "k", "operator": "Exists"}, 10 ** 6)}, {}
    yield "terms of node affinity", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms(10 ** 6)}}}}, {}
    yield "preferred terms of node affinity", {"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "preference": each} for each in terms(30_000)]}}}, {}
    yield "values of node affinity", {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
        {"matchExpressions": [{"key": "k", "operator": "In", "values": many(lambda i: "v%d" % i, 10 ** 6)}]}]}}}}, {}
    yield "terms of pod affinity", {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": many(affine, 10 ** 6)}}}, {}
    yield "terms of pod anti-affinity", {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": each} for each in many(affine, 20_000)]}}}, {}
    yield "requirements of pod affinity", {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchExpressions": many(requirement, 10 ** 6)}}]}}}, {}
    yield "topology constraints", {"topologySpreadConstraints": many(lambda i: {
        "maxSkew": 1, "topologyKey": "k%d" % i, "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}, 10 ** 6)}, {}
    yield "topology constraints of one key", {"topologySpreadConstraints": many(lambda i: {
        "maxSkew": i + 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}, 10 ** 6)}, {}
    yield "label keys of a constraint", {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "k", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {},
                                                                       "matchLabelKeys": many(lambda i: "k%d" % i, 10 ** 6)}]}, {}
    yield "a node selector", {"nodeSelector": names(10 ** 6)}, {}
    yield "containers", {"containers": many(lambda i: container(name="c%d" % i), 15_000)}, {}
    yield "containers of one name", {"containers": many(lambda i: container(), 15_000)}, {}
    yield "init containers", {"initContainers": many(lambda i: container(name="i%d" % i, restartPolicy="Always"), 15_000)}, {}
    yield "host aliases", {"hostAliases": many(lambda i: {"ip": "10.%d.%d.%d" % (i >> 16 & 255, i >> 8 & 255, i & 255), "hostnames": ["h%d" % i]}, 10 ** 6)}, {}
    yield "pull secrets", {"imagePullSecrets": many(lambda i: {"name": "s%d" % i}, 10 ** 6)}, {}
    yield "scheduling gates", {"schedulingGates": many(lambda i: {"name": "example.com/g%d" % i}, 10 ** 6)}, {}
    yield "readiness gates", {"readinessGates": many(lambda i: {"conditionType": "example.com/g%d" % i}, 10 ** 6)}, {}
    yield "resource claims", {"resourceClaims": many(lambda i: {"name": "r%d" % i, "resourceClaimName": "r"}, 10 ** 6)}, {}
    yield "resources", {"containers": [container(resources={"limits": {"example.com/" + each: "1" for each in names(80_000)}})]}, {}
    yield "digits of a quantity", {"containers": [container(resources={"limits": {"memory": "9" * 1_000_000}})]}, {}
    yield "a quantity with an exponent", {"containers": [container(resources={"limits": {"memory": "1e999999999"}})]}, {}
    yield "sysctls", {"securityContext": {"sysctls": many(lambda i: {"name": "net.ipv4.k%d" % i, "value": "1"}, 10 ** 6)}}, {}
    yield "groups", {"securityContext": {"supplementalGroups": many(lambda i: i, 10 ** 6)}}, {}
    yield "capabilities", {"containers": [container(securityContext={"capabilities": {"add": many(lambda i: "C%d" % i, 10 ** 6)}})]}, {}
    yield "words of a command", {"containers": [container(command=many(lambda i: "$(K%d)" % i, 10 ** 6))]}, {}
    yield "dollars in a command", {"containers": [container(command=["$(" * 1_000_000])]}, {}
    yield "headers of a probe", {"containers": [container(livenessProbe={"httpGet": {"port": 80, "httpHeaders": many(
        lambda i: {"name": "H%d" % i, "value": "v"}, 10 ** 6)}})]}, {}
    yield "name servers", {"dnsPolicy": "None", "dnsConfig": {"nameservers": many(lambda i: "10.0.0.%d" % (i % 250), 10 ** 6)}}, {}
    yield "search domains", {"dnsConfig": {"searches": many(lambda i: "d%d.example.com" % i, 10 ** 6), "options": many(lambda i: {"name": "o"}, 1000)}}, {}


def others():
    meta = lambda kind, version: {"apiVersion": version, "kind": kind, "metadata": {"name": "heavy"}}
    expressions = many(lambda i: {"key": "k%d" % i, "operator": "NotIn", "values": ["v"]}, 10 ** 6)
    selector = {"matchLabels": {"a": "b"}, "matchExpressions": expressions}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [container()], "schedulingGates": [{"name": "example.com/never"}]}}
    service = lambda **spec: dict(meta("Service", "v1"), spec=spec)
    path = lambda i: {"path": "/p%d" % i, "pathType": "Prefix", "backend": {"service": {"name": "s", "port": {"number": 80}}}}
    apps, core, rbac = "/apis/apps/v1" + NAMESPACE, "/api/v1" + NAMESPACE, "/apis/rbac.authorization.k8s.io/v1" + NAMESPACE
    yield "requirements of a Deployment's selector", apps + "deployments", dict(meta("Deployment", "apps/v1"), spec={"replicas": 2, "selector": selector, "template": template})
    yield "requirements of a ReplicaSet's selector", apps + "replicasets", dict(meta("ReplicaSet", "apps/v1"), spec={"replicas": 2, "selector": selector, "template": template})
    yield "requirements of a budget's selector", "/apis/policy/v1" + NAMESPACE + "poddisruptionbudgets", dict(
        meta("PodDisruptionBudget", "policy/v1"), spec={"minAvailable": 1, "selector": {"matchExpressions": expressions}})
    yield "claim templates of a StatefulSet", apps + "statefulsets", dict(meta("StatefulSet", "apps/v1"), spec={
        "serviceName": "s", "selector": {"matchLabels": {"a": "b"}}, "template": template, "replicas": 1, "volumeClaimTemplates": many(
            lambda i: {"metadata": {"name": "v%d" % i}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1"}}}}, 10 ** 6)})
    yield "labels of a Service's selector", core + "services", service(selector=names(10 ** 6), ports=[{"port": 80}])
    yield "ports of a Service", core + "services", service(ports=many(lambda i: {"name": "p%d" % i, "port": i % 65535 + 1, "protocol": ("TCP", "UDP")[i // 65535 % 2]}, 65_000))
    yield "equal ports of a Service", core + "services", service(ports=many(lambda i: {"name": "p", "port": 80}, 10 ** 6))
    yield "node ports", core + "services", service(type="NodePort", ports=many(lambda i: {"name": "p%d" % i, "port": i + 1}, 5000))
    yield "external addresses", core + "services", service(ports=[{"port": 80}], externalIPs=many(
        lambda i: "203.%d.%d.%d" % (i >> 16 & 255, i >> 8 & 255, i & 255), 10 ** 6))
    yield "source ranges", core + "services", service(type="LoadBalancer", ports=[{"port": 80}], loadBalancerSourceRanges=many(
        lambda i: "10.%d.%d.0/24" % (i >> 8 & 255, i & 255), 10 ** 6))
    yield "subsets of endpoints", core + "endpoints", dict(meta("Endpoints", "v1"), subsets=many(
        lambda i: {"addresses": [{"ip": "10.9.%d.%d" % (i >> 8 & 255, i & 255)}], "ports": [{"name": "p%d" % i, "port": 80}]}, 10 ** 6))
    yield "addresses of endpoints", core + "endpoints", dict(meta("Endpoints", "v1"), subsets=[{"ports": [{"port": 80}], "addresses": many(
        lambda i: {"ip": "10.%d.%d.%d" % (i >> 16 & 255, i >> 8 & 255, i & 255)}, 10 ** 6)}])
    yield "rules of an Ingress", "/apis/networking.k8s.io/v1" + NAMESPACE + "ingresses", dict(meta("Ingress", "networking.k8s.io/v1"), spec={
        "rules": many(lambda i: {"host": "h%d.example.com" % i, "http": {"paths": [path(i)]}}, 10 ** 6)})
    yield "paths of an Ingress", "/apis/networking.k8s.io/v1" + NAMESPACE + "ingresses", dict(meta("Ingress", "networking.k8s.io/v1"), spec={
        "rules": [{"host": "h.example.com", "http": {"paths": many(path, 10 ** 6)}}]})
    yield "rules of a NetworkPolicy", "/apis/networking.k8s.io/v1" + NAMESPACE + "networkpolicies", dict(meta("NetworkPolicy", "networking.k8s.io/v1"), spec={
        "podSelector": {"matchExpressions": expressions[:10_000]}, "ingress": many(lambda i: {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.%d.0.0/16" % (
            i % 255)]}}], "ports": [{"port": i % 65535 + 1}]}, 15_000)})
    yield "rules of a Role", rbac + "roles", dict(meta("Role", "rbac.authorization.k8s.io/v1"), rules=many(
        lambda i: {"apiGroups": ["g%d" % i], "resources": ["r"], "verbs": ["get"]}, 10 ** 6))
    yield "names in a Role", rbac + "roles", dict(meta("Role", "rbac.authorization.k8s.io/v1"), rules=[
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": many(lambda i: "n%d" % i, 10 ** 6)}])
    yield "subjects of a RoleBinding", rbac + "rolebindings", dict(
        meta("RoleBinding", "rbac.authorization.k8s.io/v1"), roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "heavy"},
        subjects=many(lambda i: {"kind": "User", "name": "u%d" % i, "apiGroup": "rbac.authorization.k8s.io"}, 10 ** 6))
    yield "selectors of an aggregated role", "/apis/rbac.authorization.k8s.io/v1/clusterroles", dict(
        meta("ClusterRole", "rbac.authorization.k8s.io/v1"), aggregationRule={"clusterRoleSelectors": many(lambda i: {"matchLabels": {"k%d" % i: "v"}}, 10 ** 6)})
    for name, schedule in {"a schedule of many terms": "*," * 700_000 + "* * * * *", "a schedule of steps": ",".join("%d/1" % (i % 60) for i in range(500_000)) + " * * * *",
                           "a schedule that never comes": "0 0 31 2 *", "a schedule of blanks": "*" + " " * 1_000_000 + "* * * *"}.items():
        yield name, "/apis/batch/v1" + NAMESPACE + "cronjobs", dict(meta("CronJob", "batch/v1"), spec={
            "schedule": schedule, "jobTemplate": {"spec": {"template": {"spec": dict(template["spec"], restartPolicy="Never")}}}})
    yield "a long time zone", "/apis/batch/v1" + NAMESPACE + "cronjobs", dict(meta("CronJob", "batch/v1"), spec={
        "schedule": "0 0 1 1 *", "timeZone": "A/" * 1_000_000, "jobTemplate": {"spec": {"template": {"spec": dict(template["spec"], restartPolicy="Never")}}}})
    yield "indexes of a Job", "/apis/batch/v1" + NAMESPACE + "jobs", dict(meta("Job", "batch/v1"), spec={
        "completions": 10 ** 9, "parallelism": 100_000, "completionMode": "Indexed", "suspend": True, "successPolicy": {"rules": [
            {"succeededIndexes": ",".join(str(2 * i) for i in range(8000))}] * 20}, "template": {"spec": dict(template["spec"], restartPolicy="Never")}})
    yield "metrics of an autoscaler", "/apis/autoscaling/v2" + NAMESPACE + "horizontalpodautoscalers", dict(meta("HorizontalPodAutoscaler", "autoscaling/v2"), spec={
        "maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}, "metrics": many(
            lambda i: {"type": "Resource", "resource": {"name": "r%d" % i, "target": {"type": "Utilization", "averageUtilization": 1}}}, 10 ** 6)})
    yield "amounts of a quota", core + "resourcequotas", dict(meta("ResourceQuota", "v1"), spec={"hard": {"count/k%d.example.com" % i: "1" for i in range(80_000)}})
    yield "scopes of a quota", core + "resourcequotas", dict(meta("ResourceQuota", "v1"), spec={"hard": {"pods": "1000"}, "scopeSelector": {"matchExpressions": many(
        lambda i: {"scopeName": "PriorityClass", "operator": "In", "values": ["v%d" % i]}, 10 ** 6)}})
    yield "limits of a range", core + "limitranges", dict(meta("LimitRange", "v1"), spec={"limits": many(
        lambda i: {"type": "example.com/T%d" % i, "max": {"example.com/r%d" % i: "1"}}, 10 ** 6)})
    yield "taints of a node", "/api/v1/nodes", dict(meta("Node", "v1"), spec={"taints": many(lambda i: {"key": "k%d" % i, "effect": "NoSchedule"}, 10 ** 6)})
    yield "images of a node", "/api/v1/nodes", dict(meta("Node", "v1"), status={"images": many(lambda i: {"names": ["n%d" % i], "sizeBytes": 1}, 10 ** 6)})
    yield "owners, all different", core + "configmaps", {"metadata": {"name": "heavy", "ownerReferences": many(
        lambda i: {"apiVersion": "g%d/v1" % i, "kind": "K%d" % i, "name": "n%d" % i, "uid": "u%d" % i}, 10 ** 6)}}
    yield "keys of a ConfigMap", core + "configmaps", {"metadata": {"name": "heavy"}, "data": names(10 ** 6, "")}
    yield "a Docker configuration nested deeply", core + "secrets", {"metadata": {"name": "heavy"}, "type": "kubernetes.io/dockerconfigjson", "data": {
        ".dockerconfigjson": base64.b64encode(b'{"auths":' + b"[" * 500_000).decode()}}
    yield "a last applied configuration nested deeply", core + "configmaps", {"metadata": {"name": "heavy", "annotations": {
        "kubectl.kubernetes.io/last-applied-configuration": '{"a":' * 40_000 + "1" + "}" * 40_000}}}
    yield "topologies of a StorageClass", "/apis/storage.k8s.io/v1/storageclasses", dict(
        meta("StorageClass", "storage.k8s.io/v1"), provisioner="example.com/p", parameters=names(20_000), allowedTopologies=many(
            lambda i: {"matchLabelExpressions": [{"key": "k%d" % i, "values": ["v"]}]}, 30_000))
    yield "properties of a schema", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "heavies.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "heavies", "kind": "Heavy"}, "versions": [{
                "name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    each: {"type": "string", "pattern": "(a*)*b"} for each in names(60_000)}}}}]}}
    yield "versions of a definition", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "heavies.example.com"}, "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "heavies", "kind": "Heavy"}, "versions": many(lambda i: {
                "name": "v%d" % (i + 1), "served": True, "storage": i == 0, "schema": {"openAPIV3Schema": {"type": "object"}}}, 10 ** 6)}}


def reviews():
    yield "a token of megabytes", "/apis/authentication.k8s.io/v1/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {
        "token": "a" * 1_000_000 + "." + "b" * 1_000_000 + "." + "c" * 800_000}}
    yield "a token nested deeply", "/apis/authentication.k8s.io/v1/tokenreviews", {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {
        "token": ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in (b'{"alg":"RS256"}', b"[" * 1_000_000, b"x"))}}
    yield "groups of a review", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "u", "groups": many(lambda i: "g%d" % i, 10 ** 6), "resourceAttributes": {"verb": "get", "resource": "pods"}}}
    yield "selectors of a review", "/apis/authorization.k8s.io/v1/subjectaccessreviews", {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
        "user": "u", "resourceAttributes": {"verb": "list", "resource": "pods", "labelSelector": {"requirements": many(
            lambda i: {"key": "k%d" % i, "operator": "In", "values": ["v"]}, 10 ** 6)}}}}
    yield "a certificate request of megabytes", "/apis/certificates.k8s.io/v1/certificatesigningrequests", {
        "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest", "metadata": {"name": "heavy"}, "spec": {
            "signerName": "example.com/s", "usages": ["client auth"], "request": base64.b64encode(
                b"-----BEGIN CERTIFICATE REQUEST-----\n" + b"MIIB" * 500_000 + b"\n-----END CERTIFICATE REQUEST-----\n").decode()}}


def gone(one):
    """Deletes an object, if it is there. Returns whether it went."""
    until = time.monotonic() + 30
    while ask("GET", one)[0] != 404:
        if time.monotonic() > until:
            return False
        ask("DELETE", one + "?gracePeriodSeconds=0")
        time.sleep(0.1)
    return True


def use(name, collection, body):
    """Makes an object, reads it in several ways, changes and deletes it."""
    named = body.get("metadata", {}).get("name", "")
    one = collection + "/" + named
    want = GOOD | {500} if name == "node ports" else GOOD  # as Kubernetes, where the range of node ports is full
    status = costs.timed(expect, name, want, "POST", collection, text(body), JSON, undo=(lambda: gone(one)) if named else None)
    if status not in (200, 201) or not named:
        return
    for what, asked in {"read": ("GET", one), "listed as a Table": ("GET", collection, b"", TABLE)}.items():
        costs.timed(expect, "%s, %s" % (name, what), GOOD, *asked)
    label = lambda value: ("PATCH", one, '{"metadata":{"labels":{"changed":%s}}}' % value, MERGE_PATCH)
    costs.timed(expect, name + ", changed", GOOD, *label('"yes"'), undo=lambda: ask(*label("null")))
    costs.timed(expect, name + ", deleted", {200, 202, 404}, "DELETE", one)
    told(gone(one), name + ": it can be deleted")


def heavy_pods():
    for name, spec, metadata in pods():
        if args.only in "a pod's " + name:
            use("a pod's " + name, "/api/v1" + NAMESPACE + "pods", {"metadata": dict({"name": "heavy"}, **metadata), "spec": pod_spec(**spec)})


def heavy_objects():
    for name, collection, body in others():
        if args.only in name:
            use(name, collection, body)


def heavy_reviews():
    for name, collection, body in reviews():
        use(name, collection, body)


def heavy_rights():
    """A namespace's administrator, whose rights are compared with what he grants."""
    core, rbac = "/api/v1" + NAMESPACE, "/apis/rbac.authorization.k8s.io/v1" + NAMESPACE
    ask("POST", core + "serviceaccounts", '{"metadata":{"name":"chief"}}', JSON)
    expect("an administrator of the namespace", {201}, ask("POST", rbac + "rolebindings", text(
        {"metadata": {"name": "chief"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "admin"},
         "subjects": [{"kind": "ServiceAccount", "name": "chief", "namespace": "default"}]}), JSON))
    status, body = ask("POST", core + "serviceaccounts/chief/token", '{"spec":{}}', JSON)
    token = json.loads(body)["status"]["token"] if status == 201 else ""
    def as_chief(name, path, body, want=GOOD):
        one = path + "/" + body["metadata"].get("name", "") if "rbac" in path else ""
        costs.timed(expect, name, want, "POST", path, text(body), JSON + "Authorization: Bearer %s\r\n" % token, raw_api.stranger,
                    undo=(lambda: gone(one)) if one else None)
    role = lambda name, rules: {"metadata": {"name": name}, "rules": rules}
    rule = lambda i: {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"], "resourceNames": ["n%d" % i]}
    as_chief("a Role of many rules that he holds", rbac + "roles", role("held", many(rule, 10 ** 6)))
    as_chief("one of many rules that he does not hold", rbac + "roles", role("lacking", many(lambda i: dict(rule(i), apiGroups=["g"]), 10 ** 6)), {403})
    as_chief("one rule of many verbs, groups and resources", rbac + "roles", role("wide", [{
        "apiGroups": many(lambda i: "g%d" % i, 50_000), "resources": many(lambda i: "r%d" % i, 50_000), "verbs": many(lambda i: "v%d" % i, 50_000)}]), {403})
    as_chief("many groups are given a Role", rbac + "rolebindings", {
        "metadata": {"name": "crowd"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "held"},
        "subjects": many(lambda i: {"kind": "Group", "name": "g%d" % i, "apiGroup": "rbac.authorization.k8s.io"}, 20_000)})
    for name, groups in {"of groups that all have a Role of many rules": many(lambda i: "g%d" % i, 20_000), "of one group again and again": ["g1"] * 400_000,
                         "of many groups": many(lambda i: "x%d" % i, 10 ** 6)}.items():
        as_chief("a review " + name, "/apis/authorization.k8s.io/v1" + NAMESPACE + "localsubjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview", "metadata": {"namespace": "default"}, "spec": {
                "groups": groups, "resourceAttributes": {"namespace": "default", "verb": "delete", "resource": "nothing"}}}, {201})
    as_chief("what may he do", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", {
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectRulesReview", "metadata": {}, "spec": {"namespace": "default"}}, {201})
    for name in ("rolebindings/crowd", "rolebindings/chief", "roles/held"):
        ask("DELETE", rbac + name)
    ask("DELETE", core + "serviceaccounts/chief")


def heavy_patches():
    """Patches of an object with long lists."""
    expect("an object with long lists", {201}, ask("POST", MAPS, text({"metadata": {"name": "listed", "finalizers": ["example.com/f%d" % i for i in range(20_000)]},
                                                                       "data": {"k%d" % i: "" for i in range(20_000)}}), JSON))
    one = MAPS + "/listed"
    finalizers = "/metadata/finalizers/"
    for name, operations in {
        "10,000 insertions at the front": [{"op": "add", "path": finalizers + "0", "value": "example.com/n%d" % i} for i in range(10_000)],
        "10,000 removals at the front": [{"op": "remove", "path": finalizers + "0"}] * 10_000,
        "10,000 moves from the end to the front": [{"op": "move", "from": finalizers + "19999", "path": finalizers + "0"}] * 10_000,
        "10,000 copies": [{"op": "copy", "from": "/data", "path": "/data/c%d" % i} for i in range(10_000)],
        "10,000 comparisons": [{"op": "test", "path": "/metadata/finalizers", "value": []}] * 10_000,
        "a comparison with all of it": [{"op": "test", "path": "/data", "value": {"k%d" % i: "" for i in range(20_000)}}] * 2,
        "100,000 operations": [{"op": "test", "path": "/kind", "value": "ConfigMap"}] * 60_000,
        "a path of a megabyte": [{"op": "test", "path": "/a" * 500_000, "value": 1}],
        "10,000 paths without end": [{"op": "add", "path": "/data/" + "~1" * 100, "value": str(i)} for i in range(10_000)],
    }.items():
        costs.timed(expect, "a JSON patch: " + name, GOOD, "PATCH", one + "?dryRun=All", text(operations), JSON_PATCH)
    reverse = ["example.com/f%d" % i for i in range(19_999, -1, -1)]
    for name, patch in {
        "an order": {"metadata": {"$setElementOrder/finalizers": reverse}}, "removals": {"metadata": {"$deleteFromPrimitiveList/finalizers": reverse}},
        "both, and the list": {"metadata": {"$setElementOrder/finalizers": reverse, "finalizers": reverse}},
        "keys to keep": {"data": {"$retainKeys": many(lambda i: "k%d" % i, 100_000)}}, "nulls": {"data": {"k%d" % i: None for i in range(100_000)}},
        "directives in one another": json.loads('{"$patch":"replace","data":' * 45 + "{}" + "}" * 45),
    }.items():
        costs.timed(expect, "a strategic patch: " + name, GOOD, "PATCH", one + "?dryRun=All", text(patch), STRATEGIC_PATCH)
        costs.timed(expect, "a merge patch: " + name, GOOD, "PATCH", one + "?dryRun=All", text(patch), MERGE_PATCH)
    applied = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "listed", "finalizers": reverse}, "data": {"k%d" % i: "" for i in range(20_000)}}
    for force in ("false", "true"):
        costs.timed(expect, "an apply of all of it, force " + force, GOOD, "PATCH", one + "?fieldManager=x&force=" + force, text(applied), APPLY_PATCH)
    costs.timed(expect, "and of nothing", GOOD, "PATCH", one + "?fieldManager=x", text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "listed"}}), APPLY_PATCH)
    ask("PATCH", one, '{"metadata":{"finalizers":null}}', MERGE_PATCH)
    expect("it goes", {200}, ask("DELETE", one))


def heavy_managers():
    """An object with thousands of field managers, each of which applied a field."""
    ask("POST", MAPS, '{"metadata":{"name":"managed"}}', JSON)
    one = MAPS + "/managed"
    entries = many(lambda i: {"manager": "m%d" % i, "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                              "fieldsV1": {"f:data": {"f:shared": {}, "f:k%d" % i: {}}}}, 5000)
    body = {"metadata": {"name": "managed", "managedFields": entries}, "data": dict({"k%d" % i: "" for i in range(5000)}, shared="x")}
    costs.timed(expect, "5000 managers at once", GOOD, "PUT", one, text(body), JSON)
    applied = lambda i: text({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "managed"}, "data": {"n%d" % i: "", "shared": "y"}})
    costs.timed(expect, "one more applies a field that all of them own", GOOD, "PATCH", one + "?fieldManager=more", applied(0), APPLY_PATCH)
    costs.timed(expect, "and takes it by force", GOOD, "PATCH", one + "?fieldManager=more&force=true", applied(0), APPLY_PATCH)
    costs.timed(expect, "an update of a field that all of them own", GOOD, "PATCH", one + "?fieldManager=other", '{"data":{"shared":"z"}}', MERGE_PATCH)
    expect("it goes", {200}, ask("DELETE", one))


def heavy_queries():
    """Heads: as long as a head may be."""
    odd = lambda name, target, headers="": costs.timed(expect, name, GOOD | {406, 410, 431}, "GET", target, b"", headers)
    odd("a continue token of 900 KB", MAPS + "?limit=1&continue=" + "A" * 900_000)
    odd("a continue token nested deeply", MAPS + "?limit=1&continue=" + base64.urlsafe_b64encode(b"[" * 600_000).decode())
    odd("a field selector of many terms", MAPS + "?fieldSelector=" + ",".join("metadata.name!%%3Dn%d" % i for i in range(30_000)))
    odd("a field selector of one term without end", MAPS + "?fieldSelector=metadata.name%3D" + "n" * 900_000)
    odd("a label selector of parentheses", MAPS + "?labelSelector=a+in+" + "(" * 900_000)
    odd("a label selector of blanks", MAPS + "?labelSelector=" + "+" * 900_000)
    odd("a label selector of commas", MAPS + "?labelSelector=" + "," * 900_000)
    odd("a selector of set terms", MAPS + "?labelSelector=" + ",".join("k%d+in+(a,b)" % i for i in range(40_000)))
    odd("many equal parameters", MAPS + "?" + "&".join("limit=1" for _ in range(9_000)))
    odd("an Accept header of many types", MAPS, "Accept: " + ",".join("application/json;as=T%d;v=v1;g=g" % i for i in range(20_000)) + "\r\n")
    odd("an Accept header of many parameters", MAPS, "Accept: application/json" + ";a=b" * 200_000 + "\r\n")
    odd("groups of an impersonation", MAPS, "Impersonate-User: u\r\n" + "".join("Impersonate-Group: g%d\r\n" % i for i in range(900)))
    odd("an Accept-Encoding of many", MAPS, "Accept-Encoding: " + ",".join("x%d;q=0.5" % i for i in range(80_000)) + "\r\n")
    wrong = "{%s}" % ",".join('"u%d":1' % i for i in range(200_000))
    for mode in ("Strict", "Warn", "Ignore"):
        costs.timed(expect, "200,000 unknown fields, " + mode, GOOD, "POST", MAPS + "?fieldValidation=%s&dryRun=All" % mode, '{"metadata":{"name":"u"},"unknown":1,' + wrong[1:], JSON)
        costs.timed(expect, "one field 200,000 times, " + mode, GOOD, "POST", MAPS + "?fieldValidation=%s&dryRun=All" % mode,
                    '{"metadata":{"name":"u"},%s}' % ",".join('"data":{"a":"b"}' for _ in range(150_000)), JSON)
        costs.timed(expect, "YAML with one field 200,000 times, " + mode, GOOD, "POST", MAPS + "?fieldValidation=%s&dryRun=All" % mode,
                    "metadata: {name: u}\n" + "data: {a: b}\n" * 150_000, YAML)
    costs.timed(expect, "YAML of 3 MB in one line", GOOD, "POST", MAPS + "?dryRun=All", "metadata: {name: u}\ndata: {a: '" + "x " * 1_400_000 + "'}\n", YAML)
    costs.timed(expect, "YAML of many short keys", GOOD, "POST", MAPS + "?dryRun=All", "metadata: {name: u}\ndata:\n" + "".join("  k%d: v\n" % i for i in range(200_000)), YAML)
    costs.timed(expect, "YAML of comments", GOOD, "POST", MAPS + "?dryRun=All", "#\n" * 1_500_000 + "metadata: {name: u}\n", YAML)
    costs.timed(expect, "YAML of question marks", GOOD, "POST", MAPS + "?dryRun=All", "? " * 1_500_000, YAML)
    entry = lambda i: item(11, item(1, b"k%d" % i) + item(2, b"v"))
    costs.timed(expect, "protobuf of 200,000 labels", GOOD, "POST", MAPS + "?dryRun=All",
                envelope(b"ConfigMap", item(1, item(1, b"u") + b"".join(entry(i) for i in range(200_000)))), PROTOBUF)
    costs.timed(expect, "protobuf of one field again and again", GOOD, "POST", MAPS + "?dryRun=All", envelope(b"ConfigMap", item(1, item(1, b"u")) * 400_000), PROTOBUF)
    deep = b""
    for _ in range(300):
        deep = item(1, deep)
    costs.timed(expect, "protobuf nested 300 deep", GOOD, "POST", MAPS + "?dryRun=All", envelope(b"ConfigMap", deep), PROTOBUF)


def main():
    global costs
    until = time.monotonic() + 30
    while ask("GET", "/api/v1" + NAMESPACE + "serviceaccounts/default")[0] != 200 and time.monotonic() < until:
        time.sleep(0.05)
    ask("POST", MAPS, '{"metadata":{"name":"witness"}}', JSON)
    told(ask("GET", MAPS + "/witness")[0] == 200, "the witness is there")
    witness = Witness()
    witness.rest(4)
    costs = raw_api.Costs(told)
    waits = []
    for part in (heavy_pods, heavy_objects) if args.only else (heavy_pods, heavy_objects, heavy_reviews, heavy_rights, heavy_patches, heavy_managers, heavy_queries):
        since = time.monotonic()
        part()
        print("# %s: %.1f s" % (part.__name__, time.monotonic() - since), flush=True)
        waits += judge(witness, told, part.__name__, since)
    bar(costs.slowest[0] <= costs.PROCESSOR_MAX, "the most expensive request took %.0f ms of a core (bar %.0f): %s" % (
        costs.slowest[0] * 1e3, costs.PROCESSOR_MAX * 1e3, costs.slowest[1]))
    wrong = witness.wrong()
    told(not wrong, "the witness was always served", *wrong[:5])
    judge_all(witness, told, waits)
    told(lives(), "the daemon is the same as before, and lives")
    witness.end()
    leave()


main()
