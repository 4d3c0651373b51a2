// SPDX-License-Identifier: Apache-2.0
// coracle-image: executes one job of the image store (job.h), received on descriptor 3, and exits. Confines itself first, and
// dies with the thread that started it. There are five kinds of processes:
//
//   imports     reads an archive, unpacks its layers                  no network
//   exports     writes an archive of local images                     no network
//   downloads   talks to registries, sends layers to the next one     no privileges
//   unpacks     verifies and unpacks those layers                     no network
//   trees       writes, reads or copies a directory tree              no network, only its descriptors
#include <curl/curl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "runtime/base/libcrypto.h"
#include "runtime/image/fetch/confine.h"
#include "runtime/image/fetch/export.h"
#include "runtime/image/fetch/fetch.h"
#include "runtime/image/fetch/remote_unpacker.h"
#include "runtime/image/fetch/tree.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

constexpr int kWire = 3;

// Sends a message and waits for permission to continue.
Result<void> ask(Wire& wire, const json::object& message) {
  TRY(wire.send(message));
  std::optional<json::value> answer = TRY(wire.receive());
  if (!answer) return Error(Code::cancelled, "the store is gone");
  return {};
}

JobEvents events_over(Wire& wire) {
  JobEvents events;
  events.pin = [&wire](const Digest& id, const std::vector<Digest>& chain) { return ask(wire, pin_message(id, chain)); };
  events.add = [&wire](const Record& image, std::optional<size_t> used) { return ask(wire, add_message(image, used)); };
  events.progress = [&wire](const runtime::PullProgress& at) {
    (void)wire.send(progress_message(at));  // readers notice a closed store
  };
  return events;
}

Result<Content> begin_in_store(const Job& job) {
  TRY(confine_unpacking(job.store));
  return Content::join(job.store, job.staging).wrap("open image store");
}

Result<void> import(Wire& wire, const Job& job, const Fd& archive) {
  Content content = TRY(begin_in_store(job));
  LocalUnpacker unpacker(content);
  return fetch(job, &archive, content, unpacker, events_over(wire));
}

Result<void> write_archive(const Job& job, const Fd& archive) {
  const Content content = TRY(begin_in_store(job));
  return export_images(job.images, content, archive);
}

Result<void> work_on_tree(Wire& wire, const Job& job, const Fd& from, const Fd& to) {
  TRY(confine_to_descriptors(job.store));
  const runtime::TreeProgress counted = [&wire](const runtime::TreeCount& count) { (void)wire.send(counted_message(count)); };
  if (job.kind == JobKind::write_tree) return write_tree(from, to, counted);
  if (job.kind == JobKind::read_tree) return read_tree(from, to, counted);
  return copy_tree(from, to, counted);
}

Result<void> download(Wire& wire, const Job& job, const Fd& unpacking) {
  TRY(confine_download(job.store));
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return Error(Code::internal, "libcurl does not start");
  Content content = TRY(Content::join_for_download(job.store).wrap("open image store"));
  RemoteUnpacker unpacker(unpacking);
  return fetch(job, nullptr, content, unpacker, events_over(wire));
}

// Reports to the store that it has started, or the error, and serves the downloading process until that exits.
Result<void> unpack(Wire& wire, const Job& job, const Fd& downloading) {
  auto content = begin_in_store(job);
  Result<void> ready;
  if (!content) ready = content.take_error();
  TRY(wire.send(outcome_message(ready)));
  if (!ready) return ready;
  LocalUnpacker unpacker(*content);
  return serve_unpacker(downloading, unpacker);
}

Result<void> serve() {
  TRY(load_libcrypto());  // before confinement, which takes the right to open it
  Fd socket(kWire);
  sys::PeerCredentials store = TRY(sys::peer_credentials(socket));
  TRY(sys::die_with_parent(store.pid));
  Wire wire(std::move(socket));
  std::vector<Fd> files = TRY(wire.receive_files());
  std::optional<json::value> order = TRY(wire.receive());
  if (!order) return {};
  const Job job = TRY(Job::from_json(*order));
  const bool is_tree = job.kind == JobKind::write_tree || job.kind == JobKind::read_tree || job.kind == JobKind::copy_tree;
  if (files.size() != (is_tree ? 2 : 1))
    return wire.send(outcome_message(Error(Code::internal, "a job without its descriptors")));
  switch (job.kind) {
    case JobKind::unpack: return unpack(wire, job, files[0]);
    case JobKind::pull: return wire.send(outcome_message(download(wire, job, files[0])));
    case JobKind::import: return wire.send(outcome_message(import(wire, job, files[0])));
    case JobKind::export_: return wire.send(outcome_message(write_archive(job, files[0])));
    case JobKind::write_tree:
    case JobKind::read_tree:
    case JobKind::copy_tree: return wire.send(outcome_message(work_on_tree(wire, job, files[0], files[1])));
  }
  return {};
}

}  // namespace
}  // namespace coracle::image

int main() {
  ::umask(0);  // modes are set explicitly
  std::signal(SIGPIPE, SIG_IGN);
  ::_exit(coracle::image::serve() ? 0 : 1);  // no destructor needs to run
}
