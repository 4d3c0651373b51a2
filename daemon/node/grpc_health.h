// SPDX-License-Identifier: Apache-2.0
// grpc.health.v1.Health/Check: one request over HTTP/2 without TLS, a message of one text, an answer of one number.
// Source: RFC 9113; RFC 7541 for headers as they stand; grpc PROTOCOL-HTTP2.md; grpc health/v1.
#pragma once

#include <string>
#include <string_view>

#include "daemon/node/connection.h"

namespace coracle::node {

// What is sent, from the first byte on. Pure.
std::string health_request(const std::string& authority, std::string_view service);
// Whether `service` ("" = the server) says SERVING. Errors: Connection's; invalid for what is no such answer.
Result<bool> is_serving(const std::string& host, uint16_t port, std::string_view service, const AddressLookup& lookup,
                        const Patience& patience);

}  // namespace coracle::node
