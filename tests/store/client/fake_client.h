// SPDX-License-Identifier: Apache-2.0
// FakeClient: a Client in memory for the tests of those who act. It keeps Kubernetes' rules that reconciling depends on
// (revisions, conflicts, finalizers, graceful pod deletion, generation, status and other subresources) but validates and
// defaults nothing. It can fail on the nth call, lose an event, end watches, and forget its past. Passes client_contract.h.
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

  // Conveniences for tests: JSON text in, whatever stood there before; MUST on failure; never a counted call.
  ObjectPtr put(const Kind& kind, std::string_view json_text);
  void set_status(const Kind& kind, const Key& key, std::string_view status_json_text);
  void erase(const Kind& kind, const Key& key);            // at once, finalizers or not
  ObjectPtr find(const Kind& kind, const Key& key) const;  // null when absent
  std::vector<ObjectPtr> all(const Kind& kind, std::string_view ns = {}) const;

  // What read() answers to "horses.custom.metrics.k8s.io default/*/speed labelSelector=a%3Db", where it is not known from the
  // objects.
  void answer_read(const std::string& asked, std::string_view json_text);

  // Faults. `which` limits a failure to calls whose record (as in calls()) begins with it: "create pods".
  void fail(int nth, Error error, std::string which = {});  // 1 = the next such call; later calls succeed again
  void lose_event(int nth = 1);                             // the nth change from now reaches no watch
  // The next patch whose record begins so is done, but its answer and its event are lost.
  void lose_patch(std::string which);
  void end_watches(Error why);  // as a dropped connection
  void forget_past();           // watches from older revisions are answered with gone
  void settle() const;          // blocks until all events so far were delivered

  // What was asked, in order: "create pods default/web", "patch pods/status default/web", "list pods", "watch pods".
  std::vector<std::string> calls() const;
  void clear_calls();
  std::vector<Key> last_only() const;  // ListOptions::only of the last list
  Revision revision() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle
