// SPDX-License-Identifier: Apache-2.0
// Values of flags as kubectl reads them: labels, selectors, quantities, names. Errors are bad_request and worded as kubectl's.
// Pure. Source: apimachinery meta/v1 ParseToLabelSelector, util/validation; kubectl pkg/cmd/run, pkg/cmd/create.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

std::vector<std::string> split_words(std::string_view text, char separator);  // "": one empty word
json::value count_or_text(const std::string& text);                           // "80": 80, "50%": "50%"

// "KEY=VALUE" of each word, sorted by key.
Result<json::object> labels_of(const std::vector<std::string>& words);
// "cpu=1,memory=1Gi" with canonical quantities, sorted by name. An error begins with `fault`.
Result<json::object> quantities_of(const std::string& text, std::string_view fault);
// A LabelSelector object from its text form. Errors: also for what only the text form has: !=, > and <.
Result<json::object> label_selector_of(const std::string& text);

std::string errno_text(int err);               // Go's words for errno, which begin with a small letter
bool is_dns_subdomain(std::string_view text);  // RFC 1123
// What is wrong with the key of a ConfigMap or Secret, or with the name of an environment variable; "": nothing.
std::string fault_of_key(std::string_view key);
std::string fault_of_variable(std::string_view name);
std::string fault_of_label(std::string_view value);  // likewise of a label's value
std::string fault_of_port(std::string_view text);    // likewise of a port, which may be 0, as Go's strconv.ParseUint
std::string fault_of_time(std::string_view text);    // likewise of an RFC 3339 time, as Go's time.Parse
bool is_image_reference(std::string_view text);      // "[HOST[:PORT]/]PATH[:TAG][@DIGEST]"
Result<void> check_port_name(std::string_view name);

}  // namespace coracle::ctl
