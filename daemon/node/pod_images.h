// SPDX-License-Identifier: Apache-2.0
// PodImages: the part of a sync that provides the images of a pod's containers: their own, and those that they mount as volumes.
// Images are found or pulled with back-off; failures are stored as the waiting reason for the pod's status.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "daemon/node/images.h"
#include "daemon/node/sync_part.h"

namespace coracle::node {

class PodImages : private SyncPart {
 public:
  explicit PodImages(SyncState& state) : SyncPart(state) {}

  // The container's own image. nullopt: the container waits, and its record has the reason.
  std::optional<runtime::Image> image_for(const ContainerRef& container, ContainerRecord& record);
  // Mounts the image volumes of the container whose images are present. False: the container waits, and its record has the
  // reason.
  bool mount_images(const ContainerRef& container, ContainerRecord& record);
  // Notes the end of a pull. `name`: as in Reports.
  void take_pull(const std::string& name, const PullDone& pull);

 private:
  struct ImageWanted {  // an image that a container needs: its own, or that of a volume that it mounts
    std::string pull;   // the key in the pod's pulls
    std::string reference;
    PullPolicy policy;
    int attempt;                // the image is pulled once per attempt
    const ContainerRef* about;  // the container for events; null: the pod
  };
  Result<void> mount_image(const runtime::Image& image, const std::string& volume, const std::string& place);
  std::optional<runtime::Image> find_image(const ImageWanted& wanted, const ContainerRef& container, ContainerRecord& record);
  bool is_pulled(const ImageWanted& wanted) const;
  std::optional<runtime::Image> look_for_image(const ImageWanted& wanted, const ContainerRef& container, ContainerRecord& record);
  std::vector<runtime::Credentials> pull_credentials();
  void begin_pull(const ImageWanted& wanted, std::vector<runtime::Credentials> credentials);
};

}  // namespace coracle::node
