// SPDX-License-Identifier: Apache-2.0
// The request handlers, one file each. `dispatch` (dispatch.cc) selects the handler.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

void dispatch(Call& call);  // of an authorized request

void serve_resource(Call& call);      // resources.cc: get list create update patch delete
void serve_watch(Call& call);         // watch.cc
void serve_review(Call& call);        // reviews.cc: TokenReview, SubjectAccessReview, ...
void serve_log(Call& call);           // logs.cc
void serve_exec(Call& call);          // exec.cc: exec and attach
void serve_port_forward(Call& call);  // port_forward.cc
void serve_proxy(Call& call);         // proxy/serve.cc: proxies to pods, services and nodes
void serve_images(Call& call);        // images.cc: /coracle/v1/images
void serve_volumes(Call& call);       // volumes.cc: /coracle/v1/volumes
void serve_placement(Call& call);     // placement.cc: /coracle/v1/placement
void serve_store(Call& call);         // store.cc: /coracle/v1/store
// scale.cc: responds with a Scale in the form that the client wants. Errors: bad_request, not_acceptable.
Result<void> answer_scale(Call& call, const json::value& scale);
void serve_discovery(Call& call);  // discovery.cc: /api, /apis, and paths below them
void serve_openapi(Call& call);    // openapi.cc
void serve_health(Call& call);     // health.cc: /livez /readyz /healthz
void serve_version(Call& call);
void serve_metrics(Call& call);
// reviews.cc: the OpenID discovery document and keys, with which others verify service account tokens.
void serve_oidc(Call& call);

}  // namespace coracle::api
