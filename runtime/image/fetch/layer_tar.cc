// SPDX-License-Identifier: Apache-2.0
// See layer_tar.h.
#include "runtime/image/fetch/layer_tar.h"

#include <fcntl.h>

#include "runtime/image/fetch/inode_tar.h"
#include "runtime/image/fetch/layer_form.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"

namespace coracle::image {
namespace {

class LayerWriter {
 public:
  explicit LayerWriter(const Sink& to) : tar_(to), inodes_(tar_, {.attribute = is_image_attribute}) {}

  Result<void> write(const Fd& layer) {
    struct stat info = TRY(sys::stat(layer));
    TRY(add_directory(layer, "./", info));
    TRY(add_contents(layer, ""));
    return tar_.end();
  }

 private:
  Result<void> add_mark(const std::string& name) { return tar_.add(plain_file(name, 0).get()); }

  Result<void> add_directory(const Fd& directory, const std::string& name, const struct stat& info) {
    TRY(inodes_.add_directory(directory, name, info));
    auto opaque = sys::get_attribute(directory, kOpaqueAttribute);
    if (opaque && *opaque == "y") TRY(add_mark(name + std::string(kOpaque)));
    return {};
  }

  // `path`: the path of `directory` with a trailing slash; "" for the layer's root.
  Result<void> add_contents(const Fd& directory, const std::string& path) {
    const std::vector<sys::DirEntry> entries = TRY(sys::list(directory));
    for (const sys::DirEntry& each : entries) {
      struct stat info = TRY(sys::stat_at(directory, each.name));
      const std::string name = path + each.name;
      if (is_whiteout(info)) {
        TRY(add_mark(path + std::string(kWhiteout) + each.name));
      } else if (S_ISDIR(info.st_mode)) {
        Fd child = TRY(sys::open_at(directory, each.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW));
        TRY(add_directory(child, name + "/", info));
        TRY(add_contents(child, name + "/"));
      } else if (S_ISREG(info.st_mode)) {
        Fd file = TRY(sys::open_at(directory, each.name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
        TRY(inodes_.add_file(file, name, info));
      } else if (!S_ISSOCK(info.st_mode)) {
        TRY(inodes_.add_other(directory, each.name, name, info));
      }
    }
    return {};
  }

  TarWriter tar_;
  InodeTar inodes_;
};

}  // namespace

Result<void> write_layer(const Fd& layer, const Sink& to) {
  LayerWriter writer(to);
  return writer.write(layer);
}

}  // namespace coracle::image
