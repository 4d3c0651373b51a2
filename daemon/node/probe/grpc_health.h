// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1.Health/Check: one request over HTTP/2 without TLS. The request message has one string, the reply one number.
// Source: RFC 9113; RFC 7541 for uncompressed headers; grpc PROTOCOL-HTTP2.md; grpc health/v1.
#pragma once

#include <string>
#include <string_view>

#include "daemon/node/probe/connection.h"

namespace coracle::node {

// All bytes that the client sends. Pure.
std::string health_request(const std::string& authority, std::string_view service);
// Whether the status of `service` ("": the server) is SERVING. Errors: Connection's; invalid if the reply cannot be parsed;
// unsupported if the server does not implement the protocol.
Result<bool> is_serving(const std::string& host, uint16_t port, std::string_view service, const AddressLookup& lookup,
                        const CallContext& context);

}  // namespace coracle::node
