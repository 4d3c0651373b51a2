// SPDX-License-Identifier: Apache-2.0
// version, and what compares the versions of client and server.
#include "ctl/about.h"

#include <cstdlib>

#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::ctl {

std::optional<int> minor_of(const json::value& server) {
  std::string_view text = get_string(server, "minor");
  return parse_number<int>(text.substr(0, text.find_first_not_of("0123456789")));
}

namespace {

// ---- version ----

constexpr const char* kKustomizeVersion = "v5.8.1";  // of the kustomize that ctl/kustomize follows
constexpr int kMinorVersion = 36, kSkewMax = 1;

json::object client_version() {
  return {{"major", "1"}, {"minor", std::to_string(kMinorVersion)}, {"gitVersion", kGitVersion}, {"platform", "linux"}};
}

// Errors: invalid, of a difference that --warnings-as-errors does not allow.
Result<void> warn_of_skew(const json::value& server, bool as_error) {
  auto minor = minor_of(server);
  if (!minor || std::abs(*minor - kMinorVersion) <= kSkewMax) return {};
  std::string text = "version difference between client (1." + std::to_string(kMinorVersion) + ") and server (" +
                     std::string(get_string(server, "major")) + "." + std::to_string(*minor) +
                     ") exceeds the supported minor version skew of +/-" + std::to_string(kSkewMax);
  if (as_error) return Error(Code::invalid, text);
  tell("Warning: " + text + "\n");
  return {};
}

struct VersionFlags {
  std::vector<std::string> args;
  std::string output;
  bool client_only = false;
};

Result<int> run_version(Commands& commands, const VersionFlags& flags) {
  const std::string& output = flags.output;
  if (!flags.args.empty()) return Error(Code::bad_request, "extra arguments: [" + join(flags.args, " ") + "]");
  if (!output.empty() && output != "json" && output != "yaml")
    return Error(Code::bad_request, "--output must be 'yaml' or 'json'");
  json::object versions{
      {"clientVersion", client_version()}, {"coracleVersion", "v" CORACLE_VERSION}, {"kustomizeVersion", kKustomizeVersion}};
  std::string text = std::string("Client Version: ") + kGitVersion + "\nKustomize Version: " + kKustomizeVersion +
                     "\nCoracle Version: v" CORACLE_VERSION "\n";
  Result<json::value> server = json::value();
  if (!flags.client_only) {
    auto session = commands.session();
    server = session ? (*session)->json({.path = "/version"}) : Result<json::value>(session.take_error());
    if (server) text += "Server Version: " + std::string(get_string(*server, "gitVersion")) + "\n";
    if (server) versions["serverVersion"] = *server;
  }
  if (output == "json") out(go_pretty_json(versions, JsonOrder::given) + "\n");
  else if (output == "yaml") out(to_yaml(versions) + "\n");  // with kubectl's empty line
  else out(text);                                            // ours is shown even if the server cannot be asked
  if (!server) return server.take_error();
  if (!flags.client_only) TRY(warn_of_skew(*server, commands.flags().warnings_as_errors));
  return 0;
}

}  // namespace

Result<void> check_server_version(Session& session) {
  json::value server = TRY(session.json({.path = "/version"}));
  std::string version(get_string(server, "gitVersion"));
  if (version == kGitVersion) return {};
  return Error(Code::conflict, "server version (" + version + ") differs from client version (" + kGitVersion + ")!");
}

void add_version(Commands& commands) {
  auto flags = std::make_shared<VersionFlags>();
  Command version = commands.add("version", "Ours and the server's");
  version.add_option("args", flags->args, "none").hide();
  version.add_flag("--client", flags->client_only, "ours only");
  version.add_option("-o,--output", flags->output, "json or yaml");
  commands.on(version, [&commands, flags] { return run_version(commands, *flags); });
}

}  // namespace coracle::ctl
