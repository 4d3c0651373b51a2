// SPDX-License-Identifier: Apache-2.0
// WaitOnce: one thread waits once for another, without a lock. Not std::atomic's wait, which spins before it sleeps: the other
// thread needs the processor.
#pragma once

#include <semaphore.h>

namespace coracle {

class WaitOnce {
 public:
  WaitOnce() { ::sem_init(&given_, 0, 0); }
  ~WaitOnce() { ::sem_destroy(&given_); }
  WaitOnce(const WaitOnce&) = delete;
  WaitOnce& operator=(const WaitOnce&) = delete;
  // Blocks until give() was called.
  void wait() {
    while (::sem_wait(&given_) != 0) {
    }  // interrupted by a signal
  }
  void give() { ::sem_post(&given_); }  // afterwards, this may be destroyed

 private:
  sem_t given_;
};

}  // namespace coracle
