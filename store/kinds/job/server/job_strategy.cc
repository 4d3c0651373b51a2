// SPDX-License-Identifier: Apache-2.0
// Jobs: unless manualSelector is set, the server generates the selector and labels the template, so that the Job's pods match no
// other Job. Source: batch/v1 API reference, JobSpec.manualSelector; Kubernetes "Jobs", "Specifying your own Pod selector".
#include <string>

#include "store/kinds/strategy.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

constexpr std::string_view kUid = "batch.kubernetes.io/controller-uid", kName = "batch.kubernetes.io/job-name";

// A value that the user has set stays; validation rejects it if it is wrong.
void set_if_absent(json::value& labels, std::string_view key, std::string_view value) {
  if (!labels.is_object()) labels.emplace_object();
  if (!labels.get_object().contains(key)) labels.get_object()[key] = value;
}

// Before the defaults: a Job without labels gets those of its template, the generated ones among them.
void own_its_pods(json::value& job) {
  if (view::Job(job).spec().manual_selector()) return;
  std::string uid(view::Job(job).metadata().uid()), name(view::Job(job).metadata().name());
  json::value& labels = make(job, "spec.template.metadata.labels");
  for (std::string_view key : {std::string_view("job-name"), kName}) set_if_absent(labels, key, name);
  for (std::string_view key : {std::string_view("controller-uid"), kUid}) set_if_absent(labels, key, uid);
  set_if_absent(make(job, "spec.selector.matchLabels"), kUid, uid);
}

}  // namespace

extern const StrategyFamily job_strategies;
const StrategyFamily job_strategies{{{.kind = &kJob, .prepare_create = own_its_pods}}};

}  // namespace coracle::kinds
