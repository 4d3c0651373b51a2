// SPDX-License-Identifier: Apache-2.0
// See write.h.
#include "ctl/kustomize/write.h"

#include "store/object/yaml_emitter.h"

namespace coracle::kustomize {
namespace {

void put(YamlEmitter& emitter, const Node& node) {
  switch (node.kind) {
    case Node::Kind::map:
      emitter.begin_map(node.members.empty());
      for (const Member& member : node.members) {
        emitter.key(member.key);
        put(emitter, member.value);
      }
      emitter.end_map();
      break;
    case Node::Kind::list:
      emitter.begin_list(node.items.empty());
      for (const Node& item : node.items) put(emitter, item);
      emitter.end_list();
      break;
    case Node::Kind::scalar:
      emitter.text(node.text, node.quoted || (node.tag == Tag::string && tag_of(node.text) != Tag::string));
      break;
  }
}

}  // namespace

std::string write_scalar(const std::string& text, char quote) {
  YamlEmitter emitter(kYamlUnlimited);
  emitter.line(text, quote);
  std::string out = emitter.finish();
  while (out.ends_with('\n')) out.pop_back();
  return out;
}

std::string write_node(const Node& node) {
  YamlEmitter emitter(kYamlUnlimited);
  put(emitter, node);
  return emitter.finish();
}

}  // namespace coracle::kustomize
