// SPDX-License-Identifier: Apache-2.0
// Reads the objects of a text: all documents, with Lists opened. Pure. Source: kustomize's resource factory.
#pragma once

#include "ctl/kustomize/resource.h"

namespace coracle::kustomize {

// Errors: invalid for a document without kind or metadata.name, with its line; those of read_documents().
Result<std::vector<ResourcePtr>> read_objects(std::string_view text);

}  // namespace coracle::kustomize
