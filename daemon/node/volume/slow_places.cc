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
  const Until limit = call.until.value_or(until());
  const Found found = find_or_add(call);
  const std::shared_ptr<One>& one = found.one;
  const bool is_wanted = shared_->with([&](State&) { return !one->runs && !one->is_done && !one->error; });
  const std::string owner = is_wanted ? call.owner() : "";
  // Of a pod that has waited already, nobody waits again.
  const bool is_begun = is_wanted && take_thread(owner, *one, is_kept, found.is_new ? limit : Until());
  if (is_begun) {
    const Name name{call.uid, call.what, owner};
    auto run = [shared = shared_, one, name, work, look_again = seams_.look_again] {
      const bool is_left = end(*shared, name, *one, work(one->stop.get_token()));
      if (is_left && !name.uid.empty()) look_again(name.uid);
    };
    if (!start_detached_thread("places", std::move(run)))
      (void)end(*shared_, name, *one, Error(Code::unavailable, "the machine has no more threads"));
  }
  if (is_begun || call.uid.empty())
    shared_->wait_until(
        {}, limit, [&](const State&) { return !one->runs; }, [](const State&) {});
  const SteadyTime now = seams_.clock.steady();
  return shared_->with([&](State& state) -> Result<Answer> {
    if (!one->is_done && !one->error) {
      one->is_left = one->runs;
      return Answer{false, one->runs, now - one->since};
    }
    const std::optional<Error> error = one->error;
    if (error || call.uid.empty()) erase(state.pods, call.uid, call.what, *one);
    if (error) return *error;
    if (!one->seen) one->seen = now;
    return Answer{true, false, {}};
  });
}

// An answer that is too old to believe counts for nothing.
SlowPlaces::Found SlowPlaces::find_or_add(const Call& call) {
  const SteadyTime now = seams_.clock.steady();
  return shared_->with([&](State& state) {
    std::shared_ptr<One>& one = state.pods[call.uid][call.what];
    const bool is_old = one && one->is_done && !one->is_kept && one->seen && now >= *one->seen + kSlowAgain;
    const bool is_new = !one || is_old;
    if (is_new) {
      one = std::make_shared<One>();
      one->since = now;
    }
    return Found{one, is_new};
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

void SlowPlaces::erase(Pods& pods, const std::string& uid, const std::string& what, const One& one) {
  auto pod = pods.find(uid);
  if (pod == pods.end()) return;
  auto there = pod->second.find(what);
  if (there != pod->second.end() && there->second.get() == &one) pod->second.erase(there);
  if (pod->second.empty()) pods.erase(pod);
}

// Returns whether the worker no longer waits. Where nobody is to be synced, nobody comes for the answer: the next call may be an
// hour later.
bool SlowPlaces::end(Shared& shared, const Name& name, One& one, Result<void> result) {
  const bool is_left = shared.with([&](State& state) {
    --state.threads;
    if (auto its = state.running.find(name.owner); --its->second == 0) state.running.erase(its);
    one.runs = false, one.is_done = result.ok();
    if (!result) one.error = result.take_error();
    if (one.is_left && name.uid.empty()) erase(state.pods, name.uid, name.what, one);
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
