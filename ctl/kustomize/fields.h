// SPDX-License-Identifier: Apache-2.0
// FieldSpec: a field of certain types that a transformer changes ("spec/template/metadata/labels" of a Deployment), and the
// default ones of every transformer. Pure. Source: kustomize's fieldspec and builtinpluginconsts.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/kustomize/id.h"

namespace coracle::kustomize {

constexpr size_t kFieldSpecsMax = 20'000;  // of one configuration

struct FieldSpec {
  Gvk gvk;           // empty fields match everything
  std::string path;  // separated by /, which \ escapes; lists are entered without being named
  bool create = false;
};
using FieldSpecs = std::vector<FieldSpec>;

// A field that holds the name of another object.
struct NameReference {
  Gvk target;
  FieldSpecs referrers;
};

struct TransformerConfig {
  FieldSpecs name_prefix, name_suffix, ns, common_labels, labels, template_labels, common_annotations, var_reference, images,
      replicas;
  std::vector<NameReference> name_reference;
  bool has_default = false, only_default = false;  // it has all of default_config(); it has nothing else

  bool empty() const { return name_prefix.empty() && var_reference.empty() && name_reference.empty() && !has_default; }
  // Errors: conflict if a field is to be created in one configuration and not in the other.
  Result<void> merge(const TransformerConfig& other);
  void sort();
};

const TransformerConfig& default_config();

// Adds what is not there. Errors: conflict, as above.
Result<void> merge_specs(FieldSpecs& specs, const FieldSpecs& more);

// What set_fields() creates where a path that may be created ends.
struct Creation {
  bool creates = false;
  Node::Kind kind = Node::Kind::scalar;
  Tag tag = Tag::none;
};

// Calls `set` for each field of the object that the spec leads to. Errors: invalid, with the path; those of `set`.
Result<void> set_fields(Node& object, const FieldSpec& spec, const Creation& creation,
                        const std::function<Result<void>(Node&)>& set);

}  // namespace coracle::kustomize
