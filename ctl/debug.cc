// SPDX-License-Identifier: Apache-2.0
// debug: makes a container to look into a pod or a node, and joins it. debug_pods.cc says what is made. Source: kubectl debug.
#include "ctl/debug.h"

#include <cstdio>

#include "ctl/command.h"
#include "ctl/generate.h"
#include "ctl/pods.h"
#include "ctl/stream.h"
#include "ctl/target.h"
#include "ctl/wait.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr const char* kUsualDetachKeys = "ctrl-p,ctrl-q";
constexpr std::chrono::seconds kEndTimeout{10};  // for the status of a container whose stream has ended

struct DebugFlags : DebugOptions {
  std::vector<std::string> args, files, env_texts, image_texts;
  std::string custom_file;
  Flag attach_flag, share_flag;
};

const schema::KindInfo& pod_kind() { return schema::catalog().of(kPod); }

class Debugging {
 public:
  Debugging(Session& session, const DebugOptions& options) : session_(session), options_(options) {}

  Result<int> run(const schema::KindInfo& kind, const json::value& object, const std::string& ns) {
    Result<DebugPod> made = Error(Code::bad_request, coracle::quoted(gvk_text(kind)) + " not supported by debug");
    bool ephemeral = false;
    if (kind.kind == kNode) made = debug_node(object, options_, random_suffix);
    else if (kind.kind == kPod && !options_.copy_to.empty()) made = debug_copy(object, options_, random_suffix);
    else if (kind.kind == kPod) made = debug_ephemeral(object, options_, random_suffix), ephemeral = true;
    if (!made) return made.take_error();
    for (const auto& message : made->messages) out(message + "\n");
    if (made->powerless)
      tell(
          "Warning: Non-root user is configured for the entire target Pod, and some capabilities granted by debug profile may "
          "not work. Please consider using \"--custom\" with a custom profile that specifies \"securityContext.runAsUser: "
          "0\".\n");
    Result<json::value> sent = ephemeral ? add_ephemeral(*made, ns) : create(*made, ns);
    json::value pod = TRY(std::move(sent));
    if (options_.replace && kind.kind == kPod) {
      json::object delete_options = session_.delete_options();
      delete_options["gracePeriodSeconds"] = 0;
      TRY(session_.json({.method = "DELETE",
                         .path = session_.path(pod_kind(), ns, metadata_of(object).name()),
                         .body = to_text(delete_options)}));
    }
    if (!options_.attach || made->container.empty()) return 0;
    return attach(ns, std::string(metadata_of(pod).name()), made->container);
  }

 private:
  static std::string gvk_text(const schema::KindInfo& kind) {
    std::string group = kind.kind.group.empty() ? "" : std::string(kind.kind.group);
    return (group.empty() ? "/" : group + "/") + std::string(kind.kind.version) + ", Kind=" + std::string(kind.kind.kind);
  }

  Result<json::value> create(const DebugPod& made, const std::string& ns) {
    return session_.json({.method = "POST",
                          .path = session_.path(pod_kind(), ns),
                          .query = {{"fieldManager", "kubectl-debug"}},
                          .body = to_text(made.pod)});
  }

  Result<json::value> add_ephemeral(const DebugPod& made, const std::string& ns) {
    const json::array& all = view::Pod(made.pod).spec().ephemeral_containers().raw();
    json::value patch = json::object{{"spec", {{"ephemeralContainers", json::array{all.back()}}}}};
    auto patched = session_.json({.method = "PATCH",
                                  .path = session_.path(pod_kind(), ns, metadata_of(made.pod).name(), "ephemeralcontainers"),
                                  .query = {{"fieldManager", "kubectl-debug"}},
                                  .body = to_text(patch),
                                  .content_type = kStrategicPatch});
    bool no_subresource = !patched && patched.error().code() == Code::not_found &&
                          (!patched.error().details() || patched.error().details()->name.empty());
    if (no_subresource)
      return Error(Code::unsupported, "ephemeral containers are disabled for this cluster (error from server: " +
                                          coracle::quoted(patched.error().text()) + ")");
    return patched;
  }

  std::string log_of(const std::string& ns, const std::string& name, const std::string& container) {
    return session_
        .text({.path = session_.path(pod_kind(), ns, name, "log"), .query = {{"container", container}}, .accept = "*/*"})
        .value_or("");
  }

  // Waits until the status says that the container has ended, which it does a moment after the stream. False: it still runs.
  bool has_ended(const StreamRequest& request) {
    auto look = [&](const json::value* pod) -> Result<bool> {
      view::ContainerState state = pod ? container_state_of(*pod, request.container) : view::ContainerState();
      return !pod || (state && !state.has_running());  // "waiting" to be started again
    };
    return bool(wait_until(session_, pod_kind(), request.ns, request.pod, kEndTimeout, look));
  }

  // Joins the container. What it wrote before that, or while nobody heard it, comes from its log: without a terminal nothing is
  // lost.
  Result<int> join(const StreamRequest& request) {
    const std::string before = log_of(request.ns, request.pod, request.container);
    out(before);
    size_t heard = 0;
    StreamHandles handles;
    if (request.tty) handles.detach_keys = TRY(parse_detach_keys(kUsualDetachKeys));
    handles.on_stdout = [&](std::string_view bytes) -> Result<void> {
      heard += bytes.size();
      out(bytes);
      return {};
    };
    handles.on_stderr = [&](std::string_view bytes) -> Result<void> {
      heard += bytes.size();
      std::fwrite(bytes.data(), 1, bytes.size(), stderr);
      return {};
    };
    auto socket = open_stream(session_, request);
    Result<int> streamed = socket ? run_stream(**socket, request, handles) : Result<int>(socket.take_error());
    if (streamed && request.tty) return 0;
    if (!has_ended(request)) return streamed;
    const std::string whole = log_of(request.ns, request.pod, request.container);
    if (!whole.starts_with(before)) return 0;  // the log of the container that was started in its place
    // The log ends in a newline, even if what was written does not.
    size_t known = before.size() + heard, last = whole.ends_with('\n') && heard > 0 ? 1 : 0;
    if (whole.size() > known + last) out(whole.substr(before.size(), whole.size() - known));
    return 0;  // the container's own exit code stands in the pod's status
  }

  Result<int> show_log(const std::string& ns, const std::string& name, const std::string& container) {
    TRY(session_.stream(
        {.path = session_.path(pod_kind(), ns, name, "log"), .query = {{"container", container}}, .accept = "*/*"},
        [](std::string_view bytes) { return out(bytes), true; }));
    return 0;
  }

  Result<int> attach(const std::string& ns, const std::string& name, const std::string& container) {
    bool ended = false, has_tty = false, is_ephemeral = false;
    std::string told;
    auto look = [&](const json::value* pod) -> Result<bool> {
      if (!pod) return Error(Code::not_found, "pods " + coracle::quoted(name) + " not found");
      view::ContainerState state = container_state_of(*pod, container);
      if (!state) return false;
      ended = state.has_terminated();
      has_tty = container_of_pod(*pod, container).tty();
      is_ephemeral = is_debug_container(*pod, container);
      std::string message(state.waiting().message());
      if (!options_.quiet && !message.empty() && message != told)
        tell("Warning: container " + container + ": " + (told = message) + "\n");
      return ended || state.has_running();
    };
    TRY(wait_until(session_, pod_kind(), ns, name, std::chrono::milliseconds(0), look));
    if (ended) return show_log(ns, name, container);
    bool tty = options_.tty && has_tty && ::isatty(STDIN_FILENO);
    if (options_.tty && !tty && !options_.quiet)
      tell("Unable to use a TTY - input is not a terminal or the right kind of file\n");
    StreamRequest request{ns, name, container, {}, options_.use_stdin, tty};
    if (!options_.quiet) tell(kSessionBegins);
    auto streamed = join(request);
    if (streamed && tty && options_.use_stdin && !options_.quiet) out(session_ended(ns, name, container, is_ephemeral));
    if (streamed) return streamed;
    if (!has_come_too_late(streamed.error()))
      tell("warning: couldn't attach to pod/" + name + ", falling back to streaming logs: " + streamed.error().text() + "\n");
    return show_log(ns, name, container);
  }

  Session& session_;
  const DebugOptions& options_;
};

Result<json::value> read_custom(const std::string& path) {
  auto text = sys::read_file(path);
  if (!text) return Error(text.error().code(), "must pass a container spec json file for custom profile: " + text.error().text());
  std::vector<json::value> documents = TRY(parse_yaml(*text).wrap(path + " does not contain a valid container spec"));
  if (documents.size() == 1) return std::move(documents.front());
  return Error(Code::invalid, path + " does not contain a valid container spec: expected one document");
}

Result<int> run_debug(Commands& commands, DebugFlags& flags) {
  flags.words = commands.rest();
  flags.attach_given = flags.attach_flag.count() > 0;
  flags.share_given = flags.share_flag.count() > 0;
  if (!flags.attach_given && flags.use_stdin) flags.attach = true;
  flags.env = TRY(parse_text_pairs("--env", flags.env_texts));
  flags.set_images = TRY(parse_text_pairs("--set-image", flags.image_texts));
  if (!flags.custom_file.empty()) flags.custom = TRY(read_custom(flags.custom_file));
  TRY(check_debug_options(flags));
  if (flags.args.empty() && flags.files.empty()) return Error(Code::bad_request, "NAME or filename is required for debug");
  if (!flags.target.empty() && !flags.quiet)
    out("Targeting container " + coracle::quoted(flags.target) +
        ". If you don't see processes from this container it may be because the container runtime doesn't support this "
        "feature.\n");
  if (flags.profile == "legacy")
    tell(
        "--profile=legacy is deprecated and planned to be removed in v1.39. It is recommended to specify other profile, for "
        "example \"--profile=general\".\n");
  Session* session = TRY(commands.session());
  Debugging debugging(*session, flags);
  if (!flags.files.empty()) {
    if (!flags.args.empty())
      return Error(Code::bad_request, "resource/name arguments cannot be provided when a path is specified");
    std::vector<Document> documents = TRY(read_documents(flags.files, false));
    for (Document& document : documents) {
      std::string ns = TRY(settle_namespace(*session, document));
      int code = TRY(debugging.run(*document.kind, document.object, ns.empty() ? session->ns() : ns));
      if (code != 0) return code;
    }
    return 0;
  }
  for (const std::string& word : flags.args) {
    Named named{&pod_kind(), word};
    if (word.find('/') != std::string::npos) {
      std::vector<Named> parsed = TRY(parse_named({word}));
      named = parsed.front();
    }
    std::string ns = named.kind->kind.namespaced ? session->ns() : "";
    json::value object = TRY(session->json({.path = session->path(*named.kind, ns, named.name)}));
    int code = TRY(debugging.run(*named.kind, object, session->ns()));
    if (code != 0) return code;
  }
  return 0;
}

}  // namespace

void add_debug(Commands& commands) {
  auto flags = std::make_shared<DebugFlags>();
  Command debug = commands.add("debug", "Look into a pod, a copy of it or a node with a container of your choice");
  debug.add_option("args", flags->args, "POD, KIND/NAME or node/NAME; then -- COMMAND [ARGS...]");
  debug.add_option("-f,--filename", flags->files, "file with the pod").delimiter(',');
  debug.add_option("--image", flags->image, "the image of the new container");
  debug.add_option("-c,--container", flags->container, "the container's name: a new one, or of the copy an existing one");
  debug.add_option("--target", flags->target, "see the processes of this container");
  debug.add_option("--copy-to", flags->copy_to, "make a copy of the pod, under this name");
  debug.add_option("--set-image", flags->image_texts, "with --copy-to: CONTAINER=IMAGE,..., * for all").as_pairs();
  debug.add_option("--env", flags->env_texts, "NAME=VALUE").as_pairs();
  debug.add_option("--image-pull-policy", flags->pull_policy, "Always, IfNotPresent or Never");
  debug.add_option("--profile", flags->profile, "general, baseline, restricted, netadmin or sysadmin");
  debug.add_option("--custom", flags->custom_file, "a file with a part of a container, laid over the profile's");
  debug.add_flag("--arguments-only", flags->arguments_only, "what follows -- are arguments, not a command");
  flags->attach_flag = debug.add_flag("--attach", flags->attach, "join it; with -i that is the default");
  debug.add_flag("-i,--stdin", flags->use_stdin, "pass standard input");
  debug.add_flag("-t,--tty", flags->tty, "with a terminal");
  debug.add_flag("-q,--quiet", flags->quiet, "only what the container prints");
  debug.add_flag("--replace", flags->replace, "with --copy-to: delete the pod");
  debug.add_flag("--same-node", flags->same_node, "with --copy-to: on the same node");
  flags->share_flag =
      debug.add_flag("--share-processes", flags->share_processes, "with --copy-to: containers see each other's processes");
  debug.add_flag("--keep-labels", flags->keep_labels, "with --copy-to: labels too; Services may select the copy");
  debug.add_flag("--keep-annotations", flags->keep_annotations, "with --copy-to: annotations too");
  debug.add_flag("--keep-liveness", flags->keep_liveness, "with --copy-to: liveness probes too");
  debug.add_flag("--keep-readiness", flags->keep_readiness, "with --copy-to: readiness probes too");
  debug.add_flag("--keep-startup", flags->keep_startup, "with --copy-to: startup probes too");
  debug.add_flag("--keep-init-containers", flags->keep_init_containers, "with --copy-to: init containers too");
  commands.keep_rest(debug);
  commands.on(debug, [&commands, flags] { return run_debug(commands, *flags); });
}

}  // namespace coracle::ctl
