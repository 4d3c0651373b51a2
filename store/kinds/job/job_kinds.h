// SPDX-License-Identifier: Apache-2.0
// Rules: Jobs and CronJobs.
// kind_family.h says when each is called.
#pragma once

#include "store/schema/kind_family.h"

namespace coracle::schema {

std::span<const NamedDefaultRule> job_defaults();
std::span<const NamedValidationRule> job_rules();
std::span<const NamedValidationRule> cron_job_rules();
std::span<const NamedCellRule> job_cells();

void check_job_update(const json::value& now, const json::value& before, std::string_view subresource, Findings& out);
void check_job_status(const json::value& now, const json::value& before, Findings& out);
void check_cron_job_create(const json::value& object, Findings& out);

}  // namespace coracle::schema
