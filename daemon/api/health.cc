// SPDX-License-Identifier: Apache-2.0
// How the house is: /livez, /readyz, /healthz, /version, /metrics. The first three need no credentials.
// Source: Kubernetes API health endpoints; apimachinery version.Info; Prometheus text format.
#include <algorithm>

#include "daemon/api/handlers.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kVersion = "v1.36.1", kMajor = "1", kMinor = "36";

std::vector<HealthCheck> checks_of(const Call& call, bool live_only) {
  std::vector<HealthCheck> all{{"ping", [] { return true; }, true},
                               {"store", [&registry = call.house.registry] { return registry.engine().revision() > 0; }, true}};
  for (const HealthCheck& check : call.house.config.checks)
    if (!live_only || check.live) all.push_back(check);
  return all;
}

void metric(std::string& text, std::string_view name, std::string_view labels, uint64_t value) {
  text += name;
  if (!labels.empty()) (text += '{').append(labels) += '}';
  text += ' ' + std::to_string(value) + '\n';
}

}  // namespace

void serve_health(Call& call) {
  const std::string& path = call.route.path;
  std::string what = path.substr(1, path.find('/', 1) - 1);
  std::string one = path.size() > what.size() + 2 ? path.substr(what.size() + 2) : std::string();
  std::string report;
  bool good = true, found = one.empty();
  auto excluded = call.query().all("exclude");
  for (const HealthCheck& check : checks_of(call, what == "livez")) {
    if (!one.empty() && check.name != one) continue;
    found = true;
    if (std::find(excluded.begin(), excluded.end(), check.name) != excluded.end()) {
      report += "[+]" + check.name + " excluded: ok\n";
      continue;
    }
    bool passes = check.good();
    good &= passes;
    report += passes ? "[+]" + check.name + " ok\n" : "[-]" + check.name + " failed: reason withheld\n";
  }
  if (!found) return answer_text(call, 404, "404 page not found\n");
  report += what + " check " + (good ? "passed" : "failed") + "\n";
  bool verbose = call.query().has("verbose") || !good;
  answer_text(call, good ? 200 : 500, verbose ? report : "ok");
}

void serve_version(Call& call) {
#if defined(__aarch64__)
  constexpr std::string_view kPlatform = "linux/arm64";
#elif defined(__arm__)
  constexpr std::string_view kPlatform = "linux/arm";
#elif defined(__riscv)
  constexpr std::string_view kPlatform = "linux/riscv64";
#else
  constexpr std::string_view kPlatform = "linux/amd64";
#endif
  answer_value(call, json::object{{"major", kMajor}, {"minor", kMinor}, {"emulationMajor", kMajor}, {"emulationMinor", kMinor},
                                  {"minCompatibilityMajor", kMajor}, {"minCompatibilityMinor", "35"},
                                  {"gitVersion", std::string(kVersion) + "+coracle"}, {"gitCommit", ""}, {"gitTreeState", "clean"},
                                  {"buildDate", "1970-01-01T00:00:00Z"}, {"goVersion", "none"}, {"compiler", "g++ " __VERSION__},
                                  {"platform", kPlatform}});
}

void serve_metrics(Call& call) {
  Front::Counts counts = call.house.counts();
  std::string text;
  text += "# TYPE apiserver_request_total counter\n";
  call.house.metrics.with([&](const Metrics& metrics) {
    for (const auto& [labels, count] : metrics.requests) metric(text, "apiserver_request_total", labels, count);
  });
  text += "# TYPE apiserver_current_inflight_requests gauge\n";
  metric(text, "apiserver_current_inflight_requests", "", uint64_t(counts.requests));
  text += "# TYPE apiserver_longrunning_requests gauge\n";
  metric(text, "apiserver_longrunning_requests", "", uint64_t(counts.watches));
  text += "# TYPE coracle_connections gauge\n";
  metric(text, "coracle_connections", "", uint64_t(counts.connections));
  text += "# TYPE coracle_api_threads gauge\n";
  metric(text, "coracle_api_threads", "", uint64_t(counts.threads));
  text += "# TYPE coracle_store_revision counter\n";
  metric(text, "coracle_store_revision", "", call.house.registry.engine().revision());
  text += "# TYPE apiserver_storage_objects gauge\n";
  for (const schema::KindInfo& info : schema::catalog().kinds())
    if (info.has_verb("get"))
      metric(text, "apiserver_storage_objects", "resource=\"" + info.kind.qualified_resource() + "\"", call.house.registry.engine().count(info.kind));
  answer_text(call, 200, std::move(text));
  call.answer().content_type = "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace coracle::api
