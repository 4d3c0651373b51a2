// SPDX-License-Identifier: Apache-2.0
// See image_archives.h.
#include "daemon/node/image_archives.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "daemon/node/files.h"
#include "runtime/base/guarded.h"
#include "runtime/base/json.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::node {
namespace {

constexpr std::chrono::seconds kDirectoryRetry{60};
constexpr size_t kArchivesMax = 10'000;  // files of the directory that are looked at

bool is_archive(const std::string& name) {
  if (name.starts_with('.')) return false;
  for (const char* end : {".tar", ".tar.gz", ".tgz", ".tar.zst", ".tar.xz", ".tar.bz2", ".tar.lz4"})
    if (name.ends_with(end)) return true;
  return false;
}

std::string mark_of(const struct stat& about) {
  return std::to_string(about.st_size) + " " + std::to_string(about.st_mtim.tv_sec) + "." + std::to_string(about.st_mtim.tv_nsec);
}

}  // namespace

ImageArchives::ImageArchives(std::string directory, std::string record, runtime::ImageStore& images, const Clock& clock,
                             std::function<void()> changed)
    : directory_(std::move(directory)), record_(std::move(record)), images_(images), clock_(clock), changed_(std::move(changed)) {
  read_record();
}

void ImageArchives::read_record() {
  auto text = sys::read_file(record_);
  auto document = text ? parse_json(*text) : Result<json::value>(text.error());
  if (!document || !document->is_object()) return;  // then archives are read once more
  for (const auto& [name, about] : document->get_object())
    imported_.insert_or_assign(std::string(name), Imported{std::string(get_string(about, "mark")), get_strings(about, "images")});
}

void ImageArchives::write_record() {
  json::object document;
  for (const auto& [name, about] : imported_)
    document[name] = {{"mark", about.mark}, {"images", json::array(about.images.begin(), about.images.end())}};
  auto written = sys::replace_file(record_, to_text(document));
  if (!written) log_warning("node", "cannot note which archives of images were imported", {{"why", written.error().text()}});
}

void ImageArchives::run(std::stop_token stop) {
  // Opened before the directory: a disk that is mounted over it meanwhile is told by the first wait.
  const Fd mounts = sys::open("/proc/self/mountinfo", O_RDONLY).value_or(Fd());
  std::optional<files::DirectoryWatch> watch;
  std::string told;  // why the directory is not watched, as last logged
  while (!stop.stop_requested()) {
    auto watched = sys::make_directories(directory_, 0755);
    if (watched && watch) {
      watched = watch->follow(directory_);
    } else if (watched) {
      auto opened = files::DirectoryWatch::open(directory_);
      if (opened) watch.emplace(*std::move(opened));
      else watched = opened.take_error();
    }
    const std::string why = watched ? "" : watched.error().text();
    if (!why.empty() && why != told)
      log_warning("node", "images are not imported from a directory", {{"directory", directory_}, {"why", why}});
    told = why;
    auto again = look(stop);
    if (!watched) again = again ? std::min<std::chrono::milliseconds>(*again, kDirectoryRetry) : kDirectoryRetry;
    if (watch) {
      watch->wait(stop, again, &mounts);
    } else {
      Guarded<bool> nothing(false);
      nothing.wait_until(
          stop, std::chrono::steady_clock::now() + *again, [](bool) { return false; }, [](bool) {});
    }
  }
}

std::optional<std::chrono::milliseconds> ImageArchives::look(std::stop_token stop) {
  auto directory = sys::open_directory(directory_);
  if (!directory) return std::nullopt;
  std::map<std::string, Seen> now;
  for (const std::string& name : files::list(directory_)) {
    if (!is_archive(name) || now.size() >= kArchivesMax) continue;
    auto about = sys::stat_at(*directory, name);
    if (!about || !S_ISREG(about->st_mode)) continue;
    std::string mark = mark_of(*about);
    auto before = seen_.find(name);
    const bool is_same = before != seen_.end() && before->second.mark == mark;
    now[name] = is_same ? before->second : Seen{std::move(mark), clock_.steady(), false};
  }
  seen_ = std::move(now);
  std::optional<std::chrono::milliseconds> again;
  for (auto& [name, seen] : seen_) {
    if (stop.stop_requested()) return again;
    // Once it is: an image that somebody removes does not come back at once.
    seen.is_done = seen.is_done || is_here(name, seen);
    if (seen.is_done) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(seen.since + kSettled - clock_.steady());
    if (left.count() > 0) {
      again = again ? std::min(*again, left) : left;
      continue;
    }
    seen.is_done = import(name, stop);
    if (seen.is_done) continue;
    seen.since = clock_.steady() + kRetry - kSettled;
    again = again ? std::min<std::chrono::milliseconds>(*again, kRetry) : kRetry;
  }
  return again;
}

bool ImageArchives::is_here(const std::string& name, const Seen& seen) const {
  auto known = imported_.find(name);
  if (known == imported_.end() || known->second.mark != seen.mark) return false;
  const std::vector<std::string>& names = known->second.images;
  return std::all_of(names.begin(), names.end(), [&](const std::string& image) { return images_.find(image).ok(); });
}

bool ImageArchives::import(const std::string& name, std::stop_token stop) {
  const std::string mark = seen_[name].mark;
  auto archive = sys::open(directory_ + "/" + name, O_RDONLY | O_NOFOLLOW);
  auto images = archive ? images_.import(*archive, "", stop) : Result<std::vector<runtime::Image>>(archive.error());
  if (!images && stop.stop_requested()) return true;  // the next daemon imports it
  if (!images) {
    log_warning("node", "an archive cannot be imported", {{"file", directory_ + "/" + name}, {"why", images.error().text()}});
    return images.error().code() != Code::unavailable;
  }
  std::vector<std::string> names;
  for (const runtime::Image& image : *images)
    for (const std::string& reference : image.references) names.push_back(reference);
  log_info("node", "images were imported", {{"file", directory_ + "/" + name}, {"images", join(names, ", ")}});
  imported_.insert_or_assign(name, Imported{mark, names});
  std::erase_if(imported_, [&](const auto& each) { return !seen_.contains(each.first); });  // their files are gone
  write_record();
  changed_();
  return true;
}

}  // namespace coracle::node
