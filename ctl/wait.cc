// SPDX-License-Identifier: Apache-2.0
// See wait.h. The watch is ended by the server after timeoutSeconds, so a wait needs no timer of its own.
#include "ctl/wait.h"

#include "ctl/command.h"
#include "ctl/jsonpath.h"
#include "runtime/base/text.h"

namespace coracle::ctl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWatchLongest{std::chrono::minutes(30)};

Result<void> watch_some(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        milliseconds span, const std::string& revision, const std::function<Result<bool>(const json::value*)>& look,
                        bool& done) {
  Request request{.path = session.path(kind, ns)};
  request.query = {{"watch", "true"}, {"fieldSelector", "metadata.name=" + name},
                   {"timeoutSeconds", std::to_string(std::max<int64_t>(1, (span.count() + 999) / 1000))}};
  if (!revision.empty()) request.query.emplace_back("resourceVersion", revision);
  std::string partial;
  Result<bool> looked = false;
  TRY(session.stream(request, [&](std::string_view bytes) {
    partial += bytes;
    for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
      auto event = parse_json(std::string_view(partial).substr(0, end));
      if (!event) continue;
      std::string_view type = get_string(*event, "type");
      if (type == "ERROR") return false;  // too old: the caller looks again
      if (type == "BOOKMARK") continue;
      looked = look(type == "DELETED" ? nullptr : find(*event, "object"));
      if (!looked || *looked) return false;
    }
    return true;
  }));
  done = TRY(std::move(looked));
  return {};
}

}  // namespace

Result<milliseconds> parse_duration(std::string_view text) {
  auto wrong = [&] { return Error(Code::invalid, "not a duration: " + coracle::quoted(text) + " (for example 30s, 5m, 1h)"); };
  if (auto seconds = parse_number<int64_t>(text)) return milliseconds(*seconds * 1000);
  milliseconds total{0};
  if (text.empty()) return wrong();
  while (!text.empty()) {
    size_t digits = text.find_first_not_of("0123456789");
    auto number = parse_number<int64_t>(text.substr(0, digits));
    if (!number || digits == text.npos) return wrong();
    text.remove_prefix(digits);
    if (text.starts_with("ms")) total += milliseconds(*number), text.remove_prefix(2);
    else if (text.starts_with("h")) total += std::chrono::hours(*number), text.remove_prefix(1);
    else if (text.starts_with("m")) total += std::chrono::minutes(*number), text.remove_prefix(1);
    else if (text.starts_with("s")) total += std::chrono::seconds(*number), text.remove_prefix(1);
    else return wrong();
  }
  return total;
}

Result<void> wait_until(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        milliseconds timeout, const std::function<Result<bool>(const json::value* object)>& look) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    json::value list = TRY(session.json({.path = session.path(kind, ns), .query = {{"fieldSelector", "metadata.name=" + name}}}));
    const json::array& items = get_array(list, "items");
    bool holds = TRY(look(items.empty() ? nullptr : &items.front()));
    if (holds) return {};
    auto left = kWatchLongest;
    if (timeout.count() > 0) {
      left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Error(Code::timeout, "timed out waiting for the condition on " + message_name(kind, name));
    }
    bool done = false;
    TRY(watch_some(session, kind, ns, name, std::min(left, kWatchLongest), std::string(get_string(list, "metadata.resourceVersion")), look, done));
    if (done) return {};
  }
}

Result<void> wait_gone(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                       const std::string& uid, milliseconds timeout) {
  return wait_until(session, kind, ns, name, timeout, [&](const json::value* object) -> Result<bool> {
    return !object || (!uid.empty() && get_string(*object, "metadata.uid") != uid);
  });
}

namespace {

struct WaitFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::string condition, selector, timeout = "30s";
  bool all = false;
};

Result<std::function<Result<bool>(const json::value*)>> condition_of(const std::string& text) {
  using Look = std::function<Result<bool>(const json::value*)>;
  if (text == "delete") return Look([](const json::value* object) -> Result<bool> { return object == nullptr; });
  if (text == "create") return Look([](const json::value* object) -> Result<bool> { return object != nullptr; });
  if (text.starts_with("condition=")) {
    std::string type = text.substr(10), status = "true";
    if (size_t equals = type.find('='); equals != type.npos) status = to_lower(type.substr(equals + 1)), type.resize(equals);
    return Look([type = to_lower(type), status](const json::value* object) -> Result<bool> {
      if (!object) return false;
      for (const auto& condition : get_array(*object, "status.conditions"))
        if (to_lower(get_string(condition, "type")) == type) return to_lower(get_string(condition, "status")) == status;
      return false;
    });
  }
  if (text.starts_with("jsonpath=")) {
    std::string rest = text.substr(9);
    size_t close = rest.find('}');
    std::string path = rest.substr(0, close == rest.npos ? rest.find('=') : close + 1), want;
    bool compare = path.size() < rest.size();
    if (compare) want = rest.substr(path.size() + 1);
    return Look([path, want, compare](const json::value* object) -> Result<bool> {
      if (!object) return false;
      std::string got = TRY(jsonpath(path, *object));
      return compare ? got == want : !got.empty();
    });
  }
  return Error(Code::bad_request, "--for must be delete, create, condition=NAME[=VALUE] or jsonpath={PATH}=VALUE, got " + coracle::quoted(text));
}

Result<int> run(Commands& commands, const WaitFlags& flags) {
  auto look = TRY(condition_of(flags.condition));
  auto timeout = TRY(parse_duration(flags.timeout).wrap("--timeout"));
  Session* session = TRY(commands.session());
  std::vector<std::pair<Named, std::string>> wanted;
  if (!flags.files.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files.files, flags.files.recursive));
    for (const auto& document : documents) {
      std::string ns(get_string(document.object, "metadata.namespace"));
      wanted.push_back({{document.kind, std::string(get_string(document.object, "metadata.name"))}, ns.empty() ? session->ns() : ns});
    }
  } else {
    std::vector<Named> named = TRY(parse_named(flags.args));
    for (const auto& one : named) {
      if (!one.name.empty()) {
        wanted.push_back({one, session->ns()});
        continue;
      }
      Request request{.path = session->path(*one.kind, session->ns())};
      if (!flags.selector.empty()) request.query.emplace_back("labelSelector", flags.selector);
      json::value list = TRY(session->json(request));
      for (const auto& item : get_array(list, "items"))
        wanted.push_back({{one.kind, std::string(get_string(item, "metadata.name"))}, session->ns()});
    }
  }
  if (wanted.empty()) return Error(Code::not_found, "no matching resources found");
  bool may_be_absent = flags.condition == "delete" || flags.condition == "create";
  for (const auto& [one, ns] : wanted) {
    if (!may_be_absent) TRY(session->json({.path = session->path(*one.kind, one.kind->kind.namespaced ? ns : "", one.name)}));  // a misspelt name is told at once
    TRY(wait_until(*session, *one.kind, one.kind->kind.namespaced ? ns : "", one.name, timeout, look));
    out(message_name(*one.kind, one.name) + (flags.condition == "delete" ? " deleted\n" : " condition met\n"));
  }
  return 0;
}

}  // namespace

void add_wait(Commands& commands) {
  auto flags = std::make_shared<WaitFlags>();
  CLI::App* wait = commands.add("wait", "Wait until objects are as wanted");
  wait->add_option("args", flags->args, "KIND/NAME ..., KIND NAME ..., KIND -l SELECTOR");
  flags->files.add_to(wait);
  wait->add_option("--for", flags->condition, "condition=Ready, delete, jsonpath={.status.phase}=Running")->required();
  wait->add_option("-l,--selector", flags->selector, "label selector");
  wait->add_option("--timeout", flags->timeout, "how long; 0: as long as it takes");
  wait->add_flag("--all", flags->all, "all of the kind");
  commands.on(wait, [&commands, flags] { return run(commands, *flags); });
}

}  // namespace coracle::ctl
