// SPDX-License-Identifier: Apache-2.0
// See run.h.
#include "runtime/sys/run.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::sys {
namespace {

constexpr size_t kHeardMax = 65536;
constexpr const char* kProgramDirs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

// It has not been waited for, so its pid is not reused.
Result<bool> ends_within(pid_t pid, const RunSpec& spec) {
  Fd pidfd = TRY(open_pidfd(pid));
  std::stop_callback kill_it(spec.stop, [pid] { (void)::kill(pid, SIGKILL); });
  return wait_readable(pidfd, spec.timeout);
}

Result<int> wait_status(pid_t pid) {
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0)
    if (errno != EINTR) return Error::from_errno("waitpid");
  return status;
}

Result<int> run(const RunSpec& spec, const Fd* output) {
  // The input is a memfd: a program that does not read it blocks nothing.
  Fd input = TRY(make_memfd("input", spec.input, false));
  std::vector<std::string> argv_texts = spec.argv.empty() ? std::vector<std::string>{spec.path} : spec.argv, env_texts = spec.env;
  std::vector<char*> argv = pointers(argv_texts), env = pointers(env_texts);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input.get(), 0);
  if (!spec.directory.empty()) ::posix_spawn_file_actions_addchdir_np(&actions, spec.directory.c_str());
  for (int fd : {1, 2})
    if (output) ::posix_spawn_file_actions_adddup2(&actions, output->get(), fd);
  posix_spawnattr_t attributes;
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = 0;
  const int err = ::posix_spawn(&pid, spec.path.c_str(), &actions, &attributes, argv.data(), env.data());
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&actions);
  if (err != 0) return Error::from_errno(err, "execute " + spec.path);
  Result<bool> in_time = true;
  if (spec.timeout || spec.stop.stop_possible()) in_time = ends_within(pid, spec);
  if (!in_time || !*in_time) (void)::kill(pid, SIGKILL);  // the pid is not reused before we wait for it
  int status = TRY(wait_status(pid).wrap("wait for " + spec.path));
  if (!in_time) return std::move(in_time).wrap("wait for " + spec.path).take_error();
  if (!*in_time) return Error(Code::timeout, spec.path + " took longer than its timeout");
  if (spec.stop.stop_requested()) return Error(Code::cancelled, spec.path + " was ended");
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace

Result<int> run(const RunSpec& spec) { return run(spec, nullptr); }

Result<Heard> run_and_hear(const RunSpec& spec) {
  Fd output = TRY(make_memfd("output", "", false));
  auto code = run(spec, &output);
  std::string text = TRY(read_from_start(output, kHeardMax).wrap("read what " + spec.path + " wrote"));
  if (code) return Heard{*code, std::move(text)};
  const std::string wrote(trim(text));
  return Error(code.error().code(), code.error().text() + (wrote.empty() ? "" : ": " + wrote));
}

Error become(const std::string& path, std::vector<std::string> argv, std::vector<std::string> env) {
  std::vector<char*> arguments = pointers(argv), variables = pointers(env);
  ::execve(path.c_str(), arguments.data(), variables.data());
  return Error::from_errno("execute " + path);
}

std::string find_program(const std::string& name) {
  const char* path = std::getenv("PATH");
  for (std::string_view directories : {std::string_view(path ? path : ""), std::string_view(kProgramDirs)})
    for (std::string_view directory : split(directories, ':'))
      if (std::string found = std::string(directory) + "/" + name; !directory.empty() && ::access(found.c_str(), X_OK) == 0)
        return found;
  return "";
}

Result<std::string> output_of(const std::vector<std::string>& argv, Complaints complaints) {
  Fd output = TRY(make_memfd("output", "", false));
  std::vector<std::string> texts = argv;
  std::vector<char*> pointers_of_texts = pointers(texts);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, output.get(), 1);
  if (complaints == Complaints::dropped) ::posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  pid_t pid = 0;
  const int err = ::posix_spawnp(&pid, argv[0].c_str(), &actions, nullptr, pointers_of_texts.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (err != 0) return Error::from_errno(err, "execute " + argv[0]);
  int status = TRY(wait_status(pid).wrap("wait for " + argv[0]));
  if (WIFSIGNALED(status)) return Error(Code::internal, argv[0] + " was killed by signal " + std::to_string(WTERMSIG(status)));
  if (status != 0) return Error(Code::internal, argv[0] + " failed with " + std::to_string(WEXITSTATUS(status)));
  Fd written = TRY(open(fd_path(output), O_RDONLY));
  return read_all(written);
}

}  // namespace coracle::sys
