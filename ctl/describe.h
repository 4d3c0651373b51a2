// SPDX-License-Identifier: Apache-2.0
// The text of `describe`, in kubectl's layout. Pure: it takes an object and its related objects and returns text with tabs, which
// align_tabs (print.h) turns into columns. describe_pod.cc covers pods and pod templates, describe_workload.cc the kinds that
// create pods, describe.cc the command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// Appends "Name:\tweb\n", indented by two spaces per level.
void put(std::string& text, size_t level, std::string_view name, std::string_view value);
void put_labels(std::string& text, std::string_view name, const json::object& labels);            // one key=value per line
void put_annotations(std::string& text, std::string_view name, const json::object& annotations);  // without last-applied
void put_conditions(std::string& text, const json::value& object, bool with_message);
void put_controller(std::string& text, const json::value& object);  // "Controlled By", if the object has a controller

std::string text_at(const json::value& object, std::string_view path);  // "" if the path is absent
std::string or_else(std::string text, std::string_view absent);
std::string selector_or(const json::value& object, std::string_view path, std::string_view absent);
std::string time_text(std::string_view time);   // local time as Mon, 02 Jan 2006 15:04:05 -0700; other text is returned unchanged
std::string map_text(const json::object& map);  // a=b,c=d; "<none>"

std::string template_text(const json::value& pod_template);  // the section "Pod Template:"
std::string pod_text(const json::value& pod);

struct Related {  // objects that the caller has fetched for the description
  std::vector<json::value> pods, replica_sets;
};
// The description of a workload kind; "" for any other kind.
std::string workload_text(const json::value& object, const Related& related, WallTime now);
std::string plain_text(const json::value& object);  // any kind: every field, labelled by its name

}  // namespace coracle::ctl
