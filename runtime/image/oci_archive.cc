// SPDX-License-Identifier: Apache-2.0
// See oci_archive.h.
#include "runtime/image/oci_archive.h"

#include <set>

#include "runtime/base/json.h"

namespace coracle::image {
namespace {

constexpr const char* kManifestType = "application/vnd.oci.image.manifest.v1+json";

json::object descriptor(std::string_view media_type, const Digest& digest, int64_t size) {
  return {{"mediaType", media_type}, {"digest", digest.text()}, {"size", size}};
}

std::string blob_path(const Digest& digest) { return "blobs/sha256/" + digest.hex(); }

std::string manifest_of(const ArchiveImage& image, const std::vector<ArchiveLayer>& layers) {
  json::array list;
  for (size_t at : image.layers)
    list.push_back(descriptor("application/vnd.oci.image.layer.v1.tar", layers[at].digest, layers[at].size));
  return to_text(json::object{{"schemaVersion", 2},
                              {"mediaType", kManifestType},
                              {"config", descriptor("application/vnd.oci.image.config.v1+json", digest_of(image.configuration),
                                                    int64_t(image.configuration.size()))},
                              {"layers", std::move(list)}});
}

// One entry per name, as containerd and docker write them.
void add_to_index(json::array& index, const ArchiveImage& image, std::string_view manifest) {
  json::object entry = descriptor(kManifestType, digest_of(manifest), int64_t(manifest.size()));
  json::object platform{{"architecture", image.platform.architecture}, {"os", image.platform.os}};
  if (!image.platform.variant.empty()) platform["variant"] = image.platform.variant;
  entry["platform"] = std::move(platform);
  if (image.names.empty()) index.push_back(entry);
  for (const std::string& name : image.names) {
    entry["annotations"] = json::object{{"org.opencontainers.image.ref.name", name}, {"io.containerd.image.name", name}};
    index.push_back(entry);
  }
}

json::object as_docker_says_it(const ArchiveImage& image, const std::vector<ArchiveLayer>& layers) {
  json::array list;
  for (size_t at : image.layers) list.push_back(json::string(blob_path(layers[at].digest)));
  return {{"Config", blob_path(digest_of(image.configuration))},
          {"RepoTags", json::array(image.names.begin(), image.names.end())},
          {"Layers", std::move(list)}};
}

Result<void> add_layer(TarWriter& tar, const ArchiveLayer& layer) {
  ArchiveEntry entry = plain_file(blob_path(layer.digest), layer.size);
  TRY(tar.add(entry.get()));
  Sha256 sum;
  TRY(layer.write([&](std::string_view bytes) {
    sum.update(bytes);
    return tar.data(bytes);
  }));
  if (sum.size() != layer.size || sum.digest() != layer.digest)
    return Error(Code::conflict, "layer " + layer.digest.text() + " has changed while it was read");
  return {};
}

}  // namespace

Result<void> write_oci_archive(const std::vector<ArchiveImage>& images, const std::vector<ArchiveLayer>& layers, const Sink& to) {
  json::array index, docker;
  std::vector<std::string> manifests;
  for (const ArchiveImage& image : images) {
    manifests.push_back(manifest_of(image, layers));
    add_to_index(index, image, manifests.back());
    docker.push_back(as_docker_says_it(image, layers));
  }
  TarWriter tar(to);
  TRY(tar.add_text("oci-layout", R"({"imageLayoutVersion":"1.0.0"})"));
  TRY(tar.add_text("index.json", to_text(json::object{{"schemaVersion", 2},
                                                      {"mediaType", "application/vnd.oci.image.index.v1+json"},
                                                      {"manifests", std::move(index)}})));
  TRY(tar.add_text("manifest.json", to_text(docker)));
  std::set<Digest> there;
  for (size_t i = 0; i < images.size(); ++i)
    for (const std::string& text : {manifests[i], images[i].configuration})
      if (there.insert(digest_of(text)).second) TRY(tar.add_text(blob_path(digest_of(text)), text));
  for (const ArchiveLayer& layer : layers)
    if (there.insert(layer.digest).second) TRY(add_layer(tar, layer));
  return tar.end();
}

}  // namespace coracle::image
