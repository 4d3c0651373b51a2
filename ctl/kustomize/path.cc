// SPDX-License-Identifier: Apache-2.0
// See path.h.
#include "ctl/kustomize/path.h"

#include <algorithm>

#include "ctl/kustomize/regex.h"
#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

bool is_item(std::string_view part) { return part.size() >= 2 && part.starts_with('[') && part.ends_with(']'); }

std::optional<size_t> index_in(std::string_view part) { return parse_number<size_t>(part); }

struct ItemKey {
  std::string field, value;
};

Result<ItemKey> item_key(const std::string& part) {
  std::string inner = part.substr(1, part.size() - 2);
  size_t equals = inner.find('=');
  if (equals == inner.npos) return Error(Code::invalid, "expected [field=value] instead of " + part);
  return ItemKey{inner.substr(0, equals), inner.substr(equals + 1)};
}

Error not_a(const char* expected, const Node& node, const std::string& part) {
  return Error(Code::invalid, "cannot look for " + part + " in " + kind_name(node.kind) + "; expected " + expected);
}

class PathMatcher {
 public:
  PathMatcher(const std::vector<std::string>& path, const Creates& creates) : path_(path), creates_(creates) {}

  Result<void> visit(Node& node, size_t at) {
    if (at == path_.size()) {
      found.push_back(&node);
      return {};
    }
    const std::string& part = path_[at];
    if (auto index = index_in(part)) return visit_index(node, at, *index);
    if (is_item(part)) return visit_items(node, at);
    if (part == "*") {
      if (!node.is_list() && !node.is_null()) return not_a("a list", node, part);
      for (Node& item : node.items) {
        TRY(visit(item, at + 1));
      }
      return {};
    }
    return visit_field(node, at);
  }

  std::vector<Node*> found;

 private:
  Node::Kind kind_of_next(size_t at) const {
    if (at + 1 == path_.size()) return creates_.kind;
    return is_item(path_[at + 1]) || index_in(path_[at + 1]) ? Node::Kind::list : Node::Kind::map;
  }

  Result<void> visit_field(Node& node, size_t at) {
    const std::string& part = path_[at];
    if (node.is_null()) return {};
    if (!node.is_map()) return not_a("a map", node, part);
    Node* field = node.find(part);
    if (!field) {
      if (!creates_.creates) return {};
      Node fresh;
      fresh.kind = kind_of_next(at);
      node.members.push_back({part, std::move(fresh)});
      field = &node.members.back().value;
    }
    return visit(*field, at + 1);
  }

  Result<void> visit_index(Node& node, size_t at, size_t index) {
    if (!node.is_list() && !node.is_null()) return not_a("a list", node, path_[at]);
    if (index == node.items.size() && creates_.creates) {
      node.kind = Node::Kind::list;
      node.tag = Tag::none;
      Node fresh;
      fresh.kind = kind_of_next(at);
      node.items.push_back(std::move(fresh));
    }
    if (index >= node.items.size())
      return Error(Code::invalid, "item " + path_[at] + " is asked for, but there are " + std::to_string(node.items.size()));
    return visit(node.items[index], at + 1);
  }

  Result<void> visit_items(Node& node, size_t at) {
    if (!node.is_list() && !node.is_null()) return not_a("a list", node, path_[at]);
    ItemKey key = TRY(item_key(path_[at]));
    Regex pattern = TRY(Regex::compile(key.value));
    size_t before = found.size();
    TRY(visit_matching(node, at, key, pattern));
    if (found.size() > before || !creates_.creates) return {};
    node.kind = Node::Kind::list;
    node.tag = Tag::none;
    Node fresh = Node::scalar(key.value);
    if (!key.field.empty()) {
      fresh = Node::map();
      fresh.members.push_back({key.field, Node::scalar(key.value)});
    }
    node.items.push_back(std::move(fresh));
    return visit_matching(node, at, key, pattern);
  }

  Result<void> visit_matching(Node& node, size_t at, const ItemKey& key, const Regex& pattern) {
    for (Node& item : node.items) {
      if (key.field.empty()) {
        if (item.is_scalar() && pattern.finds(trim(item.text))) found.push_back(&item);
        continue;
      }
      const Node* field = item.find(key.field);
      if (!field || !field->is_scalar() || !pattern.finds(trim(field->text))) continue;
      TRY(visit(item, at + 1));
    }
    return {};
  }

  const std::vector<std::string>& path_;
  const Creates& creates_;
};

}  // namespace

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  if (path.starts_with('.') && path.size() > 1) path.remove_prefix(1);
  for (std::string_view part : split(path, '.')) {
    if (!parts.empty() && parts.back().ends_with('\\')) {
      parts.back().back() = '.';
      parts.back() += part;
    } else {
      parts.emplace_back(part);
    }
  }
  std::vector<std::string> out;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!parts[i].starts_with('[') || parts[i].ends_with(']')) {
      out.push_back(parts[i]);
      continue;
    }
    std::string joined = parts[i];
    while (i + 1 < parts.size() && !joined.ends_with(']')) joined += "." + parts[++i];
    if (joined.find('=') == joined.npos) {  // a name with dots
      size_t first = joined.find_first_not_of("[]"), last = joined.find_last_not_of("[]");
      joined = first == joined.npos ? std::string() : joined.substr(first, last - first + 1);
    }
    out.push_back(std::move(joined));
  }
  return out;
}

Result<Node*> lookup(Node& object, const std::vector<std::string>& path) {
  Node* node = &object;
  for (const std::string& untrimmed : path) {
    std::string part(trim(untrimmed));
    if (part.empty()) continue;
    if (node->is_null()) return nullptr;
    if (part == "*") return Error(Code::invalid, "* is not supported in this path");
    auto index = index_in(part);
    if (index || part == "-") {
      if (!node->is_list()) return not_a("a list", *node, part);
      size_t at = index ? *index : node->items.size() - 1;
      if (at >= node->items.size()) return nullptr;
      node = &node->items[at];
    } else if (is_item(part)) {
      if (!node->is_list()) return not_a("a list", *node, part);
      ItemKey key = TRY(item_key(part));
      auto item = std::find_if(node->items.begin(), node->items.end(), [&](const Node& one) {
        if (key.field.empty()) return one.is_scalar() && one.text == key.value;
        const Node* field = one.find(key.field);
        return field && field->text == key.value;
      });
      if (item == node->items.end()) return nullptr;
      node = &*item;
    } else {
      if (!node->is_map()) return not_a("a map", *node, part);
      node = node->find(part);
      if (!node) return nullptr;
    }
  }
  return node;
}

Result<std::vector<Node*>> match(Node& object, const std::vector<std::string>& path, const Creates& creates) {
  PathMatcher matcher(path, creates);
  TRY(matcher.visit(object, 0));
  return std::move(matcher.found);
}

}  // namespace coracle::kustomize
