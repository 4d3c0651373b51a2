#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# One Deployment through every component: API, store, controllers, scheduler, node, network, DNS, and back.
# for: runtime store daemon ctl
. "$(dirname "$0")/lib.sh"
start_machine

cat > "$T/hello.yaml" <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: page}
data: {index.html: "hello from coracle\n"}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 2
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      terminationGracePeriodSeconds: 1
      containers:
      - name: web
        image: localhost/busybox:latest
        command: [sh, -c, "echo serving as $(POD_NAME); exec httpd -f -p 8080 -h /www"]
        env: [{name: POD_NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /index.html, port: http}, periodSeconds: 1, timeoutSeconds: 20}
        volumeMounts: [{name: www, mountPath: /www}]
      volumes: [{name: www, configMap: {name: page}}]
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {type: NodePort, selector: {app: hello}, ports: [{port: 80, targetPort: http, nodePort: 30080}]}
Y
check "apply answers" k apply -f "$T/hello.yaml"
check "both replicas become ready" k rollout status deployment/hello --timeout=120s
expect "two pods run" "Running Running" k get pods -l app=hello -o 'jsonpath={.items[*].status.phase}'
pod=$(k get pods -l app=hello -o 'jsonpath={.items[0].metadata.name}')
expect "the log is there" "serving as $pod" k logs "$pod"
ip=$(k get service hello -o 'jsonpath={.spec.clusterIP}')
soon expect "the node reaches the ClusterIP" "hello from coracle" in_ns curl -sf -m 5 "http://$ip/index.html"
soon expect "the node reaches the NodePort" "hello from coracle" in_ns curl -sf -m 5 "http://10.55.0.2:30080/index.html"
soon expect "another host reaches the NodePort" "hello from coracle" ip netns exec "$ns-out" curl -sf -m 5 "http://10.55.0.2:30080/index.html"
soon expect "a pod reaches the Service by name" "hello from coracle" k exec "$pod" -- wget -qO- http://hello/index.html
soon expect "… and by its full name" "hello from coracle" k exec "$pod" -- wget -qO- http://hello.default.svc.cluster.local/index.html
soon expect_match "the API is in DNS" "10\.96\.0\.1$" k exec "$pod" -- nslookup kubernetes.default.svc.cluster.local
expect "exec gives the exit code" "7" eval "k exec $pod -- sh -c 'exit 7' >/dev/null 2>&1; echo \$?"
expect "stdin reaches the process" "abc" eval 'echo abc | k exec -i $pod -- cat'
k delete pod "$pod" --wait=false >/dev/null 2>&1
check "a deleted pod is replaced" until_true 20 eval '[ "$(k get pods -l app=hello -o name | grep -vc $pod)" = 2 ]'
check "scale up" k scale deployment/hello --replicas=3
check "… is reached" k rollout status deployment/hello --timeout=120s
check "a new revision" k set image deployment/hello web=localhost/busybox
check "… rolls out" k rollout status deployment/hello --timeout=120s
check "… and back" k rollout undo deployment/hello
check "… rolls out too" k rollout status deployment/hello --timeout=120s
check "delete" k delete -f "$T/hello.yaml"
check "pods follow their owner" until_true 30 eval '[ -z "$(k get pods -o name)" ]'
