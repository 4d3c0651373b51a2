// SPDX-License-Identifier: Apache-2.0
// See nfs_mounts.h.
#include "daemon/node/volume/nfs_mounts.h"

#include <utility>
#include <vector>

namespace coracle::node {

Result<bool> NfsMounts::is_ready(const std::string& uid, const std::string& directory, const NfsShare& share) {
  if (!seams_.mounts.nfs) return Error(Code::unsupported, "this node has no NFS volumes");
  std::optional<std::stop_token> begins;
  auto ready = pods_.with([&](auto& pods) -> Result<bool> {
    Share& its = pods[uid][directory];
    if (its.is_running) return false;
    if (its.error) return *std::exchange(its.error, std::nullopt);
    if (its.answered && seams_.clock.steady() < *its.answered + kAnswerHolds) return true;
    its.is_running = true;
    its.stop = std::stop_source();
    begins = its.stop.get_token();
    return false;
  });
  if (begins)
    seams_.elsewhere(share.server, [this, uid, directory, share, stop = *begins](std::stop_token ends) {
      std::stop_source either;
      auto end = [&] { either.request_stop(); };
      std::stop_callback with_pod(stop, end), with_node(ends, end);
      see_to(uid, directory, share, either.get_token());
    });
  return ready;
}

void NfsMounts::see_to(const std::string& uid, const std::string& directory, const NfsShare& share, std::stop_token stop) {
  auto done = stop.stop_requested() ? Result<void>(Error(Code::cancelled, "the pod ends")) : mount(directory, share, stop);
  pods_.with([&](auto& pods) {
    Share& its = pods[uid][directory];
    its.is_running = false;
    if (done) its.answered = seams_.clock.steady();
    else its.error = done.take_error();
  });
  seams_.look_again(uid);
}

// A share that returns errors, for example because its server has exported it again, is unmounted and mounted again by the next
// attempt.
Result<void> NfsMounts::mount(const std::string& directory, const NfsShare& share, const std::stop_token& stop) {
  TRY(seams_.mounts.nfs(share, directory, stop));
  if (!seams_.mounts.server_answers) return {};
  auto answers = seams_.mounts.server_answers(directory, stop);
  if (!answers && answers.error().code() == Code::unavailable) TRY(seams_.mounts.unmount(directory));
  return answers;
}

Result<void> NfsMounts::stop(const std::string& uid) {
  std::vector<std::stop_source> running = pods_.with([&](auto& pods) {
    std::vector<std::stop_source> running;
    auto found = pods.find(uid);
    if (found == pods.end()) return running;
    for (const auto& [directory, share] : found->second)
      if (share.is_running) running.push_back(share.stop);
    if (running.empty()) pods.erase(found);
    return running;
  });
  for (std::stop_source& each : running) each.request_stop();
  if (running.empty()) return {};
  return Error(Code::unavailable, "an NFS share is being mounted still");
}

}  // namespace coracle::node
