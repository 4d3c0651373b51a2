// SPDX-License-Identifier: Apache-2.0
// A memory resource for JSON that counts what is taken of it: to show that a function copies nothing. It has to outlive the
// values.
#pragma once

#include <cstddef>
#include <new>

#include "runtime/base/json.h"

namespace coracle {

class CountedMemory : public json::memory_resource {
 public:
  size_t taken() const { return taken_; }

 private:
  void* do_allocate(size_t bytes, size_t) override { return ++taken_, ::operator new(bytes); }
  void do_deallocate(void* at, size_t, size_t) override { ::operator delete(at); }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }

  size_t taken_ = 0;
};

}  // namespace coracle
