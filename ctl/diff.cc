// SPDX-License-Identifier: Apache-2.0
// diff: asks the server for a dry run of apply, and compares the result with the live objects.
//   live object ──▶ LIVE-…/apps.v1.Deployment.default.web ─┐
//   dry run     ──▶ MERGED-…/apps.v1.Deployment.default.web ┴─▶ diff -u -N, or the program in $KUBECTL_EXTERNAL_DIFF
// With --prune, what apply would prune has a file among the live objects only. Source: kubectl pkg/cmd/diff.
#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <thread>

#include "ctl/apply.h"
#include "ctl/last_applied.h"
#include "ctl/print.h"
#include "ctl/selection.h"
#include "runtime/base/scope.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

constexpr int kDiffFailed = 2;  // status 1 means that there is a difference
constexpr int64_t kConcurrencyMax = 64;

struct DiffFlags : ApplyFlags {
  std::vector<std::string> args;  // there may be none
  int64_t concurrency = 1;
  bool show_managed_fields = false, show_secrets = false;
};

// Secret values are not shown. The mask only shows whether two values differ.
void mask(json::value& live, json::value& merged) {
  for (const char* field : {"data", "stringData"}) {
    const json::object before = get_object(live, field), after = get_object(merged, field);
    for (json::value* side : {&live, &merged}) {
      json::object* root = side->if_object();
      json::value* data = root ? root->if_contains(field) : nullptr;
      if (!data || !data->is_object()) continue;
      for (auto& [key, value] : data->as_object()) {
        const json::value *a = before.if_contains(key), *b = after.if_contains(key);
        value = a && b && *a != *b ? (side == &live ? "*** (before)" : "*** (after)") : "***";
      }
    }
  }
}

Result<void> write_side(const DiffFlags& flags, const std::string& directory, const std::string& name, json::value object) {
  if (!object.is_object()) return {};
  json::object& metadata = make(object, "metadata").as_object();
  if (!flags.show_managed_fields) metadata.erase("managedFields");
  json::value* annotations = metadata.if_contains("annotations");
  if (annotations && annotations->is_object()) {  // the annotation repeats the file, and so a Secret's values
    annotations->as_object().erase(kLastApplied);
    if (annotations->as_object().empty()) metadata.erase("annotations");
  }
  return sys::replace_file(directory + "/" + name, to_yaml(object), 0600, sys::Durability::volatile_);
}

// "apps.v1.Deployment.default.web", as kubectl names the files.
std::string file_name(const std::string& api_version, std::string_view kind, std::string_view ns, std::string_view name) {
  std::string file = api_version;
  std::replace(file.begin(), file.end(), '/', '.');
  return file.append(".").append(kind).append(".").append(ns).append(".").append(name);
}

struct Sides {  // directories
  std::string live, merged;
};

// Returns the live object, null if there is none.
Result<json::value> write_both(Session& session, const DiffFlags& flags, const Document& document, const std::string& ns,
                               const Sides& sides) {
  const auto& kind = *document.kind;
  std::string name(metadata_of(document.object).name());
  auto found = session.json({.path = session.path(kind, ns, name)});
  if (!found && found.error().code() != Code::not_found) return found.take_error();
  json::value live = found ? std::move(*found) : json::value(), shown = live;
  Applied merged = TRY(apply_one(session, flags, document, ns));
  if (kind.kind == kSecret && !flags.show_secrets) mask(shown, merged.object);
  std::string file = file_name(kind.kind.api_version(), kind.kind.kind, ns, name);
  TRY(write_side(flags, sides.live, file, std::move(shown)));
  TRY(write_side(flags, sides.merged, file, std::move(merged.object)));
  return live;
}

// Writes the files of all documents, several at a time if the flags say so. After an error no other is begun.
class DiffWriter {
 public:
  DiffWriter(Session& session, const DiffFlags& flags, const Sides& sides) : session_(session), flags_(flags), sides_(sides) {}

  Result<void> write(std::vector<Document>& documents) {
    for (auto& document : documents) {
      std::string ns = TRY(settle_namespace(session_, document));
      places_.push_back(ns);
      if (!ns.empty()) visited_.namespaces.insert(ns);
    }
    size_t threads =
        size_t(std::clamp<int64_t>(std::min<int64_t>(flags_.concurrency, int64_t(documents.size())), 1, kConcurrencyMax));
    {
      std::vector<std::jthread> workers;
      for (size_t i = 1; i < threads; ++i) workers.push_back(start_thread("diff", [&] { work(documents); }));
      work(documents);
    }
    return std::move(failure_);
  }
  const Visited& visited() const { return visited_; }

 private:
  void work(const std::vector<Document>& documents) {
    for (size_t at; !failed_ && (at = next_++) < documents.size();) {
      auto live = write_both(session_, flags_, documents[at], places_[at], sides_);
      std::lock_guard lock(mutex_);
      if (live) visit(*live);
      else if (!failed_.exchange(true)) failure_ = live.take_error();
    }
  }

  void visit(const json::value& live) {
    visited_.uids.insert(std::string(metadata_of(live).uid()));
    if (metadata_of(live).has_deletion_timestamp()) warn_of_deletion(std::string(metadata_of(live).name()));
  }

  Session& session_;
  const DiffFlags& flags_;
  const Sides& sides_;
  std::vector<std::string> places_;  // the namespaces of the documents
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> failed_ = false;
  std::mutex mutex_;  // protects visited_ and failure_
  Visited visited_;
  Result<void> failure_;
};

Result<void> write_pruned(Session& session, const DiffFlags& flags, const Visited& visited, const Sides& sides) {
  std::vector<ApiResource> resources = TRY(prune_resources_of(session, flags.prune.allowlist));
  std::vector<Prunable> objects = TRY(prunable_objects(session, resources, flags.selector, visited));
  for (auto& [resource, object] : objects) {
    json::value nothing;
    if (resource.kind == "Secret" && resource.group.empty() && !flags.show_secrets) mask(object, nothing);
    TRY(write_side(
        flags, sides.live,
        file_name(resource.group_version(), resource.kind, metadata_of(object).namespace_(), metadata_of(object).name()),
        std::move(object)));
  }
  return {};
}

// The program that compares, with the directories. As kubectl, options of a program of the user's come last.
std::vector<std::string> diff_command(const Sides& sides) {
  const char* chosen = std::getenv("KUBECTL_EXTERNAL_DIFF");
  if (!chosen || !*chosen) return {"diff", "-u", "-N", sides.live, sides.merged};
  std::vector<std::string> argv;
  for (std::string_view word : split(chosen, ' '))
    if (!word.empty()) argv.emplace_back(word);
  if (!argv.empty()) argv.insert(argv.begin() + 1, {sides.live, sides.merged});
  return argv;
}

Result<std::string> make_directory(const char* name) {
  std::string path = std::filesystem::temp_directory_path() / (std::string(name) + "-XXXXXX");
  if (!::mkdtemp(path.data())) return Error::from_errno("create " + path);
  return path;
}

Result<int> run_diff(Commands& commands, DiffFlags flags) {
  if (!flags.args.empty())
    return Error(Code::bad_request,
                 "Unexpected args: [" + join(flags.args, " ") + "]\nSee 'coraclectl diff -h' for help and examples");
  if (flags.files.empty()) return Error(Code::bad_request, "must specify one of -f and -k");
  if (flags.force_conflicts && !flags.server_side)
    return Error(Code::bad_request, "--force-conflicts only works with --server-side");
  if (flags.concurrency < 1) return Error(Code::bad_request, "--concurrency must be at least 1");
  flags.quiet = true;
  Session* session = TRY(commands.session());
  session->set_dry_run(flags.dry_run = DryRun::server);
  std::vector<Document> documents = TRY(read_documents(flags.files));
  TRY(select_documents(flags.selector, documents));
  Sides sides;
  Scope remove([&] {
    for (const std::string* side : {&sides.live, &sides.merged})
      if (!side->empty()) (void)sys::remove_tree(*side);
  });
  sides.live = TRY(make_directory("LIVE"));
  sides.merged = TRY(make_directory("MERGED"));
  DiffWriter writer(*session, flags, sides);
  TRY(writer.write(documents));
  if (flags.prune.prune) TRY(write_pruned(*session, flags, writer.visited(), sides));
  std::vector<std::string> argv = diff_command(sides);
  if (argv.empty()) return Error(Code::bad_request, "KUBECTL_EXTERNAL_DIFF names no program");
  return run_program(argv);
}

}  // namespace

void add_diff(Commands& commands) {
  auto flags = std::make_shared<DiffFlags>();
  Command diff = commands.add("diff", "What apply would change. Exit status 0: nothing, 1: something, more: an error");
  flags->files.add_to(diff);
  diff.add_option("-l,--selector", flags->selector, "only the objects in the files with these labels");
  Flag manager = diff.add_option("--field-manager", flags->field_manager, "who owns the fields");
  diff.add_flag("--server-side", flags->server_side, "let the server merge, with field ownership");
  diff.add_flag("--force-conflicts", flags->force_conflicts, "with --server-side: take over fields of others");
  flags->prune.add_to(diff);
  diff.add_flag("--show-managed-fields", flags->show_managed_fields, "compare who owns the fields too");
  diff.add_flag("--show-secrets", flags->show_secrets, "do not mask the values of Secrets");
  diff.add_option("--concurrency", flags->concurrency, "how many objects to look at at a time");
  diff.add_option("args", flags->args, "none").hide();
  commands.on(diff, [&commands, flags, manager]() -> Result<int> {
    flags->manager_given = manager.count() > 0;
    auto done = run_diff(commands, *flags);
    if (done) return done;
    print_failure(done.error());
    return kDiffFailed;
  });
}

}  // namespace coracle::ctl
