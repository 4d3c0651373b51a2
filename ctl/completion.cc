// SPDX-License-Identifier: Apache-2.0
// See completion.h. Here too: the shells' scripts, which only ask and show.
#include "ctl/completion.h"

#include <algorithm>

#include "ctl/command.h"
#include "ctl/kubeconfig_files.h"
#include "ctl/rollout.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

constexpr const char* kTimeout = "2s";  // for the server: a person waits at the prompt
constexpr size_t kNamesMax = 500;

Flag known_flag(Command command, const std::string& dashed) {
  for (; command; command = command.parent())  // flags of the root are accepted everywhere
    if (Flag flag = command.find_flag(dashed)) return flag;
  return {};
}

// Flags of one word: "-n", "-nkube-system", "-it". Returns the flag that waits for the next word.
Flag read_short(Line& line, const std::string& word) {
  for (size_t i = 1; i < word.size(); ++i) {
    Flag flag = known_flag(line.command, std::string("-") + word[i]);
    if (!flag || !flag.needs_value()) continue;
    if (i + 1 == word.size()) return flag;
    line.given[flag.name()] = word.substr(word[i + 1] == '=' ? i + 2 : i + 1);
    return {};
  }
  return {};
}

Flag read_long(Line& line, const std::string& word) {
  size_t equals = word.find('=');
  Flag flag = known_flag(line.command, word.substr(0, equals));
  if (!flag) return {};
  if (equals == word.npos) return flag.needs_value() ? flag : Flag();
  line.given[flag.name()] = word.substr(equals + 1);
  return {};
}

// "--output=ya", "-oya", "-o=ya" being typed: the flag, what stays in front, and the value so far.
void split_typed(Line& line) {
  size_t equals = line.word.find('=');
  bool is_long = line.word.starts_with("--");
  size_t value = equals == line.word.npos ? 2 : equals + 1;
  if (is_long ? equals == line.word.npos : line.word.size() < 3 || line.word.front() != '-' || value > 3) return;
  Flag flag = known_flag(line.command, line.word.substr(0, is_long ? equals : 2));
  if (!flag || (!is_long && !flag.needs_value())) return;
  line.flag = flag;
  line.stem = line.word.substr(0, value);
  line.word.erase(0, value);
}

Command command_below(Command command, const std::string& word) {
  for (Command one : command.commands())
    if (one.answers_to(word)) return one;
  return {};
}

// "yaml, json or name": the values that a description lists, or nothing when it does not.
std::vector<std::string> listed_values(std::string_view description) {
  std::vector<std::string> values;
  for (std::string_view part : split(description, ',')) {
    size_t last = part.find(" or ");
    for (std::string_view value :
         last == part.npos ? std::vector{part} : std::vector{part.substr(0, last), part.substr(last + 4)}) {
      value = trim(value);
      if (value.ends_with("…")) value.remove_suffix(std::string_view("…").size());
      if (value.empty() ||
          value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-=") != value.npos)
        return {};
      values.emplace_back(value);
    }
  }
  return values.size() > 1 ? values : std::vector<std::string>();
}

class Completer {
 public:
  Completer(const Line& line, Names& names) : line_(line), names_(names) {}

  Completion run() {
    if (line_.behind_dashes) return std::move(out_);
    if (line_.flag) complete_value(line_.flag);
    else if (line_.word.starts_with('-')) complete_flags();
    else complete_argument();
    return std::move(out_);
  }

 private:
  void offer(const std::string& text, const std::string& about = {}, const std::string& before = {}) {
    std::string whole = before + text;
    if (!whole.starts_with(line_.word)) return;
    for (const auto& word : out_.words)
      if (word.text == line_.stem + whole) return;
    out_.words.push_back({line_.stem + whole, about});
  }
  void offer_all(const std::vector<std::string>& texts, const std::string& before = {}) {
    for (const auto& text : texts) offer(text, {}, before);
  }

  void complete_value(Flag flag) {
    std::string name = flag.name(), about = flag.about();
    if (name == "namespace") return offer_all(names_.objects(schema::catalog().of(kNamespace)));
    if (name == "context" || name == "cluster" || name == "user") return offer_all(names_.of_kubeconfig(name + "s"));
    if (name == "container" || name == "containers") return complete_containers();
    if (name == "for" && line_.command.name() == "events") return void(complete_slashed());
    if (name == "from" && line_.command.name() == "job")
      return offer_all(names_.objects(*schema::catalog().by_name("cronjobs")), "cronjob/");
    if (name == "for" && line_.command.name() == "wait") {
      offer_all({"condition=", "create", "delete", "jsonpath="});
      out_.no_space = !out_.words.empty() && out_.words.front().text.ends_with('=');
      return;
    }
    if (auto values = listed_values(about); !values.empty()) {
      offer_all(values);
      out_.no_space = out_.words.size() == 1 && out_.words.front().text.ends_with('=');
      return;
    }
    out_.files = about.find("file") != about.npos || about.find("PATH") != about.npos || about.find("director") != about.npos;
  }

  void complete_flags() {
    for (Command command = line_.command; command; command = command.parent())
      for (Flag flag : command.flags()) {
        if (flag.is_argument() || flag.hidden()) continue;
        for (const auto& name : flag.long_names()) offer("--" + name, flag.about());
        if (line_.word == "-")
          for (const auto& name : flag.short_names()) offer("-" + name, flag.about());
      }
  }

  void complete_argument() {
    if (line_.positionals.empty())
      for (Command command : line_.command.commands())
        if (!command.hidden()) offer(command.name(), command.about());
    Flag argument = argument_here();
    if (!argument) return;
    const std::string& about = argument.about();
    if (about.starts_with("KIND[.FIELD")) return complete_fields();
    if (about.starts_with("KIND")) return complete_objects();
    if (about.starts_with("VERB")) return complete_permission();
    if (about.starts_with("CONTEXT")) return offer_unnamed(names_.of_kubeconfig("contexts"));
    if (about.starts_with("POD")) return complete_pods(about);
    if (about.starts_with("NAME of the request"))
      return offer_unnamed(names_.objects(schema::catalog().of(kCertificateSigningRequest)));
    if (about.starts_with("COMMAND")) return complete_commands();
    if (about.starts_with("NODE")) return offer_unnamed(names_.objects(schema::catalog().of(kNode)));
    if (about.starts_with("the image's name") || about.starts_with("IMAGE")) return offer_unnamed(names_.images());
    if (auto values = listed_values(about); !values.empty()) return offer_all(values);
    out_.files = about.find("file") != about.npos || about.find("FILE") != about.npos || about.find("archive") != about.npos ||
                 about.find("directory") != about.npos;
  }

  // The positional that the word being typed belongs to: each takes one, the last takes the rest where it may.
  Flag argument_here() {
    std::vector<Flag> arguments;
    for (Flag flag : line_.command.flags())
      if (flag.is_argument()) arguments.push_back(flag);
    size_t index = line_.positionals.size();
    if (index < arguments.size()) return arguments[index];
    return !arguments.empty() && arguments.back().takes_many() ? arguments.back() : Flag();
  }

  void offer_unnamed(const std::vector<std::string>& texts) {  // names that do not stand on the line yet
    for (const auto& text : texts)
      if (std::find(line_.positionals.begin(), line_.positionals.end(), text) == line_.positionals.end()) offer(text);
  }

  bool fits(const schema::KindInfo& kind) const {
    std::string command = line_.command.name(), parent = line_.command.parent() ? line_.command.parent().name() : "";
    if (parent == "rollout") return rolling_of(kind.kind.kind) != Rolling::none;
    if (parent == "set") return command == "selector" ? kind.kind == kService : !kind.traits.pod_template.empty();
    if (command == "scale" || command == "autoscale") return kind.subresource("scale");
    if (command == "expose") return kind.subresource("scale") || kind.kind == kPod || kind.kind == kService;
    if (command == "taint") return kind.kind == kNode;
    if (command == "delete") return kind.has_verb("delete");
    if (command == "get" || command == "describe" || command == "wait" || command == "why") return kind.has_verb("list");
    return kind.has_verb("patch");
  }

  void offer_kinds(const std::string& before = {}, const std::string& after = {}) {
    for (const auto& kind : schema::catalog().kinds()) {
      if (!fits(kind)) continue;
      std::string name(kind.kind.resource);
      if (schema::catalog().by_name(name) != &kind) name += "." + std::string(kind.kind.group);
      offer(name + after, std::string(kind.kind.kind), before);
    }
    if (after.empty() && (line_.command.name() == "get" || line_.command.name() == "delete")) offer("all", "", before);
  }

  // "KIND/na" → names of that kind.
  bool complete_slashed() {
    size_t slash = line_.word.find('/');
    if (slash == line_.word.npos) return false;
    if (const auto* kind = schema::catalog().by_name(line_.word.substr(0, slash)))
      offer_all(names_.objects(*kind), line_.word.substr(0, slash + 1));
    return true;
  }

  void complete_objects() {
    bool first_slashed = !line_.positionals.empty() && line_.positionals.front().find('/') != std::string::npos;
    Command parent = line_.command.parent();
    if (parent && parent.name() == "set" && first_slashed) return complete_images_of(line_.positionals.front());
    if (complete_slashed() || first_slashed) return;
    if (line_.positionals.empty()) {
      size_t comma = line_.word.rfind(',');
      if (comma != line_.word.npos) return offer_kinds(line_.word.substr(0, comma + 1));
      return offer_kinds();
    }
    if (const auto* kind = schema::catalog().by_name(line_.positionals.front())) offer_unnamed(names_.objects(*kind));
  }

  void complete_images_of(const std::string& object) {  // `set image KIND/NAME` goes on with CONTAINER=IMAGE
    const auto* kind = schema::catalog().by_name(object.substr(0, object.find('/')));
    if (!kind || line_.command.name() != "image") return;
    for (const auto& name : names_.containers(*kind, object.substr(object.find('/') + 1))) offer(name + "=");
    out_.no_space = true;
  }

  void complete_pods(const std::string& about) {
    if (complete_slashed()) return;
    const auto& pods = schema::catalog().of(kPod);
    if (line_.positionals.empty()) {
      offer_all(names_.objects(pods));
      if (about.find('/') == about.npos) return;
      for (const char* kind : {"deployment/", "replicaset/", "service/"})
        if (!line_.word.empty()) offer(kind);
      out_.no_space = out_.words.size() == 1 && out_.words.front().text.ends_with('/');
    } else if (about.find("[CONTAINER]") != about.npos && line_.positionals.size() == 1) {
      offer_all(names_.containers(pods, line_.positionals.front()));
    }
  }

  void complete_containers() {
    if (line_.positionals.empty()) return;
    const auto* kind = &schema::catalog().of(kPod);
    std::string name = line_.positionals.front();
    if (size_t slash = name.find('/'); slash != name.npos) {
      kind = schema::catalog().by_name(name.substr(0, slash));
      name.erase(0, slash + 1);
    }
    if (kind) offer_all(names_.containers(*kind, name));
  }

  void complete_permission() {
    if (line_.positionals.empty()) offer_all({"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"});
    else if (line_.positionals.size() == 1)
      for (const auto& kind : schema::catalog().kinds()) offer(std::string(kind.kind.resource));
  }

  void complete_commands() {  // of help
    Command at = line_.command;
    while (at.parent()) at = at.parent();
    for (const auto& word : line_.positionals)
      if (at) at = command_below(at, word);
    if (!at) return;
    for (Command command : at.commands())
      if (!command.hidden()) offer(command.name(), command.about());
  }

  void complete_fields() {  // explain deployment.spec.te
    size_t dot = line_.word.rfind('.');
    if (dot == line_.word.npos) {
      for (const auto& kind : schema::catalog().kinds()) offer(std::string(kind.singular), std::string(kind.kind.kind));
      out_.no_space = true;
      return;
    }
    auto words = split(std::string_view(line_.word).substr(0, dot), '.');
    const auto* kind = schema::catalog().by_name(words.front());
    const schema::Type* type = kind ? &kind->type() : nullptr;
    for (size_t i = 1; type && i < words.size(); ++i) {
      const schema::Field* field = type->field(words[i]);
      type = field && field->form == schema::Form::object ? &field->type() : nullptr;
    }
    if (!type) return;
    for (const auto& field : type->fields()) offer(std::string(field.name()), {}, line_.word.substr(0, dot + 1));
    out_.no_space = true;
  }

  const Line& line_;
  Names& names_;
  Completion out_;
};

// ---- the machine ----

class LiveNames : public Names {
 public:
  explicit LiveNames(Commands& commands) : commands_(commands) {}

  std::vector<std::string> objects(const schema::KindInfo& kind) override {
    std::vector<std::string> found;
    Session* session = connect();
    if (!session) return found;
    auto list = session->json({.path = session->path(kind, kind.kind.namespaced ? session->ns() : ""),
                               .query = {{"limit", std::to_string(kNamesMax)}},
                               .accept = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"});
    if (!list) return found;
    for (const auto& item : items_of(*list)) found.emplace_back(metadata_of(item).name());
    return found;
  }

  std::vector<std::string> containers(const schema::KindInfo& kind, const std::string& name) override {
    std::vector<std::string> found;
    Session* session = connect();
    if (!session) return found;
    auto object = session->json({.path = session->path(kind, session->ns(), name)});
    if (!object) return found;
    std::string_view path = kind.traits.pod_template;
    const json::value* pod = path == "." ? &*object : path.empty() ? nullptr : find(*object, path);
    view::PodSpec spec = view::Pod(pod).spec();  // a pod template has it at the same place
    for (const auto& list : {spec.init_containers(), spec.containers()})
      for (view::Container container : list) found.emplace_back(container.name());
    return found;
  }

  std::vector<std::string> images() override {
    std::vector<std::string> found;
    Session* session = connect();
    if (!session) return found;
    auto answer = session->json({.path = kImages});
    if (!answer) return found;
    const json::array* list = answer->if_array();
    for (const auto& image : list ? *list : items_of(*answer))
      for (const auto& reference : get_array(image, "references"))
        if (reference.is_string()) found.emplace_back(reference.get_string());
    return found;
  }

  std::vector<std::string> of_kubeconfig(const std::string& name) override {
    auto files = KubeconfigFiles::open(commands_.flags().kubeconfig, KubeconfigUse::read);
    for (const auto& list : kKubeconfigLists)
      if (files && name == list.list) return files->names(list);
    return {};
  }

 private:
  Session* connect() {
    auto session = commands_.session();
    return session ? *session : nullptr;
  }
  Commands& commands_;
};

void take_given(GlobalFlags& flags, const Line& line) {
  auto take = [&](const char* name, std::string& into) {
    if (auto found = line.given.find(name); found != line.given.end()) into = found->second;
  };
  take("kubeconfig", flags.kubeconfig);
  take("context", flags.context);
  take("cluster", flags.cluster);
  take("user", flags.user);
  take("namespace", flags.ns);
  take("server", flags.server);
  take("token", flags.token);
  take("certificate-authority", flags.certificate_authority);
  take("client-certificate", flags.client_certificate);
  take("client-key", flags.client_key);
  take("tls-server-name", flags.tls_server_name);
  flags.request_timeout = kTimeout;
}

// ---- the shells ----

// The scripts, as they are installed too. Source: ctl/shells.
constexpr const char* kBash =
#include "ctl/shells/coraclectl.bash.inc"
    ;

constexpr const char* kZsh =
#include "ctl/shells/coraclectl.zsh.inc"
    ;

constexpr const char* kFish =
#include "ctl/shells/coraclectl.fish.inc"
    ;

}  // namespace

Line parse_line(Command root, const std::vector<std::string>& words) {
  Line line;
  line.command = root;
  Flag waiting;
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    const std::string& word = words[i];
    if (waiting) {
      line.given[waiting.name()] = word;
      waiting = {};
    } else if (word == "--") {
      line.behind_dashes = true;
      break;
    } else if (word.starts_with("--")) {
      waiting = read_long(line, word);
    } else if (word.size() > 1 && word.front() == '-') {
      waiting = read_short(line, word);
    } else if (Command below = line.positionals.empty() ? command_below(line.command, word) : Command()) {
      line.command = below;
    } else {
      line.positionals.push_back(word);
    }
  }
  line.word = words.empty() ? "" : words.back();
  line.flag = waiting;
  if (!waiting && !line.behind_dashes) split_typed(line);
  return line;
}

Completion complete(const Line& line, Names& names) { return Completer(line, names).run(); }

Result<int> run_complete(Commands& commands, const std::vector<std::string>& words) {
  Line line = parse_line(commands.root(), words);
  take_given(commands.flags(), line);
  LiveNames names(commands);
  Completion found = complete(line, names);
  std::string text;
  for (const auto& word : found.words) text += word.text + (word.about.empty() ? "" : "\t" + word.about) + "\n";
  out(text + ":" + std::to_string((found.no_space ? 1 : 0) | (found.files ? 2 : 0)) + "\n");
  return 0;
}

namespace {

struct ShellWords {
  std::string shell;
  std::vector<std::string> more;
};

Result<int> run_completion(const ShellWords& words) {
  auto wrong = [](const std::string& text) {
    return Error(Code::bad_request, text + "\nSee 'coraclectl completion -h' for help and examples");
  };
  const std::string& shell = words.shell;
  if (shell.empty() && words.more.empty()) return wrong("Shell not specified.");
  if (!words.more.empty()) return wrong("Too many arguments. Expected only the shell type.");
  if (shell != "bash" && shell != "zsh" && shell != "fish")
    return wrong("Unsupported shell type " + coracle::quoted(shell) + ".");
  out(shell == "bash" ? kBash : shell == "zsh" ? kZsh : kFish);
  return 0;
}

}  // namespace

void add_completion(Commands& commands) {
  auto words = std::make_shared<ShellWords>();
  Command completion =
      commands.add("completion", "A script that lets a shell complete our words: source <(coraclectl completion bash)");
  completion.add_option("shell", words->shell, "bash, zsh or fish");
  completion.add_option("more", words->more, "none").hide();
  commands.on(completion, [words] { return run_completion(*words); });
}

}  // namespace coracle::ctl
