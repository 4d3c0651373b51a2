// SPDX-License-Identifier: Apache-2.0
// ByteConnection: what the connections of both transports have in common after an upgrade. A transport gives receive_some() and
// write_some().
#pragma once

#include <string>
#include <string_view>

#include "store/client/http.h"

namespace coracle {

class ByteConnection : public Http::Connection {
 public:
  Result<std::string> read() override;
  bool has_more() const override { return has_more_; }
  Result<void> write(std::string_view bytes) override;

  // The headers of the server's response; later bytes are kept for read(). Errors: timeout, too_large; those of read().
  Result<std::string> read_head();
  // What arrives of `length` bytes of the body within a moment, after a refused upgrade.
  std::string read_rest(size_t length);

 protected:
  // Does not block; 0: no data now. Errors: unavailable, also at the end of the stream.
  virtual Result<size_t> receive_some(char* to, size_t size) = 0;

 private:
  std::string ahead_;
  bool has_more_ = false;
};

}  // namespace coracle
