// SPDX-License-Identifier: Apache-2.0
// coracle-image: does one job for the image store (job.h), on descriptor 3, and ends. Confines itself first; dies with
// the thread that started it.
#include <curl/curl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>

#include "runtime/image/fetch/confine.h"
#include "runtime/image/fetch/fetch.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"

namespace coracle::image {
namespace {

constexpr int kWire = 3;

// Says it, and waits for leave to go on.
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
    (void)wire.send(progress_message(at));  // a store that is gone is noticed by who waits for it
  };
  return events;
}

Result<void> do_job(Wire& wire, const Job& job, const Fd* archive) {
  TRY(confine(job.store));
  if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) return Error(Code::internal, "libcurl does not start");
  Content content = TRY(Content::join(job.store, job.staging).wrap("open image store"));
  return fetch(job, archive, content, events_over(wire));
}

Result<void> serve() {
  Fd socket(kWire);
  sys::PeerCredentials store = TRY(sys::peer_credentials(socket));
  TRY(sys::die_with_parent(store.pid));
  Wire wire(std::move(socket));
  std::optional<Fd> archive = TRY(wire.receive_file());
  std::optional<json::value> order = TRY(wire.receive());
  if (!order) return {};
  auto done = do_job(wire, Job::from_json(*order), archive ? &*archive : nullptr);
  return wire.send(outcome_message(done));
}

}  // namespace
}  // namespace coracle::image

int main() {
  ::umask(022);
  std::signal(SIGPIPE, SIG_IGN);
  ::_exit(coracle::image::serve() ? 0 : 1);  // nothing is left that a destructor would have to say
}
