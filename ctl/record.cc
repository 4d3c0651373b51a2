// SPDX-License-Identifier: Apache-2.0
// See record.h.
#include "ctl/record.h"

#include "ctl/generate.h"

namespace coracle::ctl {

void Recorder::add_to(Commands& commands, Command command) {
  commands_ = &commands;
  commands.deprecate(command.add_flag("--record", wanted_, "keep the command's line in an annotation"),
                     "--record will be removed in the future");
}

void Recorder::record(json::value& object) const {
  if (!wanted_) return;
  json::value& annotations = make(object, "metadata.annotations");
  if (!annotations.is_object()) annotations.emplace_object();
  annotations.get_object()[kChangeCause] = line();
  order_metadata(object);
}

json::value Recorder::patch() const {
  json::value patch = json::object();
  record(patch);
  return patch;
}

}  // namespace coracle::ctl
