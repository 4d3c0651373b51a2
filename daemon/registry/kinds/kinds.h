// SPDX-License-Identifier: Apache-2.0
// The strategies of kinds; each has a file in this directory.
#pragma once

#include "daemon/registry/strategy.h"

namespace coracle::registry {

const Strategy& pod_strategy();
const Strategy& service_strategy();
const Strategy& namespace_strategy();
const Strategy& certificate_request_strategy();
const Strategy& job_strategy();
const Strategy& daemon_set_strategy();
const Strategy& volume_strategy();
const Strategy& claim_strategy();
const Strategy& priority_class_strategy();
const Strategy& api_service_strategy();
const Strategy& resource_slice_strategy();
const Strategy& definition_strategy();  // of CustomResourceDefinitions

}  // namespace coracle::registry
