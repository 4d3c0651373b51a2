// SPDX-License-Identifier: Apache-2.0
// The API server's side of API priority and fairness: the seats of a request, and the metrics. Source: apiserver
// flowcontrol/request, flowcontrol/metrics.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

// The seats of a classified request: one, or more for lists and watches that read many objects.
int seats_wanted(const Call& call, const auth::Attributes& attributes);

// apiserver_flowcontrol_*, by priority level and flow schema.
void write_flow_metrics(std::string& text, const flowcontrol::FlowController& flow_controller);

}  // namespace coracle::api
