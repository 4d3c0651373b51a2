// SPDX-License-Identifier: Apache-2.0
// The registry's reads: objects of the store, in the version that was asked for, and objects that are measured on request.
#include <algorithm>
#include <set>

#include "daemon/registry/registry.h"
#include "daemon/registry/scale.h"
#include "store/engine/continue_token.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/convert.h"

namespace coracle::registry {

const Measure* Registry::measure_of(const Kind& kind) const {
  for (const auto& [measured, measure] : measures_)
    if (*measured == kind) return &measure;
  return nullptr;
}

Result<ObjectPtr> Registry::get(const Kind& kind, const Key& key) const {
  if (const Measure* measure = measure_of(kind)) {
    std::vector<ObjectPtr> found = TRY((*measure)(key.ns, key.name, {}));
    if (found.empty()) return not_found(kind, key.name);
    return std::move(found.front());
  }
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  auto found = engine_.get(info.stored().kind, key);
  if (!found && found.error().code() == Code::not_found) return not_found(kind, key.name);
  if (found && !info.is_stored()) return schema::shown_as(info, *std::move(found));
  return found;
}

Result<engine::ListOptions> Registry::list_options(const schema::KindPtr& kind, const ListRequest& request) const {
  engine::ListOptions options;
  options.matches = TRY(make_filter(kind, request.options.label_selector, request.options.field_selector));
  if (const std::vector<Key>& only = request.options.only; !only.empty())
    options.matches = [only = std::set<Key>(only.begin(), only.end()), matches = std::move(options.matches)](
                          const Object& object) { return only.contains(object.key()) && (!matches || matches(object)); };
  options.ns = request.options.ns;
  options.limit = size_t(std::max<int64_t>(request.options.limit, 0));
  options.continue_token = request.options.continue_token;
  options.at = request.exactly;
  return options;
}

Result<engine::ListPage> Registry::measured(const Measure& measure, const engine::ListOptions& options) const {
  std::vector<ObjectPtr> items = TRY(measure(options.ns, {}, options.matches));
  if (options.matches) std::erase_if(items, [&](const ObjectPtr& item) { return !options.matches(*item); });
  return engine::ListPage{std::move(items), engine_.revision(), {}, {}};
}

Result<void> check_continue_token(const Kind& kind, std::string_view token) {
  TRY(engine::ContinueToken::parse(token, kind.namespaced));
  return {};
}

Result<engine::ListPage> Registry::list(const Kind& kind, const ListRequest& request) const {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  engine::ListOptions options = TRY(list_options(served, request));
  if (const Measure* measure = measure_of(kind)) return measured(*measure, options);
  if (info.is_stored()) return engine_.list(kind, options);
  engine::RestingPage stored = TRY(engine_.list_at_rest(info.stored().kind, options));
  engine::ListPage page{{}, stored.revision, std::move(stored.continue_token), stored.remaining};
  for (const RestingPtr& object : stored.items) page.items.push_back(schema::shown_as(info, object->awake()));
  return page;
}

Result<engine::RestingPage> Registry::list_at_rest(const Kind& kind, const ListRequest& request) const {
  const schema::KindPtr served = TRY(catalogs_.find(kind));
  const schema::KindInfo& info = *served;
  engine::ListOptions options = TRY(list_options(served, request));
  if (const Measure* measure = measure_of(kind)) {
    engine::ListPage now = TRY(measured(*measure, options));
    engine::RestingPage page{{}, now.revision, {}, {}};
    for (const ObjectPtr& object : now.items) page.items.push_back(object->at_rest());
    return page;
  }
  engine::RestingPage page = TRY(engine_.list_at_rest(info.stored().kind, options));
  if (info.is_stored()) return page;
  for (RestingPtr& object : page.items) object = schema::shown_as(info, object->awake())->at_rest();
  return page;
}

Result<json::value> Registry::scale(const Kind& kind, const Key& key) const {
  auto workload = get(kind, key);
  if (workload) return scale_of(**workload);
  if (workload.error().code() != Code::not_found) return workload.take_error();
  std::string part = std::string(kind.resource) + "/scale";
  Kind named = kind;
  named.resource = part;
  return not_found(named, key.name);
}

}  // namespace coracle::registry
