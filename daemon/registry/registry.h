// SPDX-License-Identifier: Apache-2.0
// Registry: the only way to write objects. Every create, update, patch and deletion of every kind, over HTTP or from components
// of the daemon, uses the same pipeline; rules of one kind are in a Strategy (store/kinds/strategy.h).
//   body ─▶ decode ▸ default ▸ admit ▸ validate ▸ commit ─▶ engine ─▶ broadcaster ─▶ watches
// Admission (daemon/admission) is called twice: before validation, when it may change the object, and after it. Reads use the
// engine; the registry only adds selectors. Thread-safe; writes may block on the disk, without a lock (daemon/README.md, "Writes
// at the same time"). Source: Kubernetes API concepts; apiserver registry/generic.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/admission/chain.h"
#include "daemon/registry/fields.h"
#include "daemon/registry/guard.h"
#include "runtime/base/clock.h"
#include "store/client/client.h"
#include "store/engine/engine.h"
#include "store/kinds/custom_resource/server/definition_names.h"
#include "store/kinds/service/server/service_addresses.h"
#include "store/kinds/strategy.h"
#include "store/object/user.h"
#include "store/schema/catalog_source.h"
#include "store/schema/decode.h"

namespace coracle::registry {

enum class FieldValidation { ignore, warn, strict };

// Warnings of the parser of a body about keys that occur twice. Their place among the other warnings depends on the form of the
// body. Source: sigs.k8s.io/json, kubernetes_patch.go; apimachinery runtime/serializer/json; apiserver endpoints/handlers/patch.go.
struct Duplicates {
  enum class Form : uint8_t {
    json,   // of an object: in the order of the body, among the unknown fields, but none that is itself unknown
    patch,  // a JSON, merge or strategic merge patch: before the unknown fields of the result
    yaml,   // by line, before the unknown fields
  };
  Form form = Form::json;
  std::vector<std::string> warnings;
  std::vector<JsonPlace> places;  // of these keys, in a JSON text
};

// The author and the options of a write.
struct Writer {
  std::string field_manager;  // "": managedFields are not recorded
  FieldValidation validation = FieldValidation::ignore;
  Duplicates duplicates;
  std::vector<std::string>* warnings = nullptr;  // receives warnings for the client
  bool dry_run = false;
  bool internal = false;                                // a component of the daemon: its status writes are less durable
  bool is_repeated = false;                             // UpdateOptions::is_repeated
  const User* user = nullptr;                           // the HTTP user; nullptr: a component of the daemon. Outlives the call
  std::map<std::string, std::string>* audit = nullptr;  // receives admission's annotations for the audit log
};

// The user and the options for writes of the daemon's own components.
const User& internal_user();
Writer internal_writer(std::string field_manager = {});

// Reports unknown fields (the warnings of schema::decode) and duplicate keys as warnings. Errors: bad_request if the client
// requests strict validation.
Result<void> tell_unknown(const schema::Type& type, const schema::Decoded& decoded, const Writer& writer);

struct Written {
  ObjectPtr object;
  bool created = false;
};

struct Removed {
  ObjectPtr object;   // the object's current or last state
  bool gone = false;  // false: it remains until its finalizers or grace period have ended
};

struct ListRequest {
  ListOptions options;
  Revision exactly = 0;
};
// Whether a list may go on with this token of an earlier page. Errors: bad_request.
Result<void> check_continue_token(const Kind& kind, std::string_view token);

// Issues tokens for service accounts; implemented beside the signing key.
class TokenIssuer {
 public:
  virtual ~TokenIssuer() = default;
  // `request` is a TokenRequest with defaults. Returns it with its status. Errors: with Kubernetes' texts.
  virtual Result<json::value> issue(const Object& account, json::value request) = 0;
};

// Provides objects that are measured on request and not stored (metrics.k8s.io): those of a namespace ("": all) and name ("":
// any), sorted. `wanted` selects by metadata (empty: all); unselected objects need not be measured. May block while measuring.
using Measure =
    std::function<Result<std::vector<ObjectPtr>>(const std::string& ns, const std::string& name, const Filter& wanted)>;

class Registry {
 public:
  // `engine` and `catalogs` must outlive it.
  Registry(engine::Engine& engine, const schema::CatalogSource& catalogs, kinds::Ranges ranges,
           const Clock& clock = system_clock(), admission::Settings admission = {});
  // Call these before the first request. The guard is called for every write of a user. `kind`: a constant of kind.h.
  void set_token_issuer(TokenIssuer* issuer) { token_issuer_ = issuer; }
  void set_guard(const Guard* guard) { guard_ = guard; }
  void set_measure(const Kind& kind, Measure measure) { measures_.emplace_back(&kind, std::move(measure)); }

  engine::Engine& engine() { return engine_; }
  const schema::CatalogSource& catalogs() const { return catalogs_; }
  const Clock& clock() const { return clock_; }

  // ---- reads (reads.cc). They do not block, except for a Measure. ----
  // Errors: not_found, also for a kind that is not served; those of a Measure.
  Result<ObjectPtr> get(const Kind& kind, const Key& key) const;
  // Errors: bad_request for a selector or a continue token that cannot be read; gone for a token or a revision that is too old;
  // timeout for a revision that is not reached yet; those of get() but for an absent object.
  Result<engine::ListPage> list(const Kind& kind, const ListRequest& request) const;
  // The same with objects at rest, for callers that read one after the other.
  Result<engine::RestingPage> list_at_rest(const Kind& kind, const ListRequest& request) const;
  Result<json::value> scale(const Kind& kind, const Key& key) const;  // of a workload. Errors: not_found

  // ---- writes. They block for the disk. `body` need not be canonical. Errors have Kubernetes' texts and details. ----
  Result<Written> create(const Kind& kind, const Key& place, json::value body, const Writer& writer);
  // PUT. `subresource`: "", "status", "scale", "finalize".
  Result<Written> update(const Kind& kind, const Key& key, std::string_view subresource, json::value body, const Writer& writer);
  Result<Written> patch(const Kind& kind, const Key& key, std::string_view subresource, PatchType type, const json::value& patch,
                        bool force, const Writer& writer);
  Result<Removed> remove(const Kind& kind, const Key& key, const DeleteOptions& options, const Writer& writer);
  // Deletes all objects that match. Returns them as listed: one page if `which` has a limit.
  Result<engine::RestingPage> remove_all(const Kind& kind, const ListRequest& which, const DeleteOptions& options,
                                         const Writer& writer);

  // ---- subresources: binding.cc, eviction.cc, and tokens. They return the response body. Errors: as for writes. ----
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource, json::value body,
                                         const Writer& writer);

 private:
  // Computes the new object from the present one. Called again after a concurrent write.
  using Change = std::function<Result<json::value>(const Object& old)>;
  struct Target {                  // of an update
    const schema::KindInfo& info;  // as requested
    const kinds::Strategy& strategy;
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
  // Sets the DisruptionTarget condition on the pod and deletes it. Errors: as remove.
  Result<void> target_and_remove(const Key& key, DeleteOptions options, const Writer& writer);
  Result<json::value> issue_token(const Key& key, json::value body, const Writer& writer);
  const Measure* measure_of(const Kind& kind) const;
  Result<engine::ListPage> measured(const Measure& measure, const engine::ListOptions& options) const;
  Result<engine::ListOptions> list_options(const schema::KindPtr& kind, const ListRequest& request) const;

  engine::Engine& engine_;
  const schema::CatalogSource& catalogs_;
  kinds::ServiceAddresses services_;
  kinds::DefinitionNames definitions_;
  kinds::Ranges ranges_;
  const Clock& clock_;
  admission::Chain admission_;
  TokenIssuer* token_issuer_ = nullptr;
  const Guard* guard_ = nullptr;
  std::vector<std::pair<const Kind*, Measure>> measures_;
};

}  // namespace coracle::registry
