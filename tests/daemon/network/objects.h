// SPDX-License-Identifier: Apache-2.0
// Services, EndpointSlices and pods for the network's tests, written as JSON.
#pragma once

#include <string>
#include <vector>

#include "store/object/object.h"

namespace coracle::network {

inline ObjectPtr object(const Kind& kind, const std::string& text) { return MUST(Object::make(kind, MUST(parse_json(text)))); }

inline ObjectPtr service(const std::string& name, const std::string& spec, const std::string& more = "") {
  return object(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":")" + name +
                              R"("},"spec":)" + spec + more + "}");
}

// The same, with a creation time in RFC 3339.
inline ObjectPtr service_since(const std::string& name, const std::string& since, const std::string& spec,
                               const std::string& more = "") {
  return object(kService, R"({"apiVersion":"v1","kind":"Service","metadata":{"namespace":"default","name":")" + name +
                              R"(","uid":"uid-)" + name + R"(","creationTimestamp":")" + since + R"("},"spec":)" + spec + more +
                              "}");
}

// `endpoints` and `ports` are JSON arrays.
inline ObjectPtr slice(const std::string& service, const std::string& endpoints, const std::string& ports,
                       const std::string& suffix = "abcde", const std::string& type = "IPv4") {
  return object(kEndpointSlice,
                R"({"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"namespace":"default","name":")" +
                    service + "-" + suffix + R"(","labels":{"kubernetes.io/service-name":")" + service +
                    R"("}},"addressType":")" + type + R"(","endpoints":)" + endpoints + R"(,"ports":)" + ports + "}");
}

inline std::string endpoint(const std::string& address, const std::string& more = "") {
  return R"({"addresses":[")" + address + R"("])" + more + "}";
}

inline const char* const kReady = R"(,"conditions":{"ready":true,"serving":true,"terminating":false})";
inline const char* const kNotReady = R"(,"conditions":{"ready":false,"serving":false,"terminating":false})";
inline const char* const kTerminating = R"(,"conditions":{"ready":false,"serving":true,"terminating":true})";

}  // namespace coracle::network
