// SPDX-License-Identifier: Apache-2.0
// The pure part of debug: the pods that it makes. A pod gets an ephemeral container, or a copy with a container more or changed;
// a node gets a pod in its own namespaces. A profile says which rights the container has.
//   pod, flags ──add container──▶ pod ──apply profile──▶ pod ──lay --custom over──▶ pod
// Source: kubectl pkg/cmd/debug/debug.go and profiles.go.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

using TextPairs = std::vector<std::pair<std::string, std::string>>;

struct DebugOptions {
  std::string image, container, copy_to, pull_policy, profile = "general", target;
  TextPairs env, set_images;       // variables; container names, or "*", with images
  std::vector<std::string> words;  // behind "--"
  bool arguments_only = false, use_stdin = false, tty = false, quiet = false, attach = false, same_node = false, replace = false;
  bool share_processes = true, share_given = false, attach_given = false;
  bool keep_labels = false, keep_annotations = false, keep_liveness = false, keep_readiness = false, keep_startup = false;
  bool keep_init_containers = true;
  std::optional<json::value> custom;  // a part of a container that is laid over the new one
};

// "a=b", "a=b,c=d", as pflag's StringToString reads them. Errors: bad_request.
Result<TextPairs> parse_text_pairs(const std::string& flag, const std::vector<std::string>& values);
// Errors: bad_request, in kubectl's words, for options that contradict each other.
Result<void> check_debug_options(const DebugOptions& options);

struct DebugPod {
  json::value pod;
  std::string container;              // "": there is none to attach to
  std::vector<std::string> messages;  // for standard output, each a line
  bool powerless = false;             // its capabilities have no effect, because the pod runs as another user than root
};
using NameSuffix = std::function<std::string()>;  // five random letters

// A copy of `pod` under the name --copy-to. Errors: bad_request.
Result<DebugPod> debug_copy(const json::value& pod, const DebugOptions& options, const NameSuffix& suffix);
// `pod` with an ephemeral container more, which is the last one.
Result<DebugPod> debug_ephemeral(const json::value& pod, const DebugOptions& options, const NameSuffix& suffix);
// A pod on `node`.
Result<DebugPod> debug_node(const json::value& node, const DebugOptions& options, const NameSuffix& suffix);

}  // namespace coracle::ctl
