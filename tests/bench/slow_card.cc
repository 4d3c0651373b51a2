// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD that makes the disk a slow SD card: each sync, and each write to an audit log, takes as many
// milliseconds as stand in the file that SLOW_CARD names; without that file, none. Other writes only reach the page cache.
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <thread>

namespace {

void take_time() {
  const char* path = std::getenv("SLOW_CARD");
  std::FILE* file = path ? std::fopen(path, "re") : nullptr;
  if (!file) return;
  int ms = 0;
  if (std::fscanf(file, "%d", &ms) == 1) std::this_thread::sleep_for(std::chrono::milliseconds(ms));
  std::fclose(file);
}

template <typename F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

bool is_audit_log(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return false;
  char path[4096];
  ssize_t length = ::readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path, sizeof path);
  return length > 0 && std::string_view(path, size_t(length)).ends_with("/audit.log");
}

}  // namespace

extern "C" {

int fsync(int fd) {
  static auto* const call = real<int(int)>("fsync");
  take_time();
  return call(fd);
}

int fdatasync(int fd) {
  static auto* const call = real<int(int)>("fdatasync");
  take_time();
  return call(fd);
}

ssize_t write(int fd, const void* bytes, size_t count) {
  static auto* const call = real<ssize_t(int, const void*, size_t)>("write");
  if (is_audit_log(fd)) take_time();
  return call(fd, bytes, count);
}
}
