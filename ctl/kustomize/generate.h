// SPDX-License-Identifier: Apache-2.0
// ConfigMaps and Secrets from literals, files and files of environment variables, and the hash of their content that becomes part
// of their names. Source: kustomize's generators, kv and hasher.
#pragma once

#include "ctl/kustomize/loader.h"
#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

// Errors: invalid, with the source; those of Loader.
Result<ResourcePtr> generate_config_map(const Loader& loader, const GeneratorArgs& args);
Result<ResourcePtr> generate_secret(const Loader& loader, const GeneratorArgs& args);

// The options of a generator: its own, and those for all generators.
std::optional<GeneratorOptions> merged_options(std::optional<GeneratorOptions> own, const std::optional<GeneratorOptions>& all);

// Ten letters and digits that follow from the content. Errors: those of to_json.
Result<std::string> content_hash(const Node& object);

}  // namespace coracle::kustomize
