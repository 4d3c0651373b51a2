// SPDX-License-Identifier: Apache-2.0
// create and replace: new objects from files, or from a few flags for the kinds people make by hand (generate.h).
#include "ctl/create.h"

#include <array>

#include "ctl/generate.h"
#include "ctl/last_applied.h"
#include "ctl/raw.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {

void CreateFlags::add_to(Commands& commands, Command command) {
  commands.add_output(command, output);
  commands.add_dry_run(command, dry_run);
  command.add_option("--field-manager", field_manager, "who owns the fields");
  command.add_option("--validate", validate, "strict, warn or ignore").optional_value("strict");
  command.add_flag("--save-config", save_config, "remember it for apply");
}

Query CreateFlags::query() const {
  auto flag = parse_bool(validate);
  bool ignore = validate == "ignore" || (flag && !*flag);
  return {{"fieldManager", field_manager}, {"fieldValidation", ignore ? "Ignore" : validate == "warn" ? "Warn" : "Strict"}};
}

namespace {

// The object with the annotation by which apply will know it.
void remember(json::value& object) {
  std::string text = to_text(object) + "\n";
  json::value& annotations = make(object, "metadata.annotations");
  if (!annotations.is_object()) annotations.emplace_object();
  annotations.as_object()[kLastApplied] = text;
}

}  // namespace

Result<json::value> send_new(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind) {
  std::string ns(get_string(object, "metadata.namespace"));
  bool stays_open = flags.dry_run == DryRun::client && !session.ns_given();  // what was printed may be applied to any namespace
  if (kind.kind.namespaced && ns.empty() && !stays_open) make(object, "metadata.namespace") = ns = session.ns();
  if (flags.save_config) remember(object);
  if (flags.dry_run == DryRun::client) return object;
  return session.json({.method = "POST", .path = session.path(kind, ns), .query = flags.query(), .body = to_text(object)});
}

Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object) {
  Session* session = TRY(commands.session());
  const schema::KindInfo& kind = *kind_of(object);
  json::value created = TRY(send_new(*session, flags, std::move(object), kind));
  print_outcome(flags.output, flags.dry_run, created, kind, "created", JsonOrder::given);
  return 0;
}

namespace {

// Does `act` to each object of the files; what fails is told at the end, and the others are processed all the same.
Result<int> each_document(Commands& commands, const CreateFlags& flags, const std::string& verb,
                          const std::function<Result<void>(Session&, Document&)>& act) {
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive, &failures));
  if (documents.empty() && failures.empty()) return Error(Code::bad_request, "no objects passed to " + verb);
  for (auto& document : documents) {
    auto settled = settle_namespace(*session, document);
    if (!settled) {
      failures.push_back(settled.take_error());
      continue;
    }
    auto done = act(*session, document);
    std::string doing = verb.substr(0, verb.size() - 1) + "ing";  // create: creating
    if (!done)
      failures.push_back(std::move(done.take_error()).wrap("error when " + doing + " " + coracle::quoted(document.source)));
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> send_raw(Commands& commands, const CreateFlags& flags, const char* method, const std::string& path) {
  if (flags.files.recursive) return Error(Code::bad_request, "--raw and --recursive are mutually exclusive");
  if (!flags.output.empty()) return Error(Code::bad_request, "--raw and --output are mutually exclusive");
  return run_raw(commands, {.method = method, .path = path, .files = flags.files.files, .needs_file = true});
}

Result<int> create_files(Commands& commands, const CreateFlags& flags) {
  if (flags.files.files.empty())
    return Error(Code::bad_request, "must specify one of -f FILE or a kind to create; see create --help");
  return each_document(commands, flags, "create", [&](Session& session, Document& document) -> Result<void> {
    json::value created = TRY(send_new(session, flags, std::move(document.object), *document.kind));
    print_outcome(flags.output, flags.dry_run, std::move(created), *document.kind, "created");
    return {};
  });
}

Result<json::value> replace_one(Session& session, const CreateFlags& flags, Document& document, bool force) {
  std::string ns(get_string(document.object, "metadata.namespace")), name(get_string(document.object, "metadata.name"));
  if (name.empty()) return Error(Code::invalid, "metadata.name is missing");
  if (flags.save_config) remember(document.object);
  if (flags.dry_run == DryRun::client) return document.object;
  std::string path = session.path(*document.kind, ns, name);
  Request request{.method = "PUT", .path = path, .query = flags.query(), .body = to_text(document.object)};
  if (!force) return session.json(request);
  json::object options = session.delete_options();
  options["gracePeriodSeconds"] = 0;
  auto removed = session.json({.method = "DELETE", .path = path, .body = to_text(options)});
  if (!removed && removed.error().code() != Code::not_found) return removed.take_error();
  TRY(wait_gone(session, *document.kind, ns, name, "", std::chrono::minutes(5)));  // a finalizer may hold it for a while
  request.method = "POST", request.path = session.path(*document.kind, ns);
  return session.json(request);
}

Result<int> replace_files(Commands& commands, const CreateFlags& flags, bool force) {
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE, -f DIRECTORY or -f -");
  if (force && flags.dry_run != DryRun::none)  // the new one cannot be tried while the old one is there
    return Error(Code::bad_request, "--dry-run can not be used when --force is set");
  return each_document(commands, flags, "replace", [&](Session& session, Document& document) -> Result<void> {
    json::value replaced = TRY(replace_one(session, flags, document, force));
    print_outcome(flags.output, flags.dry_run, std::move(replaced), *document.kind, "replaced");
    return {};
  });
}

void add_secrets(Commands& commands, Command create) {
  struct Flags : CreateFlags {
    std::string name, type, cert, key, server = "https://index.docker.io/v1/", username, password, email;
    DataFlags data;
  };
  Command secret = commands.add("secret", "Create a Secret", create);
  secret.require_command();
  auto generic_flags = std::make_shared<Flags>();
  Command generic = commands.add("generic", "… from literals and files", secret);
  generic.add_option("name", generic_flags->name, "its name").required();
  generic.add_option("--type", generic_flags->type, "its type");
  generic_flags->data.add_to(generic);
  generic_flags->CreateFlags::add_to(commands, generic);
  commands.on(generic, [&commands, flags = generic_flags]() -> Result<int> {
    Data data = TRY(read_data(flags->data));
    return post_made(commands, *flags, secret_of(flags->name, flags->type, data));
  });
  auto tls_flags = std::make_shared<Flags>();
  Command tls = commands.add("tls", "… from a certificate and its key", secret);
  tls.add_option("name", tls_flags->name, "its name").required();
  tls.add_option("--cert", tls_flags->cert, "PEM certificate file").required();
  tls.add_option("--key", tls_flags->key, "PEM key file").required();
  tls_flags->CreateFlags::add_to(commands, tls);
  commands.on(tls, [&commands, flags = tls_flags]() -> Result<int> {
    Data data = TRY(read_data({.files = {"tls.crt=" + flags->cert, "tls.key=" + flags->key}}));
    return post_made(commands, *flags, secret_of(flags->name, "kubernetes.io/tls", data));
  });
  auto docker_flags = std::make_shared<Flags>();
  Command docker = commands.add("docker-registry", "… that pulls from a registry", secret);
  docker.add_option("name", docker_flags->name, "its name").required();
  docker.add_option("--docker-server", docker_flags->server, "the registry");
  docker.add_option("--docker-username", docker_flags->username, "user").required();
  docker.add_option("--docker-password", docker_flags->password, "password").required();
  docker.add_option("--docker-email", docker_flags->email, "e-mail");
  docker_flags->CreateFlags::add_to(commands, docker);
  commands.on(docker, [&commands, flags = docker_flags]() -> Result<int> {
    json::object entry{{"username", flags->username}, {"password", flags->password}}, auths;
    if (!flags->email.empty()) entry["email"] = flags->email;
    entry["auth"] = base64_encode(flags->username + ":" + flags->password);
    auths[flags->server] = std::move(entry);
    std::string text = to_text(json::object{{"auths", std::move(auths)}});
    return post_made(commands, *flags, secret_of(flags->name, "kubernetes.io/dockerconfigjson", {{".dockerconfigjson", text}}));
  });
}

void add_plain_kinds(Commands& commands, Command create) {
  struct Flags : CreateFlags {
    std::string name;
    DataFlags data;
    DeploymentFlags deployment;
  };
  for (auto [word, kind, alias] :
       {std::array{"namespace", "Namespace", "ns"}, std::array{"serviceaccount", "ServiceAccount", "sa"}}) {
    auto flags = std::make_shared<Flags>();
    Command command = commands.add(word, std::string("Create a ") + kind, create);
    command.alias(alias);
    command.add_option("name", flags->name, "its name").required();
    flags->CreateFlags::add_to(commands, command);
    commands.on(command, [&commands, flags, kind = std::string(kind)] {
      return post_made(commands, *flags, named_object("v1", kind, flags->name));
    });
  }
  auto map_flags = std::make_shared<Flags>();
  Command configmap = commands.add("configmap", "Create a ConfigMap", create);
  configmap.alias("cm");
  configmap.add_option("name", map_flags->name, "its name").required();
  map_flags->data.add_to(configmap);
  map_flags->CreateFlags::add_to(commands, configmap);
  commands.on(configmap, [&commands, flags = map_flags]() -> Result<int> {
    Data data = TRY(read_data(flags->data));
    return post_made(commands, *flags, configmap_of(flags->name, data));
  });
  auto flags = std::make_shared<Flags>();
  Command deployment = commands.add("deployment", "Create a Deployment", create);
  deployment.alias("deploy");
  deployment.add_option("name", flags->deployment.name, "its name").required();
  deployment.add_option("--image", flags->deployment.images, "image; several times: a container for each").required();
  deployment.add_option("-r,--replicas", flags->deployment.replicas, "how many pods");
  deployment.add_option("--port", flags->deployment.port, "port the container listens on");
  flags->CreateFlags::add_to(commands, deployment);
  commands.on(deployment, [&commands, flags] {
    flags->deployment.command = commands.rest();
    if (flags->deployment.images.size() > 1 && !flags->deployment.command.empty())
      return Result<int>(Error(Code::bad_request, "cannot specify multiple --image options and command"));
    return post_made(commands, *flags, deployment_of(flags->deployment));
  });
}

Result<int> create_job(Commands& commands, const CreateFlags& flags, JobFlags job, const std::string& from) {
  job.command = commands.rest();
  if (job.image.empty() == from.empty()) return Error(Code::bad_request, "either --image or --from must be specified");
  if (from.empty()) return post_made(commands, flags, job_of(job));
  if (!job.command.empty()) return Error(Code::bad_request, "cannot specify --from and command");
  std::vector<Named> named = TRY(parse_named({from}));
  if (named.front().kind->kind.kind != "CronJob" || named.front().name.empty())
    return Error(Code::bad_request, "from must be an existing cronjob");
  Session* session = TRY(commands.session());
  json::value cron_job = TRY(session->json({.path = session->path(*named.front().kind, session->ns(), named.front().name)}));
  return post_made(commands, flags, job_from(cron_job, job.name));
}

// What runs to an end, and the rules for what runs.
void add_workload_kinds(Commands& commands, Command create) {
  struct Flags : CreateFlags {
    JobFlags job;
    BudgetFlags budget;
    std::string name, from, hard, scopes, description, preemption = "PreemptLowerPriority";
    int64_t value = 0;
    bool global_default = false;
  };
  auto add = [&](const char* word, const char* alias, const char* description, std::string Flags::*name) {
    auto flags = std::make_shared<Flags>();
    Command command = commands.add(word, description, create);
    if (alias) command.alias(alias);
    command.add_option("name", flags.get()->*name, "its name").required();
    flags->CreateFlags::add_to(commands, command);
    return std::pair(command, flags);
  };
  auto [job, job_flags] =
      add("job", nullptr, "Create a Job, of an image or as a CronJob makes them: NAME --from=cronjob/NAME", &Flags::name);
  job.add_option("--image", job_flags->job.image, "image");
  job.add_option("--from", job_flags->from, "cronjob/NAME");
  commands.on(job, [&commands, flags = job_flags] {
    flags->job.name = flags->name;
    return create_job(commands, *flags, flags->job, flags->from);
  });
  auto [cron_job, cron_flags] = add("cronjob", "cj", "Create a CronJob", &Flags::name);
  cron_job.add_option("--image", cron_flags->job.image, "image").required();
  cron_job.add_option("--schedule", cron_flags->job.schedule, "when, as cron writes it: \"*/5 * * * *\"").required();
  cron_job.add_option("--restart", cron_flags->job.restart, "OnFailure or Never");
  commands.on(cron_job, [&commands, flags = cron_flags] {
    flags->job.name = flags->name;
    flags->job.command = commands.rest();
    return post_made(commands, *flags, job_of(flags->job));
  });
  auto [budget, budget_flags] = add("poddisruptionbudget", "pdb", "Create a PodDisruptionBudget", &Flags::name);
  budget.add_option("--selector", budget_flags->budget.selector, "labels of its pods: KEY=VALUE,...");
  budget.add_option("--min-available", budget_flags->budget.min_available, "how many have to stay: a number or percentage");
  budget.add_option("--max-unavailable", budget_flags->budget.max_unavailable, "how many may be away: a number or percentage");
  commands.on(budget, [&commands, flags = budget_flags]() -> Result<int> {
    flags->budget.name = flags->name;
    json::value object = TRY(budget_of(flags->budget));
    return post_made(commands, *flags, std::move(object));
  });
  auto [priority, priority_flags] = add("priorityclass", "pc", "Create a PriorityClass", &Flags::name);
  priority.add_option("--value", priority_flags->value, "the higher, the sooner");
  priority.add_flag("--global-default", priority_flags->global_default, "of pods that name none");
  priority.add_option("--description", priority_flags->description, "what it is for");
  priority.add_option("--preemption-policy", priority_flags->preemption, "PreemptLowerPriority or Never");
  commands.on(priority, [&commands, flags = priority_flags] {
    json::object object = named_object("scheduling.k8s.io/v1", "PriorityClass", flags->name);
    object["value"] = flags->value;
    object["globalDefault"] = flags->global_default;
    object["preemptionPolicy"] = flags->preemption;
    if (!flags->description.empty()) object["description"] = flags->description;
    return post_made(commands, *flags, std::move(object));
  });
  auto [quota, quota_flags] = add("quota", "resourcequota", "Create a ResourceQuota", &Flags::name);
  quota.add_option("--hard", quota_flags->hard, "what there is at most: cpu=1,pods=2");
  quota.add_option("--scopes", quota_flags->scopes, "of which pods: BestEffort,Terminating");
  commands.on(quota, [&commands, flags = quota_flags]() -> Result<int> {
    json::value object = TRY(quota_of(flags->name, flags->hard, flags->scopes));
    return post_made(commands, *flags, std::move(object));
  });
}

void add_service(Commands& commands, Command create) {
  struct Flags : CreateFlags {
    ServiceFlags service;
  };
  Command service = commands.add("service", "Create a Service", create);
  service.alias("svc");
  service.require_command();
  for (auto [word, type] : {std::pair{"clusterip", "ClusterIP"}, std::pair{"nodeport", "NodePort"},
                            std::pair{"loadbalancer", "LoadBalancer"}, std::pair{"externalname", "ExternalName"}}) {
    auto flags = std::make_shared<Flags>();
    flags->service.type = type;
    Command command = commands.add(word, "… of that type", service);
    command.add_option("name", flags->service.name, "its name").required();
    command.add_option("--tcp", flags->service.tcp, "PORT[:TARGETPORT]").delimiter(',');
    command.add_option("--node-port", flags->service.node_port, "the node's port");
    command.add_option("--external-name", flags->service.external_name, "the name it stands for");
    command.add_option("--clusterip", flags->service.cluster_ip, "its address; None for headless");
    flags->CreateFlags::add_to(commands, command);
    commands.on(command, [&commands, flags]() -> Result<int> {
      json::value object = TRY(service_of(flags->service));
      return post_made(commands, *flags, std::move(object));
    });
  }
}

// A token by which a program speaks for a ServiceAccount.
Result<int> run_create_token(Commands& commands, const std::string& name, const std::string& duration, const Output& output) {
  Session* session = TRY(commands.session());
  json::value wanted = json::object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}};
  if (!duration.empty()) {
    auto span = TRY(parse_timeout(duration).wrap("--duration"));
    make(wanted, "spec.expirationSeconds") = std::chrono::duration_cast<std::chrono::seconds>(span).count();
  }
  json::value answer =
      TRY(session->json({.method = "POST",
                         .path = session->path(schema::catalog().of(kServiceAccount), session->ns(), name, "token"),
                         .body = to_text(wanted)}));
  if (!output.empty()) output.print(std::move(answer), JsonOrder::given);
  else out(std::string(get_string(answer, "status.token")) + "\n");
  return 0;
}

void add_token(Commands& commands, Command create) {
  struct Flags {
    std::string name, duration;
    Output output;
  };
  auto flags = std::make_shared<Flags>();
  Command token = commands.add("token", "Ask for a ServiceAccount's token", create);
  token.add_option("name", flags->name, "the ServiceAccount's name").required();
  token.add_option("--duration", flags->duration, "how long it is good for: 10m, 1h");
  commands.add_output(token, flags->output);
  commands.on(token, [&commands, flags] { return run_create_token(commands, flags->name, flags->duration, flags->output); });
}

}  // namespace

void add_create(Commands& commands) {
  auto flags = std::make_shared<CreateFlags>();
  Command create = commands.add("create", "Create objects from files or flags");
  flags->files.add_to(create);
  flags->add_to(commands, create);
  auto raw = std::make_shared<std::string>();
  create.add_option("--raw", *raw, "a path to send the file to as it is");
  commands.on(create, [&commands, flags, raw] {
    return raw->empty() ? create_files(commands, *flags) : send_raw(commands, *flags, "POST", *raw);
  });
  add_plain_kinds(commands, create);
  add_workload_kinds(commands, create);
  add_secrets(commands, create);
  add_service(commands, create);
  add_token(commands, create);

  auto replace_flags = std::make_shared<CreateFlags>();
  auto force = std::make_shared<bool>(false);
  Command replace = commands.add("replace", "Replace objects by what files say");
  replace_flags->files.add_to(replace);
  replace_flags->field_manager = "kubectl-replace";
  replace_flags->add_to(commands, replace);
  replace.add_flag("--force", *force, "delete and create anew");
  auto replace_raw = std::make_shared<std::string>();
  replace.add_option("--raw", *replace_raw, "a path to send the file to as it is");
  commands.on(replace, [&commands, replace_flags, force, replace_raw] {
    return replace_raw->empty() ? replace_files(commands, *replace_flags, *force)
                                : send_raw(commands, *replace_flags, "PUT", *replace_raw);
  });
}

}  // namespace coracle::ctl
