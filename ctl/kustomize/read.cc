// SPDX-License-Identifier: Apache-2.0
// See read.h.
#include "ctl/kustomize/read.h"

#include <algorithm>
#include <map>

#include "runtime/base/text.h"
#include "store/object/yaml.h"
#include "store/object/yaml_events.h"

namespace coracle::kustomize {
namespace {

class DocumentReader : YamlEvents {
 public:
  explicit DocumentReader(std::string_view text) : YamlEvents(text) {}

  Result<std::vector<Node>> documents(std::vector<size_t>* lines) {
    std::vector<Node> all;
    TRY(next());  // the start of the stream
    for (;;) {
      TRY(next());
      if (event_.type == YAML_STREAM_END_EVENT) return all;
      anchors_.clear();
      TRY(next());
      size_t first = line();
      Node document = TRY(node(0));
      TRY(next());  // the end of the document
      if (document.is_null()) continue;
      all.push_back(std::move(document));
      if (lines) lines->push_back(first);
    }
  }

 private:
  struct Anchored {
    Node node;
    size_t nodes = 0, height = 0;
  };

  Error wrong(std::string_view what, size_t at) const {
    return Error(Code::bad_request, "line " + std::to_string(at) + ": " + std::string(what));
  }

  Result<void> next() {
    if (advance()) return {};
    return wrong(fault(), fault_line());
  }

  static std::string text_of(const yaml_char_t* text) { return text ? reinterpret_cast<const char*>(text) : std::string(); }

  static size_t height_of(const Node& node) {
    size_t highest = 0;
    for (const Member& member : node.members) highest = std::max(highest, height_of(member.value));
    for (const Node& item : node.items) highest = std::max(highest, height_of(item));
    return node.is_scalar() ? 0 : highest + 1;
  }

  // Reads the node that starts with the current event; afterwards the current event is its last one.
  Result<Node> node(size_t depth) {
    if (depth > kTreeDepthMax) return Error(Code::too_large, "line " + std::to_string(line()) + ": nested too deeply");
    if (++nodes_ > kTextNodesMax) return Error(Code::too_large, "too many values");
    size_t before = nodes_;
    std::string anchor;
    Node read;
    switch (event_.type) {
      case YAML_ALIAS_EVENT: return alias(depth);
      case YAML_SCALAR_EVENT:
        anchor = text_of(event_.data.scalar.anchor);
        read = scalar();
        break;
      case YAML_SEQUENCE_START_EVENT:
        anchor = text_of(event_.data.sequence_start.anchor);
        read = TRY(list(depth));
        break;
      case YAML_MAPPING_START_EVENT:
        anchor = text_of(event_.data.mapping_start.anchor);
        read = TRY(map(depth));
        break;
      default: return wrong("unexpected content", line());
    }
    if (!anchor.empty()) {
      size_t nodes = nodes_ - before + 1;
      anchor_nodes_ += nodes;
      if (anchor_nodes_ > kYamlAnchorNodesMax) return Error(Code::too_large, "anchors stand for too many values");
      anchors_[anchor] = {read, nodes, height_of(read)};
    }
    return read;
  }

  Result<Node> alias(size_t depth) {
    std::string name = text_of(event_.data.alias.anchor);
    auto found = anchors_.find(name);
    if (found == anchors_.end()) return wrong("unknown alias *" + name, line());
    alias_nodes_ += found->second.nodes;
    nodes_ += found->second.nodes;
    if (depth + found->second.height > kTreeDepthMax) return wrong("nested too deeply", line());
    if (alias_nodes_ > kYamlAliasNodesMax) return Error(Code::too_large, "aliases expand to too many values");
    return found->second.node;
  }

  Node scalar() {
    const auto& scalar = event_.data.scalar;
    Node read = Node::scalar(std::string(reinterpret_cast<const char*>(scalar.value), scalar.length));
    std::string tag = text_of(scalar.tag);
    read.begin = uint32_t(event_.start_mark.index);
    read.end = uint32_t(event_.end_mark.index);
    read.quoted = scalar.style != YAML_PLAIN_SCALAR_STYLE;
    if (tag == YAML_INT_TAG) read.tag = Tag::integer;
    else if (tag == YAML_FLOAT_TAG) read.tag = Tag::number;
    else if (tag == YAML_BOOL_TAG) read.tag = Tag::boolean;
    else if (tag == YAML_NULL_TAG) read.tag = Tag::null;
    else if (!tag.empty() || read.quoted) read.tag = Tag::string;
    else read.tag = tag_of(read.text);
    if (read.tag != Tag::string) read.quoted = false;
    return read;
  }

  Result<Node> list(size_t depth) {
    Node read = Node::list();
    for (;;) {
      TRY(next());
      if (event_.type == YAML_SEQUENCE_END_EVENT) return read;
      Node item = TRY(node(depth + 1));
      read.items.push_back(std::move(item));
    }
  }

  Result<Node> map(size_t depth) {
    Node read = Node::map();
    std::map<std::string, size_t, std::less<>> lines;  // of the keys
    std::optional<Node> merged;
    for (;;) {
      TRY(next());
      if (event_.type == YAML_MAPPING_END_EVENT) break;
      size_t at = line();
      if (event_.type != YAML_SCALAR_EVENT) return wrong("a key must be text", at);
      Node key = scalar();
      bool merge = key.text == "<<" && !key.quoted;
      if (key.tag != Tag::string) return wrong("the key " + key.text + " must be text: put it in quotes", at);
      TRY(next());
      Node value = TRY(node(depth + 1));
      if (merge) {
        if (merged) return wrong("two merge keys (<<) in one map", at);
        merged = std::move(value);
        continue;
      }
      auto [known, fresh] = lines.emplace(key.text, at);
      if (!fresh)
        return wrong("the key " + quoted(shortened_path(key.text)) + " is already set in line " + std::to_string(known->second),
                     at);
      read.members.push_back({std::move(key.text), std::move(value)});
    }
    if (merged) {
      TRY(merge_into(read, *merged));
    }
    return read;
  }

  Result<void> merge_into(Node& target, const Node& source) {
    if (source.is_list()) {
      for (const Node& one : source.items) {
        if (one.is_list()) return wrong("a merge key (<<) needs a map or a list of maps", line());
        TRY(merge_into(target, one));
      }
      return {};
    }
    if (!source.is_map()) return wrong("a merge key (<<) needs a map or a list of maps", line());
    for (const Member& member : source.members)
      if (!target.find(member.key)) target.members.push_back(member);
    return {};
  }

  std::map<std::string, Anchored> anchors_;
  size_t nodes_ = 0, alias_nodes_ = 0, anchor_nodes_ = 0;
};

// libyaml's time grows with the square of their number.
bool has_tag_directives(std::string_view text) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find("%TAG", at)) != text.npos; ++at)
    if (at == 0 || !std::isalnum(static_cast<unsigned char>(text[at - 1]))) ++count;
  return count > kYamlTagDirectivesMax;
}

}  // namespace

Result<std::vector<Node>> read_documents(std::string_view text, std::vector<size_t>* lines) {
  text = without_byte_order_mark(text);
  if (text.size() > kYamlBytesMax) return Error(Code::too_large, "the text is larger than 16 MiB");
  if (has_tag_directives(text)) return Error(Code::too_large, "too many %TAG directives");
  return DocumentReader(text).documents(lines);
}

}  // namespace coracle::kustomize
