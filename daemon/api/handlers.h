// SPDX-License-Identifier: Apache-2.0
// The handlers that a call may end at; one file each. `dispatch` (dispatch.cc) chooses.
#pragma once

#include "daemon/api/call.h"

namespace coracle::api {

void dispatch(Call& call);  // authorized already

void serve_resource(Call& call);      // resources.cc: get list create update patch delete
void serve_watch(Call& call);         // watch.cc
void serve_review(Call& call);        // reviews.cc: TokenReview, SubjectAccessReview, ...
void serve_log(Call& call);           // logs.cc
void serve_exec(Call& call);          // exec.cc: exec and attach
void serve_port_forward(Call& call);  // port_forward.cc
void serve_proxy(Call& call);         // proxy/serve.cc: what pods, services and nodes answer
void serve_images(Call& call);        // images.cc: /coracle/v1/images
void serve_volumes(Call& call);       // volumes.cc: /coracle/v1/volumes
void serve_placement(Call& call);     // placement.cc: /coracle/v1/placement
void serve_store(Call& call);         // store.cc: /coracle/v1/store
void serve_discovery(Call& call);     // discovery.cc: /api, /apis, and below
void serve_openapi(Call& call);       // openapi.cc
void serve_health(Call& call);        // health.cc: /livez /readyz /healthz
void serve_version(Call& call);
void serve_metrics(Call& call);
void serve_oidc(Call& call);  // reviews.cc: what others need to check our tokens

}  // namespace coracle::api
