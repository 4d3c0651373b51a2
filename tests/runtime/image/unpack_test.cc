// SPDX-License-Identifier: Apache-2.0
// Unpacking layers: the result of valid ones, and that invalid ones have no effect outside their directory. Needs root.
#include "runtime/image/fetch/unpack.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <filesystem>

#include "runtime/sys/file.h"
#include "tests/runtime/image/builder.h"

namespace coracle::image {
namespace {

using namespace test;
namespace fs = std::filesystem;

class TextSource : public Source {  // returns chunks of a given size, to find errors at chunk boundaries
 public:
  explicit TextSource(std::string text, size_t piece = 1000) : text_(std::move(text)), piece_(piece) {}
  Result<std::string_view> next() override {
    std::string_view out = std::string_view(text_).substr(at_, piece_);
    at_ += out.size();
    return out;
  }

 private:
  std::string text_;
  size_t piece_, at_ = 0;
};

class Unpack : public testing::Test {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "needs root: owners, devices and trusted attributes";
    target_ = dir_.path() + "/layer";
    fs::create_directory(target_);
    ::chmod(target_.c_str(), 0755);
    write_text(dir_.path() + "/outside", "untouched");
    ::chmod((dir_.path() + "/outside").c_str(), 0600);
  }
  Result<Unpacked> unpack(const std::string& tar, bool bottom = true, const UnpackLimits& limits = {}) {
    TextSource source(tar);
    Fd target = *sys::open_directory(target_);
    return unpack_layer(source, target, bottom, limits);
  }
  struct stat stat(const std::string& name) {
    struct stat info {};
    EXPECT_EQ(::lstat((target_ + "/" + name).c_str(), &info), 0) << name;
    return info;
  }
  std::string attribute(const std::string& name, const char* key) {
    char value[256];
    ssize_t size = ::lgetxattr((target_ + "/" + name).c_str(), key, value, sizeof value);
    return size < 0 ? "(none)" : std::string(value, size_t(size));
  }
  void expect_nothing_outside(const std::string& what) {
    EXPECT_EQ(read_text(dir_.path() + "/outside"), "untouched") << what;
    struct stat info {};
    ::stat((dir_.path() + "/outside").c_str(), &info);
    EXPECT_EQ(info.st_mode & 07777, 0600u) << what;
    size_t count = 0;
    for (const auto& entry : fs::directory_iterator(dir_.path())) (void)entry, ++count;
    EXPECT_EQ(count, 2u) << what << " made something outside";
  }
  TempDir dir_;
  std::string target_;
};

TEST_F(Unpack, keeps_everything_a_file_has) {
  std::string capability("\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", 20);
  auto done = unpack(make_tar({
      {"./", 'd', "", 0751, 3, 4, 111},
      {"etc", 'd', "", 0755, 0, 0, 222},
      {"etc/file", 'f', "hello", 04755, 1000, 1001, 333, {{"user.note", "n"}, {"security.capability", capability}}},
      {"etc/link", 'l', "../../elsewhere", 0777, 7, 8, 444},
      {"etc/hard", 'h', "etc/file"},
      {"etc/null", 'c', "", 0666, 0, 5, 555, {}, 1, 3},
      {"etc/loop", 'b', "", 0660, 0, 6, 555, {}, 7, 0},
      {"etc/fifo", 'p', "", 0622, 0, 0, 666},
      {"sticky", 'd', "", 01777},
      {"a\xc3\xa4\xe2\x82\xac", 'f', "name"},
  }));
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_TRUE(done->implicit_dirs.empty());
  EXPECT_EQ(done->size.count, 9);
  auto root = stat(".");
  EXPECT_EQ(root.st_mode & 07777, 0751u);
  EXPECT_EQ(root.st_uid, 3u);
  EXPECT_EQ(root.st_mtime, 111);
  EXPECT_EQ(stat("etc").st_mtime, 222) << "set after its children";
  auto file = stat("etc/file");
  EXPECT_EQ(file.st_mode & 07777, 04755u) << "chown clears setuid: mode comes after it";
  EXPECT_EQ(file.st_uid, 1000u);
  EXPECT_EQ(file.st_gid, 1001u);
  EXPECT_EQ(file.st_mtime, 333);
  EXPECT_EQ(file.st_nlink, 2u);
  EXPECT_EQ(stat("etc/hard").st_ino, file.st_ino);
  EXPECT_EQ(attribute("etc/file", "security.capability"), capability);
  EXPECT_EQ(stat("etc/link").st_uid, 7u);
  EXPECT_EQ(stat("etc/link").st_mtime, 444);
  EXPECT_EQ(stat("etc/null").st_rdev, makedev(1, 3));
  EXPECT_EQ(stat("etc/null").st_mode & 07777, 0666u);
  EXPECT_EQ(stat("etc/loop").st_rdev, makedev(7, 0));
  EXPECT_TRUE(S_ISFIFO(stat("etc/fifo").st_mode));
  EXPECT_EQ(stat("etc/fifo").st_mode & 07777, 0622u);
  EXPECT_EQ(stat("sticky").st_mode & 07777, 01777u);
  EXPECT_TRUE(fs::exists(target_ + "/a\xc3\xa4\xe2\x82\xac"));
}

TEST_F(Unpack, the_last_entry_of_a_name_wins) {
  auto done = unpack(make_tar({
      {"a", 'f', "one"},
      {"a", 'f', "two"},
      {"b", 'd'},
      {"b/x", 'f', "x"},
      {"b", 'f', "file"},
      {"c", 'l', "/nowhere"},
      {"c", 'd', "", 0755},
      {"c/y", 'f', "y"},
      {"d", 'd', "", 0700},
      {"d/z", 'f', "z"},
      {"d", 'd', "", 0755},
      {"e", 'f', "e"},
      {"e", 'h', "e"},
  }));
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(read_text(target_ + "/a"), "two");
  EXPECT_EQ(read_text(target_ + "/b"), "file");
  EXPECT_EQ(read_text(target_ + "/c/y"), "y");
  EXPECT_EQ(read_text(target_ + "/d/z"), "z");
  EXPECT_EQ(stat("d").st_mode & 07777, 0755u);
  EXPECT_EQ(read_text(target_ + "/e"), "e");
}

TEST_F(Unpack, whiteouts_become_the_overlays) {
  auto done = unpack(make_tar({
                         {".wh.gone", 'f'},
                         {"dir/.wh..wh..opq", 'f'},
                         {"dir/mine", 'f', "m"},
                         {"new", 'd'},
                         {".wh.new", 'f'},  // files of this layer stay, those of lower layers do not
                         {".wh.later", 'f'},
                         {"later", 'd', "", 0755},
                         {"later/x", 'f', "x"},
                         {"kept", 'f', "k"},
                         {".wh.kept", 'f'},
                         {".wh..wh.plnk", 'd'},
                         {".wh.through", 'f'},
                         {"through/deep", 'f', "t"},
                     }),
                     false);
  ASSERT_TRUE(done.ok()) << done.error().text();
  auto gone = stat("gone");
  EXPECT_TRUE(S_ISCHR(gone.st_mode) && gone.st_rdev == 0);
  EXPECT_EQ(attribute("dir", "trusted.overlay.opaque"), "y");
  EXPECT_EQ(attribute("new", "trusted.overlay.opaque"), "y");
  EXPECT_EQ(attribute("later", "trusted.overlay.opaque"), "y");
  EXPECT_EQ(attribute("through", "trusted.overlay.opaque"), "y");
  EXPECT_EQ(read_text(target_ + "/kept"), "k");
  EXPECT_FALSE(fs::exists(target_ + "/.wh..wh.plnk"));
  EXPECT_EQ(done->implicit_dirs, (std::set<std::string>{"", "dir", "through"}));
}

TEST_F(Unpack, the_bottom_layer_hides_nothing) {
  auto done = unpack(make_tar({{".wh.gone", 'f'}, {"d/.wh..wh..opq", 'f'}}));
  ASSERT_TRUE(done.ok()) << done.error().text();
  EXPECT_EQ(tree_of(target_), "d d 755 0:0\n");
  EXPECT_EQ(attribute("d", "trusted.overlay.opaque"), "(none)");
}

TEST_F(Unpack, links_lead_about_inside_but_never_out) {
  struct Row {
    const char* name;
    std::vector<Entry> entries;
    const char* inside;  // the file that must then exist inside; "" = the layer is refused
  };
  const std::string out = dir_.path() + "/outside", up = "../../../../../../../../../.." + out;
  for (const Row& row : {
           Row{"dot dot", {{"../outside", 'f', "evil"}}, ""},
           Row{"dot dot behind a slash", {{"/../outside", 'f', "evil"}}, ""},
           Row{"dot dot in the middle", {{"a/../../outside", 'f', "evil"}}, ""},
           Row{"absolute names are inside", {{"/etc/x", 'f', "x"}}, "etc/x"},
           Row{"link to the host's root", {{"l", 'l', "/"}, {"l/x", 'f', "x"}}, "x"},
           Row{"link up", {{"l", 'l', "../../.."}, {"l/x", 'f', "x"}}, "x"},
           Row{"link to a host file, then written", {{"l", 'l', out}, {"l", 'f', "evil"}}, "l"},
           Row{"link to a host file, then its mode", {{"l", 'l', out}, {"l", 'd', "", 0777}}, "l"},
           Row{"relative link to a host file, then its mode", {{"l", 'l', "../outside"}, {"l", 'd', "", 0777}}, "l"},
           Row{"link to a host directory, then into it", {{"l", 'l', dir_.path()}, {"l/outside", 'f', "evil"}}, ""},
           Row{"hard link out", {{"h", 'h', "../outside"}, {"h", 'f', "evil"}}, ""},
           Row{"hard link out, absolute", {{"h", 'h', out}}, ""},
           Row{"hard link far up", {{"h", 'h', up}}, ""},
           Row{"hard link through a link", {{"l", 'l', ".."}, {"h", 'h', "l/outside"}}, ""},
           Row{"hard link to a link, then written", {{"l", 'l', out}, {"h", 'h', "l"}, {"h", 'f', "evil"}}, "h"},
           Row{"hard link to a directory", {{"d", 'd'}, {"h", 'h', "d"}}, ""},
           Row{"hard link to nothing", {{"h", 'h', "none"}}, ""},
           Row{"the root is a link", {{".", 'l', dir_.path()}, {"x", 'f', "evil"}}, ""},
           Row{"the root is a file", {{"./", 'f', "x"}}, ""},
           Row{"the root is a hard link", {{"f", 'f'}, {".", 'h', "f"}}, ""},
           Row{"whiteout of dot dot", {{".wh...", 'f'}}, ""},
           Row{"whiteout of nothing", {{".wh.", 'f'}}, ""},
           Row{"whiteout of the directory", {{"d/.wh..", 'f'}}, ""},
           Row{"whiteout through a link", {{"l", 'l', ".."}, {"l/.wh.outside", 'f'}}, ""},
           Row{"opaque through a link", {{"l", 'l', dir_.path()}, {"l/.wh..wh..opq", 'f'}}, ""},
           Row{"a file as a directory", {{"f", 'f'}, {"f/x", 'f'}}, ""},
           Row{"a dangling link as a directory", {{"l", 'l', "/none"}, {"l/x", 'f'}}, ""},
           Row{"a device as a directory", {{"c", 'c', "", 0644, 0, 0, 0, {}, 1, 3}, {"c/x", 'f'}}, ""},
           Row{"a hard link to a whiteout", {{".wh.x", 'f'}, {"h", 'h', "x"}}, ""},
           Row{"owner out of range", {{"f", 'f', "", 0644, int64_t(1) << 32}}, ""},
       }) {
    fs::remove_all(target_);
    fs::create_directory(target_);
    auto done = unpack(make_tar(row.entries), false);
    expect_nothing_outside(row.name);
    // Either refused, or the name was resolved inside the directory.
    if (*row.inside) {
      EXPECT_TRUE(done.ok()) << row.name << ": " << done.error().text();
      EXPECT_TRUE(fs::exists(fs::symlink_status(target_ + "/" + row.inside))) << row.name;
    } else if (done) {
      EXPECT_NE(std::string(row.name).find("link"), std::string::npos) << row.name << " was not refused";
    } else {
      EXPECT_TRUE(done.error().code() == Code::invalid || done.error().code() == Code::not_found)
          << row.name << ": " << done.error().text();
    }
  }
}

TEST_F(Unpack, images_do_not_speak_to_the_overlay_in_our_name) {
  auto done = unpack(make_tar({{"f",
                                'f',
                                "",
                                0644,
                                0,
                                0,
                                0,
                                {{"trusted.overlay.redirect", "/etc"},
                                 {"user.overlay.opaque", "y"},
                                 {"trusted.other", "x"},
                                 {"security.selinux", "x"},
                                 {"user.fine", "y"}}},
                               {"d", 'd', "", 0755, 0, 0, 0, {{"trusted.overlay.opaque", "y"}}}}));
  ASSERT_TRUE(done.ok()) << done.error().text();
  for (const char* key : {"trusted.overlay.redirect", "user.overlay.opaque", "trusted.other", "security.selinux"})
    EXPECT_EQ(attribute("f", key), "(none)") << key;
  EXPECT_EQ(attribute("d", "trusted.overlay.opaque"), "(none)");
}

TEST_F(Unpack, has_limits) {
  struct Row {
    const char* name;
    std::string tar;
    UnpackLimits limits;
  };
  std::string deep;
  for (int i = 0; i < 300; ++i) deep += "d/";
  UnpackLimits entries, bytes, space;
  entries.entries_max = 3;
  bytes.bytes_max = 10;
  space.free_reserve_bytes = INT64_MAX;
  for (const Row& row : {
           Row{"entries", make_tar({{"a"}, {"b"}, {"c"}, {"d"}}), entries},
           Row{"bytes", make_tar({{"a", 'f', "12345"}, {"b", 'f', "678901"}}), bytes},
           Row{"depth", make_tar({{deep + "x"}}), {}},
           Row{"name", make_tar({{std::string(300, 'x')}}), {}},
           Row{"path", make_tar({{std::string(5000, '/') + "x"}}), {}},
           Row{"space", make_tar({{"a", 'f', std::string(1000, 'x')}}), space},
       }) {
    auto done = unpack(row.tar, true, row.limits);
    ASSERT_FALSE(done.ok()) << row.name;
    EXPECT_NE(done.error().code(), Code::internal) << row.name << ": " << done.error().text();
  }
}

TEST_F(Unpack, a_cut_off_stream_is_an_error_at_any_byte) {
  std::string tar = make_tar({{"a", 'f', std::string(700, 'a')}, {"b", 'd'}, {"b/c", 'f', std::string(3000, 'c')}});
  for (Packing packing : {Packing::gzip, Packing::zstd}) {
    std::string packed = pack(tar, packing);
    for (size_t size = 1; size < packed.size(); size += 3) {
      TextSource cut(packed.substr(0, size), 17);
      DecompressingSource plain(cut);
      HashingSource hashed(plain);
      Fd target = *sys::open_directory(target_);
      auto done = unpack_layer(hashed, target, true);
      EXPECT_TRUE(!done.ok() || hashed.digest() != digest_of(tar)) << size << " of " << packed.size();
    }
  }
}

// Some builders omit it, and Go's reader accepts that.
TEST_F(Unpack, the_padding_of_the_last_file_may_be_missing) {
  for (size_t size : {1, 511, 513, 700, 5000}) {
    std::string content(size, 'x'), tar = make_tar({{"a", 'f', "1"}, {"b", 'f', content}});
    size_t end = tar.find(content) + size;
    for (size_t kept : {end, end + 1}) {
      auto done = unpack(tar.substr(0, kept));
      ASSERT_TRUE(done.ok()) << size << ": " << done.error().text();
      EXPECT_EQ(read_text(target_ + "/b"), content);
    }
    EXPECT_FALSE(unpack(tar.substr(0, end - 1)).ok()) << size << ": its last byte is missing";
  }
}

TEST_F(Unpack, rubbish_is_an_error_not_a_crash) {
  std::string tar = make_tar({{"a", 'f', "hello"}, {"l", 'l', "a"}, {"h", 'h', "a"}, {"d", 'd'}});
  unsigned seed = 12345;
  for (int i = 0; i < 300; ++i) {
    std::string bad = tar;
    for (int j = 0; j < 3; ++j) {
      seed = seed * 1103515245 + 12345;
      bad[(seed >> 8) % bad.size()] = char(seed >> 3);
    }
    (void)unpack(bad);  // any result except a crash or an effect outside
  }
  expect_nothing_outside("rubbish");
}

TEST_F(Unpack, implicit_directories_look_as_below) {
  std::string below = dir_.path() + "/below";
  fs::create_directories(below + "/a/b");
  ::chmod((below + "/a").c_str(), 01777);
  ASSERT_EQ(::chown((below + "/a/b").c_str(), 5, 6), 0);
  auto done = unpack(make_tar({{"a/b/c/file", 'f', "x"}}), false);
  ASSERT_TRUE(done.ok()) << done.error().text();
  Fd layer = *sys::open_directory(target_), lower = *sys::open_directory(below);
  ASSERT_TRUE(inherit_directories(layer, done->implicit_dirs, {&lower}).ok());
  EXPECT_EQ(stat("a").st_mode & 07777, 01777u);
  EXPECT_EQ(stat("a/b").st_uid, 5u);
  EXPECT_EQ(stat("a/b/c").st_mode & 07777, 0755u);
  fs::remove_all(below);
}

}  // namespace
}  // namespace coracle::image
