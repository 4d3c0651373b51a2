// SPDX-License-Identifier: Apache-2.0
// Starting threads with a name, which `ps -T` shows and daemon/README.md lists. A thread without one would have the name of its
// creator.
#pragma once

#include <pthread.h>

#include <concepts>
#include <memory>
#include <thread>
#include <utility>

namespace coracle {

struct ThreadName {
  template <size_t N>
  consteval ThreadName(const char (&text)[N]) : text(text) {
    static_assert(N <= 16, "the kernel keeps 15 bytes of a thread's name");
  }
  const char* text;
};

// `run` takes a std::stop_token or nothing. Throws, as std::jthread's constructor does, if the machine has no more threads.
template <typename F>
std::jthread start_thread(ThreadName name, F&& run) {
  return std::jthread([name, run = std::forward<F>(run)](std::stop_token stop) mutable {
    ::pthread_setname_np(::pthread_self(), name.text);
    if constexpr (std::invocable<F&, std::stop_token>) run(std::move(stop));
    else run();
  });
}

// Starts a thread that is never joined. False: the machine has no more threads; `run` was not called.
template <std::invocable F>
bool start_detached_thread(ThreadName name, F&& run) {
  struct Begun {
    ThreadName name;
    std::decay_t<F> run;
  };
  auto begun = std::make_unique<Begun>(Begun{name, std::forward<F>(run)});
  auto begin = [](void* given) -> void* {
    std::unique_ptr<Begun> begun(static_cast<Begun*>(given));
    ::pthread_setname_np(::pthread_self(), begun->name.text);
    begun->run();
    return nullptr;
  };
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, begin, begun.get()) != 0) return false;
  (void)begun.release();
  ::pthread_detach(thread);
  return true;
}

}  // namespace coracle
