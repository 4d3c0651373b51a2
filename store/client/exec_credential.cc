// SPDX-License-Identifier: Apache-2.0
// See exec_credential.h.
#include "store/client/exec_credential.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"

extern char** environ;

namespace coracle {
namespace {

constexpr size_t kPrintedBytesMax = 1 << 20;
constexpr const char* kInfoVariable = "KUBERNETES_EXEC_INFO";
constexpr const char* kNotInstalled =
    "\n\nIt looks like you are trying to use a client-go credential plugin that is not installed.\n\n"
    "To learn more about this feature, consult the documentation available at:\n"
    "      https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins\n\n";

struct Actions {
  posix_spawn_file_actions_t all;
  Actions() { ::posix_spawn_file_actions_init(&all); }
  Actions(const Actions&) = delete;
  ~Actions() { ::posix_spawn_file_actions_destroy(&all); }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (auto& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

// Ours, then the plugin's, which count. A name stands once: not every program takes the last one.
std::vector<std::string> environment_of(const ExecPlugin& plugin, const std::string& info) {
  std::vector<std::pair<std::string, std::string>> added = plugin.env;
  added.emplace_back(kInfoVariable, info);
  std::vector<std::string> all;
  auto is_added = [&](std::string_view variable) {
    for (const auto& [name, value] : added)
      if (variable.starts_with(name) && variable.substr(name.size()).starts_with('=')) return true;
    return false;
  };
  for (char** variable = environ; *variable; ++variable)
    if (!is_added(*variable)) all.emplace_back(*variable);
  for (const auto& [name, value] : added) all.push_back(name + "=" + value);
  return all;
}

Error failed(const std::string& what) {
  return Error(Code::unavailable, "Unable to connect to the server: getting credentials: " + what);
}

std::string read_all_from(const Fd& pipe) {
  std::string text;
  char buffer[4096];
  for (ssize_t got; text.size() < kPrintedBytesMax;) {
    got = ::read(pipe.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    text.append(buffer, size_t(got));
  }
  return text;
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, bool interactive) {
  json::object spec;
  if (!plugin.cluster.is_null()) spec["cluster"] = plugin.cluster;
  spec["interactive"] = interactive;
  return to_text(json::object{{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}});
}

Result<Credential> parse_exec_credential(std::string_view text, const std::string& api_version) {
  json::value printed = TRY(parse_json(text).wrap("decoding stdout"));
  if (!printed.is_object() || get_string(printed, "kind") != "ExecCredential")
    return Error(Code::invalid,
                 "decoding stdout: kind must be ExecCredential, is " + coracle::quoted(get_string(printed, "kind")));
  if (get_string(printed, "apiVersion") != api_version)
    return Error(Code::invalid, "exec plugin is configured to use API version " + api_version + ", plugin returned version " +
                                    std::string(get_string(printed, "apiVersion")));
  const json::value* status = find(printed, "status");
  if (!status || !status->is_object()) return Error(Code::invalid, "exec plugin didn't return a status field");
  Credential credential{std::string(get_string(*status, "token")), std::string(get_string(*status, "clientCertificateData")),
                        std::string(get_string(*status, "clientKeyData")), std::nullopt};
  bool certificate = !credential.client_certificate_pem.empty(), key = !credential.client_key_pem.empty();
  if (credential.token.empty() && !certificate && !key)
    return Error(Code::invalid, "exec plugin didn't return a token or cert/key pair");
  if (certificate != key) return Error(Code::invalid, "exec plugin returned only certificate or key, not both");
  if (std::string_view time = get_string(*status, "expirationTimestamp"); !time.empty())
    credential.expires = TRY(parse_time(time).wrap("decoding stdout: status.expirationTimestamp"));
  return credential;
}

Result<Credential> ExecCredential::run() const {
  if (plugin_.api_version != "client.authentication.k8s.io/v1" && plugin_.api_version != "client.authentication.k8s.io/v1beta1")
    return Error(Code::invalid, "exec plugin: invalid apiVersion " + coracle::quoted(plugin_.api_version));
  bool terminal = ::isatty(STDIN_FILENO);
  if (plugin_.interactive == ExecPlugin::Interactive::always && !terminal)
    return failed("exec plugin cannot support interactive mode: standard input is not a terminal");
  bool interactive = terminal && plugin_.interactive != ExecPlugin::Interactive::never;

  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Error::from_errno("make a pipe");
  Fd output(ends[0]), input(ends[1]);
  Actions actions;
  ::posix_spawn_file_actions_adddup2(&actions.all, input.get(), STDOUT_FILENO);
  if (!interactive) ::posix_spawn_file_actions_addopen(&actions.all, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::vector<std::string> words = {plugin_.command}, variables = environment_of(plugin_, exec_info(plugin_, interactive));
  words.insert(words.end(), plugin_.args.begin(), plugin_.args.end());
  pid_t pid = 0;
  int error = ::posix_spawnp(&pid, words.front().c_str(), &actions.all, nullptr, pointers_to(words).data(),
                             pointers_to(variables).data());
  bool path = plugin_.command.find('/') != plugin_.command.npos;
  if (error == ENOENT && path) return failed("exec: fork/exec " + plugin_.command + ": no such file or directory");
  if (error == ENOENT)
    return failed("exec: executable " + plugin_.command + " not found" + (kNotInstalled + plugin_.install_hint));
  if (error) return failed("exec: " + Error::from_errno(error, "run " + plugin_.command).text());
  input.reset();
  std::string text = read_all_from(output);
  output.reset();
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("wait for " + plugin_.command);
  if (status != 0)
    return failed("exec: executable " + plugin_.command + " failed with exit code " +
                  std::to_string(WIFEXITED(status) ? WEXITSTATUS(status) : -1));
  auto credential = parse_exec_credential(text, plugin_.api_version);
  if (!credential) return failed(credential.error().text());
  return credential;
}

Result<std::shared_ptr<const Credential>> ExecCredential::get() {
  using Current = std::shared_ptr<const Credential>;
  // Held while the plugin runs: it may ask a person, who is asked once.
  return current_.with([&](Current& current) -> Result<Current> {
    if (current && (!current->expires || system_clock().now() < *current->expires)) return current;
    Credential fresh = TRY(run());
    current = std::make_shared<const Credential>(std::move(fresh));
    return current;
  });
}

void ExecCredential::reject(const std::shared_ptr<const Credential>& refused) {
  current_.with([&](auto& current) {
    if (current == refused) current = nullptr;
  });
}

}  // namespace coracle
