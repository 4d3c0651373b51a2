// SPDX-License-Identifier: Apache-2.0
// See watch.h.
#include "runtime/cgroup/watch.h"

#include <sys/inotify.h>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::cgroup {
namespace {

uint64_t number_in(std::string_view text, std::string_view key) {  // "key value" lines
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ' ')
      return parse_number<uint64_t>(trim(line.substr(key.size() + 1))).value_or(0);
  return 0;
}

}  // namespace

Result<Watch> Watch::open(const std::string& path) {
  Watch out;
  out.directory_ = TRY(sys::open_directory(path));
  out.inotify_ = TRY(sys::make_inotify());
  TRY(sys::watch_path(out.inotify_, path + "/cgroup.events", IN_MODIFY));
  auto memory = sys::watch_path(out.inotify_, path + "/memory.events", IN_MODIFY);
  if (!memory && memory.error().code() != Code::not_found) return memory.take_error();  // does not exist without the controller
  // The parent's directory reports the removal; the files themselves send no event.
  TRY(sys::watch_path(out.inotify_, path + "/..", IN_DELETE | IN_ONLYDIR));
  TRY(out.now());
  return out;
}

Result<CgroupEvent> Watch::now() {
  sys::drain_inotify(inotify_, [](int, uint32_t, std::string_view) {});  // first: later events signal again
  auto events = sys::read_file_at(directory_, "cgroup.events");
  if (!events && events.error().code() != Code::not_found) return events.take_error();
  if (!events) {
    last_.gone = true;
    last_.populated = false;
    return last_;
  }
  last_.populated = number_in(*events, "populated");
  last_.frozen = number_in(*events, "frozen");
  if (auto memory = sys::read_file_at(directory_, "memory.events")) {
    last_.ooms = number_in(*memory, "oom");
    last_.oom_kills = number_in(*memory, "oom_kill");
  }
  return last_;
}

Result<std::optional<CgroupEvent>> Watch::next(const CgroupEvent& seen, std::optional<std::chrono::milliseconds> timeout) {
  auto start = std::chrono::steady_clock::now();
  while (true) {
    CgroupEvent found = TRY(now());
    if (found != seen) return std::optional(found);
    std::optional<std::chrono::milliseconds> left;
    if (timeout) {
      left = *timeout - std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - start);
      if (left->count() <= 0) return std::optional<CgroupEvent>();
    }
    TRY(sys::wait_readable(inotify_, left));
  }
}

}  // namespace coracle::cgroup
