// SPDX-License-Identifier: Apache-2.0
// Registers this folder. Jobs and CronJobs.
#include "store/kinds/job/job_kinds.h"

namespace coracle::schema {
namespace {

constexpr KindRules kJobKinds[] = {
    {.api_version = "batch/v1", .resource = "jobs", .update = check_job_update, .status = check_job_status},
    {.api_version = "batch/v1", .resource = "cronjobs", .create = check_cron_job_create},
};

}  // namespace

extern const KindFamily job_family;
const KindFamily job_family{
    .defaults = {job_defaults},
    .validation = {job_rules, cron_job_rules},
    .cells = {job_cells},
    .kinds = kJobKinds,
};

}  // namespace coracle::schema
