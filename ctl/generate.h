// SPDX-License-Identifier: Apache-2.0
// Builds objects from flags for `create KIND`, `run` and `expose`, the same as kubectl's generators. Pure, except read_data.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ctl/flags.h"
#include "ctl/session.h"

namespace coracle::ctl {

using Data = std::vector<std::pair<std::string, std::string>>;  // keys and bytes, in the order of the flags

struct DataFlags {
  std::vector<std::string> literals, files, env_files;
  void add_to(Command command);
};
// Errors: bad_request; errors of reading a file; too_large for a file over 1 MiB.
Result<Data> read_data(const DataFlags& flags);

json::object named_object(std::string_view api_version, std::string_view kind, const std::string& name);
json::value configmap_of(const std::string& name, const Data& data);
json::value secret_of(const std::string& name, const std::string& type, const Data& data);

struct DeploymentFlags {
  std::string name;
  std::vector<std::string> images, command;  // one container per image; a command only with a single image
  int64_t replicas = 1, port = 0;
};
json::value deployment_of(const DeploymentFlags& flags);

struct JobFlags {
  std::string name, image, schedule, restart;  // with a schedule it becomes a CronJob
  std::vector<std::string> command;
};
json::value job_of(const JobFlags& flags);
// The Job that the CronJob would create, marked as started by hand.
json::value job_from(const json::value& cron_job, const std::string& name);

struct BudgetFlags {
  std::string name, selector, min_available, max_unavailable;  // counts or percentages
};
Result<json::value> budget_of(const BudgetFlags& flags);  // Errors: bad_request
// `hard`: "cpu=1,pods=2"; `scopes`: "BestEffort,NotTerminating". Errors: bad_request.
Result<json::value> quota_of(const std::string& name, const std::string& hard, const std::string& scopes);

struct ServiceFlags {
  std::string name, type = "ClusterIP", external_name, cluster_ip;
  std::vector<std::string> tcp;  // "PORT[:TARGETPORT]"
  int64_t node_port = 0;
};
Result<json::value> service_of(const ServiceFlags& flags);  // Errors: bad_request

struct PodFlags {
  std::string name, image, restart = "Always", pull_policy, overrides;  // overrides: a JSON merge patch
  std::vector<std::string> words, env, labels, annotations;
  int64_t port = 0;
  bool words_are_command = false, use_stdin = false, stdin_once = false, tty = false, privileged = false;
};
Result<json::value> pod_of(const PodFlags& flags);  // Errors: bad_request

struct ExposeFlags {
  std::string name, port, target_port, protocol, type, cluster_ip, selector;  // port: "80,443"
  std::vector<std::string> labels;
};
// A Service that selects the pods of `object` (Pod, Service, Deployment, ReplicaSet). Errors: bad_request, invalid.
Result<json::value> exposing_service_of(const json::value& object, const schema::KindInfo& kind, const ExposeFlags& flags);

}  // namespace coracle::ctl
