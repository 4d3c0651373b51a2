// SPDX-License-Identifier: Apache-2.0
// See examples.h.
#include "ctl/examples.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace coracle::ctl {
namespace {

constexpr std::pair<std::string_view, std::string_view> kExamples[] = {
    {"", "coraclectl get pods -A -o wide"},
    {"get", "coraclectl get pods -A -o wide\ncoraclectl get deployment web -o yaml"},
    {"describe", "coraclectl describe deployment web"},
    {"apply", "coraclectl apply -f web.yaml"},
    {"diff", "coraclectl diff -f web.yaml"},
    {"create", "coraclectl create deployment shop --image=localhost/busybox -- sleep 1000"},
    {"replace", "coraclectl replace -f web.yaml"},
    {"run", "coraclectl run once --image=localhost/busybox --restart=Never -- echo hello"},
    {"expose", "coraclectl expose deployment web --port=80"},
    {"label", "coraclectl label deployment web tier=front"},
    {"annotate", "coraclectl annotate deployment web note=checked"},
    {"patch", "coraclectl patch deployment web -p '{\"spec\":{\"replicas\":2}}'"},
    {"edit", "coraclectl edit deployment web"},
    {"set", "coraclectl set image deployment/web '*=localhost/busybox:latest'"},
    {"set image", "coraclectl set image deployment/web '*=localhost/busybox:latest'"},
    {"set env", "coraclectl set env deployment/web COLOR=blue"},
    {"set resources", "coraclectl set resources deployment web --limits=memory=64Mi"},
    {"scale", "coraclectl scale deployment web --replicas=2"},
    {"autoscale", "coraclectl autoscale deployment web --max=3 --cpu=80%"},
    {"logs", "coraclectl logs deployment/web --tail=10"},
    {"exec", "coraclectl exec shell -- ls /"},
    {"attach", "coraclectl attach shell"},
    {"cp", "coraclectl cp web.yaml shell:/tmp/web.yaml"},
    {"port-forward", "coraclectl port-forward deployment/web 8080:80"},
    {"proxy", "coraclectl proxy --port=8001"},
    {"debug",
     "coraclectl debug shell --image=localhost/busybox -- sleep 10\n"
     "coraclectl debug shell --copy-to=shell-debug --container=shell -- sleep 10"},
    {"events", "coraclectl events --for deployment/web"},
    {"rollout", "coraclectl rollout status deployment/web"},
    {"rollout status", "coraclectl rollout status deployment/web"},
    {"rollout history", "coraclectl rollout history deployment/web"},
    {"rollout restart", "coraclectl rollout restart deployment/web"},
    {"rollout pause", "coraclectl rollout pause deployment/web"},
    {"rollout resume", "coraclectl rollout resume deployment/web"},
    {"rollout undo", "coraclectl rollout undo deployment/web"},
    {"certificate", "coraclectl certificate approve someone"},
    {"certificate approve", "coraclectl certificate approve someone"},
    {"certificate deny", "coraclectl certificate deny stranger"},
    {"wait", "coraclectl wait --for=condition=Available deployment/web --timeout=60s"},
    {"why", "coraclectl why pod shell"},
    {"cordon", "coraclectl cordon edge"},
    {"uncordon", "coraclectl uncordon edge"},
    {"drain", "coraclectl drain edge --force --ignore-daemonsets --dry-run=client"},
    {"taint", "coraclectl taint nodes edge for=tests:PreferNoSchedule"},
    {"top", "coraclectl top pod -A"},
    {"top pod", "coraclectl top pod -A --containers"},
    {"top node", "coraclectl top node"},
    {"top volumes", "coraclectl top volumes -A"},
    {"api-resources", "coraclectl api-resources --namespaced=true -o wide"},
    {"api-versions", "coraclectl api-versions"},
    {"explain", "coraclectl explain pod.spec.containers"},
    {"version", "coraclectl version --client -o json"},
    {"cluster-info", "coraclectl cluster-info"},
    {"cluster-info dump", "coraclectl cluster-info dump --output-directory=dump"},
    {"config", "coraclectl config view"},
    {"config view", "coraclectl config view --minify"},
    {"config get-contexts", "coraclectl config get-contexts"},
    {"config current-context", "coraclectl config current-context"},
    {"auth", "coraclectl auth can-i create pods"},
    {"auth can-i", "coraclectl auth can-i create pods\ncoraclectl auth can-i --list"},
    {"auth whoami", "coraclectl auth whoami"},
    {"auth reconcile", "coraclectl auth reconcile -f role.yaml"},
    {"image", "coraclectl image list"},
    {"image list", "coraclectl image list"},
    {"backup", "coraclectl backup state.backup"},
    {"store", "coraclectl store status"},
    {"store status", "coraclectl store status"},
    {"doctor", "coraclectl doctor"},
    {"boot", "coraclectl boot"},
    {"health", "coraclectl health\ncoraclectl health --wait --timeout=20s"},
    {"completion", "source <(coraclectl completion bash)"},
    {"kuberc", "coraclectl kuberc set --section aliases --name getn --command get --prependarg nodes\ncoraclectl kuberc view"},
    {"kuberc set", "coraclectl kuberc set --section defaults --command get --option output=wide"},
    {"kuberc view", "coraclectl kuberc view"},
    {"plugin", "coraclectl plugin list"},
    {"plugin list", "coraclectl plugin list --name-only"},
    {"delete", "coraclectl delete pod once --ignore-not-found"},
};

}  // namespace

std::string_view example_of(std::string_view path) {
  auto found = std::find_if(std::begin(kExamples), std::end(kExamples), [&](const auto& one) { return one.first == path; });
  return found == std::end(kExamples) ? std::string_view() : found->second;
}

}  // namespace coracle::ctl
