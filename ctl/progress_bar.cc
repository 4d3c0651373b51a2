// SPDX-License-Identifier: Apache-2.0
// See progress_bar.h.
#include "ctl/progress_bar.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace coracle::ctl {
namespace {

std::chrono::steady_clock::time_point now() { return std::chrono::steady_clock::now(); }

}  // namespace

std::string decimal_bytes(double bytes) {
  const char* units[] = {"B", "kB", "MB", "GB", "TB"};
  int unit = 0;
  while (bytes >= 1000 && unit < 4) bytes /= 1000, ++unit;
  char text[32];
  std::snprintf(text, sizeof text, unit && bytes < 100 ? "%.1f%s" : "%.0f%s", bytes, units[unit]);
  return text;
}

ProgressBar::ProgressBar(std::string what) : what_(std::move(what)), shown_(::isatty(STDERR_FILENO)), started_(now()) {}

void ProgressBar::show(double done, double total) {
  if (!shown_ || now() - drawn_ < std::chrono::milliseconds(100)) return;
  drawn_ = now();
  double seconds = std::chrono::duration<double>(drawn_ - started_).count();
  constexpr int kWidth = 24;
  std::string line = "\r" + what_;
  if (total > 0) {
    int filled = int(kWidth * std::min(1.0, done / total));
    line += " [" + std::string(size_t(filled), '=') + std::string(size_t(kWidth - filled), ' ') + "]";
  }
  line += " " + decimal_bytes(done);
  if (total > 0) line += " of " + decimal_bytes(total);
  if (seconds > 0.2) line += ", " + decimal_bytes(done / seconds) + "/s";
  line += "\x1b[K";
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  drawn_any_ = true;
}

void ProgressBar::end() {
  if (drawn_any_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace coracle::ctl
