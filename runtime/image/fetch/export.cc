// SPDX-License-Identifier: Apache-2.0
// See export.h.
#include "runtime/image/fetch/export.h"

#include <map>

#include "runtime/image/fetch/layer_tar.h"
#include "runtime/image/manifest.h"
#include "runtime/image/oci_archive.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

Result<ArchiveLayer> measure(const Content& content, const Digest& chain) {
  auto write = [&content, chain](const Sink& to) -> Result<void> {
    Fd layer = TRY(content.open_layer(chain));
    return write_layer(layer, to);
  };
  Sha256 sum;
  TRY(write([&](std::string_view bytes) -> Result<void> {
    sum.update(bytes);
    return {};
  }));
  return ArchiveLayer{sum.digest(), sum.size(), write};
}

// The configuration unchanged if it has these layers; otherwise with the digests replaced.
Result<std::string> configuration_with(std::string text, const std::vector<Digest>& named, const std::vector<Digest>& layers) {
  if (layers == named) return text;
  json::value configuration = TRY(parse_json(text));
  json::array ids;
  for (const Digest& each : layers) ids.push_back(json::string(each.text()));
  configuration.as_object()["rootfs"] = json::object{{"type", "layers"}, {"diff_ids", std::move(ids)}};
  return to_text(configuration);
}

}  // namespace

Result<void> export_images(const std::vector<Record>& images, const Content& content, const Fd& archive) {
  std::vector<ArchiveImage> out;
  std::vector<ArchiveLayer> layers;
  std::map<Digest, size_t> known;  // by chain id: images share layers
  for (const Record& image : images) {
    std::string text = TRY(content.read_config(image.id));
    const Configuration configuration = TRY(parse_configuration(text));
    ArchiveImage entry;
    entry.platform = configuration.platform;
    entry.names = image.references;
    std::vector<Digest> ids;
    for (const Digest& chain : chain_ids(configuration.diff_ids)) {
      auto found = known.find(chain);
      if (found == known.end()) {
        ArchiveLayer layer = TRY(measure(content, chain));
        found = known.emplace(chain, layers.size()).first;
        layers.push_back(std::move(layer));
      }
      entry.layers.push_back(found->second);
      ids.push_back(layers[found->second].digest);
    }
    entry.configuration = TRY(configuration_with(std::move(text), configuration.diff_ids, ids));
    out.push_back(std::move(entry));
  }
  return write_oci_archive(out, layers, [&](std::string_view bytes) { return sys::write_all(archive, bytes); });
}

}  // namespace coracle::image
