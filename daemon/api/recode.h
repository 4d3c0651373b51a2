// SPDX-License-Identifier: Apache-2.0
// Compressed bodies: of long answers, and of pages behind the proxy, which are opened and closed again piece by piece, for their
// links are rewritten on the way. Holds a window and a piece, never the body, whatever it unpacks to. Source: RFC 9110 section
// 8.4.1 (codings), RFC 1950 to 1952.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::api {

enum class Coding { none, gzip, deflate };  // deflate: with its wrapper, or bare, as some servers send it

class Unpacker {
 public:
  explicit Unpacker(Coding coding);
  ~Unpacker();
  // Hands over what `bytes` unpack to, in pieces, until `take` returns false. Errors: bad_request, not packed in this way.
  Result<void> feed(std::string_view bytes, const std::function<bool(std::string_view)>& take);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Packer {
 public:
  explicit Packer(Coding coding);
  ~Packer();
  bool works() const;                                   // false: there is no memory for it
  void feed(std::string_view bytes, std::string& out);  // all of it is in `out` afterwards: a reader need not wait
  void add(std::string_view bytes, std::string& out);   // some of it may be in `out` with what follows
  void end(std::string& out, std::string_view last = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api
