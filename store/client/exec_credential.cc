// SPDX-License-Identifier: Apache-2.0
// See exec_credential.h.
#include "store/client/exec_credential.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <vector>

#include "runtime/base/fd.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

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

std::atomic<bool> input_is_taken{false};

// JSON begins with a brace; what does not is YAML, as client-go's decoder has it. Nothing printed is an object of no fields.
Result<json::value> read_printed(std::string_view text) {
  if (trim(text).starts_with('{')) return parse_json(text);
  std::vector<json::value> documents = TRY(parse_yaml(text));
  json::value printed = documents.empty() ? json::value(json::object()) : std::move(documents.front());
  if (!printed.is_object()) return Error(Code::invalid, "what was printed is no object");
  return printed;
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
  json::value printed = TRY(read_printed(text).wrap("decoding stdout: couldn't get version/kind; json parse error"));
  std::string_view kind = get_string(printed, "kind"), version = get_string(printed, "apiVersion");
  if (!kind.empty() && kind != "ExecCredential")  // a plugin may leave it out
    return Error(Code::invalid, "decoding stdout: kind must be ExecCredential, is " + coracle::quoted(kind));
  if (version.empty()) version = "client.authentication.k8s.io/__internal";
  if (version != api_version)
    return Error(Code::invalid, "exec plugin is configured to use API version " + api_version + ", plugin returned version " +
                                    std::string(version));
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

Result<bool> is_interactive(ExecPlugin::Interactive mode, bool terminal, bool input_taken) {
  constexpr const char* kWhy = "exec plugin cannot support interactive mode: standard input is ";
  using Interactive = ExecPlugin::Interactive;
  if (mode == Interactive::always && !terminal) return failed(std::string(kWhy) + "not a terminal");
  if (mode == Interactive::always && input_taken)
    return failed(std::string(kWhy) + "unavailable: used by stdin resource manifest reader");
  return mode != Interactive::never && terminal && !input_taken;
}

void keep_input_from_plugins() { input_is_taken = true; }

Result<Credential> ExecCredential::run() const {
  if (plugin_.api_version != "client.authentication.k8s.io/v1" && plugin_.api_version != "client.authentication.k8s.io/v1beta1")
    return Error(Code::invalid, "exec plugin: invalid apiVersion " + coracle::quoted(plugin_.api_version));
  bool interactive = TRY(is_interactive(plugin_.interactive, ::isatty(STDIN_FILENO), input_is_taken));

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
