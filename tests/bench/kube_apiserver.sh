#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the comparison of load.sh, once, and prints its directory: kube-apiserver from Debian 12's source package of Kubernetes
# 1.20 (Debian packages no server), and Debian's etcd, unpacked there. Takes a quarter of an hour on 2 cores.
#   kube_apiserver.sh CACHE_DIRECTORY
set -euo pipefail
cache=${1:?kube_apiserver.sh CACHE_DIRECTORY}
dir=$cache/kube-apiserver-1.20
if [ -e "$dir/complete" ]; then echo "$dir"; exit 0; fi
mkdir -p "$cache"
work=$(mktemp -d "$cache/making.XXXXXX")
trap 'rm -rf "$work"' EXIT
why() { echo "$*" >&2; exit 1; }
command -v go >/dev/null || why "golang-go is not installed"

. "$(dirname "$0")/../apt_aside.sh"
mkdir "$work/programs"
apt_aside "$work" bookworm && (cd "$work" && aside download etcd-server && aside source --download-only kubernetes) >"$work/log" 2>&1 ||
  why "Debian's mirror does not have it: $(grep -m 1 '^E:' "$work/log")"
dpkg-deb -x "$work"/etcd-server_*.deb "$work/etcd"
cp "$work/etcd/usr/bin/etcd" "$work/programs/"
mkdir -p "$work/go/src/k8s.io/kubernetes"
tar -C "$work/go/src/k8s.io/kubernetes" --strip-components=1 -xzf "$work"/kubernetes_*.orig.tar.gz
# Its OpenAPI document is generated from the sources by one of their programs.
make_program() {
  local dirs
  export GO111MODULE=off GOPATH=$work/go GOCACHE=$work/go-cache CGO_ENABLED=0
  cd "$work/go/src/k8s.io/kubernetes"
  dirs=$(grep -rl --include='*.go' '+k8s:openapi-gen=' pkg staging/src/k8s.io | grep -vE '/generated/|/(code-generator|sample-[a-z]*)/' |
    xargs -n 1 dirname | sort -u | sed 's,^staging/src/,k8s.io/kubernetes/vendor/,; s,^pkg,k8s.io/kubernetes/pkg,' | paste -sd,)
  go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen &&
    "$work/openapi-gen" --logtostderr -i "$dirs" -p k8s.io/kubernetes/pkg/generated/openapi -O zz_generated.openapi \
      -h hack/boilerplate/boilerplate.generatego.txt -r "$work/violations" &&
    go build -ldflags '-s -w' -o "$work/programs/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver
}
(make_program) >"$work/log" 2>&1 || why "kube-apiserver does not build: $(tail -n 3 "$work/log")"
touch "$work/programs/complete"
rm -rf "$dir"
mv "$work/programs" "$dir"
echo "$dir"
