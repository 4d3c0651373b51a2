#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Applications as in their projects' manifests, with images from Debian packages: databases, brokers, proxies, collectors, work
# queues. The manifests are written from scratch after the common features of published ones: probes, hooks, volumes of every
# kind, service accounts, the host's network, budgets, autoscalers. It needs a Debian root file system of its own, so it belongs
# to the long runs.
# for: runtime daemon ctl store
. "$(dirname "$0")/lib.sh"
for program in mmdebstrap python3; do command -v $program >/dev/null || skip_all "$program is missing"; done

# ---- images ----

packages=redis-server,redis-tools,nginx-light,mosquitto,mosquitto-clients,memcached,postgresql,docker-registry,prometheus,prometheus-node-exporter,rsyslog,haproxy,dnsmasq-base,apache2,openssl,curl,procps,bind9-dnsutils,netcat-openbsd
make_images() {
  local made=$cache/applications-$(echo $packages | sha256sum | cut -c1-12).tar
  if [ ! -e "$made" ]; then
    mmdebstrap --quiet --variant=minbase --include="$packages" --aptopt='Apt::Install-Recommends "false"' \
      --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
      "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$T/debian" >"$T/debian.log" 2>&1 || { tail -n 20 "$T/debian.log"; return 1; }
    rm -rf "$T"/debian/var/cache/apt/* "$T"/debian/var/lib/apt/lists/*
    "$coraclectl" image pack "$T/debian" localhost/debian:1 --output "$T/debian.tar" >/dev/null && rm -rf "$T/debian" && mkdir -p "$cache" && mv "$T/debian.tar" "$made.new" && mv "$made.new" "$made"
  fi
  "$here/images_of_debian.py" "$made" "$T/all.tar" <<'J'
{"docker.io/library/redis:7": {"Entrypoint": ["redis-server", "--protected-mode", "no"], "WorkingDir": "/tmp"},
 "docker.io/library/nginx:1": {"Cmd": ["nginx", "-g", "daemon off;"], "StopSignal": "SIGQUIT", "ExposedPorts": {"80/tcp": {}}},
 "docker.io/library/eclipse-mosquitto:2": {"Entrypoint": ["/usr/sbin/mosquitto"], "Cmd": ["-c", "/mosquitto/config/mosquitto.conf"], "Volumes": {"/mosquitto/data": {}}},
 "docker.io/library/memcached:1": {"Entrypoint": ["memcached"], "User": "memcache"},
 "docker.io/library/postgres:15": {"Entrypoint": ["bash", "-ec"], "Cmd": ["PATH=$PATH:$(echo /usr/lib/postgresql/*/bin); cd /tmp; [ -s $PGDATA/PG_VERSION ] || { initdb -A scram-sha-256 --pwfile=<(echo $POSTGRES_PASSWORD) >/dev/null; echo host all all all scram-sha-256 >>$PGDATA/pg_hba.conf; }; exec postgres -c listen_addresses=*"], "User": "postgres", "Env": ["PGDATA=/var/lib/postgresql/data/pgdata", "PATH=/usr/sbin:/usr/bin:/sbin:/bin"], "StopSignal": "SIGINT"},
 "docker.io/library/registry:2": {"Entrypoint": ["docker-registry"], "Cmd": ["serve", "/etc/docker/registry/config.yml"], "Volumes": {"/var/lib/docker-registry": {}}},
 "docker.io/prom/prometheus:v2": {"Entrypoint": ["prometheus"], "Cmd": ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"], "User": "nobody", "WorkingDir": "/tmp"},
 "docker.io/prom/node-exporter:v1": {"Entrypoint": ["prometheus-node-exporter"], "User": "nobody"},
 "docker.io/rsyslog/rsyslog:8": {"Entrypoint": ["rsyslogd", "-n", "-iNONE"]},
 "docker.io/library/haproxy:2": {"Entrypoint": ["haproxy", "-f", "/usr/local/etc/haproxy/haproxy.cfg"], "User": "haproxy", "StopSignal": "SIGUSR1"},
 "docker.io/library/dnsmasq:2": {"Entrypoint": ["dnsmasq", "--keep-in-foreground", "--log-facility=-"]},
 "docker.io/library/httpd:2": {"Cmd": ["apache2ctl", "-D", "FOREGROUND"], "StopSignal": "SIGWINCH"},
 "docker.io/library/debian:12": {"Cmd": ["bash"]}}
J
}
start_machine
check "images of Debian's packages" make_images
check "… are taken in" c image import "$T/all.tar"

apply() { k apply -f - >/dev/null; }
rolled_out() { k rollout status "$1" --timeout="${2:-180}s" >/dev/null; }
job_done() { k wait --for=condition=Complete "job/$1" --timeout="${2:-180}s" >/dev/null; }
check "a pod to ask from" eval 'k run asks --image=debian:12 --command -- sleep 1000000 >/dev/null && k wait --for=condition=Ready pod/asks --timeout=120s >/dev/null'
told() { k exec asks -- "$@"; }  # told COMMAND...: runs it in the cluster's network and prints its output

# ---- a guestbook's store: one leader, two followers ----

apply <<'Y'
apiVersion: v1
kind: Service
metadata:
  name: redis-leader
  labels: {app: redis, role: leader, tier: backend}
spec:
  ports:
  - {port: 6379, targetPort: 6379}
  selector: {app: redis, role: leader, tier: backend}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: redis-leader
  labels: {app: redis, role: leader, tier: backend}
spec:
  replicas: 1
  selector:
    matchLabels: {app: redis, role: leader}
  template:
    metadata:
      labels: {app: redis, role: leader, tier: backend}
    spec:
      containers:
      - name: leader
        image: "docker.io/redis:7"
        resources:
          requests: {cpu: 100m, memory: 50Mi}
        ports:
        - containerPort: 6379
---
apiVersion: v1
kind: Service
metadata:
  name: redis-follower
spec:
  ports:
  - port: 6379
  selector: {app: redis, role: follower}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: redis-follower
spec:
  replicas: 2
  selector:
    matchLabels: {app: redis, role: follower}
  template:
    metadata:
      labels: {app: redis, role: follower}
    spec:
      containers:
      - name: follower
        image: redis:7
        args: ["--replicaof", "redis-leader", "6379", "--replica-read-only", "yes"]
        readinessProbe:
          exec:
            command: [sh, -c, 'redis-cli info replication | grep -q master_link_status:up']
          periodSeconds: 2
        livenessProbe:
          tcpSocket: {port: 6379}
        ports:
        - {name: redis, containerPort: 6379}
Y
check "redis: a leader and two followers" eval 'rolled_out deployment/redis-leader && rolled_out deployment/redis-follower'
expect "… what the leader is told the followers know" "hello" eval 'told redis-cli -h redis-leader set guest hello >/dev/null; until_true 20 eval "[ \"\$(told redis-cli -h redis-follower get guest)\" = hello ]"; told redis-cli -h redis-follower get guest'

# ---- a web server: pages, configuration and a TLS key ----

openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=web -keyout "$T/key.pem" -out "$T/crt.pem" -days 30 2>/dev/null
k create secret tls web-tls --cert="$T/crt.pem" --key="$T/key.pem" >/dev/null
apply <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: web-site}
data:
  index.html: |
    <h1>version one</h1>
  default.conf: |
    server {
      listen 80; listen 443 ssl;
      ssl_certificate /etc/nginx/tls/tls.crt; ssl_certificate_key /etc/nginx/tls/tls.key;
      root /usr/share/nginx/html;
      location /healthz { return 200 "ok"; }
    }
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app.kubernetes.io/name: web}}
spec:
  replicas: 3
  revisionHistoryLimit: 2
  strategy:
    type: RollingUpdate
    rollingUpdate: {maxSurge: 1, maxUnavailable: 0}
  selector:
    matchLabels: {app.kubernetes.io/name: web}
  template:
    metadata:
      labels: {app.kubernetes.io/name: web}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector:
          matchLabels: {app.kubernetes.io/name: web}
      containers:
      - name: nginx
        image: nginx:1
        ports:
        - {name: http, containerPort: 80}
        - {name: https, containerPort: 443}
        startupProbe: {httpGet: {path: /healthz, port: http}, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 30}
        readinessProbe: {httpGet: {path: /healthz, port: https, scheme: HTTPS}, periodSeconds: 2, timeoutSeconds: 20}
        lifecycle:
          preStop: {exec: {command: [/bin/sh, -c, "sleep 1; nginx -s quit"]}}
        volumeMounts:
        - {name: site, mountPath: /usr/share/nginx/html/index.html, subPath: index.html}
        - {name: site, mountPath: /etc/nginx/conf.d/default.conf, subPath: default.conf}
        - {name: site, mountPath: /etc/nginx/sites-enabled/default, subPath: default.conf}
        - {name: tls, mountPath: /etc/nginx/tls, readOnly: true}
        - {name: cache, mountPath: /var/cache/nginx}
      volumes:
      - {name: site, configMap: {name: web-site}}
      - {name: tls, secret: {secretName: web-tls}}
      - {name: cache, emptyDir: {medium: Memory, sizeLimit: 16Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app.kubernetes.io/name: web}
  ports:
  - {name: http, port: 80, targetPort: http, nodePort: 30080}
  - {name: https, port: 443, targetPort: https}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec:
  minAvailable: 2
  selector:
    matchLabels: {app.kubernetes.io/name: web}
Y
check "nginx: three of them" rolled_out deployment/web
expect "… serve their page" "<h1>version one</h1>" told curl -sf http://web/
expect "… by TLS too" "<h1>version one</h1>" told curl -skf https://web/
expect "… and at the node's port" "<h1>version one</h1>" eval 'in_ns curl -sf "http://$(k get nodes -o "jsonpath={.items[0].status.addresses[?(@.type==\"InternalIP\")].address}"):30080/"'
expect "… no request fails while they are rolled" "0" eval '(fails=0; for i in $(seq 60); do told curl -sf -m 30 http://web/ >/dev/null || fails=$((fails + 1)); read -r -t 0.2 <> <(:); done; echo $fails >"$T/fails") & asks=$!; k set env deployment/web ROLL=1 >/dev/null; rolled_out deployment/web; wait $asks; cat "$T/fails"'

# ---- a broker ----

apply <<'Y'
apiVersion: v1
kind: ConfigMap
metadata: {name: mosquitto-config}
data:
  mosquitto.conf: |
    persistence true
    persistence_location /mosquitto/data/
    log_dest stdout
    listener 1883
    allow_anonymous true
    user root
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: mosquitto}
spec:
  selector: {matchLabels: {app: mosquitto}}
  template:
    metadata: {labels: {app: mosquitto}}
    spec:
      containers:
      - name: mosquitto
        image: eclipse-mosquitto:2
        ports:
        - {name: mqtt, containerPort: 1883}
        livenessProbe: {tcpSocket: {port: mqtt}, timeoutSeconds: 20}
        readinessProbe: {exec: {command: [mosquitto_pub, -t, probe, -m, x]}, timeoutSeconds: 20}
        volumeMounts:
        - {name: config, mountPath: /mosquitto/config}
        - {name: data, mountPath: /mosquitto/data}
      volumes:
      - name: config
        configMap: {name: mosquitto-config}
      - {name: data, emptyDir: {}}
---
apiVersion: v1
kind: Service
metadata: {name: mosquitto}
spec:
  type: LoadBalancer
  selector: {app: mosquitto}
  ports: [{name: mqtt, port: 1883, targetPort: mqtt}]
Y
check "mosquitto" rolled_out deployment/mosquitto
expect "… keeps what it is told" "23.5" told sh -c 'mosquitto_pub -h mosquitto -r -t shop/temperature -m 23.5 && mosquitto_sub -h mosquitto -C 1 -W 20 -t "shop/#"'

# ---- a cache with several instances, each with a stable name ----

apply <<'Y'
apiVersion: v1
kind: Service
metadata: {name: memcached}
spec: {clusterIP: None, selector: {app: memcached}, ports: [{name: memcache, port: 11211}]}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: memcached}
spec:
  serviceName: memcached
  replicas: 3
  podManagementPolicy: Parallel
  selector: {matchLabels: {app: memcached}}
  template:
    metadata: {labels: {app: memcached}}
    spec:
      affinity:
        podAntiAffinity:
          preferredDuringSchedulingIgnoredDuringExecution:
          - weight: 1
            podAffinityTerm: {labelSelector: {matchLabels: {app: memcached}}, topologyKey: kubernetes.io/hostname}
      securityContext: {runAsNonRoot: true, runAsUser: 11211, fsGroup: 11211}
      containers:
      - name: memcached
        image: memcached:1
        args: [-m, "32", -o, modern]
        securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
        ports: [{name: memcache, containerPort: 11211}]
        resources: {requests: {memory: 32Mi}, limits: {memory: 64Mi}}
        readinessProbe: {tcpSocket: {port: memcache}}
Y
check "memcached: three with names" rolled_out statefulset/memcached
expect "… each has its own" "STORED END" eval 'told sh -c "printf \"set a 0 0 1\r\n1\r\nquit\r\n\" | nc -N memcached-0.memcached 11211; printf \"get a\r\nquit\r\n\" | nc -N memcached-1.memcached.default.svc.cluster.local 11211" | tr -d "\r" | tr "\n" " " | sed "s/ *$//"'
expect "… and the service names all" "3" eval 'told dig +short +search memcached | sort -u | grep -c .'

# ---- a database, and a job that queries it ----

apply <<'Y'
apiVersion: v1
kind: Secret
metadata: {name: postgres}
type: Opaque
stringData: {password: "it's s3cret"}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: postgres}
spec:
  serviceName: postgres
  selector: {matchLabels: {app: postgres}}
  template:
    metadata: {labels: {app: postgres}}
    spec:
      terminationGracePeriodSeconds: 30
      initContainers:
      - name: permissions
        image: debian:12
        command: [sh, -c, "chown -R $(id -u postgres):$(id -g postgres) /data && chmod 700 /data"]
        volumeMounts: [{name: data, mountPath: /data}]
      containers:
      - name: postgres
        image: postgres:15
        env:
        - name: POSTGRES_PASSWORD
          valueFrom: {secretKeyRef: {name: postgres, key: password}}
        ports: [{name: postgresql, containerPort: 5432}]
        readinessProbe: {exec: {command: [pg_isready, -U, postgres]}, periodSeconds: 2, timeoutSeconds: 20}
        livenessProbe: {exec: {command: [pg_isready, -U, postgres]}, initialDelaySeconds: 30, timeoutSeconds: 20}
        volumeMounts:
        - {name: data, mountPath: /var/lib/postgresql/data}
        - {name: shm, mountPath: /dev/shm}
        - {name: run, mountPath: /var/run/postgresql}
      volumes:
      - {name: data, emptyDir: {}}
      - {name: shm, emptyDir: {medium: Memory, sizeLimit: 64Mi}}
      - {name: run, emptyDir: {}}
---
apiVersion: v1
kind: Service
metadata: {name: postgres}
spec: {selector: {app: postgres}, ports: [{port: 5432}]}
---
apiVersion: batch/v1
kind: Job
metadata: {name: migrate}
spec:
  backoffLimit: 4
  ttlSecondsAfterFinished: 600
  template:
    spec:
      restartPolicy: OnFailure
      initContainers:
      - {name: wait, image: "debian:12", command: [sh, -c, "until pg_isready -h postgres; do sleep 1; done"]}
      containers:
      - name: psql
        image: debian:12
        env:
        - {name: PGHOST, value: postgres}
        - {name: PGUSER, value: postgres}
        - name: PGPASSWORD
          valueFrom: {secretKeyRef: {name: postgres, key: password}}
        command: [psql, -v, ON_ERROR_STOP=1, -c, "create table visits (at timestamptz default now()); insert into visits values (default), (default)"]
Y
check "postgres, and a job that makes its tables" eval 'rolled_out statefulset/postgres 120 && job_done migrate 120'
expect "… its rows are there" "2" eval 'k exec postgres-0 -- psql -U postgres -h /var/run/postgresql -Atc "select count(*) from visits" 2>/dev/null || told env PGPASSWORD="it'"'"'s s3cret" psql -h postgres -U postgres -Atc "select count(*) from visits"'

# ---- a registry at a host port ----

apply <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: registry}
spec:
  strategy: {type: Recreate}
  selector: {matchLabels: {app: registry}}
  template:
    metadata: {labels: {app: registry}}
    spec:
      containers:
      - name: registry
        image: registry:2
        env: [{name: REGISTRY_HTTP_ADDR, value: ":5000"}, {name: REGISTRY_AUTH, value: ""}, {name: REGISTRY_STORAGE_FILESYSTEM_ROOTDIRECTORY, value: /var/lib/docker-registry}]
        command: [sh, -c, "printf 'version: 0.1\\nstorage: {filesystem: {rootdirectory: /var/lib/docker-registry}}\\nhttp: {addr: \":5000\"}\\n' >/tmp/c.yml && exec docker-registry serve /tmp/c.yml"]
        ports: [{name: http, containerPort: 5000, hostPort: 5000}]
        readinessProbe: {httpGet: {path: /v2/, port: http}}
Y
check "a registry" rolled_out deployment/registry
c image export localhost/busybox:latest -o "$T/small.tar" >/dev/null
check "… takes images at localhost:5000" in_ns skopeo --insecure-policy copy --quiet --dest-tls-verify=false "oci-archive:$T/small.tar" docker://localhost:5000/small:1
check "… and the machine pulls them from there" c image pull localhost:5000/small:1

# ---- monitoring of the machine and its pods ----

apply <<'Y'
apiVersion: v1
kind: Namespace
metadata: {name: monitoring}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: monitoring}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: prometheus}
rules:
- {apiGroups: [""], resources: [nodes, nodes/proxy, nodes/metrics, services, endpoints, pods], verbs: [get, list, watch]}
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
- {nonResourceURLs: [/metrics], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: prometheus}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: prometheus}
subjects: [{kind: ServiceAccount, name: prometheus, namespace: monitoring}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: prometheus, namespace: monitoring}
data:
  prometheus.yml: |
    global: {scrape_interval: 2s}
    scrape_configs:
    - job_name: apiserver
      scheme: https
      static_configs: [{targets: ["kubernetes.default.svc:443"]}]
      authorization: {credentials_file: /var/run/secrets/kubernetes.io/serviceaccount/token}
      tls_config: {ca_file: /var/run/secrets/kubernetes.io/serviceaccount/ca.crt}
    - job_name: nodes
      dns_sd_configs: [{names: [_metrics._tcp.node-exporter.monitoring.svc.cluster.local], refresh_interval: 2s}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: prometheus, namespace: monitoring}
spec:
  selector: {matchLabels: {app: prometheus}}
  template:
    metadata: {labels: {app: prometheus}}
    spec:
      serviceAccountName: prometheus
      securityContext: {runAsUser: 65534, runAsGroup: 65534, runAsNonRoot: true, fsGroup: 65534, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: prometheus
        image: prom/prometheus:v2
        args: [--config.file=/etc/prometheus/prometheus.yml, --storage.tsdb.path=/prometheus, --web.enable-lifecycle]
        ports: [{name: web, containerPort: 9090}]
        livenessProbe: {httpGet: {path: /-/healthy, port: web}, timeoutSeconds: 20}
        readinessProbe: {httpGet: {path: /-/ready, port: web}, periodSeconds: 2}
        volumeMounts: [{name: config, mountPath: /etc/prometheus}, {name: storage, mountPath: /prometheus}]
      volumes: [{name: config, configMap: {name: prometheus}}, {name: storage, emptyDir: {}}]
---
apiVersion: v1
kind: Service
metadata: {name: prometheus, namespace: monitoring}
spec: {selector: {app: prometheus}, ports: [{port: 9090, targetPort: web}]}
---
apiVersion: v1
kind: Service
metadata: {name: node-exporter, namespace: monitoring}
spec: {clusterIP: None, selector: {app: node-exporter}, ports: [{name: metrics, port: 9100, targetPort: metrics}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: node-exporter, namespace: monitoring}
spec:
  selector: {matchLabels: {app: node-exporter}}
  updateStrategy: {type: RollingUpdate, rollingUpdate: {maxUnavailable: 1}}
  template:
    metadata:
      labels: {app: node-exporter}
    spec:
      hostNetwork: true
      hostPID: true
      automountServiceAccountToken: false
      priorityClassName: system-node-critical
      tolerations: [{operator: Exists}]
      containers:
      - name: node-exporter
        image: prom/node-exporter:v1
        args: [--path.rootfs=/host/root, "--web.listen-address=:9100"]
        ports: [{name: metrics, containerPort: 9100, hostPort: 9100}]
        securityContext: {readOnlyRootFilesystem: true, allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: root, mountPath: /host/root, readOnly: true, mountPropagation: HostToContainer}]
      volumes: [{name: root, hostPath: {path: /}}]
Y
check "prometheus and node-exporter" eval 'k rollout status -n monitoring deployment/prometheus --timeout=180s >/dev/null && k rollout status -n monitoring daemonset/node-exporter --timeout=120s >/dev/null'
up() { told curl -sf -G http://prometheus.monitoring:9090/api/v1/query --data-urlencode "query=up{job=\"$1\"}" | grep -q '"1"\]'; }
check "… it finds and reads the API server" until_true 60 up apiserver
check "… and the node's exporter, which the DNS names with its port" until_true 60 up nodes

# ---- a collector of all logs (which this test's machine has in its own directories) ----

apply <<Y
apiVersion: v1
kind: ConfigMap
metadata: {name: collector}
data:
  rsyslog.conf: |
    module(load="imfile" mode="polling" pollingInterval="1")
    module(load="omstdout")
    input(type="imfile" file="/var/log/containers/*speaks*.log" tag="containers:" addMetadata="on")
    template(name="line" type="string" string="%\$!metadata!filename% %msg%\n")
    *.* action(type="omfile" file="/out/all.log" template="line")
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: collector, labels: {k8s-app: collector}}
spec:
  selector: {matchLabels: {k8s-app: collector}}
  template:
    metadata: {labels: {k8s-app: collector}}
    spec:
      tolerations: [{key: node-role.kubernetes.io/control-plane, operator: Exists, effect: NoSchedule}]
      containers:
      - name: rsyslog
        image: rsyslog/rsyslog:8
        args: [-f, /etc/collector/rsyslog.conf]
        resources: {limits: {memory: 200Mi}, requests: {cpu: 100m, memory: 50Mi}}
        volumeMounts:
        - {name: links, mountPath: /var/log/containers, readOnly: true}
        - {name: logs, mountPath: $T/log, readOnly: true}
        - {name: config, mountPath: /etc/collector}
        - {name: out, mountPath: /out}
      terminationGracePeriodSeconds: 30
      volumes:
      - {name: links, hostPath: {path: $T/links}}
      - {name: logs, hostPath: {path: $T/log}}
      - {name: config, configMap: {name: collector}}
      - {name: out, emptyDir: {}}
Y
check "a collector on every node" rolled_out daemonset/collector
k run speaks --image=debian:12 --command -- sh -c 'while :; do echo a word; sleep 1; done' >/dev/null
check "… has what a pod says, by the names of the usual links" until_true 60 eval 'k exec daemonset/collector -- grep -q "speaks_default_speaks-.*a word" /out/all.log'

# ---- a load balancer for the web server ----

apply <<'Y'
apiVersion: v1
kind: Service
metadata: {name: web-pods}
spec: {clusterIP: None, publishNotReadyAddresses: false, selector: {app.kubernetes.io/name: web}, ports: [{name: http, port: 80}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: haproxy}
data:
  haproxy.cfg: |
    defaults
      mode http
      timeout connect 5s
      timeout client 30s
      timeout server 30s
    resolvers cluster
      parse-resolv-conf
      hold valid 2s
    frontend in
      bind :8080
      default_backend web
      stats enable
      stats uri /stats
    backend web
      balance roundrobin
      server-template w 3 web-pods.default.svc.cluster.local:80 resolvers cluster init-addr none check
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: haproxy}
spec:
  selector: {matchLabels: {app: haproxy}}
  template:
    metadata: {labels: {app: haproxy}}
    spec:
      containers:
      - name: haproxy
        image: haproxy:2
        ports: [{name: http, containerPort: 8080}]
        readinessProbe: {httpGet: {path: /stats, port: http}}
        volumeMounts: [{name: config, mountPath: /usr/local/etc/haproxy, readOnly: true}]
      volumes: [{name: config, configMap: {name: haproxy}}]
---
apiVersion: v1
kind: Service
metadata: {name: haproxy}
spec: {selector: {app: haproxy}, ports: [{port: 80, targetPort: http}], sessionAffinity: ClientIP}
Y
check "haproxy" rolled_out deployment/haproxy
check "… finds the web servers by their names" until_true 30 eval '[ "$(told curl -sf http://haproxy/)" = "<h1>version one</h1>" ]'

# ---- custom DNS names ----

apply <<'Y'
apiVersion: v1
kind: Pod
metadata: {name: names, labels: {app: names}}
spec:
  containers:
  - name: dnsmasq
    image: dnsmasq:2
    args: [--no-resolv, --no-hosts, --user=root, "--address=/till.shop/192.0.2.7"]
    securityContext: {capabilities: {drop: [ALL], add: [NET_BIND_SERVICE, NET_ADMIN, SETUID, SETGID, NET_RAW]}}
    ports: [{name: dns, containerPort: 53, protocol: UDP}, {name: dns-tcp, containerPort: 53, protocol: TCP}]
---
apiVersion: v1
kind: Service
metadata: {name: names}
spec: {selector: {app: names}, ports: [{name: dns, port: 53, protocol: UDP}, {name: dns-tcp, port: 53, protocol: TCP}]}
Y
expect "dnsmasq answers over UDP and TCP" "192.0.2.7 192.0.2.7" eval 'k wait --for=condition=Ready pod/names --timeout=120s >/dev/null; at=$(k get service names -o "jsonpath={.spec.clusterIP}"); echo $(told dig +short @$at till.shop; told dig +tcp +short @$at till.shop)'
apply <<Y
apiVersion: v1
kind: Pod
metadata: {name: shopper}
spec:
  restartPolicy: Never
  dnsPolicy: None
  dnsConfig: {nameservers: [$(k get service names -o 'jsonpath={.spec.clusterIP}')], searches: [shop], options: [{name: ndots, value: "1"}]}
  containers: [{name: c, image: "debian:12", command: [getent, hosts, till]}]
Y
expect_match "… and a pod may have it in place of the cluster's" '^192.0.2.7 +till.shop' eval 'k wait --for=jsonpath="{.status.phase}"=Succeeded pod/shopper --timeout=120s >/dev/null; k logs shopper'

# ---- a work queue, processed by a job with several pods ----

for item in apple banana cherry date fig grape; do told redis-cli -h redis-leader rpush work $item >/dev/null; done
apply <<'Y'
apiVersion: batch/v1
kind: Job
metadata: {name: workers}
spec:
  parallelism: 2
  template:
    metadata: {name: worker}
    spec:
      restartPolicy: OnFailure
      containers:
      - name: c
        image: debian:12
        command:
        - sh
        - -c
        - |
          while item=$(redis-cli -h redis-leader lpop work) && [ -n "$item" ]; do
            redis-cli -h redis-leader rpush done "$item by $(hostname)"
          done
Y
check "two workers empty a queue" job_done workers 120
expect "… each piece of work was done once" "apple banana cherry date fig grape" eval 'told redis-cli -h redis-leader lrange done 0 -1 | cut -d" " -f1 | sort | tr "\n" " " | sed "s/ $//"'

# ---- a service that scales with its load, within the machine's capacity ----

apply <<'Y'
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop}
spec:
  selector: {matchLabels: {run: shop}}
  template:
    metadata: {labels: {run: shop}}
    spec:
      containers:
      - {name: apache, image: "httpd:2", ports: [{containerPort: 80}], resources: {requests: {cpu: 20m}, limits: {cpu: 500m}}}
---
apiVersion: v1
kind: Service
metadata: {name: shop, labels: {run: shop}}
spec: {ports: [{port: 80}], selector: {run: shop}}
---
apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: shop}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: shop}
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 25}}}]
---
apiVersion: batch/v1
kind: CronJob
metadata: {name: report}
spec:
  schedule: "* * * * *"
  concurrencyPolicy: Forbid
  successfulJobsHistoryLimit: 1
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: OnFailure
          containers: [{name: c, image: "debian:12", imagePullPolicy: IfNotPresent, command: [/bin/sh, -c, "date; curl -sf http://shop/ | grep -c Apache2"]}]
Y
check "apache" rolled_out deployment/shop
told timeout 150 sh -c "while :; do curl -s http://shop/ >/dev/null; done" 2>/dev/null & load=$!
check "… under load it grows" until_true 50 eval '[ "$(k get deployment shop -o "jsonpath={.spec.replicas}")" -gt 1 ]'
kill $load
check "a report of every minute" until_true 90 eval 'k get jobs -o "jsonpath={range .items[*]}{.metadata.ownerReferences[0].name} {.status.succeeded}{\"\n\"}{end}" | grep -qx "report 1"'

# ---- everything survives a restart of the daemon ----

pods_before=$(k get pods -A -o 'jsonpath={range .items[?(@.status.phase=="Running")]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{"\n"}{end}' | sort)
kill_daemon
start_daemon
expect "after the daemon was killed all run on, undisturbed" "" eval 'comm -23 <(echo "$pods_before") <(k get pods -A -o "jsonpath={range .items[*]}{.metadata.uid} {.status.containerStatuses[*].restartCount}{\"\n\"}{end}" | sort)'
expect "… and the web answers" "<h1>version one</h1>" told curl -sf http://web/
echo "1..$test_number"
