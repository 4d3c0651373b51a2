// SPDX-License-Identifier: Apache-2.0
// See manifest.h. The type of a document follows from its fields, which must not be ambiguous.
#include "runtime/image/manifest.h"

#include <sys/utsname.h>

#include <algorithm>
#include <set>

#include "runtime/base/json.h"
#include "runtime/base/text.h"

namespace coracle::image {
namespace {

constexpr std::string_view kOciIndex = "application/vnd.oci.image.index.v1+json";
constexpr std::string_view kOciManifest = "application/vnd.oci.image.manifest.v1+json";
constexpr std::string_view kDockerList = "application/vnd.docker.distribution.manifest.list.v2+json";
constexpr std::string_view kDockerManifest = "application/vnd.docker.distribution.manifest.v2+json";
constexpr std::string_view kDockerSchema1 = "application/vnd.docker.distribution.manifest.v1";

bool is_index(std::string_view type) { return type == kOciIndex || type == kDockerList; }
bool is_manifest(std::string_view type) { return type == kOciManifest || type == kDockerManifest; }

bool is_layer(std::string_view type) {
  static const std::set<std::string_view> known = {
      "application/vnd.oci.image.layer.v1.tar",
      "application/vnd.oci.image.layer.v1.tar+gzip",
      "application/vnd.oci.image.layer.v1.tar+zstd",
      "application/vnd.oci.image.layer.nondistributable.v1.tar",
      "application/vnd.oci.image.layer.nondistributable.v1.tar+gzip",
      "application/vnd.oci.image.layer.nondistributable.v1.tar+zstd",
      "application/vnd.docker.image.rootfs.diff.tar",
      "application/vnd.docker.image.rootfs.diff.tar.gzip",
      "application/vnd.docker.image.rootfs.diff.tar.zstd",
      "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip",
  };
  return known.contains(type);
}

bool is_config(std::string_view type) {
  return type == "application/vnd.oci.image.config.v1+json" || type == "application/vnd.docker.container.image.v1+json" ||
         type == "application/octet-stream";  // sent by old registries
}

// An optional member that must be a string.
Result<std::string> text_of(const json::value& from, std::string_view key) {
  const json::value* found = find_keys(from, {key});
  if (!found || found->is_null()) return std::string();
  if (!found->is_string()) return Error(Code::invalid, std::string(key) + " is no string");
  return std::string(found->get_string());
}

// Architecture names that tools outside the Go world write. Source: containerd's platforms.Normalize.
Platform normal(Platform platform) {
  static const std::pair<std::string_view, Platform> others[] = {
      {"x86_64", {"amd64", "", ""}},  {"x86-64", {"amd64", "", ""}}, {"i386", {"386", "", ""}},
      {"aarch64", {"arm64", "", ""}}, {"armhf", {"arm", "", "v7"}},  {"armel", {"arm", "", "v6"}},
  };
  for (const auto& [name, meant] : others) {
    if (platform.architecture != name) continue;
    platform.architecture = meant.architecture;
    if (!meant.variant.empty()) platform.variant = meant.variant;
  }
  if (platform.architecture == "arm" && platform.variant.size() == 1) platform.variant = "v" + platform.variant;  // "7"
  return platform;
}

Result<Platform> parse_platform(const json::value& from) {
  Platform platform;
  platform.architecture = TRY(text_of(from, "architecture"));
  platform.os = TRY(text_of(from, "os"));
  platform.variant = TRY(text_of(from, "variant"));
  return normal(std::move(platform));
}

Result<Descriptor> parse_descriptor(const json::value& from, int64_t size_max) {
  if (!from.is_object()) return Error(Code::invalid, "a descriptor is no object");
  std::string digest_text = TRY(text_of(from, "digest"));
  Digest digest = TRY(Digest::parse(digest_text));
  std::string media_type = TRY(text_of(from, "mediaType"));
  const json::value* size = find_keys(from, {"size"});
  if (!size || !size->is_int64() || size->get_int64() < 0) return Error(Code::invalid, "a descriptor has no good size");
  if (size->get_int64() > size_max)
    return Error(Code::too_large, digest.text() + " is larger than " + std::to_string(size_max) + " bytes");
  Descriptor out{std::move(media_type), std::move(digest), size->get_int64(), {}, {}};
  if (const json::value* platform = find_keys(from, {"platform"}); platform && platform->is_object())
    out.platform = TRY(parse_platform(*platform));
  for (std::string_view key : {"io.containerd.image.name", "org.opencontainers.image.ref.name"}) {
    const json::value* name = find_keys(from, {"annotations", key});
    if (out.name.empty() && name && name->is_string()) out.name = std::string(name->get_string());
  }
  return out;
}

// The array under `key`, each element parsed as a descriptor.
Result<std::vector<Descriptor>> parse_descriptors(const json::value& from, std::string_view key, size_t count_max,
                                                  int64_t size_max) {
  const json::value* list = find_keys(from, {key});
  if (!list || !list->is_array()) return Error(Code::invalid, std::string(key) + " is no list");
  if (list->get_array().size() > count_max)
    return Error(Code::too_large, "more than " + std::to_string(count_max) + " " + std::string(key));
  std::vector<Descriptor> out;
  for (const json::value& element : list->get_array()) {
    Descriptor descriptor = TRY(parse_descriptor(element, size_max).wrap(key));
    out.push_back(std::move(descriptor));
  }
  return out;
}

Result<Manifest> parse_image_manifest(const json::value& document) {
  const json::value* config = find_keys(document, {"config"});
  if (!config) return Error(Code::invalid, "the manifest has no config");
  Descriptor checked = TRY(parse_descriptor(*config, kManifestMax).wrap("config"));
  if (!is_config(checked.media_type))
    return Error(Code::unsupported, "no container image: its config is " + coracle::quoted(checked.media_type));
  Manifest manifest{std::move(checked), {}};
  manifest.layers = TRY(parse_descriptors(document, "layers", kLayersMax, kLayerSizeMax));
  for (const Descriptor& layer : manifest.layers)
    if (!is_layer(layer.media_type)) return Error(Code::unsupported, "layers of type " + coracle::quoted(layer.media_type));
  return manifest;
}

}  // namespace

Platform this_machine() {
  struct utsname name {};
  (void)::uname(&name);  // cannot fail with a valid buffer
  return platform_of(name.machine, sizeof(void*));
}

Platform platform_of(const std::string& machine, size_t pointer_bytes) {
  if (pointer_bytes == 4 && (machine == "aarch64" || machine == "armv8l")) return {"arm", "linux", "v7"};
  static const std::pair<std::string_view, Platform> known[] = {
      {"x86_64", {"amd64", "linux", ""}},    {"aarch64", {"arm64", "linux", "v8"}}, {"armv7l", {"arm", "linux", "v7"}},
      {"armv6l", {"arm", "linux", "v6"}},    {"i686", {"386", "linux", ""}},        {"ppc64le", {"ppc64le", "linux", ""}},
      {"riscv64", {"riscv64", "linux", ""}}, {"s390x", {"s390x", "linux", ""}},
  };
  for (const auto& [uname, platform] : known)
    if (machine == uname) return platform;
  return {machine, "linux", ""};
}

std::string Platform::text() const {
  std::string out = (os.empty() ? "?" : os) + "/" + (architecture.empty() ? "?" : architecture);
  return variant.empty() ? out : out + "/" + variant;
}

bool runs_on(const Platform& made_for, const Platform& machine) {
  if (!made_for.os.empty() && made_for.os != machine.os) return false;
  if (made_for.architecture.empty()) return true;
  if (made_for.architecture == "386" && machine.architecture == "amd64") return true;
  if (made_for.architecture == "arm" && machine.architecture == "arm64") return true;  // most such processors support both
  if (made_for.architecture != machine.architecture) return false;
  // "v6" runs on a v7 machine, but not vice versa.
  bool both_say = made_for.variant.size() == 2 && machine.variant.size() == 2;
  return machine.architecture != "arm" || !both_say || made_for.variant <= machine.variant;
}

Result<ManifestOrIndex> parse_manifest(std::string_view text, std::string_view content_type) {
  if (text.size() > kManifestMax) return Error(Code::too_large, "the manifest is larger than 4 MiB");
  auto parsed = parse_json(text);
  if (!parsed) return parsed.take_error().as(Code::invalid).wrap("manifest");
  const json::value& document = *parsed;
  if (!document.is_object()) return Error(Code::invalid, "the manifest is no object");
  if (content_type.starts_with(kDockerSchema1) || get_int(document, "schemaVersion") == 1)
    return Error(Code::unsupported, "docker's old manifest format (schema 1) is not supported: push the image again");
  if (get_int(document, "schemaVersion") != 2) return Error(Code::invalid, "the manifest's schemaVersion is not 2");

  bool has_manifests = find_keys(document, {"manifests"}) != nullptr;
  bool has_layers = find_keys(document, {"layers"}) != nullptr || find_keys(document, {"config"}) != nullptr;
  if (has_manifests == has_layers)
    return Error(Code::invalid, has_layers ? "ambiguous manifest: it has both manifests and layers"
                                           : "the manifest has neither manifests nor layers");
  std::string own_type = TRY(text_of(document, "mediaType"));
  for (std::string_view type : {std::string_view(own_type), content_type}) {
    if ((has_manifests && is_manifest(type)) || (has_layers && is_index(type)))
      return Error(Code::invalid, "ambiguous manifest: it is called " + quoted(type) + " and is another thing");
  }
  ManifestOrIndex out;
  if (has_manifests) {
    out.index.emplace();
    out.index->manifests = TRY(parse_descriptors(document, "manifests", kIndexEntriesMax, kManifestMax));
  } else {
    out.manifest = TRY(parse_image_manifest(document));
  }
  return out;
}

Result<Descriptor> choose(const Index& index, const Platform& platform) {
  const Descriptor* best = nullptr;
  int best_rank = -1;
  std::string there;
  for (const Descriptor& entry : index.manifests) {
    const Platform& its = entry.platform;
    there += (there.empty() ? "" : ", ") + its.text();
    bool unnamed = its.architecture.empty() && its.os.empty();
    if (!unnamed && (its.os != platform.os || its.architecture != platform.architecture)) continue;
    // "v6" runs on a v7 machine, but not vice versa; an unspecified variant ranks below any that fits.
    int rank = unnamed ? 0 : its.variant == platform.variant ? 100 : its.variant.empty() ? 1 : -1;
    if (rank < 0 && its.variant < platform.variant && its.variant.size() == 2) rank = its.variant[1] - '0';
    if (rank > best_rank) best = &entry, best_rank = rank;
  }
  if (best) return *best;
  return Error(Code::not_found, "no image for " + Platform{platform.architecture, platform.os, ""}.text() + "; there is " +
                                    (there.empty() ? "none at all" : there.substr(0, 500)));
}

Result<Configuration> parse_configuration(std::string_view text) {
  if (text.size() > kManifestMax) return Error(Code::too_large, "the image configuration is larger than 4 MiB");
  auto parsed = parse_json(text);
  if (!parsed) return parsed.take_error().as(Code::invalid).wrap("image configuration");
  const json::value& document = *parsed;
  if (!document.is_object()) return Error(Code::invalid, "the image configuration is no object");
  Configuration out;
  out.platform = TRY(parse_platform(document));
  if (get_string(document, "rootfs.type") != "layers")
    return Error(Code::invalid, "the image configuration has no rootfs.diff_ids");
  const json::array& ids = get_array(document, "rootfs.diff_ids");
  if (ids.size() > kLayersMax) return Error(Code::too_large, "more than " + std::to_string(kLayersMax) + " layers");
  for (const json::value& id : ids) {
    if (!id.is_string()) return Error(Code::invalid, "rootfs.diff_ids holds what is no string");
    Digest digest = TRY(Digest::parse(std::string_view(id.get_string())).wrap("rootfs.diff_ids"));
    out.diff_ids.push_back(std::move(digest));
  }
  if (auto created = parse_time(get_string(document, "created"))) out.created = *created;
  out.config.entrypoint = get_strings(document, "config.Entrypoint");
  out.config.cmd = get_strings(document, "config.Cmd");
  out.config.env = get_strings(document, "config.Env");
  out.config.working_dir = get_string(document, "config.WorkingDir");
  out.config.user = get_string(document, "config.User");
  out.config.stop_signal = get_string(document, "config.StopSignal");
  for (const auto& [path, unused] : get_object(document, "config.Volumes")) out.config.volumes.emplace_back(path);
  return out;
}

std::vector<Digest> chain_ids(const std::vector<Digest>& diff_ids) {
  std::vector<Digest> out;
  for (const Digest& diff : diff_ids) out.push_back(out.empty() ? diff : digest_of(out.back().text() + " " + diff.text()));
  return out;
}

}  // namespace coracle::image
