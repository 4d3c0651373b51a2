// SPDX-License-Identifier: Apache-2.0
// The transformers that change fields: namespace, name prefix and suffix, labels, annotations, replicas, images, and values put
// into paths. Pure. Source: kustomize's builtins and filters.
#pragma once

#include "ctl/kustomize/settings.h"

namespace coracle::kustomize {

enum class Subjects : uint8_t { named_default, service_accounts, none };  // of a role binding that get the namespace

struct NamespaceArgs {
  std::string ns;
  FieldSpecs fields;
  bool unset_only = false;
  Subjects subjects = Subjects::named_default;
};

// Errors: conflict if two objects become the same; invalid for a field that is no text.
Result<void> set_namespace(Resources& resources, const NamespaceArgs& args);
Result<void> add_prefix(Resources& resources, const std::string& prefix, const FieldSpecs& fields);
Result<void> add_suffix(Resources& resources, const std::string& suffix, const FieldSpecs& fields);
// Labels or annotations.
Result<void> add_entries(Resources& resources, const Texts& entries, const FieldSpecs& fields);
// Errors: not_found if no object has the name and a type of the fields.
Result<void> set_replicas(Resources& resources, const ReplicaArgs& args, const FieldSpecs& fields);
Result<void> set_images(Resources& resources, const ImageArgs& args, const FieldSpecs& fields);
Result<void> add_values(Resources& resources, const std::string& value, const std::vector<PluginConfig::ValueTarget>& targets);
// Errors: invalid for an unknown order.
Result<void> sort_objects(Resources& resources, const SortArgs& args);

}  // namespace coracle::kustomize
