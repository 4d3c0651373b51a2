// SPDX-License-Identifier: Apache-2.0
// What several groups' rules look at in the same way: lists of texts, wildcards, class and driver names, webhooks' addresses.
// Rules read objects by path, so that a group's types can have the names of another's. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/schema/validate/findings.h"

namespace coracle::schema {

std::vector<std::string_view> texts_at(const json::value& value, std::string_view dotted);
size_t bytes_of(const json::object& texts);                     // keys and values
bool has_wildcard(const std::vector<std::string_view>& texts);  // "*" is one of them
bool has(const json::value& value, std::string_view dotted);    // there, and not null
// Only white space, or nothing.
bool is_blank(std::string_view text);

// The same words as Findings::not_supported, the values in the order that is given.
void unsupported(Findings& out, const std::string& path, std::string_view value, std::vector<std::string> supported);
// One finding for all that is wrong, joined by commas.
void invalid_joined(Findings& out, const std::string& path, std::string_view value, const std::vector<std::string>& problems,
                    std::string_view before = {});

void check_qualified(Findings& out, const std::string& path, std::string_view name);
void check_driver_name(Findings& out, const std::string& path, std::string_view name);  // of CSI and of devices

// How a webhook is called. Source: apiserver pkg/util/webhook/validation.go.
void check_client_config(Findings& out, const std::string& path, const json::value& config);
void check_review_versions(Findings& out, const std::string& path, const json::value& hook, std::string_view field);

}  // namespace coracle::schema
