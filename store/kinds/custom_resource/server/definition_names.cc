// SPDX-License-Identifier: Apache-2.0
// See definition_names.h.
#include "store/kinds/custom_resource/server/definition_names.h"

#include "store/object/object.h"
#include "store/schema/views.h"

namespace coracle::kinds {
namespace {

using NameCounts = std::map<std::string, size_t, std::less<>>;

void count_names_in(NameCounts& counts, const std::set<std::string>& names) {
  for (const std::string& name : names) ++counts[name];
}

void count_names_out(NameCounts& counts, const std::set<std::string>& names) {
  for (const std::string& name : names)
    if (auto found = counts.find(name); --found->second == 0) counts.erase(found);
}

size_t count_of_name(const NameCounts& counts, std::string_view name) {
  auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

}  // namespace

DefinitionNames::Names DefinitionNames::Names::of(const json::value& definition) {
  Names out;
  out.group = view::CustomResourceDefinition(definition).spec().group();
  auto add = [&](std::set<std::string>& names, std::string_view name) {
    if (!name.empty()) names.emplace(name);
  };
  view::CustomResourceDefinitionNames accepted = view::CustomResourceDefinition(definition).status().accepted_names();
  add(out.resources, accepted.plural());
  add(out.resources, accepted.singular());
  for (std::string_view name : accepted.short_names()) add(out.resources, name);
  add(out.kinds, accepted.kind());
  add(out.kinds, accepted.list_kind());
  return out;
}

bool DefinitionNames::TakenByOthers::has_resource(std::string_view name) const {
  return group_ && count_of_name(group_->resources, name) > count_of_name(own_.resources, name);
}

bool DefinitionNames::TakenByOthers::has_kind(std::string_view name) const {
  return group_ && count_of_name(group_->kinds, name) > count_of_name(own_.kinds, name);
}

class DefinitionNames::Reservation : public Hold {
 public:
  Reservation(DefinitionNames& owner, Held held) : owner_(owner), held_(held) {}
  ~Reservation() override {
    std::lock_guard lock(owner_.mutex_);
    owner_.take(held_->second);
    owner_.held_.erase(held_);
  }

 private:
  DefinitionNames& owner_;
  Held held_;
};

Result<std::unique_ptr<Hold>> DefinitionNames::reserve(const json::value& definition, bool is_kept, const Choose& choose) {
  const std::string name(view::CustomResourceDefinition(definition).metadata().name());
  const std::string_view group = view::CustomResourceDefinition(definition).spec().group();
  std::lock_guard lock(mutex_);
  TRY(refresh());
  {
    TakenByOthers others;
    if (auto found = counts_.find(group); found != counts_.end()) others.group_ = &found->second;
    auto exclude = [&](const Names& own) {
      if (own.group != group) return;
      count_names_in(others.own_.resources, own.resources), count_names_in(others.own_.kinds, own.kinds);
    };
    if (auto own = accepted_.find(name); own != accepted_.end()) exclude(own->second);
    for (auto [held, end] = held_.equal_range(name); held != end; ++held) exclude(held->second);
    choose(others);
  }
  if (!is_kept) return std::unique_ptr<Hold>();
  Names names = Names::of(definition);
  add(names);
  return std::unique_ptr<Hold>(std::make_unique<Reservation>(*this, held_.emplace(name, std::move(names))));
}

// A group without names has no entry.
void DefinitionNames::add(const Names& names) {
  if (names.resources.empty() && names.kinds.empty()) return;
  TakenByOthers::Group& group = counts_[names.group];
  count_names_in(group.resources, names.resources), count_names_in(group.kinds, names.kinds);
}

void DefinitionNames::take(const Names& names) {
  auto group = counts_.find(names.group);
  if (group == counts_.end()) return;  // then it got none of the names that it wanted
  count_names_out(group->second.resources, names.resources), count_names_out(group->second.kinds, names.kinds);
  if (group->second.resources.empty() && group->second.kinds.empty()) counts_.erase(group);
}

void DefinitionNames::release(std::string_view name) {
  auto found = accepted_.find(name);
  if (found == accepted_.end()) return;
  take(found->second);
  accepted_.erase(found);
}

void DefinitionNames::put(const Object& definition, bool gone) {
  release(definition.name());
  if (gone) return;
  Names names = Names::of(definition.json());
  add(names);
  accepted_.emplace(definition.name(), std::move(names));
}

Result<void> DefinitionNames::refresh() {
  while (!watcher_ || !drain(*watcher_, [this](const Object& definition, bool is_gone) { put(definition, is_gone); })) {
    accepted_.clear(), counts_.clear();
    for (const auto& [name, held] : held_) add(held);
    watcher_.reset();
    watcher_ = TRY(engine_.watch(kCustomResourceDefinition, "", 0).wrap("the names of the definitions are not known"));
  }
  return {};
}

}  // namespace coracle::kinds
