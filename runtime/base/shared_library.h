// SPDX-License-Identifier: Apache-2.0
// A shared library that a program loads at its first use: a library that is linked costs time at every start, also of commands
// that do not use it. Source: dlopen(3), dlsym(3).
#pragma once

#include <span>
#include <string>

#include "runtime/base/result.h"

namespace coracle {

class SharedLibrary {
 public:
  // `name` is the library's soname: "libcurl.so.4". The library stays loaded until the process ends. Errors: unavailable.
  static Result<SharedLibrary> load(const char* name);

  // Sets `function` to the library's function `name`. Errors: unavailable.
  template <typename Function>
  Result<void> find(Function*& function, const char* name) const {
    void* address = TRY(address_of(name));
    function = reinterpret_cast<Function*>(address);
    return {};
  }

  Result<void*> address_of(const char* name) const;  // Errors: unavailable

 private:
  SharedLibrary(const char* name, void* handle) : name_(name), handle_(handle) {}

  const char* name_;
  void* handle_;
};

// A library's function, and the pointer variable of the same name that stands for it.
struct LibraryFunction {
  void* pointer;  // the variable's address
  const char* name;
};
#define CORACLE_LIBRARY_FUNCTION(name) coracle::LibraryFunction{&name, #name},

// Loads the library and sets all pointers. Errors: unavailable; then some are not set.
Result<void> load_functions(const char* library, std::span<const LibraryFunction> functions);

}  // namespace coracle
