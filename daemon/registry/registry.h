// SPDX-License-Identifier: Apache-2.0
// Registry: the one way to write. Every create, update, patch and deletion, of every kind, from HTTP and from inside the
// house, goes through the same pipeline; what is special to a kind is a Strategy (strategy.h).
//   body ─▶ decode ▸ default ▸ admit ▸ validate ▸ commit ─▶ engine ─▶ hub ─▶ watches
// What admission may change or refuse is daemon/admission's: it is asked twice, before and after validation.
// Reads are the engine's: this room adds selectors only. Thread-safe; writes may block on the disk.
// Source: Kubernetes API concepts; apiserver registry/generic.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admission/chain.h"
#include "daemon/admission/user.h"
#include "daemon/registry/fields.h"
#include "daemon/registry/guard.h"
#include "daemon/registry/kinds/service_index.h"
#include "daemon/registry/strategy.h"
#include "runtime/base/clock.h"
#include "store/client/client.h"
#include "store/engine/engine.h"
#include "store/schema/catalog_source.h"

namespace coracle::registry {

enum class FieldValidation { ignore, warn, strict };

// Who writes, and how.
struct Writer {
  std::string field_manager;  // "": who set which field is not recorded
  FieldValidation validation = FieldValidation::ignore;
  std::vector<std::string> duplicates;           // keys that the parser met twice
  std::vector<std::string>* warnings = nullptr;  // gets what the client should be told
  bool dry_run = false;
  bool internal = false;       // our own component: what it observes is written softly
  const User* user = nullptr;  // who asked over HTTP; nullptr: a component of the house. Outlives the call
  std::map<std::string, std::string>* audit = nullptr;  // gets the annotations that admission has for the audit log
};

// As whom our own components write, and how.
const User& house_user();
Writer house_writer(std::string field_manager = {});

// Tells of fields that nobody knows and keys that stood twice. Errors: bad_request where the client wants them refused.
Result<void> tell_unknown(const schema::Type& type, std::vector<std::string> unknown, const Writer& writer);

struct Written {
  ObjectPtr object;
  bool created = false;
};

struct Removed {
  ObjectPtr object;   // as it is, or was
  bool gone = false;  // else it lives on until its finalizers, or its grace, are over
};

struct ListRequest {
  ListOptions options;
  Revision exactly = 0;
};

// Issues tokens for service accounts; implemented where the signing key is.
class TokenIssuer {
 public:
  virtual ~TokenIssuer() = default;
  // `request` is a defaulted TokenRequest. Returns it with its status.
  virtual Result<json::value> issue(const Object& account, json::value request) = 0;
};

// What is measured when it is asked for, and stored nowhere (metrics.k8s.io): everything in a namespace ("": in all), or what
// has the name ("": any), sorted. `wanted` says of an object with the same metadata whether it is (empty: every one is); others
// need not be measured. May block for as long as measuring takes.
using Measure =
    std::function<Result<std::vector<ObjectPtr>>(const std::string& ns, const std::string& name, const Filter& wanted)>;

class Registry {
 public:
  // `engine` and `catalogs` must outlive it.
  Registry(engine::Engine& engine, const schema::CatalogSource& catalogs, Ranges ranges, const Clock& clock = system_clock());
  void set_token_issuer(TokenIssuer* issuer) { token_issuer_ = issuer; }  // before the first request
  void set_guard(const Guard* guard) { guard_ = guard; }                  // the same; asked for every write of a user

  void set_admission(admission::Settings settings) { admission_.set(settings); }  // the same

  void set_measure(const Kind& kind, Measure measure) {
    measures_.emplace_back(&kind, std::move(measure));
  }  // the same; a kind of kind.h

  engine::Engine& engine() { return engine_; }
  const schema::CatalogSource& catalogs() const { return catalogs_; }
  const Clock& clock() const { return clock_; }

  // ---- reads ----
  Result<ObjectPtr> get(const Kind& kind, const Key& key) const;
  Result<engine::ListPage> list(const Kind& kind, const ListRequest& request) const;
  Result<engine::RestingPage> list_at_rest(const Kind& kind,
                                           const ListRequest& request) const;  // for who wakes one after the other
  Result<json::value> scale(const Kind& kind, const Key& key) const;           // of a workload. Errors: not_found

  // ---- writes. `body` need not be canonical. Errors carry Kubernetes' words and details. ----
  Result<Written> create(const Kind& kind, const Key& place, json::value body, const Writer& writer);
  // PUT. `subresource`: "", "status", "scale", "finalize".
  Result<Written> update(const Kind& kind, const Key& key, std::string_view subresource, json::value body, const Writer& writer);
  Result<Written> patch(const Kind& kind, const Key& key, std::string_view subresource, PatchType type, const json::value& patch,
                        bool force, const Writer& writer);
  Result<Removed> remove(const Kind& kind, const Key& key, const DeleteOptions& options, const Writer& writer);
  // Returns what was there, as it was listed: a page of it where `which` has a limit.
  Result<engine::RestingPage> remove_all(const Kind& kind, const ListRequest& which, const DeleteOptions& options,
                                         const Writer& writer);

  // ---- actions: binding, eviction (eviction.cc), token. Return the body of the answer. ----
  Result<json::value> act(const Kind& kind, const Key& key, std::string_view subresource, json::value body, const Writer& writer);

 private:
  // What an update makes of the object that is there. Called again when somebody was faster.
  using Change = std::function<Result<json::value>(const Object& old)>;
  struct Target {                  // of an update
    const schema::KindInfo& info;  // as it was asked for
    const Strategy& strategy;
    Key key;
    std::string_view subresource;
    const schema::KindInfo& stored() const { return info.stored(); }
    const Kind& kind() const { return info.kind; }
  };
  Result<Written> modify(const Target& target, const Change& change, bool retry, const Writer& writer);
  Result<Written> modify_once(const Target& target, const ObjectPtr& before, const Change& change, const Writer& writer);
  Result<json::value> keep_split(const Target& target, json::value body, const Object& old) const;
  Result<void> check_create(const Kind& kind, const Key& key, const Writer& writer) const;
  Result<Written> patch_scale(const Target& target, PatchType type, const json::value& patch, bool force, const Writer& writer);
  admission::Request request_for(admission::Operation operation, const schema::KindInfo& info, const Key& key,
                                 std::string_view subresource, const Writer& writer) const;
  Result<ObjectPtr> commit(engine::Write write, std::vector<engine::Write> charges, engine::Durability durability);
  Result<Written> create_once(const schema::KindInfo& info, const Key& place, json::value body, const Writer& writer);
  Result<json::value> bind(const Key& key, const json::value& body, const Writer& writer);
  Result<json::value> evict(const Key& key, json::value body, const Writer& writer);
  // Says on the pod that it is evicted, and deletes it. Errors: as remove.
  Result<void> target_and_remove(const Key& key, DeleteOptions options, const Writer& writer);
  Result<json::value> issue_token(const Key& key, json::value body, const Writer& writer);
  std::unique_lock<std::mutex> turn_of(const Strategy& strategy);
  const Measure* measure_of(const Kind& kind) const;
  Result<engine::ListPage> measured(const Measure& measure, const engine::ListOptions& options) const;
  Result<engine::ListOptions> list_options(const schema::KindPtr& kind, const ListRequest& request) const;

  engine::Engine& engine_;
  const schema::CatalogSource& catalogs_;
  ServiceIndex services_;  // guarded by allocation_
  Ranges ranges_;
  const Clock& clock_;
  admission::Chain admission_;
  TokenIssuer* token_issuer_ = nullptr;
  const Guard* guard_ = nullptr;
  std::vector<std::pair<const Kind*, Measure>> measures_;
  std::mutex allocation_;  // held over a write of a kind that allocates from a shared range
};

}  // namespace coracle::registry
