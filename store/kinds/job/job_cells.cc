// SPDX-License-Identifier: Apache-2.0
// Cells of jobs: completions and duration.
#include "store/kinds/job/job_kinds.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

bool holds(view::JobStatus status, std::string_view type) {
  for (view::JobCondition condition : status.conditions()) {
    if (condition.type() == type) return condition.status() == "True";
  }
  return false;
}

json::value job_status(const CellInput& in) {
  view::Job job(in.object);
  if (holds(job.status(), "Complete")) return json::value("Complete");
  if (holds(job.status(), "Failed")) return json::value("Failed");
  if (!job.metadata().deletion_timestamp().empty()) return json::value("Terminating");
  if (holds(job.status(), "Suspended")) return json::value("Suspended");
  return json::value(holds(job.status(), "FailureTarget") ? "FailureTarget" : "Running");
}

json::value job_completions(const CellInput& in) {
  view::Job job(in.object);
  std::string done = std::to_string(job.status().succeeded());
  if (job.spec().has_completions()) return json::value(done + "/" + std::to_string(job.spec().completions()));
  if (job.spec().parallelism() > 1) return json::value(done + "/1 of " + std::to_string(job.spec().parallelism()));
  return json::value(done + "/1");
}

json::value job_duration(const CellInput& in) {
  view::JobStatus status = view::Job(in.object).status();
  auto start = parse_time(status.start_time());
  if (!start) return json::value("");
  auto end = parse_time(status.completion_time());
  return json::value(human_duration(std::chrono::duration_cast<std::chrono::seconds>((end ? *end : in.now) - *start)));
}

constexpr NamedCellRule kJobCells[] = {
    {"job.status", job_status}, {"job.completions", job_completions}, {"job.duration", job_duration}};

}  // namespace

std::span<const NamedCellRule> job_cells() { return kJobCells; }

}  // namespace coracle::schema
