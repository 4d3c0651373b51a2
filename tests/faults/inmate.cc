// SPDX-License-Identifier: Apache-2.0
// The program in the containers of the fault tests: it prints all it can see of its confinement, so that two containers can be
// compared, and then stays, or exits with 7. As a hook it reads its state and succeeds. Static; it does not use our code.
//   inmate stay | say | hook
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

namespace {

// Prints lines of a file without the numbers of mounts and devices, which differ between equal containers.
void say_file(const char* path, std::vector<std::string> wanted = {}) {
  std::ifstream file(path);
  if (!file) std::cout << path << ": none\n";
  for (std::string line; std::getline(file, line);) {
    bool is_wanted =
        wanted.empty() || std::any_of(wanted.begin(), wanted.end(), [&](const auto& w) { return line.rfind(w, 0) == 0; });
    if (is_wanted) std::cout << path << ": " << line << "\n";
  }
}

void say_mounts() {
  std::ifstream file("/proc/self/mountinfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string id, parent, device, rest, text;
    words >> id >> parent >> device;
    while (words >> rest) {  // "shared:12", "master:3"
      size_t colon = rest.find(':');
      text += " " + (colon != rest.npos && rest.find('/') == rest.npos ? rest.substr(0, colon) : rest);
    }
    std::cout << "mount" << text << "\n";
  }
}

void say_directory(const std::string& path, bool with_links) {
  std::vector<std::string> names;
  if (DIR* dir = ::opendir(path.c_str())) {
    const int own = ::dirfd(dir);
    while (dirent* entry = ::readdir(dir))
      if (entry->d_name[0] != '.' && !(with_links && entry->d_name == std::to_string(own))) names.push_back(entry->d_name);
    ::closedir(dir);
  } else {
    names.push_back(std::strerror(errno));
  }
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    struct stat about {};
    ::fstatat(AT_FDCWD, (path + "/" + name).c_str(), &about, AT_SYMLINK_NOFOLLOW);
    std::cout << path << ": " << name << " " << std::oct << about.st_mode << std::dec << " " << about.st_uid << ":"
              << about.st_gid << "\n";
  }
}

void say_namespaces() {
  for (const char* name : {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}) {
    char link[64] = {};
    (void)!::readlink((std::string("/proc/self/ns/") + name).c_str(), link, sizeof link - 1);
    std::cout << "namespace " << link << "\n";
  }
}

void say_all(char** env) {
  say_file("/proc/self/status", {"Umask", "Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp:", "Seccomp_filters", "SigIgn",
                                 "SigBlk", "SigCgt", "NSpid", "Cpus_allowed:"});
  say_file("/proc/self/limits");
  say_file("/proc/self/oom_score_adj");
  say_file("/proc/self/cgroup", {"0::"});
  say_file("/proc/self/uid_map");
  say_file("/proc/self/timens_offsets");
  say_file("/proc/sys/net/ipv4/ip_forward");
  say_file("/proc/sys/kernel/msgmax");
  say_file("/sys/class/net/lo/flags");
  say_mounts();
  say_namespaces();
  utsname names{};
  ::uname(&names);
  std::cout << "names " << names.nodename << " " << names.domainname << "\n";
  char directory[256] = {};
  std::cout << "in " << (::getcwd(directory, sizeof directory) ? directory : "nowhere") << "\n";
  std::cout << "session " << (::getsid(0) == ::getpid()) << " group " << (::getpgrp() == ::getpid()) << "\n";
  for (; *env; ++env) std::cout << "env " << *env << "\n";
  std::cout << "schedule " << ::sched_getscheduler(0) << " " << ::getpriority(PRIO_PROCESS, 0) << "\n";
  winsize size{};
  if (::ioctl(0, TIOCGWINSZ, &size) == 0) std::cout << "terminal " << size.ws_col << " " << size.ws_row << "\n";
  say_file("/copied/more/file");
  say_directory("/copied/more", false);
  const int node = ::open("/node", O_RDONLY | O_NONBLOCK);
  std::cout << "node " << (node < 0 ? std::strerror(errno) : "opened") << "\n";
  if (node >= 0) ::close(node);
  say_directory("/proc/self/fd", true);
  say_directory("/dev", false);
  say_directory("/", false);
  for (const char* path : {"/proc/kcore", "/proc/keys", "/proc/sys/kernel/hostname", "/sys/firmware", "/masked", "/readonly"}) {
    struct stat about {};
    bool is_there = ::stat(path, &about) == 0;
    std::cout << path << (is_there ? "" : " none") << " " << std::oct << about.st_mode << std::dec << " "
              << about.st_size * (S_ISREG(about.st_mode) ? 0 : 1) << (::access(path, W_OK) == 0 ? " writable" : " not writable")
              << "\n";
  }
}

}  // namespace

int main(int argc, char** argv, char** env) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "hook") {
    std::string state((std::istreambuf_iterator<char>(std::cin)), {});
    return state.find("\"ociVersion\"") == state.npos;
  }
  say_all(env);
  std::cout << "that is all" << std::endl;
  if (what == "say") return 7;
  while (true) ::pause();
}
