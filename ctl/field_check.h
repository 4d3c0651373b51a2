// SPDX-License-Identifier: Apache-2.0
// Fields that do not exist, for servers that do not look for them: before Kubernetes 1.25 they drop them without a word. kubectl
// reads the server's OpenAPI document there; this knows the types. A server that looks itself is not asked anything.
// Source: KEP-2885; kubectl pkg/validation; kube-openapi pkg/util/proto/validation.
#pragma once

#include "ctl/session.h"

namespace coracle::ctl {

// Errors: bad_request, in kubectl's words: error validating "web.yaml": error validating data: ValidationError(Pod.spec): unknown
// field "image" in io.k8s.api.core.v1.PodSpec; …
Result<void> check_fields(Session& session, const Document& document);
// What is wrong with the object's fields, as after "error validating data: "; "" if nothing is. Pure.
std::string unknown_fields_of(const schema::Type& type, const json::value& object);

}  // namespace coracle::ctl
