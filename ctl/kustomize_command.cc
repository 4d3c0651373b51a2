// SPDX-License-Identifier: Apache-2.0
// kustomize: builds a kustomization and prints its objects. The flags for charts and for functions in containers are accepted for
// scripts that give them, but neither is run: a kustomization that needs them is refused.
#include <algorithm>
#include <filesystem>

#include "ctl/command.h"
#include "ctl/kustomize/build.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

struct KustomizeFlags {
  std::vector<std::string> args;
  std::string output, load_restrictor = "LoadRestrictionsRootOnly", reorder, helm_command = "helm", helm_kube_version,
                      network_name = "bridge";
  std::vector<std::string> env, helm_api_versions, mounts;
  bool as_current_user = false, plugins = false, helm = false, helm_debug = false, network = false, managed_by_label = false;
  Flag reorder_flag, managed_by_flag;
};

// "apps_v1_deployment_web.yaml"; behind "prod_" if objects of several namespaces are written.
std::string file_name(const json::value& object, const std::string& ns) {
  std::string api_version(api_version_in(object)), name;
  size_t slash = api_version.find('/');
  for (const std::string& part : {slash == api_version.npos ? std::string() : api_version.substr(0, slash),
                                  slash == api_version.npos ? api_version : api_version.substr(slash + 1),
                                  std::string(kind_in(object)), std::string(metadata_of(object).name())})
    if (!part.empty()) name += (name.empty() ? "" : "_") + part;
  return to_lower((ns.empty() ? "" : ns + "_") + name + ".yaml");
}

// As a shell writes with >: a device too, and with the rights that the umask leaves.
Result<void> write_file(const std::string& path, const std::vector<json::value>& objects) {
  Fd file = TRY(sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0666).wrap(path));
  return sys::write_all(file, kustomize::to_yaml_stream(objects)).wrap(path);
}

Result<void> write_files(const std::string& directory, const std::vector<json::value>& objects) {
  std::vector<std::string> namespaces;  // of each object; "" for none
  std::vector<std::string> different;
  for (const json::value& object : objects) {
    namespaces.push_back(kustomize::namespace_of(object));
    if (!namespaces.back().empty() && std::find(different.begin(), different.end(), namespaces.back()) == different.end())
      different.push_back(namespaces.back());
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    std::string name = file_name(objects[i], different.size() > 1 ? namespaces[i] : std::string());
    if (name.find('/') != name.npos) return Error(Code::invalid, "an object's name cannot be part of a file's: " + name);
    TRY(write_file(directory + "/" + name, {objects[i]}));
  }
  return {};
}

Result<int> run_kustomize(const KustomizeFlags& flags) {
  const std::string use = "use the new 'sortOptions' field in kustomization.yaml instead.";
  if (flags.reorder_flag.count()) tell("Flag --reorder has been deprecated, " + use + "\n");
  if (flags.managed_by_flag.count())
    tell(
        "Flag --enable-managedby-label has been deprecated, The flag `enable-managedby-label` has been deprecated. Use the "
        "`managedByLabel` option in the `buildMetadata` field instead.\n");
  if (flags.args.size() > 1) return Error(Code::bad_request, "specify one path to kustomization.yaml");
  if (flags.load_restrictor != "LoadRestrictionsRootOnly" && flags.load_restrictor != "LoadRestrictionsNone" &&
      !flags.load_restrictor.empty())
    return Error(Code::bad_request, "illegal flag value --load-restrictor " + flags.load_restrictor +
                                        "; legal values: [LoadRestrictionsRootOnly LoadRestrictionsNone]");
  if (!flags.reorder.empty() && flags.reorder != "legacy" && flags.reorder != "none")
    return Error(Code::bad_request, "illegal flag value --reorder " + flags.reorder + "; legal values: [legacy none]");
  kustomize::BuildOptions options{.restricted = flags.load_restrictor != "LoadRestrictionsNone",
                                  .order = flags.reorder == "none" ? kustomize::Order::as_given : kustomize::Order::by_kind,
                                  .managed_by_label = flags.managed_by_label};
  kustomize::Built built = TRY(kustomize::build(flags.args.empty() ? "." : flags.args[0], options));
  for (const std::string& warning : built.warnings) tell(warning + "\n");
  std::error_code failed;
  if (flags.output.empty()) {
    out(kustomize::to_yaml_stream(built.objects));
  } else if (std::filesystem::is_directory(flags.output, failed)) {
    TRY(write_files(flags.output, built.objects));
  } else {
    TRY(write_file(flags.output, built.objects));
  }
  return 0;
}

}  // namespace

void add_kustomize(Commands& commands) {
  Command command = commands.add("kustomize", "Print the objects that a kustomization makes");
  auto flags = std::make_shared<KustomizeFlags>();
  command.add_option("dir", flags->args, "directory with a kustomization.yaml; the current one by default");
  command.add_option("-o,--output", flags->output, "file, or directory for a file for each object");
  command.add_option("--load-restrictor", flags->load_restrictor,
                     "LoadRestrictionsNone: kustomizations may load files from outside their directories");
  flags->reorder_flag = command.add_option("--reorder", flags->reorder, "deprecated: legacy or none; see sortOptions");
  flags->managed_by_flag = command.add_flag("--enable-managedby-label", flags->managed_by_label, "deprecated: see buildMetadata");
  command.add_flag("--enable-helm", flags->helm, "accepted; charts are refused");
  command.add_flag("--enable-alpha-plugins", flags->plugins, "accepted; external plugins are refused");
  command.add_flag("--as-current-user", flags->as_current_user, "accepted; functions are refused");
  command.add_option("-e,--env", flags->env, "accepted; functions are refused");
  command.add_option("--mount", flags->mounts, "accepted; functions are refused");
  command.add_flag("--network", flags->network, "accepted; functions are refused");
  command.add_option("--network-name", flags->network_name, "accepted; functions are refused");
  command.add_option("--helm-command", flags->helm_command, "accepted; charts are refused");
  command.add_option("--helm-api-versions", flags->helm_api_versions, "accepted; charts are refused");
  command.add_option("--helm-kube-version", flags->helm_kube_version, "accepted; charts are refused");
  command.add_flag("--helm-debug", flags->helm_debug, "accepted; charts are refused");
  commands.on(command, [flags] { return run_kustomize(*flags); });
}

}  // namespace coracle::ctl
