// SPDX-License-Identifier: Apache-2.0
// /coracle/v1/images, for `coraclectl image`: list, pull, import, export, tag, remove, prune. Long operations respond with JSON
// lines: {"progress":{…}} repeatedly, then {"image":{…}} or {"images":[…]}, or a Status on failure.
#include "daemon/api/archives.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr std::string_view kPath = "/coracle/v1/images";

void list_images(Call& call) { answer_value(call, call.context.images.list()); }

// The body may contain credentials: {"username":…,"password":…}.
Result<void> pull_image(Call& call, const std::string& reference) {
  auto sent = TRY(read_optional_value(call, nullptr));
  const json::value body = sent ? *std::move(sent) : json::value();
  std::string user(get_string(body, "username")), password(get_string(body, "password"));
  ChunkedAnswer lines(call.exchange, "application/json", common_headers(call));
  auto line = [&](const json::value& value) { lines.write(to_text(value) + "\n") && lines.flush(); };
  auto image = call.context.images.pull(reference, user, password, [&](const json::value& progress) {
    line(json::object{{"progress", progress}});
  });
  line(image ? json::value(json::object{{"image", *image}}) : to_status(image.error()));
  lines.end();
  return {};
}

Result<void> remove_image(Call& call, const std::string& reference) {
  json::value removal = TRY(call.context.images.remove(reference));
  answer_value(call, removal);
  return {};
}

Result<void> tag_image(Call& call, const std::string& reference, const std::string& name) {
  if (name.empty()) return bad_request("?name= must be the image's new name");
  json::value image = TRY(call.context.images.tag(reference, name));
  json::value answer = json::object{{"image", std::move(image)}};
  answer_value(call, answer);
  return {};
}

Result<void> prune_images(Call& call) {
  json::value removed = TRY(call.context.images.prune(call.query().flag("all")));
  json::value answer = json::object{{"images", std::move(removed)}};
  answer_value(call, answer);
  return {};
}

Result<void> import_images(Call& call, const std::string& name) {
  json::value images = TRY(receive_archive(call, [&](const Fd& archive) { return call.context.images.import(archive, name); }));
  json::value answer = json::object{{"images", std::move(images)}};
  answer_value(call, answer);
  return {};
}

Result<void> export_images(Call& call) {
  std::vector<std::string> references;
  for (std::string_view each : call.query().all("reference")) references.emplace_back(each);
  if (references.empty()) return bad_request("?reference= must name an image");
  return send_archive(call, "application/x-tar", "an export of images",
                      [&](const Fd& archive) { return call.context.images.write_archive(references, archive); });
}

}  // namespace

void serve_images(Call& call) {
  std::string reference(call.query().get("reference")), name(call.query().get("name"));
  const std::string &method = call.head().method, &path = call.route.path;
  const std::string_view what = std::string_view(path).substr(std::min(path.size(), kPath.size()));
  static constexpr std::string_view kKnown[] = {"", "/import", "/export", "/tag", "/prune"};
  const bool known = path.starts_with(kPath) && std::find(std::begin(kKnown), std::end(kKnown), what) != std::end(kKnown);
  if (!known) return answer_page_not_found(call);
  if (what.empty() && method == "GET") return list_images(call);
  if (what == "/export" && method == "GET") return answer_with(call, export_images(call));
  if (what == "/export" || (method != "POST" && !(what.empty() && method == "DELETE")))
    return answer_error(call, Error(Code::method_not_allowed, "the server does not allow this method on the requested resource"));
  if (what == "/import") return answer_with(call, import_images(call, name));
  if (what == "/prune") return answer_with(call, prune_images(call));
  if (reference.empty()) return answer_error(call, bad_request("?reference= must name an image"));
  if (what == "/tag") return answer_with(call, tag_image(call, reference, name));
  if (method == "POST") return answer_with(call, pull_image(call, reference));
  answer_with(call, remove_image(call, reference));
}

}  // namespace coracle::api
