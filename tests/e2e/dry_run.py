#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Executes the tests of dry_run.sh: requests and commands that would write, each as a dry run, each followed by a comparison of
# every object that the API lists, including revisions. Nothing may have changed. Prints TAP.
import argparse, copy, http.client, json, os, re, ssl, subprocess, sys, time
from tap import leave, told

parser = argparse.ArgumentParser()
for name in ("ca", "cert", "key", "kubeconfig", "directory"):
    parser.add_argument("--" + name, required=True)
parser.add_argument("--client", action="append", default=[])  # "kubectl 1.36.0=/path"
parser.add_argument("--port", type=int, default=6443)
args = parser.parse_args()

NS = "dry"
IMAGE = "localhost/busybox:latest"
SETTLES_MAX = 180  # limit in seconds until the objects stop changing
COMMAND_MAX = 180  # limit in seconds of one command
# Written all the time: events, leases, and data that is measured on request.
RESTLESS = {"events", "leases", "componentstatuses"}

context = ssl.create_default_context(cafile=args.ca)
context.load_cert_chain(args.cert, args.key)
connection = None


def ask_text(method, path, body=None, content_type="application/json"):
    """Status and body of the response."""
    global connection
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    for attempt in (1, 2):
        try:
            if connection is None:
                connection = http.client.HTTPSConnection("127.0.0.1", args.port, context=context, timeout=30)
            connection.request(method, path, text, {"Content-Type": content_type} if text is not None else {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode("utf-8", "replace")
        except (OSError, http.client.HTTPException):  # the server may close a connection between two requests
            connection = None
            if attempt == 2 or method != "GET":
                raise


def ask(*request):
    """Status and body of the response, parsed if it is JSON."""
    status, text = ask_text(*request)
    try:
        return status, json.loads(text)
    except ValueError:
        return status, text


def listable():
    """The path of each kind's list."""
    versions = ["/api/v1"] + ["/apis/" + group["preferredVersion"]["groupVersion"] for group in ask("GET", "/apis")[1]["groups"]]
    for version in versions:
        if version.startswith("/apis/metrics.k8s.io"):
            continue
        for resource in ask("GET", version)[1]["resources"]:
            if "/" not in resource["name"] and "list" in resource["verbs"] and resource["name"] not in RESTLESS:
                yield version + "/" + resource["name"]


def at_rest(path, item):
    """Removes what changes by itself: a node's heartbeats, and so its revision."""
    if path == "/api/v1/nodes":
        item = copy.deepcopy(item)
        item.pop("status", None)
        for field in ("resourceVersion", "managedFields"):
            item["metadata"].pop(field, None)
        taints = [taint for taint in item.get("spec", {}).get("taints", []) if not taint["key"].startswith("node.kubernetes.io/")]
        item.get("spec", {})["taints"] = taints
    return json.dumps(item, sort_keys=True)


class List:
    """The objects of one list, by namespace and name."""

    def __init__(self, path, items):
        self.text, self.objects = items, {}
        for item in json.loads("{" + items)["items"]:
            self.objects[item["metadata"].get("namespace", ""), item["metadata"]["name"]] = at_rest(path, item)


def everything():
    """The lists by path. A list that reads as it did the last time is the same List: nearly all are, in nearly all rows."""
    found = {}
    for path in PATHS:
        status, text = ask_text("GET", path)
        if status != 200:
            sys.exit("Bail out! GET %s: %s %s" % (path, status, text))
        items = text[text.index('"items":'):]  # without the revision of the list
        last = known.get(path)
        found[path] = last if last and last.text == items else List(path, items)
    return found


def difference(before, after):
    lines = []
    for path in PATHS:
        if before[path] is after[path]:
            continue
        old, new = before[path].objects, after[path].objects
        for key in sorted(set(old) | set(new)):
            name = (path,) + key
            if key not in new:
                lines.append("gone: %s %s/%s" % name)
            elif key not in old:
                lines.append("new: %s %s/%s" % name)
            elif old[key] != new[key]:
                lines += ["changed: %s %s/%s" % name, old[key], new[key]]
    return lines


known = {}


def unchanged(name, good=True, *why):
    """One row of a table: the result is as expected, and nothing has changed."""
    global known
    now = everything()
    lines = difference(known, now)
    known = now  # the next row is compared with this state
    told(good and not lines, name, *why, *lines)


# ---- test objects ----

POD = {"containers": [{"name": "main", "image": IMAGE, "command": ["true"]}], "restartPolicy": "Never", "terminationGracePeriodSeconds": 0}


def with_meta(version, kind, name, namespaced=True, **more):
    meta = {"name": name, "labels": {"app": "web"}, "annotations": {"note": "one"}}
    if namespaced:
        meta["namespace"] = NS
    return {"apiVersion": version, "kind": kind, "metadata": meta, **more}


def template():
    return {"metadata": {"labels": {"app": "web"}}, "spec": POD}


def gated():  # it never starts, and its condition is written once
    return {**POD, "schedulingGates": [{"name": "example.com/never"}]}


def job():
    return {"suspend": True, "template": template()}


def workload():
    return {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": {
        "metadata": {"labels": {"app": "web"}}, "spec": {"containers": POD["containers"]}}}


CORE, APPS, BATCH = "/api/v1/namespaces/%s/" % NS, "/apis/apps/v1/namespaces/%s/" % NS, "/apis/batch/v1/namespaces/%s/" % NS
# Each kind: the path of its list, a function that creates objects by name, and the subresources with writes.
KINDS = [
    (CORE + "configmaps", lambda name: with_meta("v1", "ConfigMap", name, data={"a": "b"}), []),
    (CORE + "secrets", lambda name: with_meta("v1", "Secret", name, stringData={"a": "b"}), []),
    (CORE + "serviceaccounts", lambda name: with_meta("v1", "ServiceAccount", name), []),
    (CORE + "services", lambda name: with_meta("v1", "Service", name, spec={"selector": {"app": name}, "ports": [{"port": 80}]}), ["status"]),
    (CORE + "pods", lambda name: with_meta("v1", "Pod", name, spec=gated()), ["status"]),
    (CORE + "replicationcontrollers", lambda name: with_meta("v1", "ReplicationController", name, spec={
        "replicas": 0, "selector": {"app": name}, "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": POD["containers"]}}}),
        ["status", "scale"]),
    (APPS + "deployments", lambda name: with_meta("apps/v1", "Deployment", name, spec=workload()), ["status", "scale"]),
    (APPS + "statefulsets", lambda name: with_meta("apps/v1", "StatefulSet", name, spec={**workload(), "serviceName": "web"}), ["status", "scale"]),
    (BATCH + "jobs", lambda name: with_meta("batch/v1", "Job", name, spec=job()), ["status"]),
    (BATCH + "cronjobs", lambda name: with_meta("batch/v1", "CronJob", name, spec={
        "schedule": "0 0 1 1 *", "suspend": True, "jobTemplate": {"spec": {"template": template()}}}), ["status"]),
    ("/apis/policy/v1/namespaces/%s/poddisruptionbudgets" % NS, lambda name: with_meta("policy/v1", "PodDisruptionBudget", name, spec={
        "minAvailable": 0, "selector": {"matchLabels": {"app": name}}}), ["status"]),
    ("/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles" % NS, lambda name: with_meta("rbac.authorization.k8s.io/v1", "Role", name, rules=[]), []),
    ("/apis/rbac.authorization.k8s.io/v1/clusterroles", lambda name: with_meta(
        "rbac.authorization.k8s.io/v1", "ClusterRole", "dry-" + name, False, rules=[]), []),
    ("/apis/scheduling.k8s.io/v1/priorityclasses", lambda name: with_meta(
        "scheduling.k8s.io/v1", "PriorityClass", "dry-" + name, False, value=3), []),
    ("/api/v1/nodes", lambda name: with_meta("v1", "Node", "dry-" + name, False, spec={"unschedulable": True}), ["status"]),
    ("/api/v1/namespaces", lambda name: with_meta("v1", "Namespace", "dry-" + name, False), ["status"]),
]
OF_ALL = {"/api/v1/nodes", "/api/v1/namespaces"}  # their lists also contain foreign objects


def make_objects():
    status, answer = ask("POST", "/api/v1/namespaces", {"metadata": {"name": NS}})
    told(status == 201, "a namespace", answer)
    for path, make, _ in KINDS:
        status, answer = ask("POST", path, make("it"))
        told(status == 201, "one of " + path.rsplit("/", 1)[1], status, answer)
    ended = with_meta("v1", "Pod", "ended", spec={**POD, "nodeName": "edge"})  # for drain: on the node, and finished
    status, answer = ask("POST", CORE + "pods", ended)
    told(status == 201, "a pod on the node", status, answer)
    deployment = APPS + "deployments/rolled"  # with two revisions, for rollout undo
    ask("POST", APPS + "deployments", with_meta("apps/v1", "Deployment", "rolled", spec={
        **workload(), "selector": {"matchLabels": {"app": "rolled"}}, "template": {
            "metadata": {"labels": {"app": "rolled"}}, "spec": {"containers": POD["containers"]}}}))
    until = time.monotonic() + SETTLES_MAX
    while time.monotonic() < until and len(replica_sets("rolled")) < 1:
        time.sleep(0.1)
    ask("PATCH", deployment, {"spec": {"template": {"metadata": {"annotations": {"n": "2"}}}}}, "application/merge-patch+json")
    while time.monotonic() < until and len(replica_sets("rolled")) < 2:
        time.sleep(0.1)
    told(len(replica_sets("rolled")) == 2, "a Deployment of two revisions")


def replica_sets(app):
    return ask("GET", APPS + "replicasets?labelSelector=app%%3D%s" % app)[1]["items"]


def come_to_rest():
    """Waits until the controllers are done: the objects stay the same for five seconds."""
    global known
    until, since, known = time.monotonic() + SETTLES_MAX, time.monotonic(), everything()
    while time.monotonic() < until:
        time.sleep(0.2)
        now = everything()
        if difference(known, now):
            known, since = now, time.monotonic()
        ended = ask("GET", CORE + "pods/ended")[1].get("status", {}).get("phase") == "Succeeded"
        if ended and time.monotonic() - since > 5:
            return True
    return False


# ---- the raw API ----

MERGE, STRATEGIC, JSON_PATCH, APPLY = ("application/%s" % form for form in (
    "merge-patch+json", "strategic-merge-patch+json", "json-patch+json", "apply-patch+yaml"))
LABEL = {"metadata": {"labels": {"dry": "run"}}}
DRY = {"apiVersion": "v1", "kind": "DeleteOptions", "dryRun": ["All"]}
WET = {"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": "Background"}


def api(name, method, path, body=None, content_type="application/json", want=(200, 201, 202)):
    status, answer = ask(method, path, body, content_type)
    unchanged("API: " + name, status in want, status, answer)


def api_of_kind(path, make, subresources):
    kind, one = path.rsplit("/", 1)[1], path + "/" + make("it")["metadata"]["name"]
    row = lambda what: kind + ": " + what
    api(row("create"), "POST", path + "?dryRun=All", make("new"))
    status, now = ask("GET", one)
    changed = copy.deepcopy(now)
    changed["metadata"].setdefault("labels", {})["dry"] = "run"
    api(row("replace"), "PUT", one + "?dryRun=All", changed)
    api(row("merge patch"), "PATCH", one + "?dryRun=All", LABEL, MERGE)
    api(row("strategic merge patch"), "PATCH", one + "?dryRun=All", LABEL, STRATEGIC)
    api(row("JSON patch"), "PATCH", one + "?dryRun=All", [{"op": "add", "path": "/metadata/labels/dry", "value": "run"}], JSON_PATCH)
    applied = {"apiVersion": now["apiVersion"], "kind": now["kind"], "metadata": {"name": now["metadata"]["name"], **LABEL["metadata"]}}
    api(row("server-side apply"), "PATCH", one + "?dryRun=All&fieldManager=dry&force=true", applied, APPLY)
    fresh = make("new")
    fresh["metadata"].pop("namespace", None)
    api(row("server-side apply of a new one"), "PATCH",
        "%s/%s?dryRun=All&fieldManager=dry" % (path, fresh["metadata"]["name"]), fresh, APPLY)
    for sub in subresources:
        if sub == "scale":
            api(row("patch of the scale"), "PATCH", one + "/scale?dryRun=All", {"spec": {"replicas": 1}}, MERGE)
            scale = ask("GET", one + "/scale")[1]
            scale["spec"] = {"replicas": 1}
            api(row("replacement of the scale"), "PUT", one + "/scale?dryRun=All", scale)
        else:
            api(row("patch of the status"), "PATCH", one + "/status?dryRun=All", {"metadata": {"annotations": {"dry": "run"}}}, MERGE)
            api(row("replacement of the status"), "PUT", one + "/status?dryRun=All", changed)
    for what, target, options in (("delete", one, ""), ("deletecollection", path, "labelSelector=app%3Dweb")):
        question = "?" + options + ("&" if options else "")
        api(row(what + " by query"), "DELETE", target + question + "dryRun=All")
        api(row(what + " by body"), "DELETE", target + ("?" + options if options else ""), DRY)
        api(row(what + " by both"), "DELETE", target + question + "dryRun=All", DRY)
        api(row(what + " by query, with a body that does not say so"), "DELETE", target + question + "dryRun=All", WET)
        api(row(what + " by body, with grace and propagation"), "DELETE", target + ("?" + options if options else ""),
            {**DRY, "gracePeriodSeconds": 0, "propagationPolicy": "Foreground"})
        refused = (400, 422)
        api(row(what + " by another word in the query"), "DELETE", target + question + "dryRun=maybe", want=refused)
        api(row(what + " by another word in the body"), "DELETE", target + ("?" + options if options else ""), {**DRY, "dryRun": ["maybe"]}, want=refused)
    api(row("create by another word"), "POST", path + "?dryRun=maybe", make("new"), want=(400, 422))
    api(row("patch by another word"), "PATCH", one + "?dryRun=maybe", LABEL, MERGE, want=(400, 422))


def api_of_actions():
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "it", "namespace": NS}}
    api("eviction by query", "POST", CORE + "pods/it/eviction?dryRun=All", eviction)
    api("eviction by its options", "POST", CORE + "pods/it/eviction", {**eviction, "deleteOptions": {"dryRun": ["All"]}})
    api("eviction by query, with options that do not say so", "POST", CORE + "pods/it/eviction?dryRun=All",
        {**eviction, "deleteOptions": {"gracePeriodSeconds": 0}})
    token = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    api("token", "POST", CORE + "serviceaccounts/it/token?dryRun=All", token)


# ---- clients ----

def file(name, *objects):
    path = os.path.join(args.directory, name)
    with open(path, "w") as out:
        out.write("\n---\n".join(json.dumps(one) for one in objects))
    return path


def commands():
    """Arguments of commands that write, without --dry-run."""
    changed = with_meta("v1", "ConfigMap", "it", data={"a": "changed"})
    several = file("several.json", changed, with_meta("v1", "ConfigMap", "new"), with_meta("apps/v1", "Deployment", "new", spec=workload()))
    one, fresh = file("one.json", changed), file("fresh.json", with_meta("v1", "Secret", "new", stringData={"a": "b"}))
    yield "create -f", ["create", "-f", fresh]
    for kind in (["namespace", "dry-new"], ["serviceaccount", "new"], ["configmap", "new", "--from-literal=a=b"],
                 ["deployment", "new", "--image=" + IMAGE], ["job", "new", "--image=" + IMAGE], ["job", "new", "--from=cronjob/it"],
                 ["cronjob", "new", "--image=" + IMAGE, "--schedule=0 0 1 1 *"], ["secret", "generic", "new", "--from-literal=a=b"],
                 ["secret", "docker-registry", "new", "--docker-username=u", "--docker-password=p", "--docker-server=s"],
                 ["secret", "tls", "new", "--cert=" + args.cert, "--key=" + args.key], ["service", "clusterip", "new", "--tcp=80"],
                 ["service", "nodeport", "new", "--tcp=80"], ["service", "loadbalancer", "new", "--tcp=80"],
                 ["service", "externalname", "new", "--external-name=example.com", "--tcp=80"], ["quota", "new", "--hard=pods=1"],
                 ["poddisruptionbudget", "new", "--selector=a=b", "--min-available=1"], ["priorityclass", "dry-new", "--value=1"]):
        yield "create " + " ".join(kind[:2]), ["create"] + kind
    yield "run", ["run", "new", "--image=" + IMAGE]
    yield "run --expose", ["run", "new", "--image=" + IMAGE, "--port=80", "--expose"]
    yield "expose", ["expose", "deployment", "it", "--port=80", "--name=new"]
    yield "apply", ["apply", "-f", several]
    yield "apply --server-side", ["apply", "--server-side", "--force-conflicts", "-f", several]
    yield "replace", ["replace", "-f", one]
    yield "replace --force", ["replace", "--force", "-f", one]
    yield "patch", ["patch", "configmap", "it", "-p", '{"data":{"a":"changed"}}']
    yield "patch --type=merge", ["patch", "deployment", "it", "--type=merge", "-p", '{"spec":{"replicas":1}}']
    yield "patch --type=json", ["patch", "secret", "it", "--type=json", "-p", '[{"op":"add","path":"/metadata/labels/dry","value":"run"}]']
    for kind in ("configmap", "pod", "service", "node", "namespace"):
        name = "dry-it" if kind in ("node", "namespace") else "it"
        yield "label " + kind, ["label", kind, name, "dry=run"]
        yield "annotate " + kind, ["annotate", kind, name, "dry=run", "note-"]
    yield "set image", ["set", "image", "deployment/it", "main=other"]
    yield "set env", ["set", "env", "deployment/it", "A=b"]
    yield "set resources", ["set", "resources", "deployment/it", "--limits=cpu=1"]
    yield "set serviceaccount", ["set", "serviceaccount", "deployment/it", "it"]
    yield "set selector", ["set", "selector", "service/it", "app=other"]
    yield "scale", ["scale", "deployment/it", "--replicas=1"]
    yield "autoscale", ["autoscale", "deployment", "it", "--max=3"]
    yield "rollout undo", ["rollout", "undo", "deployment/rolled"]
    yield "cordon", ["cordon", "edge"]
    yield "uncordon", ["uncordon", "dry-it"]
    yield "drain", ["drain", "edge", "--force", "--ignore-daemonsets"]
    # kubectl waits here for a pod that it does not delete.
    yield "drain --disable-eviction", ["drain", "edge", "--force", "--ignore-daemonsets", "--disable-eviction", "--timeout=5s"]
    yield "taint", ["taint", "nodes", "edge", "dry=run:NoSchedule"]
    for kind in ("configmap", "secret", "serviceaccount", "service", "pod", "deployment", "statefulset", "job", "cronjob"):
        yield "delete " + kind, ["delete", kind, "it"]
    for kind in ("node", "namespace", "clusterrole"):
        yield "delete " + kind, ["delete", kind, "dry-it"]
    yield "delete --force", ["delete", "pod", "it", "--force", "--grace-period=0"]
    yield "delete --now", ["delete", "pod", "it", "--now"]
    yield "delete --all", ["delete", "pods,configmaps", "--all"]
    yield "delete -l", ["delete", "deployments,services", "-l", "app=web"]
    yield "delete -f", ["delete", "-f", one]
    yield "delete --cascade", ["delete", "deployment", "rolled", "--cascade=orphan"]


# Commands with a dry run in coraclectl but not in kubectl.
OURS = [("rollout restart", ["rollout", "restart", "deployment/it"]), ("rollout pause", ["rollout", "pause", "deployment/it"]),
        ("edit", ["edit", "configmap", "it"])]
CANNOT = {("replace --force", "client"), ("replace --force", "server"), ("apply --server-side", "client")}


def run(program, words):
    environment = {**os.environ, "KUBE_EDITOR": "sed -i s/one/two/"}
    try:
        done = subprocess.run([program, "--kubeconfig", args.kubeconfig, "-n", NS] + words, env=environment, timeout=COMMAND_MAX,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
        return done.returncode, done.stdout
    except subprocess.TimeoutExpired:
        return -1, "takes longer than %d s" % COMMAND_MAX


def by_client(who, program):
    ours, old = who.startswith("coraclectl"), bool(re.match(r"kubectl 1\.20\.", who))
    note = {"client": "(dry run)", "server": "(server dry run)"}
    for name, words in list(commands()) + (OURS if ours else []):
        # kubectl 1.20 really deletes here, whatever --dry-run is; a server cannot prevent that.
        if old and name == "replace --force":
            continue
        for dry in ("client", "server"):
            code, text = run(program, words + ["--dry-run=" + dry])
            row = "%s: %s --dry-run=%s" % (who, name, dry)
            if (name, dry) in CANNOT:
                unchanged(row + " is refused", code != 0 or not ours, text)
            elif ours:
                unchanged(row, code == 0 and note[dry] in text, code, text)
            else:
                # Some older clients lack the flag, and then change nothing either: their error messages do not matter.
                if code != 0:
                    print("# %s: %s" % (row, text.strip().replace("\n", " ")[:200]), flush=True)
                unchanged(row)
    if ours:
        for flag in ("--dry-run", "--dry-run=true"):
            code, text = run(program, ["delete", flag, "configmap", "it"])
            unchanged("%s: delete %s" % (who, flag), code == 0 and "(dry run)" in text, code, text)
        for flag in ("--dry-run=", "--dry-run=maybe"):
            code, text = run(program, ["delete", flag, "configmap", "it"])
            unchanged("%s: delete %s is refused" % (who, flag), code == 1 and "Invalid dry-run value" in text, code, text)


PATHS = list(listable())
make_objects()
told(come_to_rest(), "the objects come to rest")
for path, make, subresources in KINDS:
    if path in OF_ALL:  # if a deletecollection goes wrong, it only deletes our objects
        told(all(item["metadata"]["name"].startswith("dry-") for item in ask("GET", path + "?labelSelector=app%3Dweb")[1]["items"]),
             "only our own of " + path.rsplit("/", 1)[1] + " are selected")
    if path != "/api/v1/namespaces":
        api_of_kind(path, make, subresources)
# There is no deletecollection of namespaces.
NAMESPACE = "/api/v1/namespaces/dry-it"
api("namespaces: create", "POST", "/api/v1/namespaces?dryRun=All", {"metadata": {"name": "dry-new"}})
api("namespaces: merge patch", "PATCH", NAMESPACE + "?dryRun=All", LABEL, MERGE)
api("namespaces: delete by query", "DELETE", NAMESPACE + "?dryRun=All")
api("namespaces: delete by body", "DELETE", NAMESPACE, DRY)
api("namespaces: delete by query, with a body that does not say so", "DELETE", NAMESPACE + "?dryRun=All", WET)
api_of_actions()
for client in args.client:
    by_client(*client.rsplit("=", 1))
# The rows above only prove something if the same requests without a dry run do change something.
told(ask("PATCH", CORE + "configmaps/it", LABEL, MERGE)[0] == 200 and difference(known, everything()), "and what is no dry run is seen")
leave()
