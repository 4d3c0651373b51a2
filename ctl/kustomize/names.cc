// SPDX-License-Identifier: Apache-2.0
// See names.h.
#include "ctl/kustomize/names.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

// An object that other objects may refer to, with what is compared.
struct Candidate {
  ResourcePtr resource;
  std::vector<ResId> previous;
  ResId id;
  std::string ns, original_ns;
  bool cluster_scoped = false;
};

using Candidates = std::vector<const Candidate*>;

// The lists have the same end, as long as the shorter one is.
bool same_ending(const std::vector<std::string>& left, const std::vector<std::string>& right) {
  size_t common = std::min(left.size(), right.size());
  if (common == 0) return left.size() == right.size();
  return std::equal(left.end() - long(common), left.end(), right.end() - long(common));
}

bool same_affixes(const Resource& left, const Resource& right, bool allow_empty) {
  bool prefixes = allow_empty && (left.prefixes.empty() || right.prefixes.empty());
  bool suffixes = allow_empty && (left.suffixes.empty() || right.suffixes.empty());
  return (prefixes || same_ending(left.prefixes, right.prefixes)) && (suffixes || same_ending(left.suffixes, right.suffixes));
}

void keep_if(Candidates& candidates, const std::function<bool(const Candidate&)>& good) {
  std::erase_if(candidates, [&](const Candidate* one) { return !good(*one); });
}

// One field of one object that may hold a name.
class NameField {
 public:
  NameField(const Resource& referrer, const Candidates& all, const FieldSpec& spec, const Gvk& target)
      : referrer_(referrer), all_(all), spec_(spec), target_(target), id_(referrer.id()) {}

  Result<void> set(Node& node) const {
    if (node.is_null()) return {};
    if (node.is_scalar()) return set_name(node);
    if (node.is_map()) return set_map(node);
    for (Node& item : node.items) {
      if (item.is_null()) continue;
      if (item.is_list()) return Error(Code::invalid, "expected a text or a map, not a list");
      TRY(item.is_map() ? set_map(item) : set_name(item));
    }
    return {};
  }

 private:
  Result<void> set_name(Node& node) const {
    const Candidate* found = TRY(select(node.text, all_, false));
    if (found && found->id.name != node.text) rename(node, found->id.name);
    return {};
  }

  // A map with name and perhaps namespace.
  Result<void> set_map(Node& node) const {
    const Node* name = node.find("name");
    if (!name) return Error(Code::invalid, "there is no field name");
    Candidates candidates = all_;
    if (const Node* ns = node.find("namespace")) {
      std::string wanted(ns->text);
      keep_if(candidates, [&](const Candidate& one) { return one.original_ns == wanted; });
      if (candidates.empty()) {
        candidates = all_;
        keep_if(candidates, [&](const Candidate& one) { return one.ns == wanted; });
      }
      keep_if(candidates, [](const Candidate& one) { return !one.cluster_scoped; });
    }
    std::string old(name->text);
    const Candidate* found = TRY(select(old, std::move(candidates), true));
    if (!found || (found->id.name == old && found->id.ns.empty())) return {};
    rename(*node.find("name"), found->id.name);
    if (!found->id.ns.empty()) node.set("namespace", Node::string(found->id.ns));
    return {};
  }

  static void rename(Node& node, const std::string& name) {
    node.text = name;
    node.tag = Tag::string;
  }

  // The object that the field means by its old name; null: none of them.
  Result<const Candidate*> select(const std::string& old, Candidates candidates, bool with_ns) const {
    keep_if(candidates, [&](const Candidate& one) { return one.resource->had_name(old); });
    keep_if(candidates, [&](const Candidate& one) { return was_selected(one, target_); });
    if (spec_.path.ends_with("roleRef/name")) {
      if (auto role = role_type()) keep_if(candidates, [&](const Candidate& one) { return was_selected(one, *role); });
    }
    if (!id_.gvk.is_cluster_scoped())
      keep_if(candidates, [&](const Candidate& one) {
        // A role binding may name accounts of other namespaces.
        return one.cluster_scoped || one.id.gvk.kind == "ServiceAccount" || one.id.same_ns(id_);
      });
    if (candidates.size() == 1) return candidates[0];
    keep_if(candidates, [&](const Candidate& one) { return same_affixes(*one.resource, referrer_, true); });
    if (candidates.size() > 1)
      keep_if(candidates, [&](const Candidate& one) { return same_affixes(*one.resource, referrer_, false); });
    if (candidates.empty()) return nullptr;
    std::string names;
    bool same = true;
    for (const Candidate* one : candidates) {
      same = same && one->id.name == candidates[0]->id.name && (!with_ns || one->id.ns == candidates[0]->id.ns);
      names += (names.empty() ? "" : ", ") + one->id.text();
    }
    if (!same) return Error(Code::conflict, "the name " + quoted(old) + " may mean several objects: " + shortened_path(names));
    return candidates[0];
  }

  static bool was_selected(const Candidate& one, const Gvk& gvk) {
    return std::any_of(one.previous.begin(), one.previous.end(), [&](const ResId& id) { return id.gvk.is_selected(gvk); });
  }

  std::optional<Gvk> role_type() const {
    const Node* reference = referrer_.object.find("roleRef");
    const Node* group = reference ? reference->find("apiGroup") : nullptr;
    const Node* kind = reference ? reference->find("kind") : nullptr;
    if (!group || !kind) return std::nullopt;
    return Gvk{group->text, "", kind->text};
  }

  const Resource& referrer_;
  const Candidates& all_;
  const FieldSpec& spec_;
  const Gvk& target_;
  const ResId id_;
};

// The namespaces of the accounts that a RoleBinding names.
std::set<std::string> account_namespaces(const Resource& resource) {
  std::set<std::string> namespaces;
  const Node* subjects = resource.gvk().kind == "RoleBinding" ? resource.object.find("subjects") : nullptr;
  if (!subjects) return namespaces;
  for (const Node& subject : subjects->items) {
    const Node *kind = subject.find("kind"), *ns = subject.find("namespace");
    if (kind && ns && kind->text == "ServiceAccount") namespaces.insert(ns->text);
  }
  return namespaces;
}

Candidates candidates_for(const Resource& referrer, const std::vector<Candidate>& all) {
  ResId id = referrer.id();
  bool cluster_scoped = id.gvk.is_cluster_scoped();
  std::string ns = id.effective_ns();
  std::set<std::string> namespaces = account_namespaces(referrer);
  Candidates found;
  for (const Candidate& one : all)
    if (cluster_scoped || one.cluster_scoped || one.ns == ns || namespaces.contains(one.id.ns)) found.push_back(&one);
  return found;
}

}  // namespace

Result<void> fix_name_references(Resources& resources, const std::vector<NameReference>& references) {
  std::vector<Candidate> all;
  for (const ResourcePtr& resource : resources.all()) {
    if (!resource->has_previous()) continue;  // its name never changed
    Candidate one{resource, resource->previous_ids(), resource->id(), {}, {}, false};
    one.ns = one.id.effective_ns();
    one.original_ns = resource->original_id().effective_ns();
    one.cluster_scoped = one.id.gvk.is_cluster_scoped();
    all.push_back(std::move(one));
  }
  if (all.empty()) return {};
  std::map<std::string, std::vector<std::pair<const FieldSpec*, const Gvk*>>> by_kind;  // of the referrer; "" for any
  for (const NameReference& reference : references)
    for (const FieldSpec& spec : reference.referrers) by_kind[spec.gvk.kind].emplace_back(&spec, &reference.target);
  for (const ResourcePtr& resource : resources.all()) {
    Gvk original = resource->original_id().gvk;
    std::vector<std::pair<const FieldSpec*, const Gvk*>> fields = by_kind[""];
    auto own = by_kind.find(original.kind);
    if (own != by_kind.end() && !original.kind.empty()) fields.insert(fields.end(), own->second.begin(), own->second.end());
    Candidates candidates = candidates_for(*resource, all);
    for (const auto& [spec, target] : fields) {
      if (!original.is_selected(spec->gvk)) continue;
      NameField field(*resource, candidates, *spec, *target);
      TRY(set_fields(resource->object, {{}, spec->path, false}, {}, [&](Node& node) {
            return field.set(node);
          }).wrap(resource->id().text()));
    }
  }
  return {};
}

}  // namespace coracle::kustomize
