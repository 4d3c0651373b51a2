// SPDX-License-Identifier: Apache-2.0
// See vars.h.
#include "ctl/kustomize/vars.h"

#include <algorithm>
#include <set>

#include "ctl/kustomize/path.h"
#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

// "ports[0]" is two parts, "ports" and "0".
std::vector<std::string> split_var_path(const std::string& path) {
  std::vector<std::string> parts;
  for (const std::string& part : split_path(path)) {
    size_t open = part.ends_with(']') ? part.rfind('[') : part.npos;
    bool index = open != part.npos && parse_number<size_t>(std::string_view(part).substr(open + 1, part.size() - open - 2));
    if (!index) {
      parts.push_back(part);
      continue;
    }
    if (open > 0) parts.push_back(part.substr(0, open));
    parts.push_back(part.substr(open + 1, part.size() - open - 2));
  }
  return parts;
}

class VarReplacer {
 public:
  explicit VarReplacer(const std::map<std::string, Node>& values) : values_(values) {}
  const std::set<std::string>& used() const { return used_; }

  Result<void> replace(Node& node) {
    if (node.is_null()) return {};
    if (node.is_scalar()) return replace_text(node);
    for (Member& member : node.members) {
      TRY(replace_text(member.value));
    }
    for (Node& item : node.items) {
      if (!item.is_text()) return Error(Code::invalid, std::string("expected a list of texts, with vars in it"));
      TRY(replace_text(item));
    }
    return {};
  }

 private:
  Result<void> replace_text(Node& node) {
    if (!node.is_text() || node.text.find('$') == node.text.npos) return {};
    const std::string text = std::move(node.text);
    std::string out;
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != '$' || i + 1 == text.size()) {
        out += text[i];
        continue;
      }
      char next = text[i + 1];
      size_t close = next == '(' ? text.find(')', i + 2) : text.npos;
      if (close == text.npos) {  // $$ is one $; any other character stays
        if (next == '$') out += '$';
        else (out += '$') += next;
        ++i;
        continue;
      }
      std::string name = text.substr(i + 2, close - i - 2);
      auto found = values_.find(name);
      if (found == values_.end()) {
        out += text.substr(i, close - i + 1);
      } else {
        used_.insert(name);
        if (i == 0 && close + 1 == text.size()) {  // the type of the value is kept
          node = found->second;
          return {};
        }
        out += found->second.text;
      }
      if (out.size() > kTextBytesMax) return Error(Code::too_large, "the text becomes longer than 16 MiB");
      i = close;
    }
    node = Node::string(std::move(out));
    return {};
  }

  const std::map<std::string, Node>& values_;
  std::set<std::string> used_;
};

Result<Node> value_of(const Resources& resources, const std::string& name, const VarArgs& var) {
  for (const ResourcePtr& resource : resources.all()) {
    const std::vector<std::string>& names = resource->var_names;
    if (std::find(names.begin(), names.end(), name) == names.end()) continue;
    Node* found = TRY(lookup(resource->object, split_var_path(var.field_path)).wrap("var " + name));
    if (!found)
      return Error(Code::not_found, "var " + name + ": there is no field " + var.field_path + " in " + resource->id().text());
    if (!found->is_scalar()) return Error(Code::invalid, "var " + name + ": " + var.field_path + " is " + kind_name(found->kind));
    Node value = *found;
    value.quoted = false;
    if (value.tag != Tag::integer && value.tag != Tag::number && value.tag != Tag::boolean) value.tag = Tag::string;
    return value;
  }
  return Error(Code::not_found, "var " + name + ": no object matches " + var.object.text());
}

}  // namespace

Result<void> add_vars(Resources& resources, const std::vector<VarArgs>& vars, std::map<std::string, VarArgs>& all) {
  for (const VarArgs& var : vars) {
    bool any_ns = var.object.ns.empty() && !var.object.gvk.is_cluster_scoped();
    std::vector<ResourcePtr> found = resources.with_id(
        [&](const ResId& id) { return any_ns ? id.name == var.object.name && id.gvk == var.object.gvk : id.equals(var.object); });
    if (found.size() > 1) return Error(Code::conflict, "var " + var.name + ": several objects match " + var.object.text());
    if (found.size() == 1) found[0]->var_names.push_back(var.name);
    if (!all.emplace(var.name, var).second) return Error(Code::conflict, "var " + quoted(var.name) + " already encountered");
  }
  return {};
}

Result<void> resolve_vars(Resources& resources, const std::map<std::string, VarArgs>& vars, const FieldSpecs& fields,
                          std::vector<std::string>& unused) {
  if (vars.empty()) return {};
  std::map<std::string, Node> values;
  for (const auto& [name, var] : vars) {
    Node value = TRY(value_of(resources, name, var));
    values.emplace(name, std::move(value));
  }
  VarReplacer replacer(values);
  for (const ResourcePtr& resource : resources.all())
    for (const FieldSpec& spec : fields) {
      TRY(set_fields(resource->object, spec, {}, [&](Node& node) { return replacer.replace(node); }).wrap(resource->id().text()));
    }
  for (const auto& [name, var] : vars)
    if (!replacer.used().contains(name)) unused.push_back(name);
  return {};
}

}  // namespace coracle::kustomize
