// SPDX-License-Identifier: Apache-2.0
// Static pods: pods that the manifests directory names, run by the node itself, and their mirrors in the API, through
// which everybody else sees them. A manifest that changes is a new pod; one that goes ends its pod; what happens to the
// mirror in the API only makes it again.   directory ──inotify──▶ read_manifests ──▶ PodTable ;  PodTable ──▶ mirrors
// Files whose names end in .yaml, .yml or .json are read; hidden ones are passed over, others are named in the log. Of two that
// define a pod of one name the one that runs goes on, else the first by file name runs, and the other waits for its end.
// Source: Kubernetes static pods; kubelet's file source and mirror client (names, annotations).
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/informer/informer.h"
#include "daemon/node/config.h"
#include "daemon/node/files.h"
#include "daemon/node/pod_table.h"
#include "store/client/client.h"

namespace coracle::node {

inline constexpr std::string_view kMirrorAnnotation = "kubernetes.io/config.mirror";
inline constexpr std::string_view kHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kSourceAnnotation = "kubernetes.io/config.source";
inline constexpr std::string_view kSeenAnnotation = "kubernetes.io/config.seen";

// The pod of one manifest as it runs on this node: named "<name>-<node>", its uid the hash of what it says.
// Errors: invalid or bad_request, naming the file.
Result<ObjectPtr> static_pod(std::string_view text, const std::string& file, const std::string& node_name);
// The object that shows it in the API.
json::value mirror_of(const Object& pod, std::string_view node_uid);

class StaticPods {
 public:
  StaticPods(const AgentConfig& config, Client& client, Informer& pods, PodTable& table,
             std::function<void(const std::string&)> look_again);

  // Reads the directory and brings the table level with it. A file that cannot be used is logged, once as long as it is for the
  // same reason, and keeps what it named.
  void read();
  // Brings the mirrors in the API level with the table.
  Result<void> reflect();
  void run(std::stop_token stop);
  void touch() { watch_ ? watch_->wake() : void(); }  // a mirror has changed

  // From the informer's thread: a mirror pod appeared, changed or is gone. Returns whether it was one.
  bool on_mirror(const Informer::Change& change);

 private:
  using ByFile = std::map<std::string, ObjectPtr>;
  using Remarks = std::map<std::string, std::string>;  // by file: why it is not what runs
  ByFile read_files(Remarks& remarks) const;
  std::map<Key, std::string> choose(Remarks& remarks) const;
  void log_new(Remarks remarks);

  const AgentConfig& config_;
  Client& client_;
  Informer& pods_;
  PodTable& table_;
  std::function<void(const std::string&)> look_again_;
  // Of run() only.
  ByFile by_file_;
  std::map<Key, std::string> runs_;  // the file whose pod of this name runs
  Remarks remarks_;                  // as logged
  std::unique_ptr<files::DirectoryWatch> watch_;
};

}  // namespace coracle::node
