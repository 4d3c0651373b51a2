// SPDX-License-Identifier: Apache-2.0
// Health and metrics: /livez, /readyz, /healthz, /version, /metrics. The first three need no credentials. Source: Kubernetes API
// health endpoints; apimachinery version.Info; Prometheus text format.
#include <algorithm>

#include "daemon/api/build_info.h"
#include "daemon/api/flow.h"
#include "daemon/api/handlers.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kVersion = "v1.36.1", kMajor = "1", kMinor = "36";

std::vector<HealthCheck> checks_of(const Call& call, bool live_only) {
  std::vector<HealthCheck> all{{"ping", [] { return true; }, true},
                               {"store", [&registry = call.context.registry] { return registry.engine().revision() > 0; }, true}};
  for (const HealthCheck& check : call.context.config.checks)
    if (!live_only || check.live) all.push_back(check);
  return all;
}

std::string quoted_list(std::vector<std::string_view> names) {
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  std::vector<std::string> out;
  for (std::string_view name : names) out.push_back(quoted(name));
  return join(out, ",");
}

}  // namespace

void serve_health(Call& call) {
  const std::string& path = call.route.path;
  std::string what = path.substr(1, path.find('/', 1) - 1);
  std::string one = path.size() > what.size() + 2 ? path.substr(what.size() + 2) : std::string();
  std::string report;
  bool good = true, found = one.empty();
  auto excluded = call.query().all("exclude");
  auto unknown = excluded;
  for (const HealthCheck& check : checks_of(call, what == "livez")) {
    if (!one.empty() && check.name != one) continue;
    found = true;
    if (one.empty() && std::find(excluded.begin(), excluded.end(), check.name) != excluded.end()) {
      std::erase(unknown, check.name);
      report += "[+]" + check.name + " excluded: ok\n";
      continue;
    }
    bool passes = check.good();
    good &= passes;
    report += passes ? "[+]" + check.name + " ok\n" : "[-]" + check.name + " failed: reason withheld\n";
  }
  if (!found) return answer_page_not_found(call);
  if (!one.empty()) return answer_text(call, good ? 200 : 500, good ? "ok" : "internal server error: reason withheld\n");
  if (!unknown.empty()) report += "warn: some health checks cannot be excluded: no matches for " + quoted_list(unknown) + "\n";
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
  const BuildInfo& built = build_info();
  answer_value(call, json::object{{"major", kMajor},
                                  {"minor", kMinor},
                                  {"emulationMajor", kMajor},
                                  {"emulationMinor", kMinor},
                                  {"minCompatibilityMajor", kMajor},
                                  {"minCompatibilityMinor", "35"},
                                  {"gitVersion", std::string(kVersion) + "+coracle"},
                                  {"gitCommit", built.commit},
                                  {"gitTreeState", built.tree_state},
                                  {"buildDate", built.date},
                                  {"goVersion", "none"},
                                  {"compiler", "g++ " __VERSION__},
                                  {"platform", kPlatform}});
}

void serve_metrics(Call& call) {
  HandlerContext& context = call.context;
  HttpServer::Counts counts = context.counts();
  std::string text;
  auto one = [&](std::string_view name, std::string_view type, double value) {
    write_type(text, name, type);
    write_metric(text, name, "", value);
  };
  context.metrics.write(text);
  write_type(text, "apiserver_current_inflight_requests", "gauge");
  write_metric(text, "apiserver_current_inflight_requests", "request_kind=\"mutating\"", context.writing);
  write_metric(text, "apiserver_current_inflight_requests", "request_kind=\"readOnly\"", context.reading);
  write_flow_metrics(text, context.flow_controller);
  write_type(text, "apiserver_storage_objects", "gauge");
  const schema::CatalogPtr catalog = context.registry.catalogs().now();
  for (const schema::KindInfo& info : catalog->kinds())
    if (info.has_verb("get") && info.is_stored())
      write_metric(text, "apiserver_storage_objects", "resource=\"" + info.kind.qualified_resource() + "\"",
                   double(context.registry.engine().count(info.kind)));
  one("coracle_connections", "gauge", counts.connections);
  one("coracle_api_threads", "gauge", counts.threads);
  one("coracle_store_revision", "counter", double(context.registry.engine().revision()));
  write_process_metrics(text);
  if (context.config.metrics) context.config.metrics(text);
  answer_text(call, 200, std::move(text));
  call.answer().content_type = "text/plain; version=0.0.4; charset=utf-8";
}

}  // namespace coracle::api
