// SPDX-License-Identifier: Apache-2.0
// Transformers and generators of a kustomization: those of its own fields, and those with a configuration of their own
// (`transformers:` and `generators:` name documents with apiVersion "builtin"). Others would be programs or containers, and are
// refused. Source: kustomize's plugin loader.
#pragma once

#include <functional>

#include "ctl/kustomize/loader.h"
#include "ctl/kustomize/schema.h"
#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

struct Transformer {
  std::function<Result<void>(Resources&)> run;
  std::shared_ptr<const Origin> origin;  // null: not recorded
};

struct PluginContext {
  const Loader& loader;
  const OpenApi& schemas;
};

// The transformers of the kustomization's fields, in kustomize's order. `origin`: for a kind of transformer, or null. Errors:
// invalid, with the field; those of loading patches.
Result<std::vector<Transformer>> own_transformers(const PluginContext& context, const Kustomization& kustomization,
                                                  const TransformerConfig& config,
                                                  const std::function<std::shared_ptr<const Origin>(const char*)>& origin);

// Errors: unsupported for one that is not built in.
Result<Transformer> make_transformer(const PluginContext& context, const Resource& configuration);
Result<ResourcePtr> run_generator(const PluginContext& context, const Resource& configuration);

// The fields that a file under `crds:` marks with x-kubernetes-annotation and the like. Errors: invalid.
Result<TransformerConfig> read_crd_config(std::string_view text);

}  // namespace coracle::kustomize
