// SPDX-License-Identifier: Apache-2.0
// References and digests: docker's normalisation, and all refusals.
#include "runtime/image/reference.h"

#include <gtest/gtest.h>

namespace coracle::image {
namespace {

const std::string kHex(64, 'a');

TEST(Reference, normalises_as_docker_does) {
  struct Row {
    std::string text, want;
  };
  for (const Row& row : {
           Row{"nginx", "docker.io/library/nginx:latest"},
           Row{"nginx:1.27", "docker.io/library/nginx:1.27"},
           Row{"docker.io/nginx", "docker.io/library/nginx:latest"},
           Row{"index.docker.io/nginx", "docker.io/library/nginx:latest"},
           Row{"library/nginx", "docker.io/library/nginx:latest"},
           Row{"grafana/loki:3", "docker.io/grafana/loki:3"},
           Row{"localhost/busybox", "localhost/busybox:latest"},
           Row{"localhost:5000/a/b/c:x", "localhost:5000/a/b/c:x"},
           Row{"[::1]:5000/a", "[::1]:5000/a:latest"},
           Row{"[fe80::1]/a:1", "[fe80::1]/a:1"},
           Row{"registry.k8s.io/pause:3.10", "registry.k8s.io/pause:3.10"},
           Row{"Host/a", "Host/a:latest"},
           Row{"a__b/c.d-e---f_g", "docker.io/a__b/c.d-e---f_g:latest"},
           Row{"nginx@sha256:" + kHex, "docker.io/library/nginx@sha256:" + kHex},
           Row{"nginx:1@sha256:" + kHex, "docker.io/library/nginx:1@sha256:" + kHex},
           Row{"a:" + std::string(128, 'x'), "docker.io/library/a:" + std::string(128, 'x')},
       }) {
    auto got = parse_reference(row.text);
    ASSERT_TRUE(got.ok()) << row.text << ": " << got.error().text();
    EXPECT_EQ(got->text(), row.want);
    auto again = parse_reference(got->text());
    ASSERT_TRUE(again.ok()) << got->text();
    EXPECT_EQ(again->text(), row.want) << "normalising twice";
  }
}

TEST(Reference, refuses) {
  for (const std::string& text : {std::string(),
                                  std::string(":"),
                                  std::string("nginx:"),
                                  std::string("Nginx"),
                                  std::string("a/B"),
                                  std::string("a//b"),
                                  std::string("/a"),
                                  std::string("a/"),
                                  std::string("a___b"),
                                  std::string("a..b"),
                                  std::string("-a"),
                                  std::string("a-"),
                                  std::string("a._b"),
                                  std::string("a b"),
                                  std::string("a\nb"),
                                  std::string("../a"),
                                  std::string("a/../b"),
                                  std::string("host:99999/a"),
                                  std::string("host:0/a"),
                                  std::string("host:/a"),
                                  std::string("[::1/a"),
                                  std::string("[x]/a"),
                                  std::string("[::1]x/a"),
                                  std::string("host..x/a"),
                                  std::string("-host.x/a"),
                                  std::string("https://a/b"),
                                  std::string("a@"),
                                  std::string("a@sha256:abc"),
                                  std::string("a@sha256:") + std::string(64, 'A'),
                                  std::string("a@sha512:") + std::string(128, 'a'),
                                  "a@sha256:" + kHex + "@sha256:" + kHex,
                                  "a@sha256:" + kHex.substr(1) + "/",
                                  std::string("a:") + std::string(129, 'x'),
                                  std::string("a:.x"),
                                  std::string("a:x/b"),
                                  kHex,
                                  std::string(256, 'a'),
                                  std::string("a\0b", 3)}) {
    auto got = parse_reference(text);
    ASSERT_FALSE(got.ok()) << text << " became " << got->text();
    EXPECT_EQ(got.error().code(), Code::invalid) << text;
  }
}

TEST(Digest, is_strict) {
  EXPECT_TRUE(Digest::parse("sha256:" + kHex).ok());
  for (const std::string& text : {std::string(), kHex, "sha256:" + kHex + "a", "sha256:" + std::string(64, 'A'),
                                  "sha256:../" + kHex.substr(3), "sha512:" + kHex, "SHA256:" + kHex})
    EXPECT_FALSE(Digest::parse(text).ok()) << text;
}

TEST(Digest, is_sha256) {
  EXPECT_EQ(digest_of("").text(), "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  Sha256 sha;
  sha.update("a");
  EXPECT_EQ(sha.digest(), digest_of("a")) << "asking does not end it";
  sha.update("bc");
  EXPECT_EQ(sha.digest().hex(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

}  // namespace
}  // namespace coracle::image
