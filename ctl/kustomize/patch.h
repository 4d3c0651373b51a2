// SPDX-License-Identifier: Apache-2.0
// Patches of objects: strategic merge patches, and JSON patches (RFC 6902). Source: kustomize's PatchTransformer,
// PatchStrategicMergeTransformer and PatchJson6902Transformer.
#pragma once

#include <memory>

#include "ctl/kustomize/loader.h"
#include "ctl/kustomize/schema.h"
#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

// A patch with its content. Either kind of content, or none for an empty file.
struct LoadedPatch {
  std::vector<ResourcePtr> merges;
  std::optional<json::value> operations;
  std::optional<Selector> target;
  std::string shown;  // for errors: the path, or the beginning of the text
};

// Errors: invalid for content that is neither kind of patch; those of Loader.
Result<LoadedPatch> load_patch(const Loader& loader, const PatchArgs& args);
// Each text is a path or the patch itself. Errors: as above.
Result<LoadedPatch> load_merges(const Loader& loader, const std::vector<std::string>& paths_or_texts);
Result<LoadedPatch> load_operations(const Loader& loader, const PatchArgs& args);

// Errors: not_found if a patch without a target matches no object; invalid, with the object and the path.
Result<void> apply_patch(Resources& resources, const LoadedPatch& patch, const OpenApi& schemas);

}  // namespace coracle::kustomize
