// SPDX-License-Identifier: Apache-2.0
// volume: export and import the contents of claims' volumes as archives (tar, compressed with zstd). Path on the server:
// /coracle/v1/volumes.
#include "ctl/command.h"
#include "ctl/input_file.h"
#include "ctl/output_file.h"
#include "ctl/print.h"
#include "ctl/progress_bar.h"
#include "runtime/base/fd.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr const char* kVolumes = "/coracle/v1/volumes";

struct VolumeFlags {
  std::string claim, file;
  bool in_use = false, replace = false;
};

Request request_for(const Session& session, const char* method, const char* what, const std::string& claim) {
  return {.method = method, .path = std::string(kVolumes) + what, .query = {{"namespace", session.ns()}, {"claim", claim}}};
}

Result<int> run_export(Commands& commands, const VolumeFlags& flags) {
  Session* session = TRY(commands.session());
  Request request = request_for(*session, "GET", "/export", flags.claim);
  if (flags.in_use) request.query.emplace_back("inUse", "true");
  OutputFile output = TRY(OutputFile::open(flags.file, true));
  ProgressBar bar("exporting " + flags.claim);
  double bytes = 0;
  Result<void> written;
  auto streamed = session->stream(request, [&](std::string_view piece) {
    bytes += double(piece.size());
    bar.show(bytes, 0);
    return (written = sys::write_all(output.fd(), piece)).ok();
  });
  bar.end();
  if (!written) return written.take_error().wrap("write " + flags.file);
  TRY(std::move(streamed).wrap("export " + flags.claim));
  TRY(output.finish());
  if (flags.file != "-") out("exported " + flags.claim + " to " + flags.file + ": " + decimal_bytes(bytes) + "\n");
  return 0;
}

Result<int> run_import(Commands& commands, const VolumeFlags& flags) {
  InputFile archive = TRY(InputFile::open(flags.file));
  Session* session = TRY(commands.session());
  Request request = request_for(*session, "POST", "/import", flags.claim);
  request.content_type = "application/zstd";
  if (flags.replace) request.query.emplace_back("replace", "true");
  ProgressBar bar("importing " + flags.claim);
  std::string answer;
  auto sent = archive.upload(
      *session, request, [&](std::string_view piece) { return answer += piece, true; },
      [&, total = archive.size()](double bytes) { bar.show(bytes, total); });
  bar.end();
  TRY(std::move(sent).wrap("import " + flags.claim));
  json::value counted = TRY(parse_json(answer));
  out("imported " + flags.file + " into " + flags.claim + ": " + std::to_string(get_int(counted, "entries")) +
      " files and directories, " + decimal_bytes(double(get_int(counted, "bytes"))) + "\n");
  return 0;
}

}  // namespace

void add_volume(Commands& commands) {
  Command volume = commands.add("volume", "What the volumes of claims hold: move it to another disk or machine");
  volume.require_command();

  auto exported = std::make_shared<VolumeFlags>();
  Command export_command = commands.add("export", "Write an archive of a claim's volume (tar, packed by zstd)", volume);
  export_command.add_option("claim", exported->claim, "the PersistentVolumeClaim").required();
  export_command.add_option("file", exported->file, "the archive; - is standard output").required();
  export_command.add_flag("--in-use", exported->in_use,
                          "although a pod uses it: what it writes meanwhile may be in the archive in part");
  commands.on(export_command, [&commands, exported] { return run_export(commands, *exported); });

  auto imported = std::make_shared<VolumeFlags>();
  Command import_command = commands.add("import", "Fill a claim's volume from an archive: with all of it, or nothing", volume);
  import_command.add_option("claim", imported->claim, "the PersistentVolumeClaim").required();
  import_command.add_option("file", imported->file, "the archive, plain or packed; - is standard input").required();
  import_command.add_flag("--replace", imported->replace, "what the volume holds now goes");
  commands.on(import_command, [&commands, imported] { return run_import(commands, *imported); });
}

}  // namespace coracle::ctl
