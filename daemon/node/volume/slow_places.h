// SPDX-License-Identifier: Apache-2.0
// SlowPlaces: calls for places of the host that may not return for minutes, or never: a path on a file server that is away or on
// a broken disk, or a large tree that gets another group. Each call has a thread of its own, and a pod worker waits only a moment
// for it. A healthy place has answered by then; otherwise the pod is synced again when the call has ended. The kernel may not let
// a thread go, so nobody waits for these threads: they are detached, and their number is limited.
//   call(pod, what, work) ──within kPatience──▶ done
//                         ──later──▶ look_again(pod) ──▶ call: done, or the error
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/guarded.h"
#include "runtime/base/result.h"

namespace coracle::node {

constexpr size_t kSlowCallsMax = 32;           // threads for calls at once
constexpr size_t kSlowCallsOfOneMax = 4;       // for calls of one owner: a mount, or the walks in it
constexpr std::chrono::seconds kSlowTold{2};   // what lasts longer is reported by an event
constexpr std::chrono::seconds kSlowAgain{5};  // a place that has answered is not asked again for so long

class SlowPlaces {
 public:
  struct Seams {
    const Clock& clock;
    std::function<void(const std::string& uid)> look_again;  // syncs the pod. May be called after this object has ended
    std::chrono::milliseconds patience;                      // a worker waits so long
  };
  explicit SlowPlaces(Seams seams) : seams_(std::move(seams)) {}
  ~SlowPlaces();  // requests stop of the calls; does not wait for them

  using Work = std::function<Result<void>(std::stop_token stop)>;
  using Until = std::chrono::steady_clock::time_point;
  struct Call {
    std::string uid;                     // the pod that needs it; "" if nobody is to be synced
    std::string what;                    // the same for the same call of the pod
    std::function<std::string()> owner;  // calls with the same owner hinder each other. Called if `work` is to run
    std::optional<Until> until = {};     // the worker waits until then, or for `patience`
  };
  struct Answer {
    bool done = false;
    bool runs = false;                  // not done: false if it waits for a free thread
    std::chrono::nanoseconds waited{};  // not done: how long the pod has waited for it
  };
  // Runs `work`, unless the same call of the pod is running or has succeeded (within kSlowAgain, or without limit if `is_kept`).
  // Blocks until `call.until` at most; if the pod has waited for this call before, only if the call begins now. `work` must not
  // refer to anything that may end before it. Errors: those of `work`, returned once; the next call tries again. An answer for no
  // pod that comes after that is forgotten.
  Result<Answer> call(const Call& call, bool is_kept, const Work& work);
  // For the calls of one sync: all of them together wait for `patience`.
  Until until() const { return std::chrono::steady_clock::now() + seams_.patience; }
  // Whether a call of the pod that is to be kept still runs: it is asked to stop, and the pod is synced when it has.
  bool is_stopping(const std::string& uid);
  void forget(const std::string& uid);       // all calls of the pod
  void forget_kept(const std::string& uid);  // its calls that were to be kept and have ended

 private:
  struct One {
    SteadyTime since;  // the pod waits
    bool runs = false, is_kept = false;
    bool is_left = false;  // the worker no longer waits for it
    bool is_done = false;
    std::optional<SteadyTime> seen;  // when the pod got to know that it is done
    std::optional<Error> error;
    std::stop_source stop;
  };
  using Pods = std::map<std::string, std::map<std::string, std::shared_ptr<One>>>;  // by uid and Call::what
  struct State {
    Pods pods;
    std::map<std::string, size_t> running;  // by owner
    size_t threads = 0;
  };
  using Shared = Guarded<State>;
  struct Found {
    std::shared_ptr<One> one;
    bool is_new;
  };
  Found find_or_add(const Call& call);
  bool take_thread(const std::string& owner, One& one, bool is_kept, Until until);
  struct Name {  // of a call
    std::string uid, what, owner;
  };
  static void erase(Pods& pods, const std::string& uid, const std::string& what, const One& one);
  static bool end(Shared& shared, const Name& name, One& one, Result<void> result);

  const Seams seams_;
  const std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
};

}  // namespace coracle::node
