// SPDX-License-Identifier: Apache-2.0
// PulledRecord: the credentials with which an image was pulled, so that an image on the disk cannot be used by somebody to whom
// the registry would not give it. There is one record per image id, with one entry per repository, and its size is limited. It
// stores a hash of the credentials and the caller's name for their origin. Pure. Source: KEP-2535; kubelet's ImagePulledRecord.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "runtime/runtime.h"

namespace coracle::image {

constexpr size_t kPulledRepositoriesMax = 32;  // of one image, not counting those of imports
constexpr size_t kPulledCredentialsMax = 64;   // of one repository; the oldest is dropped
constexpr size_t kPulledRecordMax = 4 << 20;   // bytes of the file

struct PulledWith {
  std::string source, registry;  // as in runtime::Credentials
  std::string hash;              // of user name, password and identity token
  bool operator==(const PulledWith&) const = default;
};

struct PulledFrom {
  bool imported = false;                // imported by the machine's administrator: everybody may use it
  bool anonymous = false;               // the registry gave it without credentials: everybody may use it
  std::vector<PulledWith> credentials;  // those that the registry accepted, the newest last
  bool operator==(const PulledFrom&) const = default;
};

struct PulledRecord {
  std::map<std::string, PulledFrom> repositories;  // "docker.io/library/nginx"
  // A pull or import was recorded: then a name without an entry is not preloaded. Also true if the record cannot be read: then
  // only the registry can decide.
  bool noted = false;

  json::object to_json() const;
  static Result<PulledRecord> from_json(const json::value& from);
  bool operator==(const PulledRecord&) const = default;
};

PulledWith pulled_with(const runtime::Credentials& credentials);

// The access of somebody with these credentials. `repository` "": to the image under any name. If `learned` is set on return, the
// caller records it for the repository: credentials that match an earlier pull in part.
runtime::ImageAccess find_access(const PulledRecord& record, const std::string& repository,
                                 const std::vector<runtime::Credentials>& credentials, std::optional<PulledWith>& learned);

void note_import(PulledRecord& record, const std::string& repository);
// Records a pull from the repository. Null: the registry required no credentials.
void note_pull(PulledRecord& record, const std::string& repository, const PulledWith* with);

}  // namespace coracle::image
