// SPDX-License-Identifier: Apache-2.0
// create from files, and what the subcommands of create share. See create.h.
#include "ctl/create.h"

#include <algorithm>

#include "ctl/edit.h"
#include "ctl/editor.h"
#include "ctl/field_check.h"
#include "ctl/generate.h"
#include "ctl/last_applied.h"
#include "ctl/raw.h"
#include "ctl/selection.h"
#include "ctl/target.h"
#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {

void CreateFlags::add_to(Commands& commands, Command command) {
  commands.add_output(command, output);
  commands.add_dry_run(command, dry_run);
  command.add_option("--field-manager", field_manager, "who owns the fields");
  command.add_option("--validate", validate, "strict, warn or ignore").optional_value("strict");
  command.add_flag("--save-config", save_config, "remember it for apply");
}

Result<void> CreateFlags::check() const {
  TRY(field_validation_of(validate));
  return {};
}

Query CreateFlags::query() const {
  return {{"fieldManager", field_manager}, {"fieldValidation", field_validation_of(validate).value_or("Strict")}};
}

Result<json::value> send_new(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind) {
  std::string ns(metadata_of(object).namespace_());
  bool stays_open = flags.dry_run == DryRun::client && !session.ns_given();  // what was printed may be applied to any namespace
  if (kind.kind.namespaced && ns.empty() && !stays_open) {
    make(object, "metadata.namespace") = ns = session.ns();
    order_metadata(object);
  }
  if (flags.save_config) save_config(object);
  if (flags.dry_run == DryRun::client) return object;
  return session.json({.method = "POST", .path = session.path(kind, ns), .query = flags.query(), .body = to_text(object)});
}

namespace {

// Older servers answer "creationTimestamp": null in templates. kubectl reads the answer into types that leave it out.
void drop_unset_times(json::value& value) {
  if (json::array* items = value.if_array()) std::for_each(items->begin(), items->end(), drop_unset_times);
  json::object* object = value.if_object();
  if (!object) return;
  erase_members_if(*object, [](const auto& pair) { return pair.key() == "creationTimestamp" && pair.value().is_null(); });
  for (auto& pair : *object) drop_unset_times(pair.value());
}

}  // namespace

Result<int> post_made(Commands& commands, const CreateFlags& flags, json::value object, const std::string& failing) {
  Session* session = TRY(commands.session());
  const schema::KindInfo& kind = *kind_of(object);
  auto created = send_new(*session, flags, std::move(object), kind);
  if (!created && !failing.empty()) return Error(created.error().code(), failing + created.error().text());
  json::value made = TRY(std::move(created));
  drop_unset_times(made);
  print_outcome(flags.output, flags.dry_run, std::move(made), kind, "created", JsonOrder::given);
  return 0;
}

// ---- subcommands ----

namespace {

std::string full_name_of(Command command) {  // "coraclectl create quota"
  std::string path = command.name();
  for (Command above = command.parent(); above; above = above.parent()) path.insert(0, above.name() + " ");
  return path;
}

}  // namespace

Result<std::string> only_name(Command command, const std::vector<std::string>& names) {
  if (names.size() != 1)
    return Error(Code::bad_request, "exactly one NAME is required, got " + std::to_string(names.size()) + "\nSee '" +
                                        full_name_of(command) + " -h' for help and examples");
  if (names.front().empty()) return Error(Code::bad_request, "name must be specified");
  return names.front();
}

Result<void> require_flags(const std::vector<Flag>& flags) {
  std::vector<std::string> missing;
  for (Flag flag : flags)
    if (flag.count() == 0) missing.push_back(coracle::quoted(flag.name()));
  if (missing.empty()) return {};
  std::sort(missing.begin(), missing.end());
  return Error(Code::bad_request, "required flag(s) " + join(missing, ", ") + " not set");
}

void add_new_object(Commands& commands, Command command, const std::shared_ptr<NewObjectFlags>& flags, std::string failing,
                    MakeObject make) {
  command.add_option("name", flags->names, "its name");
  flags->add_to(commands, command);
  commands.on(command, [&commands, command, flags, failing = std::move(failing), make = std::move(make)]() -> Result<int> {
    TRY(require_flags(flags->required));
    std::string name = TRY(only_name(command, flags->names));
    TRY(flags->check());
    json::value object = TRY(make(name));
    return post_made(commands, *flags, std::move(object), failing);
  });
}

// ---- files ----

Result<int> each_document(Commands& commands, const FileFlags& files, const std::string& verb, const ActOnDocument& act,
                          const std::string& selector) {
  Session* session = TRY(commands.session());
  std::vector<Error> failures;
  std::vector<Document> documents = TRY(read_documents(files, &failures));
  TRY(select_documents(selector, documents));
  if (documents.empty() && failures.empty() && verb != "replace")  // of which kubectl says nothing then
    return Error(Code::bad_request, "no objects passed to " + verb);
  for (auto& document : documents) {
    auto settled = settle_namespace(*session, document);
    if (!settled) {
      failures.push_back(settled.take_error());
      continue;
    }
    if (auto checked = files.is_strict ? check_fields(*session, document) : Result<void>(); !checked) {
      failures.push_back(checked.take_error());
      continue;
    }
    auto done = act(*session, document);
    std::string doing = verb.substr(0, verb.size() - 1) + "ing";  // create: creating
    if (!done)
      failures.push_back(std::move(done.take_error()).wrap("error when " + doing + " " + coracle::quoted(document.source)));
  }
  print_failures(failures);
  return failures.empty() ? 0 : 1;
}

Result<int> send_raw(Commands& commands, const CreateFlags& flags, const char* method, const std::string& path) {
  if (flags.files.recursive) return Error(Code::bad_request, "--raw and --recursive are mutually exclusive");
  if (!flags.output.empty()) return Error(Code::bad_request, "--raw and --output are mutually exclusive");
  return run_raw(commands, {.method = method, .path = path, .files = flags.files.files, .needs_file = true});
}

namespace {

struct CreateFilesFlags : CreateFlags {
  std::string raw, selector;
  bool edit = false, windows_line_endings = false;
};

Result<void> create_document(Session& session, const CreateFlags& flags, json::value object, const schema::KindInfo& kind) {
  // As kubectl: what a file says of the last configuration is replaced by what the file is.
  if (flags.save_config || last_applied_text(object)) object = with_last_applied(object);
  flags.recorder.record(object);
  CreateFlags rest = flags;
  rest.save_config = false;
  json::value created = TRY(send_new(session, rest, std::move(object), kind));
  print_outcome(flags.output, flags.dry_run, std::move(created), kind, "created");
  return {};
}

// The object that was saved. Errors: invalid.
Result<json::value> edited_object(const EditedFile& file, const std::string& text) {
  std::vector<json::value> parsed = TRY(file.parse(text));
  if (parsed.size() != 1 || !kind_of(parsed.front())) return Error(Code::invalid, "one object of a known kind is expected");
  return std::move(parsed.front());
}

// Lets the user edit the object until it can be read, or he gives up, and creates it. Source: kubectl
// pkg/cmd/util/editor/editoptions.go.
Result<void> edit_and_create(Session& session, const CreateFilesFlags& flags, const Document& document) {
  EditedFile file = TRY(EditedFile::create({document.object}, flags.output == "json", kEditHead, flags.windows_line_endings));
  for (;;) {
    std::optional<std::string> text = TRY(file.next());
    if (!text) return {};
    auto object = edited_object(file, *text);
    if (!object) {
      file.refuse(object.error());
      continue;
    }
    const schema::KindInfo& kind = *kind_of(*object);
    auto created = create_document(session, flags, std::move(*object), kind);
    if (!created) return file.keep(created.take_error());
    file.remove();
    return {};
  }
}

Result<int> create_files(Commands& commands, const CreateFilesFlags& flags) {
  if (flags.files.empty()) return Error(Code::bad_request, "must specify one of -f and -k");
  TRY(flags.check());
  bool failed = false;
  auto act = [&](Session& session, Document& document) -> Result<void> {
    if (!flags.edit) return create_document(session, flags, std::move(document.object), *document.kind);
    auto created = edit_and_create(session, flags, document);  // kubectl does not say of which file
    if (!created) print_failure(created.error()), failed = true;
    return {};
  };
  int code = TRY(each_document(commands, flags.files.validated(flags.validate), "create", act, flags.selector));
  return failed ? 1 : code;
}

}  // namespace

void add_create(Commands& commands) {
  auto flags = std::make_shared<CreateFilesFlags>();
  Command create = commands.add("create", "Create objects from files or flags");
  flags->files.add_to(create);
  flags->add_to(commands, create);
  create.add_option("-l,--selector", flags->selector, "only the objects in the files with these labels");
  create.add_flag("--edit", flags->edit, "edit each object before it is created");
  create.add_flag("--windows-line-endings", flags->windows_line_endings, "with --edit: lines of the file end in CR LF");
  create.add_option("--raw", flags->raw, "a path to send the file to as it is");
  flags->recorder.add_to(commands, create);
  commands.on(create, [&commands, flags]() -> Result<int> {
    if (flags->raw.empty()) return create_files(commands, *flags);
    if (flags->edit) return Error(Code::bad_request, "--raw and --edit are mutually exclusive");
    if (!flags->selector.empty()) return Error(Code::bad_request, "--raw and --selector (-l) are mutually exclusive");
    return send_raw(commands, *flags, "POST", flags->raw);
  });
  add_create_kinds(commands, create);
  add_create_rbac(commands, create);
  add_create_token(commands, create);
}

}  // namespace coracle::ctl
