// SPDX-License-Identifier: Apache-2.0
// Checks that the rules of several groups share: lists of strings, wildcards, class and driver names, webhooks' client
// configurations. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/schema/validate/findings.h"
#include "store/schema/views.h"

namespace coracle::schema {

constexpr size_t kAnnotationsBytesMax = 256 * 1024;  // Source: apimachinery validation, TotalAnnotationSizeLimitB

size_t bytes_of(const json::object& texts);              // keys and values
bool has_wildcard(view::Range<std::string_view> texts);  // "*" is one of them
// True if empty or only white space.
bool is_blank(std::string_view text);

// The text of Findings::not_supported, with the values in the given order.
void unsupported(Findings& out, const std::string& path, std::string_view value, std::vector<std::string> supported);
// One cause for all problems, joined by commas.
void invalid_joined(Findings& out, const std::string& path, std::string_view value, const std::vector<std::string>& problems,
                    std::string_view before = {});

void check_qualified(Findings& out, const std::string& path, std::string_view name);
void check_driver_name(Findings& out, const std::string& path, std::string_view name);  // of CSI and of devices

// The client configuration of a webhook. Source: apiserver pkg/util/webhook/validation.go.
void check_client_config(Findings& out, const std::string& path, view::WebhookClientConfig config);
void check_review_versions(Findings& out, const std::string& path, view::Range<std::string_view> versions);

}  // namespace coracle::schema
