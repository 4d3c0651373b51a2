// SPDX-License-Identifier: Apache-2.0
// See deletion.h.
#include "ctl/deletion.h"

#include "ctl/wait.h"
#include "runtime/base/text.h"

namespace coracle::ctl {

void DeletionFlags::add_to(Command command) {
  command.add_option("--cascade", cascade, "background, foreground or orphan: what becomes of a deleted object's dependents")
      .optional_value("background");
  command.add_option("--grace-period", grace_period, "seconds that a deleted object gets to stop; -1: its own");
  command.add_option("--timeout", timeout, "how long to wait until a deleted object is gone; 0s: until it is").as_duration();
  command.add_flag("--force", force, "delete and create anew what cannot be changed");
  command.add_flag("--wait", wait, "wait until deleted objects are gone");
}

Result<std::string> propagation_of(const std::string& cascade) {
  if (cascade == "background") return std::string("Background");
  if (cascade == "foreground") return std::string("Foreground");
  if (cascade == "orphan") return std::string("Orphan");
  if (auto flag = parse_bool(cascade)) return std::string(*flag ? "Background" : "Orphan");
  return Error(Code::bad_request, "invalid cascade value (" + cascade + R"(). Must be "background", "foreground", or "orphan")");
}

Result<void> check_cascade(const std::string& cascade) {
  TRY(propagation_of(cascade));
  if (auto flag = parse_bool(cascade))
    tell("warning: --cascade=" + cascade +
         " is deprecated (boolean value) and can be replaced with --cascade=" + (*flag ? "background" : "orphan") + ".\n");
  return {};
}

Result<json::object> deletion_options_of(const Session& session, const DeletionFlags& flags) {
  json::object options = session.delete_options();
  if (flags.grace_period >= 0) options["gracePeriodSeconds"] = flags.grace_period;
  options["propagationPolicy"] = TRY(propagation_of(flags.cascade));
  return options;
}

Result<std::chrono::milliseconds> deletion_timeout_of(const DeletionFlags& flags, std::chrono::milliseconds otherwise) {
  auto timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  return timeout.count() == 0 ? otherwise : timeout;
}

}  // namespace coracle::ctl
