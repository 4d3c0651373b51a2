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

// "": there is none.
std::string identity_of(const std::string& directory) {
  auto opened = sys::open_directory(directory);
  auto about = opened ? sys::stat(*opened) : Result<struct stat>(opened.error());
  return about ? std::to_string(about->st_dev) + " " + std::to_string(about->st_ino) : std::string();
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
  for (const auto& [name, mark] : document->get_object())
    if (mark.is_string()) imported_.insert_or_assign(std::string(name), std::string(mark.get_string()));
}

void ImageArchives::write_record() {
  json::object document;
  for (const auto& [name, mark] : imported_) document[name] = mark;
  auto written = sys::replace_file(record_, to_text(document));
  if (!written) log_warning("node", "cannot note which archives of images were imported", {{"why", written.error().text()}});
}

void ImageArchives::run(std::stop_token stop) {
  std::unique_ptr<files::DirectoryWatch> watch;
  std::string watched;
  while (!stop.stop_requested()) {
    if (watch && identity_of(directory_) != watched) watch.reset();  // removed, or another one has its name: its watch is silent
    if (!watch) {
      auto made = sys::make_directories(directory_, 0755);
      watched = identity_of(directory_);
      auto opened = made ? files::DirectoryWatch::open(directory_) : Result<files::DirectoryWatch>(made.error());
      if (opened) watch = std::make_unique<files::DirectoryWatch>(*std::move(opened));
      else
        log_warning("node", "images are not imported from a directory",
                    {{"directory", directory_}, {"why", opened.error().text()}});
    }
    auto again = look(stop);
    if (watch) {
      watch->wait(stop, again);
    } else {
      Guarded<bool> nothing(false);
      nothing.wait_until(
          stop, std::chrono::steady_clock::now() + kDirectoryRetry, [](bool) { return false; }, [](bool) {});
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
    auto known = imported_.find(name);
    if (seen.is_done || (known != imported_.end() && known->second == seen.mark)) continue;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(seen.since + kSettled - clock_.steady());
    if (left.count() > 0) {
      again = again ? std::min(*again, left) : left;
      continue;
    }
    seen.is_done = true;
    import(name, stop);
  }
  return again;
}

void ImageArchives::import(const std::string& name, std::stop_token stop) {
  const std::string mark = seen_[name].mark;
  auto archive = sys::open(directory_ + "/" + name, O_RDONLY | O_NOFOLLOW);
  auto images = archive ? images_.import(*archive, "", stop) : Result<std::vector<runtime::Image>>(archive.error());
  if (!images && stop.stop_requested()) return;  // the next daemon imports it
  if (!images) {
    log_warning("node", "an archive cannot be imported", {{"file", directory_ + "/" + name}, {"why", images.error().text()}});
    return;
  }
  std::vector<std::string> names;
  for (const runtime::Image& image : *images)
    for (const std::string& reference : image.references) names.push_back(reference);
  log_info("node", "images were imported", {{"file", directory_ + "/" + name}, {"images", join(names, ", ")}});
  imported_.insert_or_assign(name, mark);
  std::erase_if(imported_, [&](const auto& each) { return !seen_.contains(each.first); });  // their files are gone
  write_record();
  changed_();
}

}  // namespace coracle::node
