// SPDX-License-Identifier: Apache-2.0
// The two processes of a pull, here as two threads: the requests of one are served by the other, and all errors are reported.
#include "runtime/image/fetch/remote_unpacker.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>

#include "runtime/image/fetch/http.h"
#include "runtime/image/fetch/layers.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

class TextSource : public Source {
 public:
  explicit TextSource(std::vector<std::string> pieces, std::optional<Error> end = {})
      : pieces_(std::move(pieces)), end_(std::move(end)) {}
  Result<std::string_view> next() override {
    if (at_ < pieces_.size()) return std::string_view(pieces_[at_++]);
    if (end_) return *end_;
    return std::string_view();
  }
  size_t given() const { return at_; }

 private:
  std::vector<std::string> pieces_;
  std::optional<Error> end_;
  size_t at_ = 0;
};

class NotingUnpacker : public Unpacker {
 public:
  Result<std::vector<bool>> begin(const std::vector<Digest>& diff_ids) override {
    std::vector<bool> present(diff_ids.size(), false);
    if (!present.empty()) present.back() = true;
    return present;
  }
  Result<void> stage(size_t layer, Source& stream, const Descriptor* descriptor) override {
    if (layer == 7) return Error(Code::unavailable, "the disk is nearly full");
    if (layer == 8) return Error(Code::invalid, "the name \xff" + std::string(20'000, '\x01') + " is too deep");
    std::string text = TRY(read_all(stream, 10 << 20));
    said_.with([&](auto& said) {
      said.push_back(std::to_string(layer) + ":" + std::to_string(text.size()) + ":" +
                     (descriptor ? descriptor->digest.text().substr(7, 4) + "/" + std::to_string(descriptor->size) : "-"));
    });
    if (descriptor && digest_of(text) != descriptor->digest) return Error(Code::invalid, "not what its digest says");
    return {};
  }
  Result<void> keep(size_t layer) override {
    if (layer > 200) return Error(Code::internal, "was not unpacked");
    said_.with([&](auto& said) { said.push_back("keep " + std::to_string(layer)); });
    return {};
  }
  Guarded<std::vector<std::string>> said_;
};

class RemoteUnpackerTest : public testing::Test {
 protected:
  void SetUp() override {
    ::signal(SIGPIPE, SIG_IGN);
    auto pair = sys::make_socketpair(SOCK_SEQPACKET);
    ASSERT_TRUE(pair.ok());
    ours_ = std::move(pair->first);
    service_ = std::thread([this, theirs = std::move(pair->second)] { served_ = serve_unpacker(theirs, there_).ok(); });
  }
  void TearDown() override { end(); }
  void end() {
    ours_.reset();
    if (service_.joinable()) service_.join();
  }
  NotingUnpacker there_;
  Fd ours_;
  std::thread service_;
  std::atomic<bool> served_{false};
};

Descriptor descriptor_for(const std::string& text) { return {"", digest_of(text), int64_t(text.size()), {}, {}}; }

TEST_F(RemoteUnpackerTest, does_what_it_is_asked) {
  RemoteUnpacker unpacker(ours_);
  auto present = unpacker.begin(std::vector<Digest>(kLayersMax, digest_of("x")));
  ASSERT_TRUE(present.ok()) << present.error().text();
  EXPECT_EQ(present->size(), kLayersMax);
  EXPECT_FALSE(present->front());
  EXPECT_TRUE(present->back());
  const std::string big(3 << 20, 'b');
  const Descriptor promised = descriptor_for(big);
  TextSource pieces({big.substr(0, 10), big.substr(10)}), nothing({});
  auto staged = unpacker.stage(0, pieces, &promised);
  EXPECT_TRUE(staged.ok()) << staged.error().text();
  EXPECT_TRUE(unpacker.stage(1, nothing, nullptr).ok());
  EXPECT_TRUE(unpacker.keep(0).ok());
  end();
  EXPECT_TRUE(served_);
  EXPECT_EQ(there_.said_.with([](auto& said) { return said; }),
            (std::vector<std::string>{"0:3145728:" + promised.digest.hex().substr(0, 4) + "/3145728", "1:0:-", "keep 0"}));
}

TEST_F(RemoteUnpackerTest, tells_what_went_wrong) {
  RemoteUnpacker unpacker(ours_);
  const Descriptor promised = descriptor_for("abc");
  TextSource other({"abd"});
  auto lies = unpacker.stage(0, other, &promised);
  ASSERT_FALSE(lies.ok());
  EXPECT_EQ(lies.error().code(), Code::invalid);
  EXPECT_EQ(lies.error().text(), "not what its digest says");

  TextSource broken({"a"}, unreachable(Error(Code::unavailable, "the connection ended early")));
  auto cut = unpacker.stage(0, broken, &promised);
  ASSERT_FALSE(cut.ok());
  EXPECT_EQ(cut.error().text(), "the connection ended early") << "not that the layer is damaged";
  EXPECT_TRUE(runtime::is_registry_unreachable(cut.error()));

  TextSource endless(std::vector<std::string>(200, std::string(1 << 20, 'x')));
  auto full = unpacker.stage(7, endless, nullptr);
  ASSERT_FALSE(full.ok());
  EXPECT_EQ(full.error().code(), Code::unavailable);
  EXPECT_FALSE(runtime::is_registry_unreachable(full.error())) << "a full disk is no broken network";
  EXPECT_LT(endless.given(), 20u) << "nobody reads on for a layer that is refused";
  EXPECT_EQ(unpacker.keep(201).error().text(), "was not unpacked");
  TextSource good({"abc"});
  EXPECT_TRUE(unpacker.stage(1, good, &promised).ok()) << "and goes on";
}

TEST_F(RemoteUnpackerTest, tells_the_beginning_of_what_an_archive_made_too_long) {
  RemoteUnpacker unpacker(ours_);
  TextSource nothing({});
  auto refused = unpacker.stage(8, nothing, nullptr);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code(), Code::invalid) << refused.error().text();
  EXPECT_TRUE(refused.error().text().starts_with("the name \xef\xbf\xbd\x01\x01"));
  EXPECT_TRUE(refused.error().text().ends_with("\x01..."));
}

TEST_F(RemoteUnpackerTest, unpacks_several_layers_at_once) {
  RemoteUnpacker unpacker(ours_);
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < kLayerWorkersMax; ++i)
      threads.emplace_back([&, i] {
        for (int pass = 0; pass < 40; ++pass) {
          const std::string text = std::string(100'000, char('a' + i)) + std::to_string(pass);
          const Descriptor promised = descriptor_for(text);
          TextSource source({text});
          good += unpacker.stage(size_t(i), source, &promised).ok();
        }
      });
  }
  EXPECT_EQ(good, kLayerWorkersMax * 40);
}

TEST_F(RemoteUnpackerTest, is_missed_when_it_is_gone) {
  auto pair = sys::make_socketpair(SOCK_SEQPACKET);
  ASSERT_TRUE(pair.ok());
  RemoteUnpacker unpacker(pair->first);
  pair->second.reset();
  TextSource source({"x"});
  EXPECT_FALSE(unpacker.begin({}).ok());
  EXPECT_FALSE(unpacker.stage(0, source, nullptr).ok());
  EXPECT_FALSE(unpacker.keep(0).ok());
}

TEST_F(RemoteUnpackerTest, ends_with_who_asks_for_something_else) {
  const std::string text = R"({"stage":0})";
  ASSERT_TRUE(sys::send_message(ours_, std::as_bytes(std::span(text)), {}).ok());
  service_.join();
  EXPECT_FALSE(served_);
  RemoteUnpacker unpacker(ours_);
  EXPECT_FALSE(unpacker.keep(0).ok());
}

TEST_F(RemoteUnpackerTest, has_one_image) {
  RemoteUnpacker unpacker(ours_);
  EXPECT_TRUE(unpacker.begin({digest_of("x")}).ok());
  EXPECT_FALSE(unpacker.begin({digest_of("y")}).ok());
}

}  // namespace
}  // namespace coracle::image
