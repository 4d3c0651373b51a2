// SPDX-License-Identifier: Apache-2.0
// PulledRecord: by which right an image came to this machine, so that nobody uses it by its mere presence whom its registry
// would not give it. One record for each image id, one entry in it for each repository that it came from, bounded. Of
// credentials it has a hash and the caller's word for where they are from. Pure.
// Source: KEP-2535; kubelet's ImagePulledRecord.
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

constexpr size_t kPulledRepositoriesMax = 32;  // of one image, beside those that it was imported under
constexpr size_t kPulledCredentialsMax = 64;   // of one repository; the oldest goes
constexpr size_t kPulledRecordMax = 4 << 20;   // bytes of the file

struct PulledWith {
  std::string source, registry;  // as in runtime::Credentials
  std::string hash;              // of user name, password and identity token
  bool operator==(const PulledWith&) const = default;
};

struct PulledFrom {
  bool imported = false;                // the machine's administrator brought it: for everybody
  bool anonymous = false;               // the registry gave it without credentials: for everybody
  std::vector<PulledWith> credentials;  // that the registry took, the newest last
  bool operator==(const PulledFrom&) const = default;
};

struct PulledRecord {
  std::map<std::string, PulledFrom> repositories;  // "docker.io/library/nginx"
  // Something was noted once: a name without an entry is not a preloaded image's. Where nothing can be read any more, only
  // registries can tell.
  bool noted = false;

  json::object to_json() const;
  static Result<PulledRecord> from_json(const json::value& from);
  bool operator==(const PulledRecord&) const = default;
};

PulledWith pulled_with(const runtime::Credentials& credentials);

// What the record says of somebody with these credentials. `repository` "": of the image under any name. `learned`, where
// set on return, is to be noted for the repository: credentials that are an earlier pull's only in part.
runtime::ImageAccess find_access(const PulledRecord& record, const std::string& repository,
                                 const std::vector<runtime::Credentials>& credentials, std::optional<PulledWith>& learned);

void note_import(PulledRecord& record, const std::string& repository);
// A pull from the repository. Null: the registry asked for no credentials.
void note_pull(PulledRecord& record, const std::string& repository, const PulledWith* with);

}  // namespace coracle::image
