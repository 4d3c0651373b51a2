// SPDX-License-Identifier: Apache-2.0
// Fuzzes a layer: decompression, tar, and unpacking into a directory. The directory's sibling must not change.
#include <sys/stat.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "runtime/image/fetch/unpack.h"
#include "runtime/sys/file.h"

namespace {

class Bytes : public coracle::image::Source {
 public:
  explicit Bytes(std::string_view bytes) : left_(bytes) {}
  coracle::Result<std::string_view> next() override {
    std::string_view piece = left_.substr(0, 512);
    left_.remove_prefix(piece.size());
    return piece;
  }

 private:
  std::string_view left_;
};

struct TempDir {
  std::string path;
  TempDir() {
    std::string pattern = (std::filesystem::temp_directory_path() / "coracle-fuzz-XXXXXX").string();
    path = ::mkdtemp(pattern.data());
  }
  ~TempDir() { std::filesystem::remove_all(path); }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  namespace fs = std::filesystem;
  static const TempDir temporary;
  const std::string& base = temporary.path;
  const std::string target = base + "/layer";
  fs::create_directory(target);
  {
    Bytes source(std::string_view(reinterpret_cast<const char*>(bytes), size));
    coracle::image::DecompressingSource plain(source);
    coracle::image::UnpackLimits limits;
    limits.bytes_max = 1 << 20;
    limits.entries_max = 200;
    auto dir = coracle::sys::open_directory(target);
    if (!dir) std::abort();
    (void)coracle::image::unpack_layer(plain, *dir, false, limits);
  }
  size_t siblings = 0;
  for (const auto& entry : fs::directory_iterator(base)) (void)entry, ++siblings;
  if (siblings != 1) std::abort();  // something was written outside
  fs::remove_all(target);
  return 0;
}
