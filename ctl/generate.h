// SPDX-License-Identifier: Apache-2.0
// Builds objects from flags for `create KIND`, `run` and `expose`, the same as kubectl's generators: with the same fields in the
// same order, also the empty ones that Go always writes. generate_data.cc has ConfigMaps and Secrets, generate_rbac.h roles,
// generate_ingress.h Ingresses. Pure, except what reads files or has a random suffix.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ctl/flags.h"
#include "ctl/session.h"

namespace coracle::ctl {

json::object named_object(std::string_view api_version, std::string_view kind, const std::string& name);
void order_metadata(json::value& object);  // puts the metadata's fields into Go's order
// Five random letters that make no word. Source: apimachinery util/rand, String(5).
std::string random_suffix();

// ---- ConfigMaps and Secrets: generate_data.cc ----

using Data = std::vector<std::pair<std::string, std::string>>;  // keys and bytes, in the order of the flags

struct DataFlags {
  std::vector<std::string> literals, files, env_files;
  void add_to(Command command);
};
// The data for the ConfigMap or Secret (`kind`) of that name. Errors: bad_request, worded as kubectl's; errors of reading a file;
// too_large for a file over 1 MiB.
Result<Data> read_data(const DataFlags& flags, std::string_view kind, const std::string& name);
json::value configmap_of(const std::string& name, const Data& data);
json::value secret_of(const std::string& name, const std::string& type, const Data& data);
// The content of a file of registry credentials, as kubectl's `create secret docker-registry` writes it.
std::string docker_config(const std::string& server, const std::string& user, const std::string& password,
                          const std::string& email);
// The data of a TLS Secret from two PEM files. Errors: bad_request if one is no PEM or they do not belong together.
Result<Data> read_key_pair(const std::string& certificate_path, const std::string& key_path);

// ---- workloads ----

json::value new_namespace(const std::string& name);

struct DeploymentFlags {
  std::string name;
  std::vector<std::string> images, command;  // one container per image; a command only with a single image
  int64_t replicas = 1, port = -1;           // -1: no port
};
// A container is named after its image; if the image's name has a dot or underscore, a random suffix follows, as in kubectl.
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

struct PriorityFlags {
  std::string name, description, preemption = "PreemptLowerPriority";
  int64_t value = 0;
  bool global_default = false;
};
json::value priority_class_of(const PriorityFlags& flags);

struct PodFlags {
  std::string name, image, restart = "Always", pull_policy, overrides;
  std::string override_type = "merge";  // merge, json or strategic: the kind of patch in `overrides`
  std::vector<std::string> words, env, labels, annotations;
  std::string port;
  bool words_are_command = false, use_stdin = false, stdin_once = false, tty = false, privileged = false;
};
Result<json::value> pod_of(const PodFlags& flags);  // Errors: bad_request
// Applies `text`, a patch of that type, to a generated object. Errors: bad_request; those of the patch.
Result<json::value> overridden(json::value object, const std::string& text, const std::string& type);

// ---- Services ----

struct ServiceFlags {
  std::string name, type = "ClusterIP", external_name, cluster_ip;
  std::vector<std::string> tcp;  // "PORT[:TARGETPORT]"
  int64_t node_port = 0;
};
Result<json::value> service_of(const ServiceFlags& flags);  // Errors: bad_request

struct ExposeFlags {
  std::string name, port, target_port, protocol, type, cluster_ip, selector;  // port: "80,443"
  std::string external_ip, load_balancer_ip, session_affinity, overrides, override_type = "merge";
  std::vector<std::string> labels;
};
// A Service that selects the pods of `object` (Pod, Service, Deployment, ReplicaSet). Errors: bad_request, invalid.
Result<json::value> exposing_service_of(const json::value& object, const schema::KindInfo& kind, const ExposeFlags& flags);
// The Service of `run --expose` for a pod made from the flags. Errors: bad_request.
Result<json::value> run_service_of(const PodFlags& flags);

}  // namespace coracle::ctl
