// SPDX-License-Identifier: Apache-2.0
// events: lists events, oldest first. --for selects one object's events, -w follows new ones.
#include <algorithm>
#include <utility>

#include "ctl/command.h"
#include "ctl/paged_list.h"
#include "ctl/print.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"

namespace coracle::ctl {
namespace {

struct EventFlags {
  std::string about;
  Output output;
  std::vector<std::string> types;
  int64_t chunk_size = kChunkSize;
  bool all_namespaces = false, watch = false, no_headers = false;
};

std::vector<std::string> row_of(const json::value& object, bool with_namespace) {
  view::Event event(object);
  std::vector<std::string> row;
  if (with_namespace) row.emplace_back(event.metadata().namespace_());
  row.push_back(event_age(object, system_clock().now()));
  row.emplace_back(event.type());
  row.emplace_back(event.reason());
  row.push_back(std::string(event.involved_object().kind()) + "/" + std::string(event.involved_object().name()));
  std::string message(event.message());
  std::replace(message.begin(), message.end(), '\n', ' ');
  row.push_back(std::string(trim(message)));
  return row;
}

class Filter {
 public:
  // An unknown kind is told in `unknown`.
  static Result<Filter> make(const EventFlags& flags, std::vector<Error>& unknown) {
    Filter filter;
    if (!flags.about.empty()) {
      if (flags.about.find('/') == std::string::npos) return Error(Code::bad_request, "--for must be in resource/name form");
      std::vector<Named> named = TRY(parse_named({flags.about}, &unknown));
      if (!named.empty()) filter.about_ = named.front();
    }
    for (const auto& type : flags.types) {
      std::string lower = to_lower(type);
      if (lower != "normal" && lower != "warning") return Error(Code::bad_request, "valid --types are Normal or Warning");
      filter.types_.push_back(lower);
    }
    return filter;
  }
  bool passes(view::Event event) const {
    view::ObjectReference about = event.involved_object();
    if (about_.kind && (about.kind() != about_.kind->kind.kind || about.api_version() != about_.kind->kind.api_version() ||
                        about.name() != about_.name))
      return false;
    return types_.empty() || std::find(types_.begin(), types_.end(), to_lower(event.type())) != types_.end();
  }

  // What the server can select.
  Query query() const {
    if (!about_.kind) return {};
    return {{"fieldSelector", "involvedObject.kind=" + std::string(about_.kind->kind.kind) + ",involvedObject.apiVersion=" +
                                  about_.kind->kind.api_version() + ",involvedObject.name=" + about_.name}};
  }

 private:
  Named about_;
  std::vector<std::string> types_;
};

std::vector<std::string> header_of(const EventFlags& flags) {
  if (flags.no_headers) return {};
  std::vector<std::string> header = {"LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"};
  if (flags.all_namespaces) header.insert(header.begin(), "NAMESPACE");
  return header;
}

// `header` stands before the first event, if it is not empty.
Result<void> watch_events(Session& session, const EventFlags& flags, const Filter& filter, const std::string& path,
                          const std::string& revision, std::vector<std::string> header, std::vector<size_t> widths) {
  Request request{.path = path, .query = filter.query()};
  request.query.emplace_back("watch", "true");
  request.query.emplace_back("resourceVersion", revision);
  std::string partial;
  return session.watch(request, [&](std::string_view bytes) {
    partial += bytes;
    for (size_t end; (end = partial.find('\n')) != partial.npos; partial.erase(0, end + 1)) {
      auto change = parse_json(std::string_view(partial).substr(0, end));
      if (!change) continue;
      const json::value* event = view::WatchEvent(*change).object();
      std::string_view type = view::WatchEvent(*change).type();
      if (!event || (type != "ADDED" && type != "MODIFIED") || !filter.passes(view::Event(*event))) continue;
      if (!flags.output.empty()) {
        if (!flags.output.print(*event)) return false;
        continue;
      }
      Columns columns;
      if (!header.empty()) columns.add(std::exchange(header, {}));
      columns.add(row_of(*event, flags.all_namespaces));
      out(columns.text(terminal_width(), &widths));
    }
    return true;
  });
}

Result<int> run_events(Commands& commands, const EventFlags& flags) {
  std::vector<Error> unknown;
  Filter filter = TRY(Filter::make(flags, unknown));
  if (!unknown.empty()) {  // as kubectl: without "error: "
    tell(unknown.front().text() + "\n");
    return 1;
  }
  Session* session = TRY(commands.session());
  std::string ns = flags.all_namespaces ? "" : session->ns(), path = session->path(schema::catalog().of(kEvent), ns);
  json::value list = TRY(paged_list(*session, {.path = path, .query = filter.query()}, flags.chunk_size));
  std::vector<json::value> events;
  for (const auto& item : items_of(list))
    if (filter.passes(view::Event(item))) events.push_back(item);
  std::stable_sort(events.begin(), events.end(),
                   [](const json::value& a, const json::value& b) { return event_time(a) < event_time(b); });
  std::string revision(view::List(list).metadata().resource_version());
  if (events.empty() && !flags.watch) {
    std::fputs(ns.empty() ? "No events found.\n" : ("No events found in " + ns + " namespace.\n").c_str(), stderr);
    return 0;
  }
  if (!flags.output.empty() && !flags.watch) {
    json::array items(events.begin(), events.end());
    flags.output.print(
        json::object{{"kind", "EventList"}, {"apiVersion", "v1"}, {"metadata", json::object()}, {"items", std::move(items)}},
        JsonOrder::given);
    return 0;
  }
  std::vector<size_t> widths;
  std::vector<std::string> header = header_of(flags);
  if (!flags.output.empty()) {
    for (const auto& event : events)
      if (!flags.output.print(event)) return 1;
  } else if (!events.empty()) {
    Columns columns;
    if (!header.empty()) columns.add(std::exchange(header, {}));
    for (const auto& event : events) columns.add(row_of(event, flags.all_namespaces));
    out(columns.text(terminal_width(), &widths));
  }
  if (flags.watch) TRY(watch_events(*session, flags, filter, path, revision, std::move(header), widths));
  return 0;
}

}  // namespace

void add_events(Commands& commands) {
  auto flags = std::make_shared<EventFlags>();
  Command events = commands.add("events", "What happened, oldest first");
  commands.ignore_words(events);
  events.add_option("--for", flags->about, "of this object: KIND/NAME");
  events.add_option("--types", flags->types, "Normal or Warning").delimiter(',');
  commands.add_output(events, flags->output);
  events.add_option("--chunk-size", flags->chunk_size, "events that one answer of the server holds; 0: all");
  events.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  events.add_flag("-w,--watch", flags->watch, "then go on as they happen");
  events.add_flag("--no-headers", flags->no_headers, "no line of column names");
  commands.on(events, [&commands, flags] { return run_events(commands, *flags); });
}

}  // namespace coracle::ctl
