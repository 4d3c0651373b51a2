// SPDX-License-Identifier: Apache-2.0
// config set-context, set-cluster, set-credentials: what a flag says goes into an entry, the rest of which stays.
// Source: kubectl pkg/cmd/config/create_*.go.
#include <algorithm>
#include <filesystem>

#include "ctl/config.h"
#include "ctl/kubeconfig_files.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

// A flag's value, and whether the line gave it: "--namespace=" empties a field.
struct Given {
  std::string value;
  Flag flag;
  bool given() const { return flag && flag.count() > 0; }
};

struct GivenSwitch {
  bool value = false;
  Flag flag;
  bool given() const { return flag && flag.count() > 0; }
};

void put_given(json::object& entry, const char* field, const Given& given) {
  if (!given.given()) return;
  if (given.value.empty()) entry.erase(field);
  else entry[field] = given.value;
}

// A file's path, or with `embed` its content. Either takes the place of the other.
Result<void> put_file(json::object& entry, const std::string& field, const Given& given, bool embed) {
  if (!given.given()) return {};
  std::error_code failed;
  if (given.value.empty()) {
    entry.erase(field);
  } else if (embed) {
    std::string content = TRY(sys::read_file(given.value));
    entry[field + "-data"] = base64_encode(content);
    entry.erase(field);
  } else {
    entry[field] = std::filesystem::absolute(given.value, failed).lexically_normal().string();
    entry.erase(field + "-data");
  }
  return {};
}

Result<void> check_embedded(const char* flag, const std::string& path) {
  std::error_code failed;
  if (path.empty() || std::filesystem::exists(path, failed)) return {};
  return Error(Code::not_found,
               "could not stat " + std::string(flag) + " file " + path + ": stat " + path + ": no such file or directory");
}

// ---- set-context ----

struct ContextFlags {
  std::vector<std::string> args;
  bool current = false;
  Given cluster, user, ns;
};

Result<int> run_set_context(Commands& commands, const ContextFlags& flags) {
  if (flags.args.size() > 1) return unexpected_arguments("set-context", flags.args);
  std::string name = flags.args.empty() ? "" : flags.args.front();
  if (name.empty() && !flags.current) return Error(Code::bad_request, "you must specify a non-empty context name or --current");
  if (!name.empty() && flags.current) return Error(Code::bad_request, "you cannot specify both a context name and --current");
  KubeconfigFiles files = TRY(KubeconfigFiles::open(commands.flags().kubeconfig, KubeconfigUse::change));
  if (flags.current) name = files.current_context();
  if (name.empty()) return Error(Code::bad_request, "no current context is set");
  bool was = files.find(kContextList, name);
  json::object& context = files.entry(kContextList, name).get_object();
  put_given(context, "cluster", flags.cluster);
  put_given(context, "user", flags.user);
  put_given(context, "namespace", flags.ns);
  TRY(files.save());
  out("Context " + coracle::quoted(name) + (was ? " modified.\n" : " created.\n"));
  return 0;
}

// ---- set-cluster ----

struct ClusterFlags {
  std::vector<std::string> args;
  Given server, tls_server_name, authority, proxy_url;
  GivenSwitch insecure;
  bool embed = false;
};

Result<void> check_cluster_flags(const ClusterFlags& flags) {
  if (flags.args.size() != 1) return unexpected_arguments("set-cluster", flags.args);
  if (flags.args.front().empty()) return Error(Code::bad_request, "you must specify a non-empty cluster name");
  if (flags.insecure.value && !flags.authority.value.empty())
    return Error(Code::bad_request, "you cannot specify a certificate authority and insecure mode at the same time");
  if (!flags.embed) return {};
  if (flags.authority.value.empty()) return Error(Code::bad_request, "you must specify a --certificate-authority to embed");
  return check_embedded("certificate-authority", flags.authority.value);
}

Result<int> run_set_cluster(Commands& commands, const ClusterFlags& flags) {
  TRY(check_cluster_flags(flags));
  KubeconfigFiles files = TRY(KubeconfigFiles::open(commands.flags().kubeconfig, KubeconfigUse::change));
  const std::string& name = flags.args.front();
  json::object& cluster = files.entry(kClusterList, name).get_object();
  put_given(cluster, "server", flags.server);
  if (flags.server.given()) cluster.erase("tls-server-name");  // that of the server before
  put_given(cluster, "tls-server-name", flags.tls_server_name);
  put_given(cluster, "proxy-url", flags.proxy_url);
  if (flags.insecure.given()) {
    cluster.erase("insecure-skip-tls-verify");
    if (flags.insecure.value) {
      cluster["insecure-skip-tls-verify"] = true;
      cluster.erase("certificate-authority");
      cluster.erase("certificate-authority-data");
    }
  }
  TRY(put_file(cluster, "certificate-authority", flags.authority, flags.embed));
  if (flags.authority.given()) cluster.erase("insecure-skip-tls-verify");
  files.make_paths_relative(kClusterList, name);
  TRY(files.save());
  out("Cluster " + coracle::quoted(name) + " set.\n");
  return 0;
}

// ---- set-credentials ----

struct CredentialFlags {
  std::vector<std::string> args;
  Given certificate, key, token, username, password, provider, exec_command, exec_version, exec_mode;
  GivenSwitch exec_cluster_info;
  std::vector<std::string> provider_args, exec_args, exec_env;
  bool embed = false;
};

// KEY=VALUE to set, KEY- to take away.
struct Pairs {
  std::vector<std::pair<std::string, std::string>> set;
  std::vector<std::string> removed;
};

Result<Pairs> parse_pairs(const std::vector<std::string>& words, const char* flag) {
  Pairs pairs;
  for (const auto& word : words) {
    size_t equals = word.find('=');
    if (equals != word.npos && equals > 0) pairs.set.emplace_back(word.substr(0, equals), word.substr(equals + 1));
    else if (word.size() > 1 && word.ends_with('-')) pairs.removed.push_back(word.substr(0, word.size() - 1));
    else return Error(Code::bad_request, "Error: invalid " + std::string(flag) + " format: " + word);
  }
  return pairs;
}

Result<void> check_credential_flags(const CredentialFlags& flags) {
  if (flags.args.size() != 1) return unexpected_arguments("set-credentials", flags.args);
  if (flags.args.front().empty()) return Error(Code::bad_request, "you must specify a non-empty user name");
  if (!flags.token.value.empty() && (!flags.username.value.empty() || !flags.password.value.empty()))
    return Error(Code::bad_request,
                 "you cannot specify more than one authentication method at the same time: --token, --username/--password");
  std::string_view mode = flags.exec_mode.value;
  if (flags.exec_mode.given() && mode != "Never" && mode != "IfAvailable" && mode != "Always")
    return Error(Code::bad_request, "invalid interactive mode type, can be only IfAvailable, Never, Always");
  if (!flags.embed) return {};
  if (flags.certificate.value.empty() && flags.key.value.empty())
    return Error(Code::bad_request, "you must specify a --client-certificate or --client-key to embed");
  TRY(check_embedded("client-certificate", flags.certificate.value));
  return check_embedded("client-key", flags.key.value);
}

Result<void> change_auth_provider(json::object& user, const CredentialFlags& flags) {
  Pairs pairs = TRY(parse_pairs(flags.provider_args, "auth-provider-arg"));
  if (flags.provider.given() && get_string(json::value(user), "auth-provider.name") != flags.provider.value)
    user["auth-provider"] = json::object{{"config", json::object()}, {"name", flags.provider.value}};
  json::value* provider = user.if_contains("auth-provider");
  if (!provider || !provider->is_object()) return {};
  json::value& config = provider->get_object()["config"];
  if (!config.is_object()) config.emplace_object();
  for (const auto& name : pairs.removed) config.get_object().erase(name);
  for (const auto& [name, value] : pairs.set) config.get_object()[name] = value;
  return {};
}

void change_environment(json::object& exec, const Pairs& pairs) {
  json::array variables;
  if (const json::value* had = exec.if_contains("env"); had && had->is_array())
    for (const auto& variable : had->get_array())
      if (std::find(pairs.removed.begin(), pairs.removed.end(), get_string(variable, "name")) == pairs.removed.end())
        variables.push_back(variable);
  for (const auto& [name, value] : pairs.set) {
    auto same = [&](const auto& variable) { return get_string(variable, "name") == name; };
    auto found = std::find_if(variables.begin(), variables.end(), same);
    if (found == variables.end()) variables.push_back(json::object{{"name", name}, {"value", value}});
    else found->get_object()["value"] = value;
  }
  exec["env"] = std::move(variables);
}

Result<void> change_exec(json::object& user, const CredentialFlags& flags) {
  Pairs pairs = TRY(parse_pairs(flags.exec_env, "exec-env"));
  if (flags.exec_command.given()) {
    json::value& exec = user["exec"];
    if (!exec.is_object()) exec = json::object{{"apiVersion", ""}};
    exec.get_object()["command"] = flags.exec_command.value;
    exec.get_object().erase("args");  // those of the command before
  }
  json::value* found = user.if_contains("exec");
  if (!found || !found->is_object()) return {};
  json::object& exec = found->get_object();
  if (flags.exec_version.given()) exec["apiVersion"] = flags.exec_version.value;
  if (!flags.exec_args.empty()) exec["args"] = json::array(flags.exec_args.begin(), flags.exec_args.end());
  if (flags.exec_mode.given()) exec["interactiveMode"] = flags.exec_mode.value;
  if (flags.exec_cluster_info.given()) exec["provideClusterInfo"] = flags.exec_cluster_info.value;
  if (!flags.exec_env.empty()) change_environment(exec, pairs);
  return {};
}

Result<int> run_set_credentials(Commands& commands, const CredentialFlags& flags) {
  TRY(check_credential_flags(flags));
  KubeconfigFiles files = TRY(KubeconfigFiles::open(commands.flags().kubeconfig, KubeconfigUse::change));
  const std::string& name = flags.args.front();
  json::object& user = files.entry(kUserList, name).get_object();
  TRY(put_file(user, "client-certificate", flags.certificate, flags.embed));
  TRY(put_file(user, "client-key", flags.key, flags.embed));
  put_given(user, "token", flags.token);
  put_given(user, "username", flags.username);
  put_given(user, "password", flags.password);
  if (!flags.token.value.empty()) user.erase("username"), user.erase("password");  // one way to sign in, not two
  if (!flags.username.value.empty() || !flags.password.value.empty()) user.erase("token");
  TRY(change_auth_provider(user, flags));
  TRY(change_exec(user, flags));
  files.make_paths_relative(kUserList, name);
  TRY(files.save());
  out("User " + coracle::quoted(name) + " set.\n");
  return 0;
}

void add(Command command, const char* name, Given& given, const char* about) {
  given.flag = command.add_option(name, given.value, about);
}

}  // namespace

void add_config_setters(Commands& commands, Command config) {
  auto context_flags = std::make_shared<ContextFlags>();
  Command context = commands.add("set-context", "Make a context, or change it", config);
  context.add_option("args", context_flags->args, "CONTEXT");
  context.add_flag("--current", context_flags->current, "the one in use");
  add(context, "--cluster", context_flags->cluster, "its cluster");
  add(context, "--user", context_flags->user, "its user");
  add(context, "-n,--namespace", context_flags->ns, "its namespace");
  commands.on(context, [&commands, context_flags] { return run_set_context(commands, *context_flags); });

  auto cluster_flags = std::make_shared<ClusterFlags>();
  Command cluster = commands.add("set-cluster", "Make a cluster, or change it", config);
  cluster.add_option("args", cluster_flags->args, "CLUSTER");
  add(cluster, "-s,--server", cluster_flags->server, "its server's URL");
  add(cluster, "--tls-server-name", cluster_flags->tls_server_name, "the name in its server's certificate");
  add(cluster, "--certificate-authority", cluster_flags->authority, "the CA's certificate file");
  add(cluster, "--proxy-url", cluster_flags->proxy_url, "the proxy to reach it through");
  cluster_flags->insecure.flag =
      cluster.add_flag("--insecure-skip-tls-verify", cluster_flags->insecure.value, "trust any server");
  cluster.add_flag("--embed-certs", cluster_flags->embed, "keep the file's content, not its path");
  commands.on(cluster, [&commands, cluster_flags] { return run_set_cluster(commands, *cluster_flags); });

  auto user_flags = std::make_shared<CredentialFlags>();
  Command user = commands.add("set-credentials", "Make a user, or change it", config);
  user.add_option("args", user_flags->args, "USER");
  add(user, "--client-certificate", user_flags->certificate, "a file with its certificate");
  add(user, "--client-key", user_flags->key, "a file with the certificate's key");
  user.add_flag("--embed-certs", user_flags->embed, "keep the files' content, not their paths");
  add(user, "--token", user_flags->token, "its bearer token");
  add(user, "--username", user_flags->username, "its name, for basic authentication");
  add(user, "--password", user_flags->password, "its password");
  add(user, "--auth-provider", user_flags->provider, "its authentication provider");
  user.add_option("--auth-provider-arg", user_flags->provider_args, "KEY=VALUE for it; KEY- takes one away").delimiter(',');
  add(user, "--exec-command", user_flags->exec_command, "the plugin that prints its credential");
  add(user, "--exec-api-version", user_flags->exec_version, "the plugin's API: client.authentication.k8s.io/v1");
  user.add_option("--exec-arg", user_flags->exec_args, "an argument of the plugin").delimiter(',');
  user.add_option("--exec-env", user_flags->exec_env, "KEY=VALUE for the plugin; KEY- takes one away");
  add(user, "--exec-interactive-mode", user_flags->exec_mode, "whether it may ask: Never, IfAvailable, Always");
  user_flags->exec_cluster_info.flag =
      user.add_flag("--exec-provide-cluster-info", user_flags->exec_cluster_info.value, "tell the plugin about the cluster");
  commands.on(user, [&commands, user_flags] { return run_set_credentials(commands, *user_flags); });
}

}  // namespace coracle::ctl
