// SPDX-License-Identifier: Apache-2.0
// See unpacker.h.
#include "runtime/image/fetch/unpacker.h"

namespace coracle::image {
namespace {

Result<void> check_compressed(const HashingSource& compressed, const Descriptor& descriptor) {
  if (compressed.size() == descriptor.size && compressed.digest() == descriptor.digest) return {};
  return Error(Code::invalid, "the layer is not what its digest says: " + compressed.digest().text() + " instead of " +
                                  descriptor.digest.text());
}

Result<void> check_unpacked(const HashingSource& tar, const Digest& diff_id) {
  if (tar.digest() == diff_id) return {};
  return Error(Code::invalid, "the unpacked layer is not what the image configuration says: " + tar.digest().text() +
                                  " instead of " + diff_id.text());
}

}  // namespace

Result<std::vector<bool>> LocalUnpacker::begin(const std::vector<Digest>& diff_ids) {
  diff_ids_ = diff_ids;
  chain_ = chain_ids(diff_ids);
  std::vector<bool> present;
  for (const Digest& chain : chain_) present.push_back(content_.has_layer(chain));
  return present;
}

Result<void> LocalUnpacker::stage(size_t layer, Source& stream, const Descriptor* descriptor) {
  if (layer >= diff_ids_.size()) return Error(Code::internal, "the image has no layer " + std::to_string(layer));
  Staging staging = TRY(content_.stage());
  HashingSource compressed(stream, descriptor ? descriptor->size : kLayerSizeMax);
  DecompressingSource plain(compressed);
  HashingSource tar(plain);
  Unpacked unpacked = TRY(unpack_layer(tar, staging.diff(), layer == 0));
  TRY(compressed.drain());
  if (descriptor) TRY(check_compressed(compressed, *descriptor));
  TRY(check_unpacked(tar, diff_ids_[layer]));
  staged_.with([&](auto& staged) {
    staged.erase(layer);
    staged.emplace(layer, StagedLayer{std::move(staging), std::move(unpacked)});
  });
  return {};
}

Result<void> LocalUnpacker::keep(size_t layer) {
  auto node = staged_.with([&](auto& staged) { return staged.extract(layer); });
  if (node.empty()) return Error(Code::internal, "layer " + std::to_string(layer) + " was not unpacked");
  StagedLayer& ready = node.mapped();
  if (!ready.unpacked.implicit_dirs.empty() && layer > 0) {
    std::vector<Fd> opened;
    std::vector<const Fd*> below;  // topmost first
    for (size_t i = layer; i-- > 0;) {
      Fd lower = TRY(content_.open_layer(chain_[i]));
      opened.push_back(std::move(lower));
    }
    for (const Fd& lower : opened) below.push_back(&lower);
    TRY(inherit_directories(ready.staging.diff(), ready.unpacked.implicit_dirs, below));
  }
  return content_.keep_layer(std::move(ready.staging), chain_[layer], ready.unpacked.size);
}

Result<void> check_layer(Source& stream, const Descriptor* descriptor, const Digest& diff_id) {
  HashingSource compressed(stream, descriptor ? descriptor->size : kLayerSizeMax);
  if (descriptor) {
    TRY(compressed.drain());
    return check_compressed(compressed, *descriptor);
  }
  DecompressingSource plain(compressed);
  HashingSource tar(plain);
  TRY(tar.drain());
  return check_unpacked(tar, diff_id);
}

}  // namespace coracle::image
