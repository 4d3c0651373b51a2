// SPDX-License-Identifier: Apache-2.0
// /coracle/v1/images, for `coraclectl image`: list, pull, import, remove. Answers that take long are JSON lines:
// {"progress":{…}} as it goes, then {"image":{…}} or {"images":[…]}, or a Status when it failed.
// An import's body goes through a pipe to the node as it arrives; nothing is kept in memory.
#include <thread>

#include "daemon/api/handlers.h"
#include "runtime/sys/file.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

void list_images(Call& call) { answer_value(call, call.house.images.list()); }

void pull_image(Call& call, const std::string& reference) {
  ChunkedAnswer lines(call.exchange, "application/json", common_headers(call));
  auto line = [&](const json::value& value) { lines.write(to_text(value) + "\n") && lines.flush(); };
  auto image = call.house.images.pull(reference, [&](const json::value& progress) {
    line(json::object{{"progress", progress}});
  });
  line(image ? json::value(json::object{{"image", *image}}) : to_status(image.error()));
  lines.end();
}

Result<void> import_images(Call& call, const std::string& name) {
  sys::Pipe pipe = TRY(sys::make_pipe());
  Result<json::value> imported = Error(Code::internal, "not read");
  std::jthread reader([&, from = std::move(pipe.read)] { imported = call.house.images.import(from, name); });
  call.exchange.connection.set_read_deadline(SteadyTime::max());  // an archive takes what it takes
  Result<void> written;
  auto sent =
      call.exchange.stream_body([&](std::string_view bytes) { return (written = sys::write_all(pipe.write, bytes)).ok(); });
  pipe.write.reset();  // the end of the archive
  reader.join();
  if (!imported) return imported.take_error();  // says more than a broken pipe does
  if (!sent) return sent.take_error();
  json::value answer = json::object{{"images", *std::move(imported)}};
  answer_value(call, answer);
  return {};
}

}  // namespace

void serve_images(Call& call) {
  std::string reference(call.query().get("reference")), name(call.query().get("name"));
  const std::string& method = call.head().method;
  bool importing = call.route.path == "/coracle/v1/images/import";
  if (!importing && call.route.path != "/coracle/v1/images") return answer_page_not_found(call);
  if (importing && method == "POST") return answer_with(call, import_images(call, name));
  if (!importing && method == "GET") return list_images(call);
  bool known = !importing && (method == "POST" || method == "DELETE");
  if (!known)
    return answer_error(call, Error(Code::method_not_allowed, "the server does not allow this method on the requested resource"));
  if (reference.empty()) return answer_error(call, bad_request("?reference= must name an image"));
  if (method == "POST") return pull_image(call, reference);
  auto removed = call.house.images.remove(reference);
  if (!removed) return answer_error(call, removed.error());
  answer_value(call, success_status());
}

}  // namespace coracle::api
