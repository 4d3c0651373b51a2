// SPDX-License-Identifier: Apache-2.0
// Fd: owns one file descriptor. Each descriptor is put into an Fd when it is created; functions borrow `const Fd&` and return
// `Fd`.
#pragma once

#include <unistd.h>

#include <utility>

namespace coracle {

class Fd {  // -1 means none.
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    Fd(std::move(other)).swap(*this);  // closes the old one
    return *this;
  }
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }  // for C libraries that take ownership
  void reset() { Fd().swap(*this); }
  void swap(Fd& other) noexcept { std::swap(fd_, other.fd_); }

 private:
  int fd_ = -1;
};

}  // namespace coracle
