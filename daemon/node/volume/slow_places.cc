// SPDX-License-Identifier: Apache-2.0
// See slow_places.h.
#include "daemon/node/volume/slow_places.h"

#include "runtime/base/thread.h"

namespace coracle::node {

SlowPlaces::~SlowPlaces() {
  shared_->with([](State& state) {
    for (auto& [uid, calls] : state.pods)
      for (auto& [what, one] : calls) one->stop.request_stop();
  });
}

Result<SlowPlaces::Answer> SlowPlaces::call(const Call& call, bool is_kept, const Work& work) {
  const Until until = std::chrono::steady_clock::now() + seams_.patience;
  const std::shared_ptr<One> one = find_or_add(call);
  const bool is_wanted = shared_->with([&](State&) { return !one->runs && !one->is_done && !one->error; });
  const std::string owner = is_wanted ? call.owner() : "";
  const bool is_begun = is_wanted && take_thread(owner, *one, is_kept, until);
  if (is_begun) {
    auto run = [shared = shared_, one, owner, uid = call.uid, work, look_again = seams_.look_again] {
      const bool is_left = end(*shared, owner, *one, work(one->stop.get_token()));
      if (is_left && !uid.empty()) look_again(uid);
    };
    if (!start_detached_thread("places", std::move(run)))
      (void)end(*shared_, owner, *one, Error(Code::unavailable, "the machine has no more threads"));
  }
  if (is_begun || call.uid.empty())  // of a pod that has waited already, nobody waits again
    shared_->wait_until(
        {}, until, [&](const State&) { return !one->runs; }, [](const State&) {});
  const SteadyTime now = seams_.clock.steady();
  return shared_->with([&](State& state) -> Result<Answer> {
    if (!one->is_done && !one->error) {
      one->is_left = one->runs;
      return Answer{false, one->runs, now - one->since};
    }
    const std::optional<Error> error = one->error;
    if (error || call.uid.empty()) erase(state.pods, call);
    if (error) return *error;
    if (!one->seen) one->seen = now;
    return Answer{true, false, {}};
  });
}

// An answer that is too old to believe counts for nothing.
std::shared_ptr<SlowPlaces::One> SlowPlaces::find_or_add(const Call& call) {
  const SteadyTime now = seams_.clock.steady();
  return shared_->with([&](State& state) {
    std::shared_ptr<One>& one = state.pods[call.uid][call.what];
    bool is_old = one && one->is_done && !one->is_kept && one->seen && now >= *one->seen + kSlowAgain;
    if (!one || is_old) {
      one = std::make_shared<One>();
      one->since = now;
    }
    return one;
  });
}

// False: none was free before the deadline.
bool SlowPlaces::take_thread(const std::string& owner, One& one, bool is_kept, Until until) {
  auto is_free = [&](const State& state) {
    auto its = state.running.find(owner);
    return state.threads < kSlowCallsMax && (its == state.running.end() || its->second < kSlowCallsOfOneMax);
  };
  return shared_->wait_until({}, until, is_free, [&](State& state) {
    if (!is_free(state) || one.runs) return false;
    ++state.threads, ++state.running[owner];
    one.is_left = false, one.is_kept = is_kept;
    return one.runs = true;
  });
}

void SlowPlaces::erase(Pods& pods, const Call& call) {
  auto pod = pods.find(call.uid);
  if (pod == pods.end()) return;
  pod->second.erase(call.what);
  if (pod->second.empty()) pods.erase(pod);
}

// Returns whether the worker no longer waits.
bool SlowPlaces::end(Shared& shared, const std::string& owner, One& one, Result<void> result) {
  const bool is_left = shared.with([&](State& state) {
    --state.threads;
    if (auto its = state.running.find(owner); --its->second == 0) state.running.erase(its);
    one.runs = false, one.is_done = result.ok();
    if (!result) one.error = result.take_error();
    return one.is_left;
  });
  shared.notify();
  return is_left;
}

bool SlowPlaces::is_stopping(const std::string& uid) {
  return shared_->with([&](State& state) {
    auto pod = state.pods.find(uid);
    bool any = false;
    if (pod == state.pods.end()) return any;
    for (auto& [what, one] : pod->second) {
      if (!one->runs || !one->is_kept) continue;
      one->stop.request_stop();
      any = one->is_left = true;
    }
    return any;
  });
}

void SlowPlaces::forget_kept(const std::string& uid) {
  shared_->with([&](State& state) {
    auto pod = state.pods.find(uid);
    if (pod == state.pods.end()) return;
    std::erase_if(pod->second, [](const auto& each) { return each.second->is_kept && !each.second->runs; });
    if (pod->second.empty()) state.pods.erase(pod);
  });
}

void SlowPlaces::forget(const std::string& uid) {
  shared_->with([&](State& state) { state.pods.erase(uid); });
}

}  // namespace coracle::node
