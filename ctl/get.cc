// SPDX-License-Identifier: Apache-2.0
// get: objects as tables made by the server, or whole as YAML, JSON, names, JSONPath or columns of the user's own; with -w
// as they change.
#include <algorithm>
#include <utility>

#include "ctl/command.h"
#include "ctl/paged_list.h"
#include "ctl/print.h"
#include "ctl/raw.h"
#include "ctl/selection.h"
#include "ctl/sort_key.h"
#include "runtime/base/clock.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/selector.h"
#include "store/schema/table.h"

namespace coracle::ctl {
namespace {

constexpr const char* kTableAccept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";

struct GetFlags {
  std::vector<std::string> args, label_columns;
  FileFlags files;
  Output output{OutputSet::get};
  std::string selector, field_selector, sort_by, raw;
  bool all_namespaces = false, watch = false, watch_only = false, no_headers = false, show_labels = false;
  bool ignore_not_found = false, show_kind = false, output_watch_events = false;
  bool server_print = true;
  bool watches() const { return watch || watch_only; }
  int64_t chunk_size = kChunkSize;
  std::string subresource;

  SelectionFlags selection() const {
    return {.files = files,
            .selector = selector,
            .field_selector = field_selector,
            .kind_means_all = true,
            .all_namespaces = all_namespaces};
  }
};

struct Selection {
  const schema::KindInfo* kind;
  std::string ns;                  // "" = all, or cluster-scoped
  std::vector<std::string> names;  // empty: all
};

TableOptions table_options(const GetFlags& flags, const Selection& selection, bool several) {
  TableOptions options;
  options.wide = flags.output == "wide";
  options.headers = !flags.no_headers;
  options.namespace_column = flags.all_namespaces && selection.kind->kind.namespaced;
  options.show_labels = flags.show_labels;
  options.label_columns = flags.label_columns;
  if (several || flags.show_kind) options.name_prefix = message_name(*selection.kind, "");
  if (!options.wide && !flags.show_labels) options.fit = terminal_width();  // who asks for more gets it whole
  return options;
}

Query list_query(const GetFlags& flags) {
  Query query;
  SelectionFlags selection = flags.selection();
  if (!selection.labels().empty()) query.emplace_back("labelSelector", selection.labels());
  if (!selection.fields().empty()) query.emplace_back("fieldSelector", selection.fields());
  return query;
}

// All pages of a list as one: a Table or a List.
Result<json::value> list_all(Session& session, const GetFlags& flags, const Selection& selection, bool table) {
  Request request{.path = session.path(*selection.kind, selection.ns), .query = list_query(flags)};
  if (table) request.accept = kTableAccept;
  if (table && !flags.sort_by.empty()) request.query.emplace_back("includeObject", "Object");
  if (flags.chunk_size > 0) request.query.emplace_back("limit", std::to_string(flags.chunk_size));
  json::value whole;
  std::string token;
  for (;;) {
    Request page = request;
    if (!token.empty()) page.query.emplace_back("continue", token);
    auto answered = session.json(page);
    if (!answered) return about_list(answered.take_error(), *selection.kind, flags.selector, flags.field_selector);
    json::value answer = std::move(*answered);
    token = view::List(answer).metadata().continue_();
    if (whole.is_null()) {
      whole = std::move(answer);
    } else {
      const char* field = table ? "rows" : "items";
      json::array& to = make(whole, field).as_array();
      for (const auto& item : get_array(answer, field)) to.push_back(item);
    }
    if (token.empty()) break;
  }
  return whole;
}

Result<json::value> get_one(Session& session, const GetFlags& flags, const Selection& selection, const std::string& name,
                            bool table, bool objects) {
  Request request{.path = session.path(*selection.kind, selection.ns, name, flags.subresource)};
  if (table) request.accept = kTableAccept;
  if (table && objects) request.query.emplace_back("includeObject", "Object");
  return session.json(request);
}

// One object that was asked for by its name is printed as it is, others as a List. False if that failed.
bool print_objects(const GetFlags& flags, std::vector<json::value> objects, bool single) {
  if (single && objects.size() == 1) return flags.output.print(std::move(objects.front()));
  json::array items;
  for (auto& object : objects) items.push_back(std::move(object));
  return flags.output.print(
      json::object{{"apiVersion", "v1"}, {"items", std::move(items)}, {"kind", "List"}, {"metadata", {{"resourceVersion", ""}}}});
}

// One of the objects that are watched.
bool print_watched(const GetFlags& flags, std::string_view type, json::value object) {
  return flags.output_watch_events ? flags.output.print_event(type, std::move(object)) : flags.output.print(std::move(object));
}

// The revision of an object, or of a table's first row.
std::string_view revision_of(const json::value& shown) {
  view::Range<view::TableRow> rows = view::Table(shown).rows();
  if (kind_in(shown) != "Table") return metadata_of(shown).resource_version();
  return rows.empty() ? std::string_view() : view::PartialObjectMetadata(rows[0].object()).metadata().resource_version();
}

// Reads `kind`'s changes after `revision` and prints them until the connection ends. The revision of a single object is that of
// its last change, which the server may have forgotten; so its watch begins now, with the object as it is, and that is not
// printed again.
Result<void> watch_selection(Session& session, const GetFlags& flags, const Selection& selection, std::string revision,
                             std::vector<size_t> widths = {}) {
  Request request{.path = session.path(*selection.kind, selection.ns), .query = list_query(flags)};
  std::string known;  // the revision that need not be printed
  bool is_first_known = selection.names.size() == 1;
  if (is_first_known) {
    request.query.emplace_back("fieldSelector", "metadata.name=" + selection.names.front());
    known = std::exchange(revision, "0");
  }
  request.query.emplace_back("watch", "true");
  if (!revision.empty()) request.query.emplace_back("resourceVersion", revision);
  bool table = flags.output.is_table();
  if (table) request.accept = kTableAccept;
  std::string partial;
  json::value columns;  // stand only in the first event's table
  Error failed(Code::cancelled, "");
  bool ended_badly = false;
  auto line = [&](std::string_view text) -> bool {
    auto event = parse_json(text);
    if (!event) return true;
    view::WatchEvent watched(*event);
    if (watched.type() == "ERROR") {
      failed = Error(Code::gone, std::string(view::Status(watched.object()).message()));
      ended_badly = true;
      return false;
    }
    if (!watched.object()) return true;
    json::value object = *watched.object();
    std::string type(watched.type());
    if (type == "BOOKMARK") return true;
    const bool is_same = known.empty() ? type == "ADDED" : revision_of(object) == known;  // some have no revision
    const bool is_known = std::exchange(is_first_known, false) && is_same;
    if (table && kind_in(object) == "Table") {
      if (const json::array& defined = view::Table(object).column_definitions().raw(); !defined.empty()) columns = defined;
      else object.as_object()["columnDefinitions"] = columns;
    }
    if (is_known) return true;
    if (table && kind_in(object) == "Table") {
      TableOptions options = table_options(flags, selection, false);
      options.headers = options.headers && widths.empty();  // before the first row ever
      options.widths = &widths;
      if (flags.output_watch_events) options.event = type;
      out(print_table(object, options));
      return true;
    }
    return print_watched(flags, type, std::move(object));
  };
  TRY(session.watch(request, [&](std::string_view bytes) {
    partial += bytes;
    size_t start = 0;
    for (size_t end; (end = partial.find('\n', start)) != partial.npos; start = end + 1)
      if (!line(std::string_view(partial).substr(start, end - start))) return false;
    partial.erase(0, start);
    return true;
  }));
  if (ended_badly) return failed;
  return {};
}

// What was named and is not there is told in `failures`, unless that is no failure.
void note_missing(const GetFlags& flags, Error error, std::vector<Error>& failures) {
  if (error.code() != Code::not_found || !flags.ignore_not_found) failures.push_back(std::move(error));
}

// What is asked for: of the objects in files, those whose labels at the server the selector matches. Kinds, documents and objects
// that cannot be read are told in `failures`, the others are still shown.
Result<std::vector<Selection>> selections_of(Session& session, const GetFlags& flags, std::vector<Error>& failures) {
  std::vector<Selection> selections;
  auto add = [&](const schema::KindInfo* kind, const std::string& ns, const std::string& name) {
    auto is_all = [&](const Selection& one) { return one.kind == kind && one.ns == ns && one.names.empty(); };
    if (std::any_of(selections.begin(), selections.end(), is_all)) return;
    // Names keep their order, whatever kinds stand between them.
    bool goes_on = !name.empty() && !selections.empty() && selections.back().kind == kind && selections.back().ns == ns;
    if (!goes_on) selections.push_back({kind, ns, {}});
    if (!name.empty()) selections.back().names.push_back(name);
  };
  std::vector<Named> named = TRY(named_by(flags.selection(), flags.args, &failures));
  if (!flags.files.empty()) {
    std::vector<Document> documents = TRY(read_documents(flags.files, &failures));
    LabelSelector labels = TRY(LabelSelector::parse(flags.selection().labels()));
    for (auto& document : documents) {
      std::string name(metadata_of(document.object).name());
      auto ns = settle_namespace(session, document);
      if (!ns) failures.push_back(ns.take_error());
      else if (name.empty()) failures.push_back(Error(Code::bad_request, "resource name may not be empty").wrap(document.source));
      else if (labels.empty()) add(document.kind, *ns, name);
      else if (auto live = session.json({.path = session.path(*document.kind, *ns, name)}); !live)
        note_missing(flags, live.take_error(), failures);
      else if (labels.matches(metadata_of(*live).labels())) add(document.kind, *ns, name);
    }
    return selections;
  }
  for (const auto& one : named) {
    bool namespaced = one.kind->kind.namespaced;
    add(one.kind, namespaced && !flags.all_namespaces ? session.ns() : "", one.name);
  }
  return selections;
}

// The table that kubectl makes by itself, of names and ages: with --server-print=false, and of what the server makes no tables
// of.
json::value own_table(Session& session, const GetFlags& flags, const Selection& selection, std::vector<Error>& failures) {
  json::array rows;
  std::string revision;
  WallTime now = system_clock().now();
  auto add = [&](const json::value& object) {
    std::string age = schema::human_age(metadata_of(object).creation_timestamp(), now);
    rows.push_back(json::object{{"cells", json::array{metadata_of(object).name(), age}}, {"object", object}});
  };
  if (selection.names.empty()) {
    auto list = list_all(session, flags, selection, false);
    if (!list) return note_missing(flags, list.take_error(), failures), json::value();
    revision = view::List(*list).metadata().resource_version();
    for (const json::value& item : items_of(*list)) add(item);
  }
  for (const auto& name : selection.names) {
    auto one = get_one(session, flags, selection, name, false, false);
    if (one) add(*one);
    else note_missing(flags, one.take_error(), failures);
  }
  if (!selection.names.empty() && rows.empty()) return {};
  auto column = [](const char* name, const char* format = "") {
    return json::object{{"name", name}, {"type", "string"}, {"format", format}, {"priority", 0}};
  };
  return json::object{{"kind", "Table"},
                      {"metadata", {{"resourceVersion", revision}}},
                      {"columnDefinitions", json::array{column("Name", "name"), column("Age")}},
                      {"rows", std::move(rows)}};
}

// One selection as a Table; null where there is nothing of it.
json::value selection_table(Session& session, const GetFlags& flags, const Selection& selection, std::vector<Error>& failures) {
  if (!flags.server_print) return own_table(session, flags, selection, failures);
  json::value table;
  if (selection.names.empty()) {
    auto whole = list_all(session, flags, selection, true);
    if (whole && kind_in(*whole) != "Table") return own_table(session, flags, selection, failures);  // it makes no tables
    if (whole) table = std::move(*whole);
    else note_missing(flags, whole.take_error(), failures);
    return table;
  }
  for (const auto& name : selection.names) {
    auto one = get_one(session, flags, selection, name, true, !flags.sort_by.empty());
    if (one && kind_in(*one) != "Table") return own_table(session, flags, selection, failures);  // a Scale
    if (!one) note_missing(flags, one.take_error(), failures);
    else if (table.is_null()) table = std::move(*one);
    else
      for (const auto& row : view::Table(*one).rows().raw()) make(table, "rows").as_array().push_back(row);
  }
  return table;
}

struct ShownTable {
  const Selection* selection;
  json::value table;  // null where there is nothing
};

// What is found of each selection. Objects of a kind that stand together are one table, whatever namespaces they are in.
Result<std::vector<ShownTable>> found_tables(Session& session, const GetFlags& flags, const std::vector<Selection>& selections,
                                             std::vector<Error>& failures) {
  std::vector<ShownTable> tables;
  for (const auto& selection : selections) {
    json::value table = selection_table(session, flags, selection, failures);
    bool joins =
        !table.is_null() && !tables.empty() && !tables.back().table.is_null() && tables.back().selection->kind == selection.kind;
    if (!joins) tables.push_back({&selection, std::move(table)});
    else
      for (const auto& row : view::Table(table).rows().raw()) make(tables.back().table, "rows").as_array().push_back(row);
  }
  if (!flags.sort_by.empty())
    for (auto& shown : tables)
      if (!view::Table(shown.table).rows().empty()) TRY(sort_by(make(shown.table, "rows").as_array(), "object", flags.sort_by));
  return tables;
}

// More than one kind is shown: then each name has its kind before it.
bool are_several_kinds(const std::vector<ShownTable>& tables) {
  const schema::KindInfo* first = nullptr;
  for (const auto& [selection, table] : tables) {
    bool is_there = !table.is_null() && (selection->names.empty() || !view::Table(table).rows().empty());
    if (!is_there) continue;
    if (first && first != selection->kind) return true;
    first = selection->kind;
  }
  return false;
}

Result<int> run_table(Session& session, const GetFlags& flags, const std::vector<Selection>& selections,
                      std::vector<Error> failures) {
  bool printed = false;
  std::vector<ShownTable> tables = TRY(found_tables(session, flags, selections, failures));
  bool several = are_several_kinds(tables);
  for (const auto& [selection, table] : tables) {
    std::vector<size_t> widths;  // of this table, for its changes
    if (!view::Table(table).rows().empty() && !flags.watch_only) {
      if (printed && !flags.no_headers) out("\n");
      TableOptions options = table_options(flags, *selection, several);
      options.widths = &widths;
      if (flags.output_watch_events) options.event = "ADDED";
      out(print_table(table, options));
      printed = true;
    }
    if (flags.watches() && !table.is_null()) {
      std::string_view revision = selection->names.empty() ? view::List(table).metadata().resource_version() : revision_of(table);
      TRY(watch_selection(session, flags, *selection, std::string(revision), widths));
    }
  }
  if (!printed && failures.empty() && !flags.watches() && !flags.ignore_not_found) {
    bool namespaced = !flags.all_namespaces && std::all_of(selections.begin(), selections.end(),
                                                           [](const Selection& one) { return one.kind->kind.namespaced; });
    tell(namespaced ? "No resources found in " + session.ns() + " namespace.\n" : "No resources found\n");
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> run_objects(Session& session, const GetFlags& flags, const std::vector<Selection>& selections,
                        std::vector<Error> failures) {
  std::vector<json::value> objects;
  bool single = failures.empty() && selections.size() == 1 && selections.front().names.size() == 1;
  std::string revision;
  bool is_found = false;  // an absent object is no failure with --ignore-not-found, and nothing to watch
  for (const auto& selection : selections) {
    if (selection.names.empty()) {
      auto list = list_all(session, flags, selection, false);
      is_found |= bool(list);
      if (!list) {
        note_missing(flags, list.take_error(), failures);
        continue;
      }
      revision = view::List(*list).metadata().resource_version();
      const std::string version(api_version_in(*list));
      for (auto& item : make(*list, "items").as_array()) {
        name_kind(item, *selection.kind);
        if (!version.empty()) item.get_object()["apiVersion"] = version;  // an older server may have another one
        objects.push_back(std::move(item));
      }
    }
    for (const auto& name : selection.names) {
      auto one = get_one(session, flags, selection, name, false, false);
      if (!one) {
        note_missing(flags, one.take_error(), failures);
        continue;
      }
      is_found = true;
      revision = view::List(*one).metadata().resource_version();
      objects.push_back(std::move(*one));
    }
  }
  if (!flags.sort_by.empty() && objects.size() > size_t(single)) {
    json::array values(objects.begin(), objects.end());
    TRY(sort_by(values, "", flags.sort_by));
    objects.assign(values.begin(), values.end());
  }
  bool nothing = objects.empty() && (single || flags.ignore_not_found || !failures.empty());  // else: an empty List
  if (!flags.watches() && !nothing) print_objects(flags, std::move(objects), single);
  if (flags.watch && !flags.watch_only)  // each by itself, as those that come
    for (auto& object : objects)
      if (!print_watched(flags, "ADDED", std::move(object))) break;
  if (flags.watches() && failures.empty() && is_found) TRY(watch_selection(session, flags, selections.front(), revision));
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<void> check_flags(const GetFlags& flags) {
  const std::string& output = flags.output.text();
  if (flags.show_labels && !flags.output.is_table())
    return Error(Code::bad_request, "--show-labels option cannot be used with " + output + " printer");
  if (!flags.label_columns.empty() && output.starts_with("custom-columns"))
    return Error(Code::bad_request, "--label-columns option cannot be used with " + output + " printer");
  if (flags.output_watch_events && !flags.watches())
    return Error(Code::bad_request, "--output-watch-events option can only be used with --watch or --watch-only");
  if (!flags.sort_by.empty()) TRY(SortPath::parse(flags.sort_by, flags.output.is_table()));
  return {};
}

Result<int> run_get(Commands& commands, GetFlags flags) {
  if (!flags.raw.empty()) {
    if (!flags.args.empty()) return Error(Code::bad_request, "arguments may not be passed when --raw is specified");
    bool others = flags.watches() || !flags.selector.empty();
    if (!others && !flags.output.empty()) return Error(Code::bad_request, "--raw and --output are mutually exclusive");
    return run_raw(commands, {.method = "GET", .path = flags.raw, .other_flags = others});
  }
  TRY(check_flags(flags));
  if (flags.watch && !flags.sort_by.empty())
    tell("warning: --watch requested, --sort-by will be ignored for watch events received\n");
  else if (flags.watch_only && !flags.sort_by.empty()) tell("warning: --watch-only requested, --sort-by will be ignored\n");
  flags.output.set_headers(!flags.no_headers);
  Session* session = TRY(commands.session());
  if (flags.args.empty() && flags.files.empty() && !flags.watches()) {
    tell(
        "You must specify the type of resource to get. Use \"coraclectl api-resources\" for a complete list of supported "
        "resources.\n\n");
    return Error(Code::bad_request,
                 "Required resource not specified.\nUse \"coraclectl explain <resource>\" for a detailed description of that "
                 "resource (e.g. coraclectl explain pods).\nSee 'coraclectl get -h' for help and examples");
  }
  if (flags.chunk_size < 0) return Error(Code::bad_request, "--chunk-size must not be negative");
  std::vector<Error> failures;
  std::vector<Selection> selections = TRY(selections_of(*session, flags, failures));
  if (!flags.subresource.empty())
    for (const auto& selection : selections)
      if (selection.names.empty())
        return Error(Code::bad_request, "subresource cannot be used when bulk resources are specified");
  if (selections.size() + failures.size() > 1 && flags.watches())
    return Error(Code::bad_request, "you may only specify a single resource type to watch");
  if (!selections.empty() && selections.front().names.size() > 1 && flags.watches())
    return Error(Code::bad_request, "watch is only supported on individual resources and resource collections - " +
                                        std::to_string(selections.front().names.size()) + " resources were found");
  if (selections.empty() && !failures.empty()) {
    print_failures(failures);
    return 1;
  }
  return flags.output.is_table() ? run_table(*session, flags, selections, std::move(failures))
                                 : run_objects(*session, flags, selections, std::move(failures));
}

}  // namespace

void add_get(Commands& commands) {
  auto flags = std::make_shared<GetFlags>();
  Command get = commands.add("get", "Show one or many objects");
  get.add_option("args", flags->args, "KIND [NAME ...], or KIND/NAME ...");
  flags->files.add_to(get);
  commands.add_output(get, flags->output);
  get.add_option("-l,--selector", flags->selector, "label selector: a=b,c!=d,e in (f,g)");
  get.add_option("--field-selector", flags->field_selector, "field selector: status.phase=Running");
  get.add_option("--sort-by", flags->sort_by, "a JSONPath expression to sort by");
  get.add_option("-L,--label-columns", flags->label_columns, "labels to show as columns").delimiter(',');
  get.add_option("--raw", flags->raw, "a path to read from the server as it is");
  get.add_flag("-A,--all-namespaces", flags->all_namespaces, "in all namespaces");
  get.add_flag("-w,--watch", flags->watch, "then show changes as they come");
  get.add_flag("--watch-only", flags->watch_only, "show changes only");
  get.add_flag("--output-watch-events", flags->output_watch_events, "with -w: say what happened");
  get.add_flag("--no-headers", flags->no_headers, "no line of column names");
  get.add_flag("--show-labels", flags->show_labels, "labels as the last column");
  get.add_flag("--show-kind", flags->show_kind, "name the kind of each object");
  get.add_option("--chunk-size", flags->chunk_size, "objects that one answer of the server holds; 0: all");
  get.add_option("--subresource", flags->subresource, "status, scale or another subresource of the object");
  get.add_flag("--server-print", flags->server_print, "the server says which columns there are");
  get.add_flag("--ignore-not-found", flags->ignore_not_found, "an absent object is no failure");
  commands.on(get, [&commands, flags] { return run_get(commands, *flags); });
}

}  // namespace coracle::ctl
