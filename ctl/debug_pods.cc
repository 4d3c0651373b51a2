// SPDX-License-Identifier: Apache-2.0
// See debug.h.
#include <algorithm>
#include <cctype>

#include "ctl/debug.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

enum class DebugStyle : uint8_t { ephemeral, copy, node };

constexpr const char* kDebugContainerLists[] = {"containers", "initContainers", "ephemeralContainers"};

json::value* container_named(json::value& pod, const std::string& name) {
  for (const char* list : kDebugContainerLists) {
    json::value* found = const_cast<json::value*>(find(pod, std::string("spec.") + list));
    if (!found || !found->is_array()) continue;
    for (json::value& container : found->get_array())
      if (view::Container(container).name() == name) return &container;
  }
  return nullptr;
}

json::array& array_at(json::value& root, std::string_view path) {
  json::value& value = make(root, path);
  if (!value.is_array()) value.emplace_array();
  return value.get_array();
}

json::array array_of_texts(const std::vector<std::string>& texts) { return json::array(texts.begin(), texts.end()); }

json::array debug_env(const DebugOptions& options) {
  json::array env;
  for (const auto& [name, value] : options.env) env.push_back(json::object{{"name", name}, {"value", value}});
  return env;
}

// The container as its flags say, for a new one.
json::object new_container(const std::string& name, const DebugOptions& options) {
  json::object container{{"name", name}, {"image", options.image}};
  if (!options.words.empty()) container[options.arguments_only ? "args" : "command"] = array_of_texts(options.words);
  if (!options.env.empty()) container["env"] = debug_env(options);
  if (!options.pull_policy.empty()) container["imagePullPolicy"] = options.pull_policy;
  container["terminationMessagePolicy"] = "File";
  if (options.use_stdin) container["stdin"] = true;
  if (options.tty) container["tty"] = true;
  return container;
}

std::string debug_container_name(json::value& pod, const DebugOptions& options, const NameSuffix& suffix,
                                 std::vector<std::string>& messages) {
  if (!options.container.empty()) return options.container;
  std::string name;
  do name = "debugger-" + suffix();
  while (container_named(pod, name));
  if (!options.quiet) messages.push_back("Defaulting debug container name to " + name + ".");
  return name;
}

// ---- profiles ----

void add_capability(json::value& container, const char* capability) {
  array_at(container, "securityContext.capabilities.add").emplace_back(capability);
}

void clear_security_context(json::value& container) { container.as_object().erase("securityContext"); }

void mount_root(json::value& pod, json::value& container) {
  array_at(pod, "spec.volumes").push_back(json::object{{"name", "host-root"}, {"hostPath", {{"path", "/"}}}});
  array_at(container, "volumeMounts").push_back(json::object{{"mountPath", "/host"}, {"name", "host-root"}});
}

void use_host_namespaces(json::value& pod) {
  for (const char* field : {"spec.hostNetwork", "spec.hostPID", "spec.hostIPC"}) make(pod, field) = true;
}

void drop_what_is_not_kept(json::value& pod, const DebugOptions& options) {
  json::object& metadata = make(pod, "metadata").as_object();
  if (!options.keep_labels) metadata.erase("labels");
  if (!options.keep_annotations) metadata.erase("annotations");
  for (json::value& container : array_at(pod, "spec.containers")) {
    if (!options.keep_liveness) container.as_object().erase("livenessProbe");
    if (!options.keep_readiness) container.as_object().erase("readinessProbe");
    if (!options.keep_startup) container.as_object().erase("startupProbe");
  }
  if (!options.keep_init_containers) make(pod, "spec").as_object().erase("initContainers");
}

void share_processes(json::value& pod) {
  if (!view::Pod(pod).spec().has_share_process_namespace()) make(pod, "spec.shareProcessNamespace") = true;
}

void restrict_rights(json::value& container) {
  make(container, "securityContext.runAsNonRoot") = true;
  make(container, "securityContext.capabilities.drop") = json::array{"ALL"};
  make(container, "securityContext.allowPrivilegeEscalation") = false;
  make(container, "securityContext.seccompProfile.type") = "RuntimeDefault";
}

void apply_profile(json::value& pod, const std::string& name, DebugStyle style, const DebugOptions& options) {
  const std::string& profile = options.profile;
  bool copy = style == DebugStyle::copy, node = style == DebugStyle::node;
  if (profile == "legacy") {
    if (copy) make(pod, "metadata").as_object().erase("labels");
    if (!node) return;
  } else if (copy) {
    drop_what_is_not_kept(pod, options);
    share_processes(pod);
  }
  // --keep-init-containers=false may have taken it away.
  json::value* container = container_named(pod, name);
  if (container) {
    if (profile == "baseline" || profile == "restricted" || (profile == "general" && node)) clear_security_context(*container);
    if (profile == "general" && !node) add_capability(*container, "SYS_PTRACE");
    if (profile == "restricted") restrict_rights(*container);
    if (profile == "netadmin") add_capability(*container, "NET_ADMIN"), add_capability(*container, "NET_RAW");
    if (profile == "sysadmin") make(*container, "securityContext.privileged") = true;
    bool mounts = profile == "legacy" || profile == "general" || profile == "sysadmin";
    if (node && mounts) mount_root(pod, *container);
  }
  if (node && profile != "baseline" && profile != "restricted") use_host_namespaces(pod);
}

Result<void> lay_over(json::value& pod, const char* list, const std::string& name, const std::optional<json::value>& custom) {
  if (!custom) return {};
  json::value part = *custom;
  part.as_object()["name"] = name;
  json::value patch;
  array_at(patch, std::string("spec.") + list).push_back(std::move(part));
  Live live{&schema::catalog().of(kPod), "", name, pod};
  pod = TRY(patched_here(live, patch, kStrategicPatch).wrap("--custom"));
  return {};
}

bool is_powerless(json::value& pod, const std::string& name) {
  if (view::Pod(pod).spec().security_context().run_as_user() == 0) return false;
  json::value* container = container_named(pod, name);
  if (!container) return false;
  view::SecurityContext rights = view::Container(*container).security_context();
  if (!rights) return false;
  if (rights.has_run_as_user() && rights.run_as_user() == 0) return false;
  return rights.privileged() || !rights.capabilities().add().empty();
}

// As docker's reference.ReferenceRegexp, which is looked for anywhere in the text: a reference somewhere in it is enough.
bool has_reference(const std::string& image) {
  return std::any_of(image.begin(), image.end(), [](unsigned char c) { return std::isalnum(c); });
}

}  // namespace

// ---- options ----

Result<TextPairs> parse_text_pairs(const std::string& flag, const std::vector<std::string>& values) {
  TextPairs pairs;
  for (const std::string& value : values) {
    std::vector<std::string_view> parts{value};
    if (std::count(value.begin(), value.end(), '=') > 1) parts = split(value, ',');
    for (std::string_view part : parts) {
      size_t equals = part.find('=');
      if (equals == part.npos)
        return Error(Code::bad_request, "invalid argument " + coracle::quoted(value) + " for " + coracle::quoted(flag) +
                                            " flag: " + std::string(part) + " must be formatted as key=value");
      pairs.emplace_back(part.substr(0, equals), part.substr(equals + 1));
    }
  }
  return pairs;
}

Result<void> check_debug_options(const DebugOptions& options) {
  auto refused = [](const std::string& text) { return Error(Code::bad_request, text); };
  static constexpr std::string_view kProfiles[] = {"legacy", "general", "baseline", "restricted", "netadmin", "sysadmin"};
  if (std::find(std::begin(kProfiles), std::end(kProfiles), options.profile) == std::end(kProfiles))
    return refused("unknown profile: " + options.profile);
  bool image = !options.image.empty();
  if (options.attach && options.attach_given && !image && options.container.empty())
    return refused("you must specify --container or create a new container using --image in order to attach.");
  if (!options.copy_to.empty()) {
    if (!image && options.set_images.empty() && options.words.empty())
      return refused("you must specify --image, --set-image or command arguments.");
    if (!options.words.empty() && options.container.empty() && !image)
      return refused("you must specify an existing container or a new image when specifying args.");
  } else if (options.replace) {
    return refused("--replace may only be used with --copy-to.");
  } else if (options.same_node) {
    return refused("--same-node may only be used with --copy-to.");
  } else if (!options.set_images.empty()) {
    return refused("--set-image may only be used with --copy-to.");
  } else if (!image) {
    return refused("you must specify --image when not using --copy-to.");
  }
  if (image && !has_reference(options.image))
    return refused("invalid image name " + coracle::quoted(options.image) + ": invalid reference format");
  const std::string& policy = options.pull_policy;
  if (!policy.empty() && policy != "Always" && policy != "IfNotPresent" && policy != "Never")
    return refused("invalid image pull policy: " + policy);
  for (const auto& [name, one] : options.set_images)
    if (!has_reference(one))
      return refused("invalid image name " + coracle::quoted(one) + " for container " + coracle::quoted(name) +
                     ": invalid reference format");
  if (!options.target.empty() && !options.copy_to.empty())
    return refused("--target is incompatible with --copy-to. Use --share-processes instead.");
  if (options.tty && !options.use_stdin) return refused("-i/--stdin is required for containers with -t/--tty=true");
  if (options.custom) {
    if (!options.custom->is_object()) return refused("--custom: expected a part of a container");
    for (const char* field : {"name", "command", "image", "lifecycle", "volumeDevices"})
      if (find(*options.custom, field))
        return refused("name, command, image, lifecycle and volume devices are not modifiable via custom profile");
  }
  return {};
}

// ---- pods ----

Result<DebugPod> debug_copy(const json::value& pod, const DebugOptions& options, const NameSuffix& suffix) {
  DebugPod made;
  json::object metadata{{"name", options.copy_to}, {"namespace", metadata_of(pod).namespace_()}};
  if (metadata_of(pod).has_labels()) metadata["labels"] = metadata_of(pod).labels();
  if (metadata_of(pod).has_annotations()) metadata["annotations"] = metadata_of(pod).annotations();
  const json::value* spec = view::Pod(pod).spec().pointer();
  made.pod = json::object{{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", std::move(metadata)},
                          {"spec", spec ? *spec : json::value(json::object())}};
  json::object& copied = make(made.pod, "spec").as_object();
  copied.erase("ephemeralContainers");
  if (options.share_given) copied["shareProcessNamespace"] = options.share_processes;
  if (!options.same_node) copied.erase("nodeName");
  auto image_for = [&](std::string_view name) {
    std::string image;
    for (const auto& [of, wanted] : options.set_images)
      if (of == name) return wanted;
      else if (of == "*") image = wanted;
    return image;
  };
  for (json::value& container : array_at(made.pod, "spec.containers"))
    if (std::string image = image_for(view::Container(container).name()); !image.empty()) container.as_object()["image"] = image;

  json::value* container = options.container.empty() ? nullptr : container_named(made.pod, options.container);
  if (!container && options.image.empty()) {
    if (!options.set_images.empty()) return made;  // only images change
    return Error(Code::bad_request, "you must specify image when creating new container");
  }
  made.container = options.container;
  if (!container) {
    made.container = debug_container_name(made.pod, options, suffix, made.messages);
    json::array& all = array_at(made.pod, "spec.containers");
    all.push_back(new_container(made.container, options));
    container = &all.back();
  }
  json::object& fields = container->as_object();
  if (!options.words.empty()) {
    fields[options.arguments_only ? "args" : "command"] = array_of_texts(options.words);
    if (!options.arguments_only) fields.erase("args");
  }
  if (!options.env.empty()) fields["env"] = debug_env(options);
  if (!options.image.empty()) fields["image"] = options.image;
  if (!options.pull_policy.empty()) fields["imagePullPolicy"] = options.pull_policy;
  for (const auto& [field, wanted] : {std::pair("stdin", options.use_stdin), std::pair("tty", options.tty)})
    if (wanted) fields[field] = true;
    else fields.erase(field);
  apply_profile(made.pod, made.container, DebugStyle::copy, options);
  TRY(lay_over(made.pod, "containers", made.container, options.custom));
  made.powerless = is_powerless(made.pod, made.container);
  return made;
}

Result<DebugPod> debug_ephemeral(const json::value& pod, const DebugOptions& options, const NameSuffix& suffix) {
  DebugPod made;
  made.pod = pod;
  made.container = debug_container_name(made.pod, options, suffix, made.messages);
  json::object container = new_container(made.container, options);
  if (!options.target.empty()) container["targetContainerName"] = options.target;
  array_at(made.pod, "spec.ephemeralContainers").push_back(std::move(container));
  apply_profile(made.pod, made.container, DebugStyle::ephemeral, options);
  TRY(lay_over(made.pod, "ephemeralContainers", made.container, options.custom));
  made.powerless = is_powerless(made.pod, made.container);
  return made;
}

Result<DebugPod> debug_node(const json::value& node, const DebugOptions& options, const NameSuffix& suffix) {
  DebugPod made;
  made.container = options.container.empty() ? "debugger" : options.container;
  std::string node_name(metadata_of(node).name()), name = "node-debugger-" + node_name + "-" + suffix();
  if (!options.quiet)
    made.messages.push_back("Creating debugging pod " + name + " with container " + made.container + " on node " + node_name +
                            ".");
  made.pod = json::object{{"apiVersion", "v1"},
                          {"kind", "Pod"},
                          {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "kubectl-debug"}}}}},
                          {"spec",
                           {{"containers", json::array{new_container(made.container, options)}},
                            {"nodeName", node_name},
                            {"restartPolicy", "Never"},
                            {"tolerations", json::array{json::object{{"operator", "Exists"}}}}}}};
  apply_profile(made.pod, made.container, DebugStyle::node, options);
  TRY(lay_over(made.pod, "containers", made.container, options.custom));
  return made;
}

}  // namespace coracle::ctl
