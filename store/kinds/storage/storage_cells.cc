// SPDX-License-Identifier: Apache-2.0
// Cells of volumes and claims.
#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/kinds/storage/storage_kinds.h"
#include "store/schema/views.h"

namespace coracle::schema {
namespace {

std::string modes_of(view::Range<std::string_view> modes) {
  std::vector<std::string> shown;
  for (auto [mode, brief] : {std::pair{"ReadWriteOnce", "RWO"}, std::pair{"ReadOnlyMany", "ROX"},
                             std::pair{"ReadWriteMany", "RWX"}, std::pair{"ReadWriteOncePod", "RWOP"}}) {
    if (std::find(modes.begin(), modes.end(), std::string_view(mode)) != modes.end()) shown.emplace_back(brief);
  }
  return join(shown, ",");
}

json::value phase(const CellInput& in) {
  bool ending = !metadata_of(in.object).deletion_timestamp().empty();
  return json::value(ending ? "Terminating" : view::PersistentVolume(in.object).status().phase());  // or of a claim
}

json::value storage_class(const CellInput& in) {
  const json::value* old = metadata_of(in.object).annotations().if_contains("volume.beta.kubernetes.io/storage-class");
  return old && old->is_string() ? *old : json::value(view::PersistentVolumeClaim(in.object).spec().storage_class_name());
}

json::value volume_capacity(const CellInput& in) {
  return json::value(amount_or_zero(view::PersistentVolume(in.object).spec().capacity(), "storage"));
}

json::value volume_modes(const CellInput& in) {
  return json::value(modes_of(view::PersistentVolume(in.object).spec().access_modes()));
}

json::value volume_claim(const CellInput& in) {
  view::ObjectReference claim = view::PersistentVolume(in.object).spec().claim_ref();
  return json::value(claim ? std::string(claim.namespace_()) + "/" + std::string(claim.name()) : std::string());
}

json::value claim_capacity(const CellInput& in) {
  view::PersistentVolumeClaim claim(in.object);
  return json::value(claim.spec().volume_name().empty() ? std::string() : amount_or_zero(claim.status().capacity(), "storage"));
}

json::value claim_modes(const CellInput& in) {
  view::PersistentVolumeClaim claim(in.object);
  return json::value(claim.spec().volume_name().empty() ? std::string() : modes_of(claim.status().access_modes()));
}

constexpr NamedCellRule kStorageCells[] = {{"phase", phase},
                                           {"storage_class", storage_class},
                                           {"volume.capacity", volume_capacity},
                                           {"volume.modes", volume_modes},
                                           {"volume.claim", volume_claim},
                                           {"claim.capacity", claim_capacity},
                                           {"claim.modes", claim_modes}};

}  // namespace

std::span<const NamedCellRule> storage_cells() { return kStorageCells; }

}  // namespace coracle::schema
