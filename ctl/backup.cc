// SPDX-License-Identifier: Apache-2.0
// backup, restore, store: the whole store of the machine. Paths on the server: /coracle/v1/store. A backup gets its name FILE
// only after all of it is on disk.
#include <unistd.h>

#include "ctl/command.h"
#include "ctl/escape.h"
#include "ctl/input_file.h"
#include "ctl/output_file.h"
#include "runtime/base/fd.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr std::string_view kMagic{"SQLite format 3\0", 16};

std::string size_text(uint64_t bytes) {
  char text[32];
  if (bytes < 10'000) std::snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  else if (bytes < 10'000'000) std::snprintf(text, sizeof text, "%llu kB", static_cast<unsigned long long>(bytes / 1000));
  else std::snprintf(text, sizeof text, "%llu MB", static_cast<unsigned long long>(bytes / 1'000'000));
  return text;
}

// Receives the copy into `to`. Returns its size. Errors: unavailable when the response is not a copy of the store or is cut off.
Result<uint64_t> receive(Session& session, bool keys, const Fd& to) {
  Request request{.method = "POST", .path = std::string(kStore) + "/backup"};
  if (!keys) request.query.emplace_back("keys", "false");
  uint64_t size = 0;
  Result<void> written;
  std::string head;
  TRY(session.stream(request, [&](std::string_view bytes) {
    if (head.size() < kMagic.size()) head += bytes.substr(0, kMagic.size() - head.size());
    size += bytes.size();
    return (written = sys::write_all(to, bytes)).ok();
  }));
  TRY(std::move(written));
  if (head != kMagic) return Error(Code::unavailable, "what the server sent is no copy of its store");
  return size;
}

Result<int> run_backup(Commands& commands, const std::string& path, bool keys, bool force) {
  OutputFile output = TRY(OutputFile::open(path, force).wrap("backup"));
  Session* session = TRY(commands.session());
  const uint64_t size = TRY(receive(*session, keys, output.fd()).wrap("backup"));
  TRY(output.finish().wrap("backup"));
  std::string note = keys ? "with certificates and keys" : "without certificates and keys";
  std::fprintf(stderr, "backed up to %s: %s, %s; not what volumes hold (coraclectl volume export), nor images (image export)\n",
               path == "-" ? "standard output" : path.c_str(), size_text(size).c_str(), note.c_str());
  return 0;
}

Result<int> run_restore(Commands& commands, const std::string& path, bool keys) {
  if (path == "-" && ::isatty(STDIN_FILENO)) return Error(Code::bad_request, "a backup is expected on standard input");
  InputFile copy = TRY(InputFile::open(path));
  Session* session = TRY(commands.session());
  Request request{.method = "POST", .path = std::string(kStore) + "/restore", .content_type = "application/vnd.sqlite3"};
  if (!keys) request.query.emplace_back("keys", "false");
  std::string said;
  TRY(copy.upload(*session, request, [&](std::string_view bytes) { return said += bytes, true; }));
  json::value answer = TRY(parse_json(said).wrap("the server's answer"));
  for (const auto& warning : get_array(answer, "warnings")) tell("Warning: " + std::string(warning.as_string()) + "\n");
  std::string taken(get_string(answer, "taken"));
  out("restored " + std::to_string(get_int(answer, "objects")) + " objects" + (taken.empty() ? "" : " of " + taken) +
      (get_bool(answer, "keys") ? ", certificates and keys" : "") +
      "; coracled starts anew over them\nthe store before this is kept in " + std::string(get_string(answer, "kept")) + "\n");
  return 0;
}

Result<int> run_store(Commands& commands, const std::string& action, const std::string& output) {
  Session* session = TRY(commands.session());
  json::value state;
  if (action == "check") {
    state = TRY(session->json({.method = "POST", .path = std::string(kStore) + "/check"}));
    state = json::object{{"check", state}};
  } else if (action == "compact") {
    state = TRY(session->json({.method = "POST", .path = std::string(kStore) + "/compact"}));
  } else {
    state = TRY(session->json({.path = kStore}));
  }
  const json::array& findings = get_array(state, "check.findings");
  int status = findings.empty() ? 0 : 1;
  if (output == "json") return out(to_pretty(state) + "\n"), status;
  if (action != "check") {
    auto size = [&](std::string_view member) { return size_text(uint64_t(get_int(state, member))); };
    out(std::to_string(get_int(state, "objects")) + " objects in " + size("bytes") + ", of which " + size("unusedBytes") +
        " are unused\n");
    if (get_int(state, "objectsBytesMax") > 0)
      out("they take " + size("objectsBytes") + " of the " + size("objectsBytesMax") + " that storeMaxSize lets them\n");
  }
  std::string checked(get_string(state, "check.time"));
  if (checked.empty()) out("not checked since the daemon's start\n");
  else if (findings.empty()) out("whole, as of " + checked + "\n");
  for (const auto& finding : findings) out("damaged: " + visible_line(std::string(finding.as_string())) + "\n");
  if (!findings.empty())
    out("The daemon still has everything in memory. Save it: coraclectl backup FILE; then write it anew: coraclectl restore "
        "FILE\n");
  return status;
}

}  // namespace

void add_backup(Commands& commands) {
  struct Flags {
    std::string file;
    bool without_keys = false, force = false;
  };
  auto saved = std::make_shared<Flags>();
  Command backup = commands.add("backup", "Save the machine's store to a file, while it runs");
  backup.footer(
      "Every object as of one moment, and the certificates and keys by which clients and pods know this machine. Not the images, "
      "and\n"
      "not what pods keep in volumes. The file is an SQLite database, and as secret as the machine itself.");
  backup.add_option("file", saved->file, "where to; - is standard output").required();
  backup.add_flag("--without-keys", saved->without_keys, "leave out certificates and keys: for a copy to another machine");
  backup.add_flag("--force", saved->force, "replace the file if it exists");
  commands.on(backup, [&commands, saved] { return run_backup(commands, saved->file, !saved->without_keys, saved->force); });

  auto brought = std::make_shared<Flags>();
  Command restore = commands.add("restore", "Bring back what backup saved, or a copy of a state.db");
  restore.footer(
      "All of the file is checked before anything is replaced; the present store is kept beside the new one. Then the daemon "
      "starts\n"
      "anew, and pods that the backup does not know end. Certificates and keys come back too, where the backup has some: who "
      "trusted\n"
      "the machine then trusts it again.");
  restore.add_option("file", brought->file, "where from; - is standard input").required();
  restore.add_flag("--without-keys", brought->without_keys, "keep this machine's certificates and keys");
  commands.on(restore, [&commands, brought] { return run_restore(commands, brought->file, !brought->without_keys); });

  Command store = commands.add("store", "The store's file: its size, its health");
  store.require_command();
  auto output = std::make_shared<std::string>();
  struct Action {
    const char *name, *says;
  };
  for (const Action& action :
       {Action{"status", "Show its size and what the latest check found"},
        Action{"check", "Read all of it and compare it with what should be there; status 1 when it is damaged"},
        Action{"compact", "Write it anew without what is unused"}}) {
    Command command = commands.add(action.name, action.says, store);
    command.add_option("-o,--output", *output, "json").one_of({"json"});
    commands.on(command, [&commands, name = std::string(action.name), output] { return run_store(commands, name, *output); });
  }
}

}  // namespace coracle::ctl
