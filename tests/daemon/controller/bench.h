// SPDX-License-Identifier: Apache-2.0
// A fixture for controllers: fake client, fake time, real informers and manager, and a simulated kubelet.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "daemon/controller/manager.h"
#include "daemon/controller/shared/common.h"
#include "runtime/base/guarded.h"
#include "tests/catalogs.h"
#include "tests/store/client/fake_client.h"

namespace coracle::controller {

class CollectedEvents : public EventSink {
 public:
  void post(EventRecord record) override {
    records_.with([&](auto& list) { list.push_back(std::move(record)); });
  }
  std::vector<EventRecord> take() {
    return records_.with([](auto& list) { return std::exchange(list, {}); });
  }
  bool has(std::string_view reason, std::string_view message) {
    return records_.with([&](auto& list) {
      return std::any_of(list.begin(), list.end(), [&](const EventRecord& record) {
        return record.reason == reason && record.message.find(message) != std::string::npos;
      });
    });
  }

 private:
  Guarded<std::vector<EventRecord>> records_;
};

struct Bench : testing::Test {
  FakeClock clock;
  FakeClient client{clock};
  CollectedEvents events;
  Informers informers{client};
  Manager manager{
      client, informers, events, built_in_catalogs(), {.root_ca = "CERT", .local_node = "pi", .terminated_pods_max = 3}, clock};

  void start() {
    client.put(kNode, R"({"metadata":{"name":"pi"},"status":{"addresses":[{"type":"InternalIP","address":"192.168.1.7"}]}})");
    MUST(informers.start());
    client.settle();
    settle();
  }
  // Runs until no controller has work at the current time.
  void settle() {
    for (int passes = 0; passes < 5000; ++passes) {
      client.settle();
      if (!manager.run_once()) return;
    }
    FAIL() << "the controllers do not come to rest";
  }
  void pass(std::chrono::seconds span) {
    for (; span.count() > 0; span -= std::chrono::seconds(1)) {
      clock.advance(std::chrono::seconds(1));
      settle();
    }
  }
  // Binds pods, makes them ready, and removes those that are being deleted. `choose` selects those that become ready.
  void play_kubelet(const std::function<bool(const Object&)>& choose = [](const Object&) { return true; }) {
    for (const ObjectPtr& pod : client.all(kPod)) {
      if (pod->deleting()) {
        client.erase(kPod, pod->key());
        continue;
      }
      if (!choose(*pod) || is_ready(view::Pod(*pod)) || is_terminal(view::Pod(*pod))) continue;
      if (view::Pod(*pod).spec().node_name().empty())
        MUST(client.create_subresource(kPod, pod->key(), "binding", {{"target", {{"name", "pi"}}}}));
      std::string ip = "10.42.0." + std::to_string(++last_ip);
      client.set_status(kPod, pod->key(),
                        R"({"phase":"Running","podIP":")" + ip + R"(","podIPs":[{"ip":")" + ip +
                            R"("}],"conditions":[{"type":"Ready","status":"True","lastTransitionTime":")" +
                            format_time(clock.now()) + R"("}]})");
    }
    settle();
  }
  size_t count(const Kind& kind, const std::string& ns = "default") { return client.all(kind, ns).size(); }
  int last_ip = 1;
};

}  // namespace coracle::controller
