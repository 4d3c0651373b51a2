// SPDX-License-Identifier: Apache-2.0
// See bundle.h.
#include "runtime/cli/bundle.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"

namespace coracle::cli {
namespace {

constexpr size_t kConfigBytesMax = 4 << 20;

bool has_namespace(const oci::Spec& spec, const std::string& type) {
  return std::any_of(spec.linux_.namespaces.begin(), spec.linux_.namespaces.end(),
                     [&](const oci::Namespace& ns) { return ns.type == type; });
}

}  // namespace

bool is_valid_id(const std::string& id) {
  constexpr const char* kAllowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+.-";
  return !id.empty() && id.size() <= 1024 && id != "." && id != ".." && id.find_first_not_of(kAllowed) == id.npos;
}

std::string sandbox_id(const std::string& id) {
  // Two FNV-1a sums from different starts: enough to keep names apart that nobody chooses to collide; the full name is
  // checked on every use.
  std::string out = "oci-";
  for (uint64_t sum : {14695981039346656037ull, 7809847782465536322ull}) {
    for (unsigned char c : id) sum = (sum ^ c) * 1099511628211ull;
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(sum >> shift) & 15];
  }
  return out;
}

Result<Bundle> load_bundle(const std::string& directory, const std::string& id) {
  std::string text = TRY(sys::read_file(directory + "/config.json", kConfigBytesMax));
  json::value config = TRY(parse_json(text).wrap("config.json"));
  Bundle out;
  oci::Spec& spec = out.container.spec;
  spec = TRY(oci::parse_spec(config).wrap("config.json"));
  const oci::Hooks& hooks = spec.hooks;
  for (const auto* list : {&hooks.prestart, &hooks.create_runtime, &hooks.create_container, &hooks.start_container,
                           &hooks.poststart, &hooks.poststop})
    if (!list->empty()) return Error(Code::unsupported, "config.json: hooks");
  if (!spec.root.path.starts_with("/")) spec.root.path = directory + "/" + spec.root.path;
  for (oci::Mount& mount : spec.mounts)
    if (mount.type == "bind" && !mount.source.empty() && mount.source[0] != '/')
      mount.source = directory + "/" + mount.source;
  runtime::SandboxSpec& sandbox = out.sandbox;
  sandbox.id = sandbox_id(id);
  sandbox.hostname = spec.hostname;
  // A namespace that is not named is the host's. One with a path is joined by the container itself.
  sandbox.host_network = !has_namespace(spec, "network");
  sandbox.host_ipc = !has_namespace(spec, "ipc");
  sandbox.host_pid = !has_namespace(spec, "pid");
  if (!spec.hostname.empty() && sandbox.host_network)
    return Error(Code::unsupported, "config.json: hostname without a network namespace");
  json::object metadata{{"id", id}, {"bundle", directory}, {"version", spec.version}};
  json::object annotations;
  for (const auto& [name, value] : spec.annotations) annotations[name] = value;
  metadata["annotations"] = std::move(annotations);
  sandbox.metadata = to_text(metadata);
  out.container.id = kContainer;
  return out;
}

}  // namespace coracle::cli
