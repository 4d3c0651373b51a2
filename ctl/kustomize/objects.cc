// SPDX-License-Identifier: Apache-2.0
// See objects.h.
#include "ctl/kustomize/objects.h"

#include <deque>

#include "ctl/kustomize/read.h"
#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

Result<void> check_object(const Node& object) {
  if (!object.is_map()) return Error(Code::invalid, std::string("an object must be a map, not ") + kind_name(object.kind));
  const Node* kind = object.find("kind");
  if (!kind || kind->value().empty()) return Error(Code::invalid, "kind is missing");
  if (kind->value().ends_with("List")) return {};
  const Node* metadata = object.find("metadata");
  const Node* name = metadata ? metadata->find("name") : nullptr;
  if (!name || name->value().empty()) return Error(Code::invalid, "metadata.name is missing (kind " + kind->text + ")");
  return {};
}

}  // namespace

Result<std::vector<ResourcePtr>> read_objects(std::string_view text) {
  std::vector<size_t> lines;
  std::vector<Node> documents = TRY(read_documents(text, &lines));
  std::deque<std::pair<Node, size_t>> waiting;
  for (size_t i = 0; i < documents.size(); ++i) waiting.emplace_back(std::move(documents[i]), lines[i]);
  std::vector<ResourcePtr> objects;
  while (!waiting.empty()) {
    auto [object, line] = std::move(waiting.front());
    waiting.pop_front();
    if (object.empty()) continue;
    TRY(check_object(object).wrap("line " + std::to_string(line)));
    Node* items = object.find("kind")->value().ends_with("List") ? object.find("items") : nullptr;
    if (!items) {
      objects.push_back(std::make_shared<Resource>(std::move(object)));
      continue;
    }
    if (items->is_null()) continue;
    if (!items->is_list()) return Error(Code::invalid, "line " + std::to_string(line) + ": items must be a list");
    for (Node& item : items->items) waiting.emplace_back(std::move(item), line);
  }
  return objects;
}

}  // namespace coracle::kustomize
