// SPDX-License-Identifier: Apache-2.0
// When unused images are removed, and until when.
#include "daemon/node/image_collector.h"

#include <gtest/gtest.h>

#include "tests/runtime/fake_runtime.h"

namespace coracle::node {
namespace {

using std::chrono::seconds;

// Removes one image after another, each of which frees some percent.
class CollectedImages : public runtime::FakeImageStore {
 public:
  Result<std::vector<runtime::Image>> collect(seconds least, const std::function<bool()>& is_enough) override {
    least_ = least;
    ++collections_;
    std::vector<runtime::Image> gone;
    while (left_ > 0 && !is_enough()) {
      --left_;
      free_percent_ += each_frees_;
      runtime::Image image;
      image.id = "sha256:" + std::to_string(left_);
      image.references = {"r.example/app:" + std::to_string(left_)};
      gone.push_back(image);
    }
    return gone;
  }
  int left_ = 0, each_frees_ = 1, free_percent_ = 50, collections_ = 0;
  seconds least_{0};
};

class ImageCollectorTest : public testing::Test {
 protected:
  void look() {
    collector_.look();
    auto tasks = std::exchange(tasks_, {});
    for (const Task& task : tasks) task({});
  }
  std::string logged() { return ::testing::internal::GetCapturedStderr(); }

  ImageCollection settings_;
  CollectedImages images_;
  FakeClock clock_;
  std::vector<Task> tasks_;
  int changes_ = 0;
  ImageCollector collector_{settings_,
                            images_,
                            clock_,
                            [this](Task task) { tasks_.push_back(std::move(task)); },
                            [this] {
                              return std::optional(DiskUse{Bytes(1000), Bytes(images_.free_percent_ * 10)});
                            },
                            [this] { ++changes_; }};
};

TEST(UsedPercent, is_rounded_up_as_by_the_kubelet) {
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(149)}), 86);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(150)}), 85);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(159)}), 85);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(160)}), 84);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(1)}), 100);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(0)}), 100);
  EXPECT_EQ(used_percent({Bytes(1000), Bytes(1000)}), 0);
  EXPECT_EQ(used_percent({Bytes(0), Bytes(0)}), 0) << "not known";
}

TEST_F(ImageCollectorTest, removes_from_one_threshold_to_the_other) {
  images_.left_ = 10;
  images_.free_percent_ = 16;
  look();
  EXPECT_EQ(images_.collections_, 0) << "84 % are in use";
  images_.free_percent_ = 15;
  ::testing::internal::CaptureStderr();
  look();
  EXPECT_EQ(images_.free_percent_, 20);
  EXPECT_EQ(images_.left_, 5);
  EXPECT_EQ(images_.least_, seconds(120));
  EXPECT_EQ(changes_, 1);
  EXPECT_NE(logged().find("r.example/app:9"), std::string::npos);
  look();
  EXPECT_EQ(images_.collections_, 1);
}

TEST_F(ImageCollectorTest, one_that_frees_too_little_is_tried_again_later) {
  images_.left_ = 1;
  images_.free_percent_ = 5;
  ::testing::internal::CaptureStderr();
  look();
  EXPECT_EQ(images_.free_percent_, 6);
  look();
  EXPECT_EQ(images_.collections_, 1);
  clock_.advance(ImageCollector::kPause);
  images_.left_ = 1;
  look();
  EXPECT_EQ(images_.collections_, 2);
  EXPECT_NE(logged().find("no other image can be removed"), std::string::npos);
}

TEST_F(ImageCollectorTest, is_one_at_a_time_and_can_be_off) {
  images_.left_ = 100;
  images_.free_percent_ = 1;
  collector_.look();
  collector_.look();
  EXPECT_EQ(tasks_.size(), 1u);
  tasks_.clear();
  settings_.high_percent = 100;
  ImageCollector off(
      settings_, images_, clock_, [this](Task task) { tasks_.push_back(std::move(task)); },
      [] {
        return std::optional(DiskUse{Bytes(100), Bytes(0)});
      },
      [] {});
  off.look();
  EXPECT_TRUE(tasks_.empty());
}

}  // namespace
}  // namespace coracle::node
