// SPDX-License-Identifier: Apache-2.0
// What a client wants to read and what it wrote: media types. Pure.
// Source: RFC 9110 section 12 (Accept); apiserver handlers/negotiation; Kubernetes API concepts ("Alternate representations").
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "daemon/api/head.h"
#include "runtime/base/result.h"

namespace coracle::api {

enum class Encoding { json, yaml, protobuf };
enum class As { itself, table, partial, partial_list };  // ;as=Table;g=meta.k8s.io;v=v1

struct Wanted {
  Encoding encoding = Encoding::json;
  As as = As::itself;
  std::string version = "v1";  // of the representation
  bool pretty = false;
  std::string_view media_type() const;
};

struct MediaType {
  std::string type;  // lower case, "application/json"
  std::vector<std::pair<std::string, std::string>> parameters;
  double quality = 1;
  std::string_view parameter(std::string_view name) const;
};
std::vector<MediaType> parse_accept(std::string_view field);  // best first, in their order; wildcards behind their equals
std::vector<MediaType> accepted_by(const Head& head);         // of all its Accept headers

// What an endpoint can answer with: values only; objects, their Tables and metadata too; a stream of the latter (no YAML).
enum class Offer { value, object, stream };
// All that we can do, best first: where the answer lacks a form (not all have one in protobuf), the next will do.
// Errors: not_acceptable, naming what there is.
Result<std::vector<Wanted>> negotiate_all(const Head& head, Offer offer);
// The first of them.
Result<Wanted> negotiate(const Head& head, Offer offer);
// Of a request body; absent means JSON. Errors: unsupported.
Result<Encoding> body_encoding(std::string_view content_type);

}  // namespace coracle::api
