// SPDX-License-Identifier: Apache-2.0
// FakeClient: a Client in memory for tests of controllers and other clients. It follows the rules of Kubernetes that reconciling
// depends on (revisions, conflicts, finalizers, graceful pod deletion, generation, status and other subresources), without
// validation and defaults. The nth call can fail, an event can be lost, watches can end, and old revisions can be forgotten.
// Passes client_contract.h.
//
//   FakeClient client;
//   client.fail(3, Error(Code::unavailable, "disk is full"));   // the third call from now
//   client.lose_event();                                        // the next event reaches no watch
//   client.settle();                                            // every event so far has reached every sink
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "store/client/client.h"

namespace coracle {

class FakeClient : public Client {
 public:
  explicit FakeClient(const Clock& clock = system_clock());
  ~FakeClient() override;

  Result<ObjectPtr> get(const Kind& kind, const Key& key) override;
  Result<json::value> read(const Kind& kind, const Key& key, std::string_view subresource,
                           const ReadParameters& parameters = {}) override;
  Result<ObjectList> list(const Kind& kind, const ListOptions& options) override;
  Result<ObjectPtr> create(const Kind& kind, const json::value& body) override;
  Result<ObjectPtr> update(const Kind& kind, const json::value& body, const UpdateOptions& options = {}) override;
  Result<ObjectPtr> patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                          const UpdateOptions& options = {}) override;
  Result<void> remove(const Kind& kind, const Key& key, const DeleteOptions& options = {}) override;
  Result<json::value> create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                         const json::value& body) override;
  Result<std::unique_ptr<Watch>> watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) override;

  // Conveniences for tests: they take JSON text, replace any existing object, end the test on failure, and are not counted as
  // calls.
  ObjectPtr put(const Kind& kind, std::string_view json_text);
  void set_status(const Kind& kind, const Key& key, std::string_view status_json_text);
  void erase(const Kind& kind, const Key& key);            // at once, in spite of finalizers
  ObjectPtr find(const Kind& kind, const Key& key) const;  // null when absent
  std::vector<ObjectPtr> all(const Kind& kind, std::string_view ns = {}) const;

  // Sets the answer of read() to "horses.custom.metrics.k8s.io default/*/speed labelSelector=a%3Db", when the objects do not
  // determine it.
  void answer_read(const std::string& asked, std::string_view json_text);

  // Faults. `which` limits a failure to calls whose record (as in calls()) begins with it: "create pods".
  void fail(int nth, Error error, std::string which = {});  // 1 = the next such call; later calls succeed again
  void lose_event(int nth = 1);                             // the nth change from now reaches no watch
  // Executes the next patch whose record begins with `which`, but loses its response and its event.
  void lose_patch(std::string which);
  void end_watches(Error why);  // as when the connection is lost
  void forget_past();           // watches from older revisions fail with gone
  void settle() const;          // blocks until all events so far were delivered

  // The calls in order: "create pods default/web", "patch pods/status default/web", "list pods", "watch pods".
  std::vector<std::string> calls() const;
  void clear_calls();
  std::vector<Key> last_only() const;  // ListOptions::only of the last list
  Revision revision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
