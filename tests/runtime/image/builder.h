// SPDX-License-Identifier: Apache-2.0
// Builds tars, layers, images and archives for this component's tests: valid ones, and invalid ones of every kind that tar can
// encode.
#pragma once

#include <sys/types.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace coracle::image::test {

struct Entry {
  std::string name;
  char type = 'f';           // f file, d directory, l symbolic link, h hard link, c b devices, p fifo
  std::string content = {};  // or the link's target
  mode_t mode = 0644;
  int64_t uid = 0, gid = 0, mtime = 1'000'000'000;
  std::map<std::string, std::string> attributes = {};
  unsigned major = 0, minor = 0;
};

std::string make_tar(const std::vector<Entry>& entries);

enum class Packing { plain, gzip, zstd, xz, bzip2, lz4 };
std::string pack(const std::string& bytes, Packing packing);

struct TestLayer {
  std::string tar;
  Packing packing = Packing::gzip;
};

struct TestImage {
  std::vector<TestLayer> layers;
  std::string config = R"({"Cmd":["/bin/sh"],"Env":["A=b"]})";  // the "config" member
  std::string architecture = "";                                // "" = this machine's
};

std::string oci_config(const TestImage& image);
// The files of an OCI layout, by name. `name` is the reference in index.json; "" for none.
std::map<std::string, std::string> oci_layout(const TestImage& image, const std::string& name);
std::map<std::string, std::string> docker_layout(const TestImage& image, const std::string& tag);
std::string archive_of(const std::map<std::string, std::string>& files, Packing packing = Packing::plain);
std::string digest_text(const std::string& bytes);

// A temporary directory under TMPDIR or /var/tmp, removed with this object.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string read_text(const std::string& path);
void write_text(const std::string& path, const std::string& text);
// The whole tree as text, one sorted line per object: type, mode, uid:gid, size or target, name.
std::string tree_of(const std::string& path);

}  // namespace coracle::image::test
