// SPDX-License-Identifier: Apache-2.0
// Defaults of Jobs: one pod without a number, a backoffLimit of six unless it is per index, the labels of the template, and
// podReplacementPolicy. They apply to Jobs only: the template of a CronJob stays unchanged. Source: batch/v1 API reference, Job.
#include "store/kinds/job/job_kinds.h"

namespace coracle::schema {
namespace {

constexpr int64_t kFailures = 6, kEndless = 2147483647;

void default_job_spec(json::object& spec) {
  auto fill = [&](std::string_view name, json::value value) {
    if (unset(spec, name, true)) spec[name] = std::move(value);
  };
  bool per_index = !unset(spec, "backoffLimitPerIndex", true), policy = !unset(spec, "podFailurePolicy", true);
  if (unset(spec, "parallelism", true)) fill("completions", 1);
  fill("parallelism", 1);
  fill("backoffLimit", per_index ? kEndless : kFailures);
  fill("completionMode", "NonIndexed");
  fill("suspend", false);
  fill("manualSelector", false);
  fill("podReplacementPolicy", policy ? "Failed" : "TerminatingOrFailed");
}

void default_job(json::object& job) {
  json::object *metadata = object_at(job, "metadata"), *spec = object_at(job, "spec");
  if (!metadata || !spec) return;
  default_job_spec(*spec);
  json::object* pods = object_at(*spec, "template");
  json::object* template_metadata = pods ? object_at(*pods, "metadata") : nullptr;
  json::object* labels = template_metadata ? object_at(*template_metadata, "labels") : nullptr;
  json::object* own = object_at(*metadata, "labels");
  if (!labels || labels->empty() || (own && !own->empty())) return;
  json::object copy = *labels;
  (*metadata)["labels"] = std::move(copy);
}

constexpr NamedDefaultRule kJobDefaults[] = {{"io.k8s.api.batch.v1.Job", default_job}};

}  // namespace

std::span<const NamedDefaultRule> job_defaults() { return kJobDefaults; }

}  // namespace coracle::schema
