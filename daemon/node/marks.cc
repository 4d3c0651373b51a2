// SPDX-License-Identifier: Apache-2.0
// The marks of sandboxes and containers as text: the node's own JSON, so it is read by its paths. See record.h.
#include <algorithm>

#include "daemon/node/record.h"

namespace coracle::node {

namespace {

json::value parsed(std::string_view text) {
  auto value = parse_json(text);
  return value ? *std::move(value) : json::value(json::object());
}

}  // namespace

ContainerMark ContainerMark::from_text(std::string_view text) {
  json::value value = parsed(text);
  auto string = [&](const char* name) { return std::string(get_string(value, name)); };
  return {string("name"),
          string("image"),
          string("imageID"),
          string("stopSignal"),
          string("definition"),
          string("terminationPolicy"),
          int(get_int(value, "attempt"))};
}

std::string ContainerMark::to_text() const {
  return coracle::to_text(json::object{{"name", name},
                                       {"attempt", attempt},
                                       {"image", image},
                                       {"imageID", image_id},
                                       {"stopSignal", stop_signal},
                                       {"definition", definition},
                                       {"terminationPolicy", termination_policy}});
}

SandboxMark SandboxMark::from_text(std::string_view text) {
  json::value value = parsed(text);
  return {Key{std::string(get_string(value, "namespace")), std::string(get_string(value, "name"))},
          std::string(get_string(value, "uid")),
          std::string(get_string(value, "created")),
          get_int(value, "graceSeconds", 30),
          get_bool(value, "hostNetwork"),
          get_bool(value, "static"),
          uint32_t(std::clamp<int64_t>(get_int(value, "firstID"), 0, UINT32_MAX))};
}

std::string SandboxMark::to_text() const {
  return coracle::to_text(json::object{{"namespace", pod.ns},
                                       {"name", pod.name},
                                       {"uid", uid},
                                       {"created", created},
                                       {"graceSeconds", grace_seconds},
                                       {"hostNetwork", host_network},
                                       {"static", is_static},
                                       {"firstID", first_id}});
}

}  // namespace coracle::node
