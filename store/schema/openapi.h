// SPDX-License-Identifier: Apache-2.0
// Generates OpenAPI documents from the tables on request, for `kubectl explain` and `kubectl apply`. Version 3 has one document
// per group and version, version 2 a single one, as JSON or in gnostic's protobuf. Pure; thread-safe; the documents are large
// (hundreds of KB): callers decide what to cache.
// Source: OpenAPI 3.0.0 and 2.0; Kubernetes' x-kubernetes extensions; github.com/google/gnostic-models openapiv2.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "store/schema/catalog.h"

namespace coracle::schema {

std::vector<std::string> openapi_v3_paths(const Catalog& catalog);      // "api/v1", "apis/apps/v1"
std::string openapi_v3(const Catalog& catalog, std::string_view path);  // JSON text of that document; "" if there is none
std::string openapi_v2(const Catalog& catalog);                         // JSON text
// Requested as application/com.github.proto-openapi.spec.v2@v1.0+protobuf; the response has kOpenApiV2MediaType, because newer Go
// clients cannot parse the @.
std::string openapi_v2_protobuf(const Catalog& catalog);
constexpr std::string_view kOpenApiV2MediaType = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

// Changes whenever a document may change: for ETag and ?hash=. 64 hex digits, upper case.
const std::string& openapi_hash(const Catalog& catalog);

}  // namespace coracle::schema
