// SPDX-License-Identifier: Apache-2.0
// Static pods: pods from the manifests directory, run by the node without the API, and their mirror pods, which show them in the
// API. A changed manifest is a new pod; a removed one terminates its pod. A change of the mirror in the API only recreates the
// mirror.
//   directory ──inotify──▶ read_manifests ──▶ PodTable ;  PodTable ──▶ mirrors
// Files with the suffix .yaml, .yml or .json are read. Hidden files are ignored, other files are logged. If two files define a
// pod with the same name, the running one continues; otherwise the first by file name runs, and the other waits for its end.
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
#include "store/kinds/pod/pod_state.h"

namespace coracle::node {

inline constexpr std::string_view kHashAnnotation = "kubernetes.io/config.hash";
inline constexpr std::string_view kSourceAnnotation = "kubernetes.io/config.source";
inline constexpr std::string_view kSeenAnnotation = "kubernetes.io/config.seen";

struct StaticPod {
  ObjectPtr object;
  std::shared_ptr<const std::string> refused;  // why none of its containers may be started; null: they may
};

// The pod of one manifest as it runs on this node: its name is "<name>-<node>", its uid a hash of its content. It is decoded,
// completed with defaults and validated as the body of a request is, and may not refer to objects of the API. A pod that fails
// these checks but `is_here`, because an earlier version of this daemon started it, is returned as it was decoded, and as
// refused: what runs of it goes on, and its volumes stay.
// Unknown fields are logged and dropped. Errors: invalid or bad_request, with the file name and the field. Source: kubelet,
// pkg/kubelet/config/common.go.
Result<StaticPod> static_pod(std::string_view text, const std::string& file, const std::string& node_name,
                             const std::function<bool(const std::string& uid)>& is_here = {});
// The mirror pod for the API.
json::value mirror_of(const Object& pod, std::string_view node_uid);

class StaticPods {
 public:
  StaticPods(const AgentConfig& config, Client& client, Informer& pods, PodTable& table,
             std::function<void(const std::string&)> look_again);

  // Reads the directory and updates the table. An unusable file is logged, once for each reason, and its earlier pod stays. So
  // do all if the directory cannot be read; one that is not there has no pods. For the first call the table must have the
  // sandboxes of an earlier daemon: they stay until all manifests could be read. Source: kubelet, pkg/kubelet/config/file.go;
  // sources.go.
  void read();
  // The last read() got all that is there; what it has not is not wanted.
  bool is_complete() const { return is_complete_; }
  // Creates, updates and deletes the mirror pods according to the table.
  Result<void> reflect();
  void run(std::stop_token stop);
  void touch() { watch_ ? watch_->wake() : void(); }  // call when a mirror has changed

  // For the informer's thread: a pod appeared, changed or was deleted. Returns whether it was a mirror pod.
  bool on_mirror(const Informer::Change& change);

 private:
  using ByFile = std::map<std::string, StaticPod>;
  using Remarks = std::map<std::string, std::string>;  // by file: why its pod does not run
  // It runs or waits, or it ended with the machine and left its volumes; and it is not to end.
  bool is_here(const std::string& uid) const;
  ByFile read_files(Remarks& remarks, bool& is_complete) const;
  std::map<Key, std::string> choose(Remarks& remarks) const;
  void log_new(Remarks remarks);

  const AgentConfig& config_;
  Client& client_;
  Informer& pods_;
  PodTable& table_;
  std::function<void(const std::string&)> look_again_;
  // Used by read() and run() only.
  bool is_complete_ = true;
  ByFile by_file_;
  std::map<Key, std::string> runs_;               // the file whose pod of this name runs
  Remarks remarks_;                               // as last logged
  std::unique_ptr<files::DirectoryWatch> watch_;  // null: none could be made, and the directory is read now and then
};

}  // namespace coracle::node
