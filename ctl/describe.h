// SPDX-License-Identifier: Apache-2.0
// The text of `describe`, in kubectl's layout. Pure: it takes an object and its related objects and returns text with tabs, which
// align_tabs (print.h) turns into columns. describe_FAMILY.cc covers a family of kinds each, describe.cc the command.
// Source: kubectl pkg/describe.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"
#include "store/schema/views.h"

namespace coracle::ctl {

// Appends "Name:\tweb\n", indented by two spaces per level.
void put(std::string& text, size_t level, std::string_view name, std::string_view value);
void put_name(std::string& text, const json::value& object);                            // and the namespace, if it has one
void put_marks(std::string& text, const json::value& object);                           // labels and annotations
void put_head(std::string& text, const json::value& object);                            // all of these
void put_labels(std::string& text, std::string_view name, const json::object& labels);  // one key=value per line
void put_annotations(std::string& text, std::string_view name, const json::object& annotations);  // without last-applied
void put_conditions(std::string& text, const json::value& object, bool with_message);
void put_conditions_with_time(std::string& text, const json::value& object);  // and with the message
struct TimedCondition {
  view::Condition condition;
  std::string_view time;
};
// Conditions of nodes and claims, with a further time, whose column has this title.
void put_timed_conditions(std::string& text, std::string_view title, const std::vector<TimedCondition>& conditions);
// The volume source in `holder`: a volume of a pod or, if `persistent`, the spec of a PersistentVolume.
void put_volume_source(std::string& text, const json::value& holder, bool persistent);
void put_controller(std::string& text, const json::value& object);  // "Controlled By", if the object has a controller

std::string text_of_value(const json::value* value);                             // "" for nullptr and null
std::string or_else(std::string_view text, std::string_view absent);             // `absent` if the text is ""
std::string selector_or(view::LabelSelector selector, std::string_view absent);  // likewise; takes a plain map, too
std::string time_text(std::string_view time);  // local time as Mon, 02 Jan 2006 15:04:05 -0700; other text is returned unchanged
std::string local_time_text(std::string_view time, const char* format);  // likewise, by a format of strftime(3)
std::string amount_text(const json::value* amount);                      // a quantity in canonical form; "" for nullptr
std::string map_text(const json::object& map);                           // a=b,c=d; "<none>"
std::string unread_text(const std::string& error);                       // what stands in place of what cannot be read

std::string template_text(view::PodTemplateSpec pod_template);  // the section "Pod Template:"
std::string pod_text(const json::value& pod, WallTime now);

struct Backend {  // a Service that an Ingress names
  json::value service;
  std::vector<json::value> slices;
  std::string error;  // why there is none
};

struct RelatedList {
  std::vector<json::value> items;
  std::string error;  // why the server does not tell which there are; said in their place
};

struct Related {  // objects that the caller has fetched for the description
  RelatedList pods, replica_sets, slices, quotas, limits;
  std::vector<json::value> device_slices;   // ResourceSlices of a node
  json::value lease;                        // of a node
  std::string lease_error;                  // why there is none
  std::map<std::string, Backend> backends;  // by name
};

// The description of one object; "" if its kind is not of the family.
std::string workload_text(const json::value& object, const Related& related);
std::string machine_text(const json::value& object, const Related& related, WallTime now);  // nodes, namespaces, quotas, limits
std::string network_text(const json::value& object, const Related& related);
std::string storage_text(const json::value& object, const Related& related, WallTime now);
std::string access_text(const json::value& object);  // accounts, roles, Secrets, certificate requests
std::string data_text(const json::value& map);       // of a ConfigMap, behind its head. Not for align_tabs: its tabs are data
std::string plain_text(const json::value& object);   // any kind: every field, labelled by its name

}  // namespace coracle::ctl
