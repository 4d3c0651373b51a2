// SPDX-License-Identifier: Apache-2.0
// create KIND: objects from a few flags, for the kinds that people make by hand (generate.h).
// Source: kubectl pkg/cmd/create.
#include "ctl/create.h"
#include "ctl/generate.h"
#include "ctl/generate_ingress.h"
#include "ctl/name_hash.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

Result<json::value> hashed_if(bool wanted, json::value object) {
  if (wanted) append_hash(object);
  return object;
}

void add_plain_kinds(Commands& commands, Command create) {
  Command ns = commands.add("namespace", "Create a Namespace", create).alias("ns");
  add_new_object(commands, ns, std::make_shared<NewObjectFlags>(), "",
                 [](const std::string& name) { return Result<json::value>(new_namespace(name)); });
  Command account = commands.add("serviceaccount", "Create a ServiceAccount", create).alias("sa");
  add_new_object(commands, account, std::make_shared<NewObjectFlags>(), "failed to create serviceaccount: ",
                 [](const std::string& name) { return Result<json::value>(named_object("v1", "ServiceAccount", name)); });

  struct DataObjectFlags : NewObjectFlags {
    DataFlags data;
    bool append_hash = false;
  };
  auto flags = std::make_shared<DataObjectFlags>();
  Command configmap = commands.add("configmap", "Create a ConfigMap from literals and files", create).alias("cm");
  flags->data.add_to(configmap);
  configmap.add_flag("--append-hash", flags->append_hash, "put a hash of its content behind the name");
  add_new_object(commands, configmap, flags,
                 "failed to create configmap: ", [flags = flags.get()](const std::string& name) -> Result<json::value> {
                   Data data = TRY(read_data(flags->data, "ConfigMap", name));
                   return hashed_if(flags->append_hash, configmap_of(name, data));
                 });
}

void add_workloads(Commands& commands, Command create) {
  struct WorkloadFlags : NewObjectFlags {
    DeploymentFlags deployment;
    JobFlags job;
    std::string from;
  };
  auto flags = std::make_shared<WorkloadFlags>();
  Command deployment = commands.add("deployment", "Create a Deployment: NAME --image=IMAGE -- [COMMAND]", create).alias("deploy");
  flags->required = {
      deployment.add_option("--image", flags->deployment.images, "image; several: a container for each").delimiter(',')};
  deployment.add_option("-r,--replicas", flags->deployment.replicas, "how many pods");
  deployment.add_option("--port", flags->deployment.port, "port the container listens on");
  commands.keep_rest(deployment);
  add_new_object(commands, deployment, flags, "failed to create deployment: ",
                 [&commands, flags = flags.get()](const std::string& name) -> Result<json::value> {
                   flags->deployment.name = name;
                   flags->deployment.command = commands.rest();
                   if (flags->deployment.images.size() > 1 && !flags->deployment.command.empty())
                     return Error(Code::bad_request, "cannot specify multiple --image options and command");
                   return deployment_of(flags->deployment);
                 });

  auto cron_flags = std::make_shared<WorkloadFlags>();
  Command cron_job = commands.add("cronjob", "Create a CronJob", create).alias("cj");
  cron_flags->required = {
      cron_job.add_option("--image", cron_flags->job.image, "image"),
      cron_job.add_option("--schedule", cron_flags->job.schedule, "when, as cron writes it: \"*/5 * * * *\"")};
  cron_job.add_option("--restart", cron_flags->job.restart, "OnFailure or Never");
  commands.keep_rest(cron_job);
  add_new_object(commands, cron_job, cron_flags, "failed to create cronjob: ",
                 [&commands, flags = cron_flags.get()](const std::string& name) -> Result<json::value> {
                   flags->job.name = name;
                   flags->job.command = commands.rest();
                   return job_of(flags->job);
                 });

  auto job_flags = std::make_shared<WorkloadFlags>();
  Command job = commands.add("job", "Create a Job, of an image or as a CronJob makes them: NAME --from=cronjob/NAME", create);
  job.add_option("--image", job_flags->job.image, "image");
  job.add_option("--from", job_flags->from, "cronjob/NAME");
  commands.keep_rest(job);
  add_new_object(commands, job, job_flags,
                 "failed to create job: ", [&commands, flags = job_flags.get()](const std::string& name) -> Result<json::value> {
                   JobFlags wanted = flags->job;
                   wanted.name = name;
                   wanted.command = commands.rest();
                   if (wanted.image.empty() == flags->from.empty())
                     return Error(Code::bad_request, "either --image or --from must be specified");
                   if (flags->from.empty()) return job_of(wanted);
                   if (!wanted.command.empty()) return Error(Code::bad_request, "cannot specify --from and command");
                   std::vector<Named> named = TRY(parse_named({flags->from}));
                   const Named& one = named.front();
                   if (one.name.empty()) return Error(Code::bad_request, "resource(s) were provided, but no name was specified");
                   Session* session = TRY(commands.session());
                   json::value from = TRY(session->json({.path = session->path(*one.kind, session->ns(), one.name)}));
                   if (one.kind->kind.kind != "CronJob")
                     return Error(Code::bad_request, "unknown object type *" + std::string(one.kind->kind.version) + "." +
                                                         std::string(one.kind->kind.kind));
                   return job_from(from, name);
                 });
}

// The rules for what runs.
void add_policies(Commands& commands, Command create) {
  struct PolicyFlags : NewObjectFlags {
    BudgetFlags budget;
    PriorityFlags priority;
    std::string hard, scopes;
    IngressFlags ingress;
  };
  auto budget_flags = std::make_shared<PolicyFlags>();
  Command budget = commands.add("poddisruptionbudget", "Create a PodDisruptionBudget", create).alias("pdb");
  budget.add_option("--selector", budget_flags->budget.selector, "labels of its pods: KEY=VALUE,...");
  budget.add_option("--min-available", budget_flags->budget.min_available, "how many have to stay: a number or percentage");
  budget.add_option("--max-unavailable", budget_flags->budget.max_unavailable, "how many may be away: a number or percentage");
  add_new_object(commands, budget, budget_flags,
                 "failed to create poddisruptionbudgets: ", [flags = budget_flags.get()](const std::string& name) {
                   flags->budget.name = name;
                   return budget_of(flags->budget);
                 });

  auto priority_flags = std::make_shared<PolicyFlags>();
  Command priority = commands.add("priorityclass", "Create a PriorityClass", create).alias("pc");
  priority.add_option("--value", priority_flags->priority.value, "the higher, the sooner");
  priority.add_flag("--global-default", priority_flags->priority.global_default, "of pods that name none");
  priority.add_option("--description", priority_flags->priority.description, "what it is for");
  priority.add_option("--preemption-policy", priority_flags->priority.preemption, "PreemptLowerPriority or Never");
  add_new_object(commands, priority, priority_flags,
                 "failed to create priorityclass: ", [flags = priority_flags.get()](const std::string& name) {
                   flags->priority.name = name;
                   return Result<json::value>(priority_class_of(flags->priority));
                 });

  auto quota_flags = std::make_shared<PolicyFlags>();
  Command quota = commands.add("quota", "Create a ResourceQuota", create).alias("resourcequota");
  quota.add_option("--hard", quota_flags->hard, "what there is at most: cpu=1,pods=2");
  quota.add_option("--scopes", quota_flags->scopes, "of which pods: BestEffort,Terminating");
  add_new_object(commands, quota, quota_flags, "failed to create quota: ", [flags = quota_flags.get()](const std::string& name) {
    return quota_of(name, flags->hard, flags->scopes);
  });

  auto ingress_flags = std::make_shared<PolicyFlags>();
  Command ingress = commands.add("ingress", "Create an Ingress", create).alias("ing");
  ingress.add_option("--rule", ingress_flags->ingress.rules, "HOST/PATH=SERVICE:PORT[,tls[=SECRET]]; PATH* is a prefix");
  ingress.add_option("--default-backend", ingress_flags->ingress.default_backend, "SERVICE:PORT for what no rule names");
  ingress.add_option("--class", ingress_flags->ingress.ingress_class, "its IngressClass");
  ingress.add_option("--annotation", ingress_flags->ingress.annotations, "KEY=VALUE");
  add_new_object(commands, ingress, ingress_flags,
                 "failed to create ingress: ", [flags = ingress_flags.get()](const std::string& name) {
                   flags->ingress.name = name;
                   return ingress_of(flags->ingress);
                 });
}

void add_secrets(Commands& commands, Command create) {
  struct SecretFlags : NewObjectFlags {
    std::string type, certificate, key, server = "https://index.docker.io/v1/", user, password, email;
    DataFlags data;
    bool append_hash = false;
  };
  const char* failing = "failed to create secret ";  // kubectl has no colon here
  Command secret = commands.add("secret", "Create a Secret", create);
  secret.require_command();
  auto add = [&](const char* word, const char* about) {
    auto flags = std::make_shared<SecretFlags>();
    Command command = commands.add(word, about, secret);
    command.add_flag("--append-hash", flags->append_hash, "put a hash of its content behind the name");
    return std::pair(command, flags);
  };
  auto [generic, generic_flags] = add("generic", "… from literals and files");
  generic.add_option("--type", generic_flags->type, "its type");
  generic_flags->data.add_to(generic);
  add_new_object(commands, generic, generic_flags, failing,
                 [flags = generic_flags.get()](const std::string& name) -> Result<json::value> {
                   Data data = TRY(read_data(flags->data, "Secret", name));
                   return hashed_if(flags->append_hash, secret_of(name, flags->type, data));
                 });

  auto [tls, tls_flags] = add("tls", "… from a certificate and its key");
  tls.add_option("--cert", tls_flags->certificate, "PEM certificate file");
  tls.add_option("--key", tls_flags->key, "PEM key file");
  add_new_object(commands, tls, tls_flags, failing, [flags = tls_flags.get()](const std::string& name) -> Result<json::value> {
    if (flags->certificate.empty() || flags->key.empty()) return Error(Code::bad_request, "key and cert must be specified");
    Data data = TRY(read_key_pair(flags->certificate, flags->key));
    return hashed_if(flags->append_hash, secret_of(name, "kubernetes.io/tls", data));
  });

  auto [docker, docker_flags] = add("docker-registry", "… that pulls from a registry");
  docker.add_option("--docker-server", docker_flags->server, "the registry");
  docker.add_option("--docker-username", docker_flags->user, "user");
  docker.add_option("--docker-password", docker_flags->password, "password");
  docker.add_option("--docker-email", docker_flags->email, "e-mail");
  docker.add_option("--from-file", docker_flags->data.files, "[KEY=]PATH of a file with credentials").delimiter(',');
  add_new_object(commands, docker, docker_flags, failing,
                 [flags = docker_flags.get()](const std::string& name) -> Result<json::value> {
                   static const char* const kType = "kubernetes.io/dockerconfigjson";
                   static const std::string kKey = ".dockerconfigjson";
                   bool complete = !flags->user.empty() && !flags->password.empty() && !flags->server.empty();
                   if (flags->data.files.empty() && !complete)
                     return Error(Code::bad_request,
                                  "either --from-file or the combination of --docker-username, --docker-password and "
                                  "--docker-server is required");
                   Data data{{kKey, docker_config(flags->server, flags->user, flags->password, flags->email)}};
                   if (!flags->data.files.empty()) {
                     DataFlags files;
                     for (const auto& file : flags->data.files)
                       files.files.push_back((file.find('=') == file.npos ? kKey + "=" : "") + file);
                     data = TRY(read_data(files, "Secret", name));
                   }
                   return hashed_if(flags->append_hash, secret_of(name, kType, data));
                 });
}

void add_services(Commands& commands, Command create) {
  struct NewServiceFlags : NewObjectFlags {
    ServiceFlags service;
  };
  Command service = commands.add("service", "Create a Service", create);
  service.alias("svc");
  service.require_command();
  for (const char* type : {"ClusterIP", "NodePort", "LoadBalancer", "ExternalName"}) {
    auto flags = std::make_shared<NewServiceFlags>();
    ServiceFlags& wanted = flags->service;
    wanted.type = type;
    Command command = commands.add(to_lower(type), "… of that type", service);
    command.add_option("--tcp", wanted.tcp, "PORT[:TARGETPORT]").delimiter(',');
    if (wanted.type == "ClusterIP") command.add_option("--clusterip", wanted.cluster_ip, "its address; None for headless");
    if (wanted.type == "NodePort") command.add_option("--node-port", wanted.node_port, "the node's port");
    if (wanted.type == "ExternalName")
      flags->required = {command.add_option("--external-name", wanted.external_name, "the name it stands for")};
    add_new_object(commands, command, flags,
                   "failed to create " + wanted.type + " service: ", [flags = flags.get()](const std::string& name) {
                     flags->service.name = name;
                     return service_of(flags->service);
                   });
  }
}

}  // namespace

void add_create_kinds(Commands& commands, Command create) {
  add_plain_kinds(commands, create);
  add_workloads(commands, create);
  add_policies(commands, create);
  add_secrets(commands, create);
  add_services(commands, create);
}

}  // namespace coracle::ctl
