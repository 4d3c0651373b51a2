// SPDX-License-Identifier: Apache-2.0
// Packed texts: they unpack to the original, and events become short.
#include "store/object/packed_text.h"

#include <gtest/gtest.h>

#include <random>

namespace coracle {
namespace {

TEST(PackedText, what_was_packed_comes_out_again) {
  std::mt19937 random(1);
  for (size_t size : {100, 700, 5000, 100'000, 1'500'000}) {
    std::string text;
    while (text.size() < size) text += "word" + std::to_string(random() % 50) + "\",";
    std::string packed = pack_text(text);
    ASSERT_FALSE(packed.empty()) << size;
    EXPECT_LT(packed.size(), text.size() / 2);
    EXPECT_EQ(unpack_text(packed, text.size()), text);
  }
}

TEST(PackedText, what_cannot_be_packed_stays_as_it_is) {
  std::mt19937 random(2);
  std::string noise;
  for (int i = 0; i < 1000; ++i) noise += char(random());
  EXPECT_EQ(pack_text(noise), "");
  EXPECT_EQ(pack_text(""), "");
  EXPECT_EQ(pack_text("x"), "");
}

TEST(PackedText, an_event_takes_a_third_of_its_length) {
  const std::string event =
      R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"shop-7c9d8b6f5d-x2x9q.187c3f4e8a0b1c2d","namespace":"shop",)"
      R"("uid":"3f2a1b0c-9d8e-4f7a-8b6c-5d4e3f2a1b0c","resourceVersion":"184213","creationTimestamp":"2026-03-04T10:11:12Z"},)"
      R"("involvedObject":{"kind":"Pod","namespace":"shop","name":"shop-7c9d8b6f5d-x2x9q",)"
      R"("uid":"0a9b8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d","apiVersion":"v1","resourceVersion":"184201",)"
      R"("fieldPath":"spec.containers{shop}"},"reason":"Pulled","message":"Container image \"registry.example/shop:3.2.1\" )"
      R"(already present on machine","source":{"component":"kubelet","host":"till-3"},"firstTimestamp":"2026-03-04T10:11:12Z",)"
      R"("lastTimestamp":"2026-03-04T10:11:12Z","count":1,"type":"Normal","eventTime":null,"reportingComponent":"kubelet",)"
      R"("reportingInstance":"till-3"})";
  std::string packed = pack_text(event);
  EXPECT_LT(packed.size(), event.size() / 3 + 20);
  EXPECT_EQ(unpack_text(packed, event.size()), event);
  const std::string names = "shopshop-7c9d8b6f5d-x2x9q.187c3f4e8a0b1c2d3f2a1b0c-9d8e-4f7a-8b6c-5d4e3f2a1b0c";
  const std::string shorter = pack_text(event, names);
  EXPECT_LT(shorter.size() + 30, packed.size()) << "what is kept beside it takes next to nothing";
  EXPECT_EQ(unpack_text(shorter, event.size(), names), event);
}

// Each claim has two or three of them for an hour.
TEST(PackedText, an_event_of_a_claim_takes_a_fifth_of_its_length) {
  struct Row {
    const char *reason, *message, *component, *host;
  };
  for (const Row& row :
       {Row{"WaitForFirstConsumer", "waiting for first consumer to be created before binding", "persistentvolume-controller", ""},
        Row{"WaitForPodScheduled", "waiting for pod db-0 to be scheduled", "persistentvolume-controller", ""},
        Row{"ProvisioningSucceeded", "Successfully provisioned volume pvc-0a9b8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d", "kubelet",
            "till-3"}}) {
    const std::string name = "data-db-0.187c3f4e8a0b1c2d", uid = "3f2a1b0c-9d8e-4f7a-8b6c-5d4e3f2a1b0c",
                      component = row.component, host = row.host;
    const std::string event =
        R"({"apiVersion":"v1","kind":"Event","metadata":{"name":")" + name + R"(","namespace":"shop","uid":")" + uid +
        R"(","resourceVersion":"184213","creationTimestamp":"2026-03-04T10:11:12Z"},"involvedObject":{"kind":)"
        R"("PersistentVolumeClaim","namespace":"shop","name":"data-db-0","uid":"0a9b8c7d-6e5f-4a3b-9c2d-1e0f9a8b7c6d",)"
        R"("apiVersion":"v1","resourceVersion":"184201"},"reason":")" +
        row.reason + R"(","message":")" + row.message + R"(","source":{"component":")" + component + "\"" +
        (host.empty() ? "" : R"(,"host":")" + host + "\"") +
        R"(},"firstTimestamp":"2026-03-04T10:11:12Z","lastTimestamp":"2026-03-04T10:11:12Z","count":1,"type":"Normal",)"
        R"("eventTime":null,"reportingComponent":")" +
        component + R"(","reportingInstance":")" + host + "\"}";
    const std::string names = "shop" + name + uid, packed = pack_text(event, names);
    EXPECT_LT(packed.size(), event.size() / 5) << row.reason << ": " << packed.size() << " of " << event.size();
    EXPECT_EQ(unpack_text(packed, event.size(), names), event);
  }
}

}  // namespace
}  // namespace coracle
