// SPDX-License-Identifier: Apache-2.0
// Compression of bodies: of long responses, and of HTML pages behind the proxy, which are decompressed and compressed again in
// pieces because their links are rewritten. Memory use is one window and one piece, regardless of the decompressed size. Source:
// RFC 9110 section 8.4.1 (codings), RFC 1950 to 1952.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/result.h"

namespace coracle::api {

enum class Coding { none, gzip, deflate };  // deflate: with the zlib wrapper, or raw, as some servers send it

class Unpacker {
 public:
  explicit Unpacker(Coding coding);
  ~Unpacker();
  // Decompresses `bytes` and passes the result to `take` in pieces until it returns false. Errors: bad_request if the data is not
  // in this coding.
  Result<void> feed(std::string_view bytes, const std::function<bool(std::string_view)>& take);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

class Packer {
 public:
  explicit Packer(Coding coding);
  ~Packer();
  bool works() const;                                   // false: out of memory
  void feed(std::string_view bytes, std::string& out);  // flushes: the reader can decompress everything given so far
  void add(std::string_view bytes, std::string& out);   // does not flush: a part may come with later output
  void end(std::string& out, std::string_view last = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::api
