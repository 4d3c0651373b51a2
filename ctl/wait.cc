// SPDX-License-Identifier: Apache-2.0
// See wait.h. The server ends the watch after timeoutSeconds, so waiting needs no timer.
#include "ctl/wait.h"

#include <algorithm>

#include "ctl/command.h"
#include "ctl/go_format.h"
#include "ctl/jsonpath.h"
#include "ctl/selection.h"
#include "ctl/target.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/conditions.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/selector.h"

namespace coracle::ctl {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kWatchLongest{std::chrono::minutes(30)};

using Look = std::function<Result<bool>(const json::value*)>;

std::string timeout_text(const schema::KindInfo& kind, const std::string& name) {
  return "timed out waiting for the condition on " + std::string(kind.kind.resource) + "/" + name;
}

// Watches the objects that `query` selects, from `revision` on.
Result<bool> watch_some(Session& session, const std::string& path, Query query, milliseconds span, const std::string& revision,
                        const Look& look) {
  query.insert(query.end(),
               {{"watch", "true"}, {"timeoutSeconds", std::to_string(std::max<int64_t>(1, (span.count() + 999) / 1000))}});
  if (!revision.empty()) query.emplace_back("resourceVersion", revision);
  std::string partial;
  Result<bool> looked = false;
  TRY(session.watch({.path = path, .query = std::move(query)}, [&](std::string_view bytes) {
    partial += bytes;
    for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
      auto event = parse_json(std::string_view(partial).substr(0, end));
      if (!event) continue;
      view::WatchEvent change(*event);
      if (change.type() == "ERROR") return false;  // the revision is too old: the caller lists again
      if (change.type() == "BOOKMARK" || !change.object()) continue;
      looked = look(change.type() == "DELETED" ? nullptr : change.object());
      if (!looked || *looked) return false;
    }
    return true;
  }));
  return looked;
}

// `look` gets the objects that `query` selects, then each change. Errors: timeout, without a text.
Result<void> watch_until(Session& session, const std::string& path, const Query& query, milliseconds timeout, const Look& look) {
  auto deadline = std::chrono::steady_clock::now() + timeout;
  for (;;) {
    json::value list = TRY(session.json({.path = path, .query = query}));
    const json::array& items = items_of(list);
    bool holds = TRY(look(items.empty() ? nullptr : &items.front()));
    if (holds) return {};
    auto left = kWatchLongest;
    if (timeout.count() > 0) {
      left = std::chrono::duration_cast<milliseconds>(deadline - std::chrono::steady_clock::now());
      if (left.count() <= 0) return Error(Code::timeout, "timed out waiting for the condition");
    }
    holds = TRY(watch_some(session, path, query, std::min(left, kWatchLongest),
                           std::string(view::List(list).metadata().resource_version()), look));
    if (holds) return {};
  }
}

}  // namespace

Result<milliseconds> parse_timeout(std::string_view text) {
  if (auto seconds = parse_number<uint32_t>(text)) return std::chrono::seconds(*seconds);
  auto span = parse_duration(text);
  if (!span || span->count() < 0)
    return Error(Code::invalid, "not a duration: " + coracle::quoted(text) + " (for example 30s, 5m, 1h)");
  return std::chrono::duration_cast<milliseconds>(*span);
}

std::string duration_text(milliseconds span) {
  const int64_t all = span.count();
  if (all != 0 && all < 1000) return std::to_string(all) + "ms";
  const int64_t hours = all / 3'600'000, minutes = all / 60'000 % 60, rest = all % 1000;
  std::string text;
  if (hours > 0) text = std::to_string(hours) + "h";
  if (all >= 60'000) text += std::to_string(minutes) + "m";
  text += std::to_string(all / 1000 % 60);
  if (rest == 0) return text + "s";
  std::string fraction = std::to_string(1000 + rest).substr(1);
  return text + "." + fraction.substr(0, fraction.find_last_not_of('0') + 1) + "s";
}

Result<void> wait_until(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                        milliseconds timeout, const std::function<Result<bool>(const json::value* object)>& look) {
  auto done = watch_until(session, session.path(kind, ns), {{"fieldSelector", "metadata.name=" + name}}, timeout, look);
  if (!done && done.error().code() == Code::timeout && !done.error().details())
    return Error(Code::timeout, timeout_text(kind, name));
  return done;
}

Result<void> wait_for_any(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& labels,
                          milliseconds timeout) {
  auto done = watch_until(session, session.path(kind, ns), {{"labelSelector", labels}}, timeout,
                          [](const json::value* object) -> Result<bool> { return object != nullptr; });
  if (!done && done.error().code() == Code::timeout && !done.error().details())
    return Error(Code::timeout, "timed out waiting for the condition");
  return done;
}

Result<void> wait_gone(Session& session, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                       const std::string& uid, milliseconds timeout) {
  return wait_until(session, kind, ns, name, timeout, [&](const json::value* object) -> Result<bool> {
    return !object || (!uid.empty() && metadata_of(*object).uid() != uid);
  });
}

// "a.b==c=d" → "a.b==c", "d": a single equals sign separates the parts; a double one belongs to a filter.
static std::vector<std::string> split_at_equals(std::string_view text) {
  std::vector<std::string> parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i, 2) == "==") parts.back() += "==", ++i;
    else if (text[i] == '=') parts.emplace_back();
    else parts.back() += text[i];
  }
  return parts;
}

Result<Condition> Condition::parse(const std::string& text) {
  Condition condition;
  if (to_lower(text) == "delete") return condition;
  if (to_lower(text) == "create") {
    condition.form_ = Form::creation;
    return condition;
  }
  if (text.starts_with("condition=")) {
    condition.form_ = Form::condition;
    size_t equals = text.find('=', 10);
    condition.name_ = to_lower(text.substr(10, equals == text.npos ? equals : equals - 10));
    condition.value_ = equals == text.npos ? "true" : to_lower(text.substr(equals + 1));
    return condition;
  }
  if (!text.starts_with("jsonpath=")) return Error(Code::bad_request, "unrecognized condition: " + coracle::quoted(text));
  condition.form_ = Form::path;
  std::vector<std::string> parts = split_at_equals(std::string_view(text).substr(9));
  if (parts.size() > 2)
    return Error(
        Code::bad_request,
        "jsonpath wait format must be --for=jsonpath='{.status.readyReplicas}'=3 or --for=jsonpath='{.status.readyReplicas}'");
  condition.name_ = parts.front();
  if (!condition.name_.empty()) TRY(relaxed_jsonpath(condition.name_));
  if (parts.size() > 1) {
    std::string_view value = parts.back();
    value.remove_prefix(std::min(value.find_first_not_of("'\""), value.size()));
    value = value.substr(0, value.find_last_not_of("'\"") + 1);
    if (value.empty())
      return Error(Code::bad_request,
                   "jsonpath wait has to have a value after equal sign, like --for=jsonpath='{.status.readyReplicas}'=3");
    condition.value_ = trim(value);
  }
  if (condition.name_.empty()) return Error(Code::bad_request, "jsonpath expression cannot be empty");
  TRY(JsonPath::parse_relaxed(condition.name_));  // a syntax error is reported now, not when the object arrives
  return condition;
}

Result<bool> Condition::holds(const json::value* object) const {
  if (form_ == Form::deletion) return object == nullptr;
  if (!object) return false;
  if (form_ == Form::creation) return true;
  if (form_ == Form::condition) {
    // All kinds that count their generations have the observed one at the same place.
    view::DeploymentStatus status = view::Deployment(*object).status();
    for (view::Condition condition : conditions_of(*object)) {
      if (to_lower(condition.type()) != name_) continue;
      bool in_condition = condition.has_observed_generation(), in_status = status.has_observed_generation();
      int64_t observed = in_condition ? condition.observed_generation() : status.observed_generation();
      if ((in_condition || in_status) && observed < metadata_of(*object).generation()) return false;
      return to_lower(condition.status()) == value_;
    }
    return false;
  }
  JsonPath path = TRY(JsonPath::parse_relaxed(name_));
  std::vector<GoValue> values = TRY(path.select(*object));
  if (values.empty()) return false;
  if (values.size() > 1) return Error(Code::bad_request, "given jsonpath expression matches more than one value");
  if (value_.empty()) return true;
  const GoValue& value = values.front();
  if (value.kind() == GoValue::Kind::list || value.kind() == GoValue::Kind::map)
    return Error(Code::bad_request, "jsonpath leads to a nested object or list which is not supported");
  return trim(go_text(value.unboxed())) == value_;
}

namespace {

constexpr auto kWeek = std::chrono::hours(7 * 24);

struct WaitFlags {
  std::vector<std::string> args;
  FileFlags files;
  std::vector<std::string> conditions;
  Output output;
  std::string selector, field_selector, timeout = "30s";
  bool all = false, all_namespaces = false, local = false;
};

class Waiting {
 public:
  // Waits for each of `conditions` in turn, creation first.
  Waiting(Session& session, const WaitFlags& flags, std::vector<Condition> conditions, milliseconds timeout)
      : session_(session),
        flags_(flags),
        conditions_(std::move(conditions)),
        timeout_(timeout),
        deadline_(std::chrono::steady_clock::now() + timeout) {
    std::ranges::stable_partition(conditions_, &Condition::of_creation);
  }

  bool of_creation() const { return conditions_.front().of_creation(); }
  bool of_deletion() const { return std::ranges::any_of(conditions_, &Condition::of_deletion); }

  // An object given by name must exist, unless its deletion or creation is awaited: a misspelt name is an error at once.
  Result<void> one(const schema::KindInfo& kind, const std::string& ns, const std::string& name, bool named) {
    json::value last;
    for (const Condition& condition : conditions_) {
      bool was_there = TRY(until(condition, kind, ns, name, last));
      if (!was_there && named) return {};
      tell(kind, name, last);  // kubectl says it of each condition
    }
    return {};
  }

  // All objects of a kind that the selectors match. With --for=create: waits until there is one.
  Result<void> all(const schema::KindInfo& kind, std::vector<Error>& failures, size_t& found) {
    std::string path = session_.path(kind, kind.kind.namespaced && !flags_.all_namespaces ? session_.ns() : "");
    Query query;
    if (!trim(flags_.selector).empty()) query.emplace_back("labelSelector", flags_.selector);
    if (!trim(flags_.field_selector).empty()) query.emplace_back("fieldSelector", flags_.field_selector);
    if (of_creation() && timeout_.count() > 0)
      TRY(watch_until(session_, path, query, left(),
                      [](const json::value* object) -> Result<bool> { return object != nullptr; }));
    json::value list = TRY(session_.json({.path = path, .query = query}));
    if (of_creation() && items_of(list).empty()) return not_created();
    for (const auto& item : items_of(list)) {
      ++found;
      auto done = one(kind, std::string(metadata_of(item).namespace_()), std::string(metadata_of(item).name()), false);
      if (!done) failures.push_back(done.take_error());
    }
    return {};
  }

 private:
  static Error not_created() { return Error(Code::timeout, "timed out waiting for the condition"); }
  // `last`: the object when the condition was met. Returns false if deletion was awaited and the object did not exist.
  Result<bool> until(const Condition& condition, const schema::KindInfo& kind, const std::string& ns, const std::string& name,
                     json::value& last) {
    std::string uid;
    Request request{.path = session_.path(kind, ns, name)};
    if (!condition.of_creation()) {
      auto object = session_.json(request);
      if (!object && object.error().code() == Code::not_found && condition.of_deletion()) return false;
      json::value now = TRY(std::move(object));
      uid = metadata_of(now).uid();
    }
    auto look = [&](const json::value* object) -> Result<bool> {
      if (condition.of_deletion() && object && metadata_of(*object).uid() != uid)
        object = nullptr;  // another object with this name
      if (object) last = *object;
      return condition.holds(object);
    };
    if (timeout_.count() == 0) {
      auto object = session_.json(request);
      if (!object && object.error().code() != Code::not_found) return object.take_error();
      bool holds = TRY(look(object ? &*object : nullptr));
      if (!holds && condition.of_creation()) return not_created();
      if (!holds) return Error(Code::timeout, "condition not met for " + std::string(kind.kind.resource) + "/" + name);
    } else {
      auto done = wait_until(session_, kind, ns, name, left(), look);
      if (!done && done.error().code() == Code::timeout && condition.of_creation()) return not_created();
      TRY(std::move(done));
    }
    return true;
  }

  milliseconds left() const {
    return std::max(milliseconds(1), std::chrono::duration_cast<milliseconds>(deadline_ - std::chrono::steady_clock::now()));
  }
  void tell(const schema::KindInfo& kind, const std::string& name, json::value object) {
    if (flags_.output.empty() || !object.is_object()) make(object, "metadata.name") = name;
    print_outcome(flags_.output, DryRun::none, std::move(object), kind, "condition met");
  }

  Session& session_;
  const WaitFlags& flags_;
  std::vector<Condition> conditions_;
  milliseconds timeout_;
  std::chrono::steady_clock::time_point deadline_;  // for all objects together
};

// --local: the objects in the files are what they are, so there is nothing to wait for.
Result<int> look_locally(const WaitFlags& flags, const std::vector<Condition>& conditions) {
  if (flags.files.files.empty() || !flags.args.empty())
    return Error(Code::bad_request,
                 "you must specify resources by --filename when --local is set.\nExample resource specifications include:\n"
                 "   '-f rsrc.yaml'\n   '--filename=rsrc.json'");
  std::vector<Document> documents = TRY(read_documents(flags.files));
  std::vector<Error> failures;
  for (Document& document : documents) {
    std::string name(metadata_of(document.object).name());
    bool met = true;
    for (const Condition& condition : conditions) {
      bool holds = TRY(condition.holds(&document.object));
      met = met && holds;
    }
    if (met) print_outcome(flags.output, DryRun::none, std::move(document.object), *document.kind, "condition met");
    else
      failures.push_back(Error(Code::timeout, "condition not met for " + std::string(document.kind->kind.resource) + "/" + name));
  }
  if (failures.size() == 1) return std::move(failures.front());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> run_wait(Commands& commands, const WaitFlags& flags) {
  std::vector<Condition> conditions;
  for (const std::string& text : flags.conditions) {
    Condition condition = TRY(Condition::parse(text));
    conditions.push_back(std::move(condition));
  }
  bool negative = flags.timeout.starts_with('-');  // practically no limit
  milliseconds timeout = kWeek;
  if (!negative) timeout = TRY(parse_timeout(flags.timeout).wrap("--timeout"));
  if (flags.local) return look_locally(flags, conditions);
  SelectionFlags selection{.files = flags.files,
                           .selector = flags.selector,
                           .field_selector = flags.field_selector,
                           .kind_means_all = flags.all,
                           .all_namespaces = flags.all_namespaces};
  std::vector<Named> named = TRY(named_by(selection, flags.args));
  Session* session = TRY(commands.session());
  Waiting waiting(*session, flags, std::move(conditions), timeout);
  std::vector<Error> failures;
  size_t found = 0;
  if (!flags.files.files.empty()) {
    LabelSelector labels = TRY(LabelSelector::parse(selection.labels()));
    std::vector<Document> documents = TRY(read_documents(flags.files));
    for (auto& document : documents) {
      std::string ns = TRY(settle_namespace(*session, document)), name(metadata_of(document.object).name());
      // Those that the object has at the server. What is not there yet is waited for, or said to be absent.
      if (!labels.empty() && !name.empty()) {
        auto live = session->json({.path = session->path(*document.kind, ns, name)});
        if (live && !labels.matches(metadata_of(*live).labels())) continue;
      }
      ++found;
      auto done = waiting.one(*document.kind, ns, name, true);
      if (!done) failures.push_back(done.take_error());
    }
  } else {
    for (const auto& one : named) {
      if (one.name.empty()) {
        TRY(waiting.all(*one.kind, failures, found));
        continue;
      }
      ++found;
      auto done = waiting.one(*one.kind, one.kind->kind.namespaced ? session->ns() : "", one.name, true);
      if (!done) failures.push_back(done.take_error());
    }
  }
  if (found == 0 && !waiting.of_deletion()) return Error(Code::not_found, "no matching resources found");
  if (failures.size() == 1) return std::move(failures.front());
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

}  // namespace

void add_wait(Commands& commands) {
  auto flags = std::make_shared<WaitFlags>();
  Command wait = commands.add("wait", "Wait until objects are as wanted");
  wait.add_option("args", flags->args, "KIND/NAME ..., KIND NAME ..., KIND -l SELECTOR");
  flags->files.recursive = true;  // as in kubectl
  flags->files.add_to(wait, false);
  wait.add_option("--for", flags->conditions, "condition=Ready, create, delete, jsonpath={.status.phase}=Running").required();
  wait.add_option("-l,--selector", flags->selector, "label selector");
  wait.add_option("--field-selector", flags->field_selector, "field selector");
  wait.add_option("--timeout", flags->timeout, "how long; 0: look once; negative: a week").as_duration();
  commands.add_output(wait, flags->output);
  wait.add_flag("--all", flags->all, "all of the kind");
  wait.add_flag("--local", flags->local, "look at the objects in the files, not at the server");
  wait.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  commands.on(wait, [&commands, flags] { return run_wait(commands, *flags); });
}

}  // namespace coracle::ctl
