// SPDX-License-Identifier: Apache-2.0
// --record: an annotation of what a command makes or changes keeps the command's line, which `rollout history` shows. kubectl has
// deprecated the flag, and still takes it. Source: k8s.io/cli-runtime pkg/genericclioptions/record_flags.go.
#pragma once

#include <string>
#include <string_view>

#include "ctl/command.h"
#include "runtime/base/json.h"

namespace coracle::ctl {

constexpr std::string_view kChangeCause = "kubernetes.io/change-cause";

class Recorder {
 public:
  // Adds the flag. This object and `commands` have to outlive the reading of the line and the command.
  void add_to(Commands& commands, Command command);
  bool wanted() const { return wanted_; }  // by the line
  const std::string& line() const { return commands_->recorded(); }
  // Writes the line into the object's annotations, if that is wanted.
  void record(json::value& object) const;
  // A merge patch that does the same to an object at the server.
  json::value patch() const;

 private:
  const Commands* commands_ = nullptr;
  bool wanted_ = false;
};

}  // namespace coracle::ctl
