// SPDX-License-Identifier: Apache-2.0
// Finds the pod that an argument refers to: by name, or one that a Deployment, ReplicaSet or Service selects.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ctl/session.h"
#include "store/schema/views.h"

namespace coracle::ctl {

// What the pods of an object are wanted for: it decides which of them is the first, and how errors begin.
enum class PodUse : uint8_t { logs, attach };
// The one to take first: assigned to a node, running, ready, and for long. Of the others, to read logs, the one that restarted
// most; to join, one that is not leaving and restarted least. Stable. Pure. Source: kubectl pkg/util/podutils.
void order_pods(std::vector<json::value>& pods, PodUse use);

// The selected pods, as the server lists them. Errors: the server's.
Result<std::vector<json::value>> pods_by_selector(Session& session, const std::string& ns, const std::string& selector);
// Takes "POD", "pod/POD", "deployment/NAME", "pods NAME", and gives the pod, or the pods of the object in their order. With a
// `patience`, waits so long until an object that is no pod has one. Errors: the server's; bad_request for an object that has no
// pods; not_found; timeout.
Result<std::vector<json::value>> pods_named(Session& session, const std::vector<std::string>& args, PodUse use,
                                            std::chrono::milliseconds patience = {});
// The first of them. If there are several, that of which the logs are read is printed to standard error. Errors: likewise.
Result<json::value> one_pod(Session& session, const std::vector<std::string>& args, PodUse use = PodUse::attach,
                            std::chrono::milliseconds patience = {});
// The container `name`; if that is "", the one in the annotation kubectl.kubernetes.io/default-container, else the first. If
// there are several and neither names one, prints the first's name to standard error, unless `quiet`. The result is a view of
// `pod`; a debug container is read as a container, too. Errors: bad_request, with the names of the containers. Source: kubectl
// pkg/cmd/util/podcmd.
Result<view::Container> choose_container(const json::value& pod, const std::string& name, bool quiet);
// The same for logs, which takes the first container where the annotation names none that is there, and prints that to standard
// error, also if `quiet`. Source: kubectl pkg/polymorphichelpers/logsforobject.go.
Result<view::Container> choose_log_container(const json::value& pod, const std::string& name, bool quiet);
// The container of this name, read as a container if it is a debug container, too; absent if there is none.
view::Container container_of_pod(const json::value& pod, std::string_view name);
// Whether the pod got the container from debug: it is an ephemeral one. False if there is none of this name.
bool is_debug_container(const json::value& pod, std::string_view name);
// The state in the container's status; absent if that has none yet.
view::ContainerState container_state_of(const json::value& pod, std::string_view name);
// What is said before somebody joins a container's process, and after he left it at a terminal. Source: kubectl pkg/cmd/attach.
constexpr const char* kSessionBegins =
    "All commands and output from this session will be recorded in container logs, including credentials and sensitive "
    "information passed through the command prompt.\nIf you don't see a command prompt, try pressing enter.\n";
std::string session_ended(const std::string& ns, const std::string& pod, const std::string& container, bool is_ephemeral);
// The exit code of a finished pod: 0 if it succeeded, else the container's. Returns nothing if the pod still runs. Pure. Errors:
// internal if the pod failed and the container's status has no exit code.
Result<std::optional<int>> exit_code_of(const json::value& pod, std::string_view container);
// The selector of a workload or Service, which all these kinds have at the same place; nullptr if it has none.
const json::value* selector_of(const json::value& object);
// The text form of {"matchLabels": …, "matchExpressions": …} or of a plain map, sorted by key as Go's labels are.
std::string selector_text(const json::value& selector);

}  // namespace coracle::ctl
