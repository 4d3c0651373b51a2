// SPDX-License-Identifier: Apache-2.0
// What describe tells of an object, in kubectl's layout. Pure: an object and what belongs to it in, text with tabs out;
// align_tabs (print.h) makes columns of them. describe_pod.cc has what pods and their templates share, describe_workload.cc the
// kinds that make pods, describe.cc the command.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

// "Name:\tweb\n", two spaces to a level.
void put(std::string& text, size_t level, std::string_view name, std::string_view value);
void put_labels(std::string& text, std::string_view name, const json::object& labels);            // key=value, one to a line
void put_annotations(std::string& text, std::string_view name, const json::object& annotations);  // without what apply remembers
void put_conditions(std::string& text, const json::value& object, bool with_message);
void put_controller(std::string& text, const json::value& object);  // "Controlled By", where there is one

std::string text_at(const json::value& object, std::string_view path);  // "" where there is nothing
std::string or_else(std::string text, std::string_view absent);
std::string selector_or(const json::value& object, std::string_view path, std::string_view absent);
std::string time_text(std::string_view time);   // Mon, 02 Jan 2006 15:04:05 -0700, as local time; as it is when it is none
std::string map_text(const json::object& map);  // a=b,c=d; "<none>"

std::string template_text(const json::value& pod_template);  // "Pod Template:" and what follows
std::string pod_text(const json::value& pod);

struct Related {  // what else there is to be asked for
  std::vector<json::value> pods, replica_sets;
};
// Of a kind whose layout is known; "" of others.
std::string workload_text(const json::value& object, const Related& related, WallTime now);
std::string plain_text(const json::value& object);  // every field, with labels made of their names

}  // namespace coracle::ctl
