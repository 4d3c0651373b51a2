// SPDX-License-Identifier: Apache-2.0
// image: the images of the machine: list, pull (with a progress bar), import (from an archive), export (to an archive), pack
// (makes an image of a directory, without another tool), tag, remove, prune. Path on the server: /coracle/v1/images. Long
// operations answer with JSON lines.
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <iostream>

#include "ctl/command.h"
#include "ctl/escape.h"
#include "ctl/input_file.h"
#include "ctl/output_file.h"
#include "ctl/pack.h"
#include "ctl/print.h"
#include "ctl/progress_bar.h"
#include "runtime/base/clock.h"
#include "runtime/base/fd.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"

namespace coracle::ctl {
namespace {

// "docker.io/library/nginx:1.27" → name and tag. For a digest, its first characters replace the tag.
std::pair<std::string, std::string> split_reference(const std::string& reference) {
  if (size_t at = reference.find('@'); at != reference.npos) return {reference.substr(0, at), "<none>"};
  size_t colon = reference.rfind(':');
  if (colon == reference.npos || reference.find('/', colon) != reference.npos) return {reference, "latest"};
  return {reference.substr(0, colon), reference.substr(colon + 1)};
}

Result<int> run_image_list(Commands& commands, const std::string& output, bool no_headers) {
  Session* session = TRY(commands.session());
  json::value answer = TRY(session->json({.path = kImages}));
  if (output == "json") {
    out(to_pretty(answer) + "\n");
    return 0;
  }
  const json::array* images = answer.if_array();
  if (!images) images = &items_of(answer);
  Columns columns;
  if (!no_headers) columns.add({"IMAGE", "TAG", "IMAGE ID", "SIZE"});
  for (const auto& image : *images) {
    std::string id(get_string(image, "id"));
    if (id.starts_with("sha256:")) id = id.substr(7, 12);
    std::string size = decimal_bytes(double(get_int(image, "sizeBytes")));
    const json::array& references = get_array(image, "references");
    for (const auto& reference : references) {
      auto [name, tag] = split_reference(std::string(reference.get_string()));
      columns.add({name, tag, id, size});
    }
    if (references.empty()) columns.add({"<none>", "<none>", id, size});
  }
  out(columns.text());
  return 0;
}

// Reads a response of JSON lines: {"progress":{…}}, then {"image":{…}} or {"images":[…]}, or a Status.
class Lines {
 public:
  explicit Lines(ProgressBar& bar) : bar_(bar) {}
  bool feed(std::string_view bytes) {
    partial_ += bytes;
    for (size_t end; (end = partial_.find('\n')) != partial_.npos; partial_.erase(0, end + 1))
      line(std::string_view(partial_).substr(0, end));
    return true;
  }
  Result<json::value> finish() {
    if (!partial_.empty()) line(partial_);
    bar_.end();
    if (kind_in(last_) == "Status" && get_string(last_, "status") != "Success") {
      Error error = error_from_status(last_);
      if (error.code() != Code::unauthorized) return error;
      return Error(error.code(), error.text());  // a registry's: our own server has let us in
    }
    if (last_.is_null()) return Error(Code::unavailable, "the server's answer ended too early");
    return last_;
  }

 private:
  void line(std::string_view text) {
    auto value = parse_json(text);
    if (!value) return;
    if (const auto* progress = find(*value, "progress"))
      bar_.show(double(get_int(*progress, "done")), double(get_int(*progress, "total")));
    else last_ = std::move(*value);
  }
  ProgressBar& bar_;
  std::string partial_;
  json::value last_;
};

// Warns about an image for another platform, a frequent mistake on a Raspberry Pi.
void warn_of_platform(const json::value& image, std::string_view name) {
  auto machine = get_string(image, "otherMachine");
  if (machine.empty()) return;
  std::string text = "Warning: " + std::string(name) + " is for " + std::string(get_string(image, "platform")) +
                     ", this machine is " + std::string(machine) + ": its programs will hardly run here";
  std::fputs((visible_line(text) + "\n").c_str(), stderr);
}

struct PullFlags {
  std::vector<std::string> references;
  std::string username, password;
  bool password_stdin = false;
};

// The request body with the credentials; "" if there are none. The password comes from the flag or from the first line of stdin.
Result<std::string> credentials_text(PullFlags& flags) {
  if (flags.password_stdin && !flags.password.empty()) return bad_request("--password and --password-stdin are one too many");
  if (flags.username.empty() && (flags.password_stdin || !flags.password.empty()))
    return bad_request("a password needs --username");
  if (flags.username.empty()) return std::string();
  if (flags.password_stdin) std::getline(std::cin, flags.password);
  return to_text(json::object{{"username", flags.username}, {"password", flags.password}});
}

Result<int> run_pull(Commands& commands, PullFlags& flags) {
  std::string credentials = TRY(credentials_text(flags));
  Session* session = TRY(commands.session());
  for (const auto& reference : flags.references) {
    ProgressBar bar(reference);
    Lines lines(bar);
    auto started = std::chrono::steady_clock::now();
    TRY(session->stream({.method = "POST", .path = kImages, .query = {{"reference", reference}}, .body = credentials},
                        [&](std::string_view bytes) { return lines.feed(bytes); }));
    Result<json::value> finished = lines.finish();
    if (!finished && !finished.error().text().starts_with("pull ")) finished = std::move(finished).wrap("pull " + reference);
    json::value answer = TRY(std::move(finished));
    const json::value* image = find(answer, "image");
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - started).count();
    char time[32];
    std::snprintf(time, sizeof time, "%.1f s", seconds);
    out("pulled " + reference + ": " + std::string(get_string(image ? *image : answer, "id")) + ", " +
        decimal_bytes(double(get_int(image ? *image : answer, "sizeBytes"))) + " unpacked, in " + time + "\n");
    warn_of_platform(image ? *image : answer, reference);
  }
  return 0;
}

Result<void> import_from(Session& session, const std::string& name, InputFile& archive) {
  ProgressBar bar("importing");
  Lines lines(bar);
  Request request{.method = "POST", .path = std::string(kImages) + "/import", .content_type = "application/x-tar"};
  if (!name.empty()) request.query.emplace_back("name", name);
  TRY(archive.upload(session, request, [&](std::string_view bytes) { return lines.feed(bytes); }));
  json::value answer = TRY(lines.finish());
  const json::array* images = answer.if_array();
  if (!images) images = &get_array(answer, "images");
  for (const auto& image : *images) {
    std::string names;
    for (const auto& reference : get_array(image, "references"))
      names.append(names.empty() ? "" : ", ").append(reference.get_string());
    std::string shown = visible_line(names.empty() ? get_string(image, "id") : names);
    out("imported " + shown + "\n");
    warn_of_platform(image, shown);
  }
  return {};
}

Result<int> run_import(Commands& commands, const std::vector<std::string>& files, const std::string& name) {
  Session* session = TRY(commands.session());
  for (const auto& file : files) {
    InputFile archive = TRY(InputFile::open(file));
    TRY(import_from(*session, name, archive).wrap("import " + file));
  }
  return 0;
}

std::string removal_text(const std::string& reference, const json::value& removal) {
  if (get_bool(removal, "deleted")) return "removed " + reference + "\n";
  std::string text = "removed the name " + reference + "; the image stays, as";
  const json::array &tags = get_array(removal, "image.references"), &digests = get_array(removal, "image.digests");
  for (const auto& name : tags.empty() ? digests : tags) text.append(" ").append(name.get_string());
  if (const json::array& users = get_array(removal, "users"); !users.empty())
    text += ", and " + std::to_string(users.size()) + (users.size() == 1 ? " container uses it" : " containers use it");
  return visible_line(text) + "\n";
}

Result<int> run_prune(Commands& commands, bool all) {
  Session* session = TRY(commands.session());
  Request request{.method = "POST", .path = std::string(kImages) + "/prune"};
  if (all) request.query.emplace_back("all", "true");
  json::value answer = TRY(session->json(request));
  double bytes = 0;
  for (const auto& image : get_array(answer, "images")) {
    const json::array &tags = get_array(image, "references"), &digests = get_array(image, "digests");
    std::string name(get_string(image, "id"));
    for (const json::array* names : {&digests, &tags})
      if (!names->empty()) name = (*names)[0].get_string();
    out("removed " + visible_line(name) + "\n");
    bytes += double(get_int(image, "sizeBytes"));
  }
  out("freed " + decimal_bytes(bytes) + " at most: images share layers\n");
  return 0;
}

Result<int> run_pack(Commands& commands, const std::string& directory, const std::string& name, const ImageConfig& config,
                     const std::string& output) {
  if (!output.empty()) {
    OutputFile file = TRY(OutputFile::open(output, true));
    TRY(pack_directory(directory, name, config, file.fd()).wrap("pack " + directory));
    TRY(file.finish());
    if (output != "-") out("packed " + directory + " into " + output + "\n");
    return 0;
  }
  Fd archive(::open("/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!archive) return Error::from_errno("open a temporary file in /tmp");
  TRY(pack_directory(directory, name, config, archive).wrap("pack " + directory));
  if (::lseek(archive.get(), 0, SEEK_SET) < 0) return Error::from_errno("rewind the archive");
  Session* session = TRY(commands.session());
  InputFile packed(std::move(archive), "the archive");
  TRY(import_from(*session, name, packed));
  return 0;
}

Result<int> run_export(Commands& commands, const std::vector<std::string>& references, const std::string& path) {
  Request request{.path = std::string(kImages) + "/export"};
  for (const auto& reference : references) request.query.emplace_back("reference", reference);
  Session* session = TRY(commands.session());
  OutputFile output = TRY(OutputFile::open(path, true));
  double bytes = 0;
  Result<void> written;
  TRY(session->stream(request, [&](std::string_view piece) {
    bytes += double(piece.size());
    return (written = sys::write_all(output.fd(), piece)).ok();
  }));
  TRY(std::move(written).wrap("write " + path));
  TRY(output.finish());
  if (path != "-") out("exported to " + path + ": " + decimal_bytes(bytes) + "\n");
  return 0;
}

}  // namespace

void add_image(Commands& commands) {
  Command image = commands.add("image", "The machine's images");
  image.require_command();

  struct ListFlags {
    std::string output;
    bool no_headers = false;
  };
  auto list_flags = std::make_shared<ListFlags>();
  Command list = commands.add("list", "Show them", image);
  list.alias("ls");
  list.add_option("-o,--output", list_flags->output, "json");
  list.add_flag("--no-headers", list_flags->no_headers, "no line of column names");
  commands.on(list, [&commands, list_flags] { return run_image_list(commands, list_flags->output, list_flags->no_headers); });

  auto pulled = std::make_shared<PullFlags>();
  Command pull = commands.add("pull", "Fetch from a registry", image);
  pull.add_option("reference", pulled->references, "registry/name:tag, name@sha256:…").required();
  pull.add_option("-u,--username", pulled->username, "at the registry");
  pull.add_option("--password", pulled->password, "at the registry; others may see it in the list of processes");
  pull.add_flag("--password-stdin", pulled->password_stdin, "the password is the first line of standard input");
  commands.on(pull, [&commands, pulled] { return run_pull(commands, *pulled); });

  struct ImportFlags {
    std::vector<std::string> files;
    std::string name;
  };
  auto import_flags = std::make_shared<ImportFlags>();
  Command import = commands.add("import", "Take in an OCI or docker archive, plain or compressed", image);
  import.alias("load");
  import.add_option("files", import_flags->files, "archives; - is standard input").required();
  import.add_option("--name", import_flags->name, "what to call the image");
  commands.on(import, [&commands, import_flags] { return run_import(commands, import_flags->files, import_flags->name); });

  struct ExportFlags {
    std::vector<std::string> references;
    std::string output = "-";
  };
  auto export_flags = std::make_shared<ExportFlags>();
  Command export_command = commands.add("export", "Write an archive of images, for other machines", image);
  export_command.alias("save");
  export_command.add_option("reference", export_flags->references, "the image's name or id").required();
  export_command.add_option("-o,--output", export_flags->output, "the archive; - is standard output");
  commands.on(export_command,
              [&commands, export_flags] { return run_export(commands, export_flags->references, export_flags->output); });

  struct PackFlags : ImageConfig {
    std::string directory, name, output;
  };
  auto pack_flags = std::make_shared<PackFlags>();
  Command pack = commands.add("pack", "Make an image of a directory", image);
  pack.add_option("directory", pack_flags->directory, "the root file system").required();
  pack.add_option("name", pack_flags->name, "localhost/NAME:TAG").required();
  pack.add_option("--entrypoint", pack_flags->entrypoint, "what a container runs; repeat for each word");
  pack.add_option("--cmd", pack_flags->cmd, "its arguments, unless others are given; repeat for each word");
  pack.add_option("--env", pack_flags->env, "NAME=VALUE");
  pack.add_option("--user", pack_flags->user, "user[:group]");
  pack.add_option("--workdir", pack_flags->working_dir, "the working directory");
  pack.add_option("-o,--output", pack_flags->output, "write an OCI archive here instead of importing it; - is standard output");
  commands.on(pack, [&commands, pack_flags] {
    return run_pack(commands, pack_flags->directory, pack_flags->name, *pack_flags, pack_flags->output);
  });

  auto removed = std::make_shared<std::vector<std::string>>();
  Command remove = commands.add("remove", "Remove names, and what no container uses", image);
  remove.alias("rm");
  remove.add_option("reference", *removed, "the image's name").required();
  commands.on(remove, [&commands, removed]() -> Result<int> {
    Session* session = TRY(commands.session());
    for (const auto& reference : *removed) {
      json::value removal = TRY(session->json({.method = "DELETE", .path = kImages, .query = {{"reference", reference}}}));
      out(removal_text(reference, removal));
    }
    return 0;
  });

  struct TagFlags {
    std::string reference, name;
  };
  auto tag_flags = std::make_shared<TagFlags>();
  Command tag = commands.add("tag", "Give an image another name", image);
  tag.add_option("reference", tag_flags->reference, "the image's name or id").required();
  tag.add_option("name", tag_flags->name, "the new NAME:TAG").required();
  commands.on(tag, [&commands, tag_flags]() -> Result<int> {
    Session* session = TRY(commands.session());
    TRY(session->json({.method = "POST",
                       .path = std::string(kImages) + "/tag",
                       .query = {{"reference", tag_flags->reference}, {"name", tag_flags->name}}}));
    out(tag_flags->reference + " is " + tag_flags->name + ", too\n");
    return 0;
  });

  auto all = std::make_shared<bool>(false);
  Command prune = commands.add("prune", "Remove images without a tag that no container uses", image);
  prune.add_flag("-a,--all", *all, "those with a tag, too");
  commands.on(prune, [&commands, all] { return run_prune(commands, *all); });
}

}  // namespace coracle::ctl
