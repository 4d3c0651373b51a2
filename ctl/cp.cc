// SPDX-License-Identifier: Apache-2.0
// cp: copies files and directories to and from containers, with a tar stream through an exec session:
//   files ──send_tree──▶ pipe ──stdin──▶ tar -x in the container        tar -c ──stdout──▶ pipe ──receive_tree──▶ files
#include <filesystem>
#include <thread>

#include "ctl/command.h"
#include "ctl/pods.h"
#include "ctl/stream.h"
#include "ctl/transfer.h"
#include "runtime/base/text.h"
#include "runtime/base/thread.h"
#include "runtime/sys/file.h"

namespace coracle::ctl {
namespace {

constexpr size_t kComplaintMax = 4096;
constexpr int kNotExecutable = 126, kNotFound = 127;

struct CpFlags {
  std::vector<std::string> args;
  std::string container;
  bool no_preserve = false;
  int64_t retries = 0;  // negative: any number
};

struct Remote {
  Session& session;
  StreamRequest request;  // its command is empty

  StreamRequest with(std::vector<std::string> command, bool use_stdin) const {
    StreamRequest made = request;
    made.command = std::move(command);
    made.use_stdin = use_stdin;
    return made;
  }
};

Error no_tar(const Remote& remote) {
  return Error(Code::unsupported, "container " + remote.request.container + " of pod " + remote.request.pod +
                                      " has no tar, which cp needs; a single file goes by: coraclectl exec " +
                                      remote.request.pod + " -- cat FILE > FILE");
}

bool says_no_program(const Error& error) {
  return error.text().find("executable file not found") != std::string::npos ||
         error.text().find("no such file or directory") != std::string::npos;
}

// Turns the exit status of the container's tar into a result.
Result<void> judge(const Remote& remote, Result<int> code, const std::string& complaint) {
  if (!code && says_no_program(code.error())) return no_tar(remote);
  if (!code) return code.take_error();
  if (*code == 0) return {};
  if (*code == kNotFound || (*code == kNotExecutable && complaint.empty())) return no_tar(remote);
  return Error(Code::internal, "tar in the container: " + (complaint.empty() ? "ended with status " + std::to_string(*code)
                                                                             : std::string(trim(complaint))));
}

std::function<Result<void>(std::string_view)> keep(std::string& complaint) {
  return [&complaint](std::string_view bytes) -> Result<void> {
    complaint.append(bytes.substr(0, kComplaintMax - std::min(kComplaintMax, complaint.size())));
    return {};
  };
}

bool is_remote_directory(const Remote& remote, const std::string& path) {
  StreamRequest request = remote.with({"test", "-d", path}, false);
  auto socket = open_stream(remote.session, request);
  if (!socket) return false;
  StreamHandles ends;
  ends.on_stdout = ends.on_stderr = [](std::string_view) -> Result<void> { return {}; };
  auto code = run_stream(**socket, request, ends);
  return code && *code == 0;
}

Result<void> upload(const Remote& remote, const std::string& from, const std::string& to, const CpFlags& flags) {
  auto [directory, name] = split_path(to);
  if (to.ends_with('/') || is_remote_directory(remote, to))
    directory = to, name = split_path(std::filesystem::absolute(from).lexically_normal().string()).second;
  std::vector<std::string> tar = {"tar", "-xmf", "-", "-C", directory};
  if (flags.no_preserve) tar.insert(tar.begin() + 1, {"--no-same-permissions", "--no-same-owner"});
  StreamRequest request = remote.with(std::move(tar), true);
  auto socket = TRY(open_stream(remote.session, request));
  sys::Pipe pipe = TRY(sys::make_pipe());
  Result<void> sent;
  std::string complaint;
  Result<int> code = 0;
  {
    std::jthread sender = start_thread("copy", [&, name = name] {
      sent = send_tree(from, name, pipe.write.get());
      pipe.write.reset();
    });
    StreamHandles ends;
    ends.input = pipe.read.get();
    ends.on_stderr = keep(complaint);
    code = run_stream(*socket, request, ends);
    pipe.read.reset();  // unblocks a sender that still writes after tar has exited
  }
  TRY(judge(remote, std::move(code), complaint));
  return sent;
}

std::string in_quotes(const std::string& word) {  // as a shell takes it apart
  std::string text = "'";
  for (char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// Runs the container's tar, and again from where it was when the connection broke. `sink` gets the archive.
Result<int> run_tar(const Remote& remote, const std::vector<std::string>& tar, int64_t retries, StreamHandles ends) {
  uint64_t bytes = 0;
  auto sink = std::move(ends.on_stdout);
  ends.on_stdout = [&](std::string_view some) -> Result<void> {
    bytes += some.size();
    return sink(some);
  };
  for (int64_t tried = 0;; ++tried) {
    StreamRequest request = remote.with(tar, false);
    if (bytes > 0) {
      std::string line;
      for (const auto& word : tar) line += in_quotes(word) + " ";
      request.command = {"sh", "-c", line + "| tail -c+" + std::to_string(bytes + 1)};
    }
    auto socket = open_stream(remote.session, request);
    Result<int> code = socket ? run_stream(**socket, request, ends) : Result<int>(socket.take_error());
    bool broke = !code && code.error().code() == Code::unavailable;
    if (!broke || retries == 0) return code;
    if (retries > 0 && tried >= retries) {
      out("Dropping out copy after " + std::to_string(tried) + " retries\n");
      return code;
    }
    out("Resuming copy at " + std::to_string(bytes) + " bytes, retry " + std::to_string(tried + 1) + "/" +
        std::to_string(retries) + "\n");
  }
}

Result<void> download(const Remote& remote, const std::string& from, std::string to, const CpFlags& flags) {
  auto [directory, name] = split_path(from);
  std::error_code ignored;
  if (std::filesystem::is_directory(to, ignored) && name != ".") to += "/" + name;
  else if (to.ends_with('/') && !std::filesystem::is_directory(to, ignored))
    return Error(Code::not_found, "the directory " + to + " does not exist");
  std::string shown = name.starts_with('-') ? "./" + name : name;
  sys::Pipe pipe = TRY(sys::make_pipe());
  Result<void> received;
  std::string complaint;
  Result<int> code = 0;
  {
    std::jthread receiver = start_thread("copy", [&] {
      received = receive_tree(pipe.read.get(), to, !flags.no_preserve);
      pipe.read.reset();
    });
    StreamHandles ends;
    ends.on_stdout = [&](std::string_view bytes) { return sys::write_all(pipe.write, bytes); };
    ends.on_stderr = keep(complaint);
    code = run_tar(remote, {"tar", "-cf", "-", "-C", directory, shown}, flags.retries, std::move(ends));
    pipe.write.reset();
  }
  // If the exec ran to its end, the process' own error is the most precise. If it was cut off, the cause is our failed write.
  if (code || received || says_no_program(code.error())) TRY(judge(remote, std::move(code), complaint));
  return received;
}

Result<int> run_cp(Commands& commands, const CpFlags& flags) {
  if (flags.args.size() != 2) return Error(Code::bad_request, "source and destination are required");
  Place from = TRY(parse_place(flags.args[0])), to;
  to = TRY(parse_place(flags.args[1]));
  if (!from.pod.empty() && !to.pod.empty())
    return Error(Code::bad_request, "one of src or dest must be a local file specification");
  if (from.pod.empty() && to.pod.empty())
    return Error(Code::bad_request, "one of src or dest must be a remote file specification");
  std::error_code ignored;
  if (from.pod.empty() && !std::filesystem::exists(from.path, ignored))
    return Error(Code::not_found, from.path + " doesn't exist in local filesystem");
  Session* session = TRY(commands.session());
  const Place& there = from.pod.empty() ? to : from;
  std::string ns = there.ns.empty() ? session->ns() : there.ns;
  json::value pod = TRY(session->json({.path = session->path(schema::catalog().of(kPod), ns, there.pod)}));
  view::Container container = TRY(choose_container(pod, flags.container, false));
  Remote remote{*session, {.ns = ns, .pod = there.pod, .container = std::string(container.name())}};
  if (from.pod.empty()) TRY(upload(remote, from.path, to.path, flags));
  else TRY(download(remote, from.path, to.path, flags));
  return 0;
}

}  // namespace

void add_cp(Commands& commands) {
  auto flags = std::make_shared<CpFlags>();
  Command cp = commands.add("cp", "Copy files and directories to and from containers: FILE POD:PATH, POD:PATH FILE");
  cp.add_option("args", flags->args, "a file here, or POD:PATH; twice");
  cp.add_option("-c,--container", flags->container, "the container");
  cp.add_flag("--no-preserve", flags->no_preserve, "owners and modes as new files get them");
  cp.add_option("--retries", flags->retries, "how often to go on from a container after the connection broke; -1: always");
  commands.on(cp, [&commands, flags] { return run_cp(commands, *flags); });
}

}  // namespace coracle::ctl
