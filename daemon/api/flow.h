// SPDX-License-Identifier: Apache-2.0
// What the API tells fairness, and what it tells of it: how wide a request is, and the metrics.
// Source: apiserver flowcontrol/request, flowcontrol/metrics.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

// Of a request that was classified: one, and more for lists and watches that go through many objects.
int seats_wanted(const Call& call, const access::Attributes& attributes);

// apiserver_flowcontrol_*, by priority level and flow schema.
void write_flow_metrics(std::string& text, const fairness::Fairness& fairness);

}  // namespace coracle::api
