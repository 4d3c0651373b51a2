// SPDX-License-Identifier: Apache-2.0
// create, replace, run, expose: new objects from files, or from a few flags for the kinds people make by hand.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "ctl/command.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr size_t kFileBytesMax = 1 << 20;  // of one file in a ConfigMap or Secret

struct CreateFlags {
  FileFlags files;
  std::string output, dry_run, field_manager = "kubectl-create", validate = "strict";
  bool save_config = false;

  void add_to(CLI::App* command) {
    command->add_option("-o,--output", output, "yaml, json or name");
    command->add_option("--dry-run", dry_run, "none, client or server")->expected(0, 1)->default_str("client")
        ->check(CLI::IsMember({"none", "client", "server"}));
    command->add_option("--field-manager", field_manager, "who owns the fields");
    command->add_option("--validate", validate, "strict, warn or ignore")->expected(0, 1);
    command->add_flag("--save-config", save_config, "remember it for apply");
  }
};

Result<int> print_done(const CreateFlags& flags, const json::value& object, const schema::KindInfo& kind, std::string_view what) {
  std::string note = flags.dry_run == "client" ? " (dry run)" : flags.dry_run == "server" ? " (server dry run)" : "";
  if (flags.output == "yaml") out(to_yaml(object));
  else if (flags.output == "json") out(to_pretty(object) + "\n");
  else if (flags.output == "name") out(message_name(kind, get_string(object, "metadata.name")) + "\n");
  else out(message_name(kind, get_string(object, "metadata.name")) + " " + std::string(what) + note + "\n");
  return 0;
}

// Sends one new object, in the namespace in force when it names none.
Result<int> post(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind) {
  std::string ns(get_string(object, "metadata.namespace"));
  if (kind.kind.namespaced && ns.empty()) make(object, "metadata.namespace") = ns = session.ns();
  if (flags.dry_run == "client") return print_done(flags, object, kind, "created");
  Request request{.method = "POST", .path = session.path(kind, ns), .body = to_text(object)};
  request.query = {{"fieldManager", flags.field_manager}, {"fieldValidation", flags.validate == "false" || flags.validate == "ignore" ? "Ignore" : flags.validate == "warn" ? "Warn" : "Strict"}};
  if (flags.dry_run == "server") request.query.emplace_back("dryRun", "All");
  json::value created = TRY(session.json(request));
  return print_done(flags, created, kind, "created");
}

Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object) {
  Session* session = TRY(commands.session());
  const schema::KindInfo* kind = kind_of(object);
  return post(*session, flags, std::move(object), *kind);
}

Result<int> create_files(Commands& commands, const CreateFlags& flags) {
  if (flags.files.files.empty()) return Error(Code::bad_request, "must specify one of -f FILE or a kind to create; see create --help");
  Session* session = TRY(commands.session());
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
  int failures = 0;
  for (auto& document : documents) {
    auto done = post(*session, flags, std::move(document.object), *document.kind);
    if (done) continue;
    if (documents.size() == 1) return done.take_error();
    std::fprintf(stderr, "Error from server: error when creating %s: %s\n", coracle::quoted(document.source).c_str(), done.error().text().c_str());
    ++failures;
  }
  return failures ? 1 : 0;
}

Result<int> replace_files(Commands& commands, const CreateFlags& flags, bool force) {
  Session* session = TRY(commands.session());
  std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
  for (auto& document : documents) {
    std::string ns(get_string(document.object, "metadata.namespace")), name(get_string(document.object, "metadata.name"));
    if (document.kind->kind.namespaced && ns.empty()) make(document.object, "metadata.namespace") = ns = session->ns();
    std::string path = session->path(*document.kind, ns, name);
    if (force) {
      auto removed = session->json({.method = "DELETE", .path = path, .body = R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})"});
      if (!removed && removed.error().code() != Code::not_found) return removed.take_error();
    }
    json::value replaced = TRY(session->json({.method = force ? "POST" : "PUT", .path = force ? session->path(*document.kind, ns) : path,
                                              .query = {{"fieldManager", "kubectl-replace"}}, .body = to_text(document.object)}));
    TRY(print_done(flags, replaced, *document.kind, "replaced"));
  }
  return 0;
}

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error::from_errno("read " + path);
  std::string text(kFileBytesMax + 1, '\0');
  file.read(text.data(), std::streamsize(text.size()));
  text.resize(size_t(file.gcount()));
  if (text.size() > kFileBytesMax) return Error(Code::too_large, path + " is larger than 1 MiB, more than an object can hold");
  return text;
}

struct DataFlags {
  std::vector<std::string> literals, files, env_files;
  void add_to(CLI::App* command) {
    command->add_option("--from-literal", literals, "KEY=VALUE")->allow_extra_args(false);
    command->add_option("--from-file", files, "[KEY=]PATH; a directory gives all its files")->allow_extra_args(false);
    command->add_option("--from-env-file", env_files, "a file of KEY=VALUE lines")->allow_extra_args(false);
  }
};

// Keys and their bytes, in the order given.
Result<std::vector<std::pair<std::string, std::string>>> read_data(const DataFlags& flags) {
  std::vector<std::pair<std::string, std::string>> data;
  for (const auto& literal : flags.literals) {
    size_t equals = literal.find('=');
    if (equals == literal.npos || equals == 0) return Error(Code::bad_request, "--from-literal: expected KEY=VALUE, got " + coracle::quoted(literal));
    std::string value = literal.substr(equals + 1);
    if (value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.back() == value.front()) value = value.substr(1, value.size() - 2);
    data.emplace_back(literal.substr(0, equals), value);
  }
  for (const auto& file : flags.files) {
    size_t equals = file.find('=');
    std::string path = equals == file.npos ? file : file.substr(equals + 1);
    std::error_code failed;
    if (std::filesystem::is_directory(path, failed)) {
      std::vector<std::filesystem::path> entries;
      for (const auto& entry : std::filesystem::directory_iterator(path, failed))
        if (entry.is_regular_file(failed)) entries.push_back(entry.path());
      std::sort(entries.begin(), entries.end());
      for (const auto& entry : entries) {
        std::string text = TRY(read_small_file(entry));
        data.emplace_back(entry.filename(), std::move(text));
      }
      continue;
    }
    std::string text = TRY(read_small_file(path));
    data.emplace_back(equals == file.npos ? std::filesystem::path(path).filename().string() : file.substr(0, equals), std::move(text));
  }
  for (const auto& file : flags.env_files) {
    std::string text = TRY(read_small_file(file));
    for (std::string_view line : split(text, '\n')) {
      line = trim(line);
      if (line.empty() || line.front() == '#') continue;
      size_t equals = line.find('=');
      data.emplace_back(line.substr(0, equals), equals == line.npos ? "" : line.substr(equals + 1));
    }
  }
  for (size_t i = 0; i < data.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (data[i].first == data[j].first) return Error(Code::bad_request, "the key " + coracle::quoted(data[i].first) + " is given twice");
  return data;
}

json::object named_object(std::string_view api_version, std::string_view kind, const std::string& name) {
  return {{"apiVersion", api_version}, {"kind", kind}, {"metadata", {{"name", name}}}};
}

Result<json::value> secret_of(const std::string& name, const std::string& type, const std::vector<std::pair<std::string, std::string>>& data) {
  json::object object = named_object("v1", "Secret", name);
  json::object encoded;
  for (const auto& [key, value] : data) encoded[key] = base64_encode(value);
  object["data"] = std::move(encoded);
  if (!type.empty()) object["type"] = type;
  return json::value(std::move(object));
}

void add_create_data_kinds(Commands& commands, CLI::App* create) {
  struct Flags : CreateFlags {
    std::string name, type, cert, key, server = "https://index.docker.io/v1/", username, password, email;
    DataFlags data;
  };
  auto flags = std::make_shared<Flags>();
  CLI::App* configmap = commands.add("configmap", "Create a ConfigMap", create);
  configmap->alias("cm");
  configmap->add_option("name", flags->name, "its name")->required();
  flags->data.add_to(configmap);
  flags->CreateFlags::add_to(configmap);
  commands.on(configmap, [&commands, flags]() -> Result<int> {
    auto data = TRY(read_data(flags->data));
    json::object object = named_object("v1", "ConfigMap", flags->name), text, binary;
    for (const auto& [key, value] : data) {
      if (is_utf8(value)) text[key] = value;
      else binary[key] = base64_encode(value);
    }
    if (!text.empty()) object["data"] = std::move(text);
    if (!binary.empty()) object["binaryData"] = std::move(binary);
    return post_made(commands, *flags, std::move(object));
  });

  CLI::App* secret = commands.add("secret", "Create a Secret", create);
  secret->require_subcommand(1);
  auto generic_flags = std::make_shared<Flags>();
  CLI::App* generic = commands.add("generic", "… from literals and files", secret);
  generic->add_option("name", generic_flags->name, "its name")->required();
  generic->add_option("--type", generic_flags->type, "its type");
  generic_flags->data.add_to(generic);
  generic_flags->CreateFlags::add_to(generic);
  commands.on(generic, [&commands, flags = generic_flags]() -> Result<int> {
    auto data = TRY(read_data(flags->data));
    json::value object = TRY(secret_of(flags->name, flags->type, data));
    return post_made(commands, *flags, std::move(object));
  });
  auto tls_flags = std::make_shared<Flags>();
  CLI::App* tls = commands.add("tls", "… from a certificate and its key", secret);
  tls->add_option("name", tls_flags->name, "its name")->required();
  tls->add_option("--cert", tls_flags->cert, "PEM certificate file")->required();
  tls->add_option("--key", tls_flags->key, "PEM key file")->required();
  tls_flags->CreateFlags::add_to(tls);
  commands.on(tls, [&commands, flags = tls_flags]() -> Result<int> {
    std::string cert = TRY(read_small_file(flags->cert)), key;
    key = TRY(read_small_file(flags->key));
    json::value object = TRY(secret_of(flags->name, "kubernetes.io/tls", {{"tls.crt", cert}, {"tls.key", key}}));
    return post_made(commands, *flags, std::move(object));
  });
  auto docker_flags = std::make_shared<Flags>();
  CLI::App* docker = commands.add("docker-registry", "… that pulls from a registry", secret);
  docker->add_option("name", docker_flags->name, "its name")->required();
  docker->add_option("--docker-server", docker_flags->server, "the registry");
  docker->add_option("--docker-username", docker_flags->username, "user")->required();
  docker->add_option("--docker-password", docker_flags->password, "password")->required();
  docker->add_option("--docker-email", docker_flags->email, "e-mail");
  docker_flags->CreateFlags::add_to(docker);
  commands.on(docker, [&commands, flags = docker_flags]() -> Result<int> {
    json::object entry{{"username", flags->username}, {"password", flags->password}};
    if (!flags->email.empty()) entry["email"] = flags->email;
    entry["auth"] = base64_encode(flags->username + ":" + flags->password);
    json::object auths;
    auths[flags->server] = std::move(entry);
    json::value object = TRY(secret_of(flags->name, "kubernetes.io/dockerconfigjson", {{".dockerconfigjson", to_text(json::object{{"auths", std::move(auths)}})}}));
    return post_made(commands, *flags, std::move(object));
  });
}

void add_create_plain_kinds(Commands& commands, CLI::App* create) {
  struct Flags : CreateFlags {
    std::string name, image;
    std::vector<std::string> command;
    int64_t replicas = 1, port = 0;
  };
  for (auto [word, kind, alias] : {std::array{"namespace", "Namespace", "ns"}, std::array{"serviceaccount", "ServiceAccount", "sa"}}) {
    auto flags = std::make_shared<Flags>();
    CLI::App* command = commands.add(word, std::string("Create a ") + kind, create);
    command->alias(alias);
    command->add_option("name", flags->name, "its name")->required();
    flags->CreateFlags::add_to(command);
    commands.on(command, [&commands, flags, kind = std::string(kind)] { return post_made(commands, *flags, named_object("v1", kind, flags->name)); });
  }
  auto flags = std::make_shared<Flags>();
  CLI::App* deployment = commands.add("deployment", "Create a Deployment", create);
  deployment->alias("deploy");
  deployment->add_option("name", flags->name, "its name")->required();
  deployment->add_option("--image", flags->image, "image")->required();
  deployment->add_option("-r,--replicas", flags->replicas, "how many pods");
  deployment->add_option("--port", flags->port, "port the container listens on");
  flags->CreateFlags::add_to(deployment);
  commands.on(deployment, [&commands, flags] {
    flags->command = commands.rest();
    json::object container{{"name", std::string(flags->image.substr(flags->image.rfind('/') + 1, flags->image.find_first_of(":@", flags->image.rfind('/') + 1) - flags->image.rfind('/') - 1))}, {"image", flags->image}};
    if (!flags->command.empty()) container["command"] = json::array(flags->command.begin(), flags->command.end());
    if (flags->port) container["ports"] = json::array{json::object{{"containerPort", flags->port}}};
    json::object labels{{"app", flags->name}}, object = named_object("apps/v1", "Deployment", flags->name);
    object["metadata"].as_object()["labels"] = labels;
    object["spec"] = json::object{{"replicas", flags->replicas}, {"selector", {{"matchLabels", labels}}},
                                  {"template", {{"metadata", {{"labels", labels}}}, {"spec", {{"containers", json::array{container}}}}}}};
    return post_made(commands, *flags, std::move(object));
  });
}

// "80", "80:8080", "5678:name" of `create service` and `expose`.
void add_create_service(Commands& commands, CLI::App* create) {
  struct Flags : CreateFlags {
    std::string name, external_name, cluster_ip;
    std::vector<std::string> tcp;
    int64_t node_port = 0;
  };
  CLI::App* service = commands.add("service", "Create a Service", create);
  service->alias("svc");
  service->require_subcommand(1);
  for (const char* type : {"clusterip", "nodeport", "loadbalancer", "externalname"}) {
    auto flags = std::make_shared<Flags>();
    CLI::App* command = commands.add(type, std::string("… of that type"), service);
    command->add_option("name", flags->name, "its name")->required();
    command->add_option("--tcp", flags->tcp, "PORT[:TARGETPORT]")->delimiter(',')->allow_extra_args(false);
    command->add_option("--node-port", flags->node_port, "the node's port");
    command->add_option("--external-name", flags->external_name, "the name it stands for");
    command->add_option("--clusterip", flags->cluster_ip, "its address; None for headless");
    flags->CreateFlags::add_to(command);
    commands.on(command, [&commands, flags, type = std::string(type)]() -> Result<int> {
      json::array ports;
      for (const auto& text : flags->tcp) {
        size_t colon = text.find(':');
        auto port = parse_number<uint16_t>(std::string_view(text).substr(0, colon));
        if (!port) return Error(Code::bad_request, "--tcp: expected PORT[:TARGETPORT], got " + coracle::quoted(text));
        std::string target = colon == text.npos ? text : text.substr(colon + 1);
        json::object entry{{"name", to_lower(text.substr(0, colon)) + "-" + target}, {"port", *port}, {"protocol", "TCP"}};
        if (auto number = parse_number<uint16_t>(target)) entry["targetPort"] = *number;
        else entry["targetPort"] = target;
        if (flags->node_port) entry["nodePort"] = flags->node_port;
        ports.push_back(std::move(entry));
      }
      json::object labels{{"app", flags->name}}, spec{{"selector", labels}}, object = named_object("v1", "Service", flags->name);
      object["metadata"].as_object()["labels"] = labels;
      spec["type"] = type == "clusterip" ? "ClusterIP" : type == "nodeport" ? "NodePort" : type == "loadbalancer" ? "LoadBalancer" : "ExternalName";
      if (!ports.empty()) spec["ports"] = std::move(ports);
      if (!flags->external_name.empty()) spec["externalName"] = flags->external_name;
      if (!flags->cluster_ip.empty()) spec["clusterIP"] = flags->cluster_ip;
      object["spec"] = std::move(spec);
      return post_made(commands, *flags, std::move(object));
    });
  }
}

void add_run(Commands& commands) {
  struct Flags : CreateFlags {
    std::string name, image, restart = "Always", pull_policy;
    std::vector<std::string> command, env, labels;
    int64_t port = 0;
    bool as_command = false;
  };
  auto flags = std::make_shared<Flags>();
  flags->field_manager = "kubectl-run";
  CLI::App* run = commands.add("run", "Run an image as a pod: NAME --image=IMAGE [-- ARGS...]");
  run->add_option("name", flags->name, "the pod's name")->required();
  run->add_option("--image", flags->image, "image")->required();
  run->add_option("--restart", flags->restart, "Always, OnFailure or Never")->check(CLI::IsMember({"Always", "OnFailure", "Never"}));
  run->add_option("--image-pull-policy", flags->pull_policy, "Always, IfNotPresent or Never");
  run->add_option("--port", flags->port, "port the container listens on");
  run->add_option("--env", flags->env, "NAME=VALUE")->allow_extra_args(false);
  run->add_option("-l,--labels", flags->labels, "KEY=VALUE,...")->delimiter(',')->allow_extra_args(false);
  run->add_flag("--command", flags->as_command, "what follows -- is the command, not its arguments");
  flags->CreateFlags::add_to(run);
  commands.on(run, [&commands, flags]() -> Result<int> {
    flags->command = commands.rest();
    json::object container{{"name", flags->name}, {"image", flags->image}};
    if (!flags->command.empty()) container[flags->as_command ? "command" : "args"] = json::array(flags->command.begin(), flags->command.end());
    if (!flags->pull_policy.empty()) container["imagePullPolicy"] = flags->pull_policy;
    if (flags->port) container["ports"] = json::array{json::object{{"containerPort", flags->port}}};
    json::array env;
    for (const auto& pair : flags->env) {
      size_t equals = pair.find('=');
      if (equals == pair.npos || equals == 0) return Error(Code::bad_request, "--env: expected NAME=VALUE, got " + coracle::quoted(pair));
      env.push_back(json::object{{"name", pair.substr(0, equals)}, {"value", pair.substr(equals + 1)}});
    }
    if (!env.empty()) container["env"] = std::move(env);
    json::object labels;
    for (const auto& pair : flags->labels) {
      size_t equals = pair.find('=');
      if (equals == pair.npos || equals == 0) return Error(Code::bad_request, "--labels: expected KEY=VALUE, got " + coracle::quoted(pair));
      labels[pair.substr(0, equals)] = pair.substr(equals + 1);
    }
    if (labels.empty()) labels["run"] = flags->name;
    json::object object = named_object("v1", "Pod", flags->name);
    object["metadata"].as_object()["labels"] = std::move(labels);
    object["spec"] = json::object{{"containers", json::array{std::move(container)}}, {"restartPolicy", flags->restart}};
    return post_made(commands, *flags, std::move(object));
  });
}

void add_expose(Commands& commands) {
  struct Flags : CreateFlags {
    std::vector<std::string> args;
    std::string name, port, target_port, protocol = "TCP", type, cluster_ip;
  };
  auto flags = std::make_shared<Flags>();
  flags->field_manager = "kubectl-expose";
  CLI::App* expose = commands.add("expose", "Make a Service for pods, a Deployment or a ReplicaSet");
  expose->add_option("args", flags->args, "KIND NAME or KIND/NAME")->required();
  expose->add_option("--name", flags->name, "the Service's name");
  expose->add_option("--port", flags->port, "its port");
  expose->add_option("--target-port", flags->target_port, "the container's port, number or name");
  expose->add_option("--protocol", flags->protocol, "TCP, UDP or SCTP");
  expose->add_option("--type", flags->type, "ClusterIP, NodePort or LoadBalancer");
  expose->add_option("--cluster-ip", flags->cluster_ip, "its address; None for headless");
  flags->CreateFlags::add_to(expose);
  commands.on(expose, [&commands, flags]() -> Result<int> {
    Session* session = TRY(commands.session());
    std::vector<Named> named = TRY(parse_named(flags->args));
    for (const auto& one : named) {
      json::value object = TRY(session->json({.path = session->path(*one.kind, session->ns(), one.name)}));
      json::object selector = get_object(object, "spec.selector.matchLabels");
      if (one.kind->kind == kPod) selector = get_object(object, "metadata.labels");
      if (one.kind->kind == kService) selector = get_object(object, "spec.selector");
      if (selector.empty()) return Error(Code::invalid, "cannot expose " + message_name(*one.kind, one.name) + ": it has no labels to select pods by");
      json::array ports;
      if (!flags->port.empty()) {
        auto port = parse_number<uint16_t>(flags->port);
        if (!port || !*port) return Error(Code::bad_request, "--port: not a port number: " + coracle::quoted(flags->port));
        json::object entry{{"port", *port}, {"protocol", flags->protocol}, {"targetPort", *port}};
        if (auto number = parse_number<uint16_t>(flags->target_port)) entry["targetPort"] = *number;
        else if (!flags->target_port.empty()) entry["targetPort"] = flags->target_port;
        ports.push_back(std::move(entry));
      } else {
        const char* containers = one.kind->kind == kPod ? "spec.containers" : "spec.template.spec.containers";
        for (const auto& container : get_array(object, containers))
          for (const auto& port : get_array(container, "ports")) {
            json::object entry{{"port", get_int(port, "containerPort")}, {"targetPort", get_int(port, "containerPort")}, {"protocol", get_string(port, "protocol")}};
            entry["name"] = "port-" + std::to_string(ports.size() + 1);
            ports.push_back(std::move(entry));
          }
        if (ports.size() == 1) ports[0].as_object().erase("name");
      }
      if (ports.empty()) return Error(Code::bad_request, "couldn't find port via --port flag or introspection");
      json::object service = named_object("v1", "Service", flags->name.empty() ? one.name : flags->name);
      if (const json::object& labels = get_object(object, "metadata.labels"); !labels.empty()) service["metadata"].as_object()["labels"] = labels;
      json::object spec{{"ports", std::move(ports)}, {"selector", std::move(selector)}};
      if (!flags->type.empty()) spec["type"] = flags->type;
      if (!flags->cluster_ip.empty()) spec["clusterIP"] = flags->cluster_ip;
      service["spec"] = std::move(spec);
      std::string what = "exposed";
      const schema::KindInfo* kind = schema::catalog().by_kind("v1", "Service");
      json::value body(std::move(service));
      make(body, "metadata.namespace") = session->ns();
      if (flags->dry_run == "client") {
        TRY(print_done(*flags, body, *kind, what));
        continue;
      }
      Request request{.method = "POST", .path = session->path(*kind, session->ns()), .query = {{"fieldManager", flags->field_manager}}, .body = to_text(body)};
      if (flags->dry_run == "server") request.query.emplace_back("dryRun", "All");
      json::value created = TRY(session->json(request));
      TRY(print_done(*flags, created, *kind, what));
    }
    return 0;
  });
}

}  // namespace

void add_create(Commands& commands) {
  auto flags = std::make_shared<CreateFlags>();
  CLI::App* create = commands.add("create", "Create objects from files or flags");
  flags->files.add_to(create);
  flags->add_to(create);
  commands.on(create, [&commands, flags] { return create_files(commands, *flags); });
  add_create_data_kinds(commands, create);
  add_create_plain_kinds(commands, create);
  add_create_service(commands, create);

  auto replace_flags = std::make_shared<CreateFlags>();
  auto force = std::make_shared<bool>(false);
  CLI::App* replace = commands.add("replace", "Replace objects by what files say");
  replace_flags->files.add_to(replace);
  replace_flags->add_to(replace);
  replace->add_flag("--force", *force, "delete and create anew");
  commands.on(replace, [&commands, replace_flags, force] { return replace_files(commands, *replace_flags, *force); });
  add_run(commands);
  add_expose(commands);
}

}  // namespace coracle::ctl
