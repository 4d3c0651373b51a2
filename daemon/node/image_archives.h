// SPDX-License-Identifier: Apache-2.0
// ImageArchives: a directory from which archives of images are imported, for machines without a network: at the start of the
// daemon, and whenever a file comes or changes.
//
//   directory ──inotify──▶ look: a file that has stopped changing ──▶ ImageStore::import ──▶ noted by name, size and time
//
// Each file is imported once; what was noted holds across restarts, so that large archives are not read again, unless one of its
// images is not here any more when the daemon starts: the store may have lost it. A file that cannot be imported is told in the
// log, and tried again when it changes or the daemon starts, and every few minutes if that may pass, as a full disk does. Source:
// k3s, agent/images (semantics).
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::node {

class ImageArchives {
 public:
  static constexpr std::chrono::seconds kSettled{2};  // a file that has not changed for so long is whole
  static constexpr std::chrono::seconds kRetry{300};  // after a failure that may pass

  // `record`: the file that notes what was imported. `changed` is called after an import.
  ImageArchives(std::string directory, std::string record, runtime::ImageStore& images, const Clock& clock,
                std::function<void()> changed);
  // Looks whenever something changes, until stopped. Creates the directory if it is missing, also later, and goes on with the one
  // of another disk when that is mounted there. Blocks.
  void run(std::stop_token stop);
  // Imports the files that have settled. Returns when to look again for those that have not; nullopt: when something changes.
  // Blocks for imports.
  std::optional<std::chrono::milliseconds> look(std::stop_token stop = {});

 private:
  struct Seen {
    std::string mark;  // size and time of the file
    SteadyTime since;
    bool is_done = false;
  };
  struct Imported {
    std::string mark;
    std::vector<std::string> images;  // their names
  };
  void read_record();
  void write_record();
  bool is_here(const std::string& name, const Seen& seen) const;
  // False: it may be possible later.
  bool import(const std::string& name, std::stop_token stop);

  const std::string directory_, record_;
  runtime::ImageStore& images_;
  const Clock& clock_;
  const std::function<void()> changed_;
  std::map<std::string, Imported> imported_;  // by name of the file
  std::map<std::string, Seen> seen_;          // the files that are there
};

}  // namespace coracle::node
