// SPDX-License-Identifier: Apache-2.0
// See job.h.
#include "runtime/image/job.h"

#include <algorithm>
#include <iterator>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

constexpr size_t kMessageMax = 16 << 20;
constexpr size_t kPiece = 64 << 10;
constexpr size_t kOutcomeTextMax = 4 << 10;  // of an error, before JSON's escapes
constexpr std::string_view kKinds[] = {"pull", "import", "export", "unpack", "writeTree", "readTree", "copyTree"};  // as JobKind

std::string_view kind_text(JobKind kind) { return kKinds[size_t(kind)]; }

json::object credentials_json(const runtime::Credentials& from) {
  return {{"registry", from.registry},
          {"username", from.username},
          {"password", from.password},
          {"identityToken", from.identity_token},
          {"source", from.source}};
}

runtime::Credentials credentials_of(const json::value& from) {
  auto text = [&](std::string_view key) { return std::string(get_string(from, key)); };
  return {text("registry"), text("username"), text("password"), text("identityToken"), text("source")};
}

json::object host_json(const runtime::RegistryHost& from) {
  return {{"verify", from.verify},
          {"authorities", from.tls.authorities},
          {"certificate", from.tls.certificate},
          {"privateKey", from.tls.private_key},
          {"refused", from.refused}};
}

runtime::RegistryHost host_of(const json::value& from) {
  auto text = [&](std::string_view key) { return std::string(get_string(from, key)); };
  return {get_bool(from, "verify", true), {text("authorities"), text("certificate"), text("privateKey")}, {}, text("refused")};
}

json::object server_json(const runtime::RegistryServer& from) {
  json::object out = host_json({from.verify, from.tls, {}});
  out["url"] = from.url;
  out["resolves"] = from.resolves;
  out["headers"] = array_of(from.headers);
  return out;
}

runtime::RegistryServer server_of(const json::value& from) {
  runtime::RegistryHost host = host_of(from);
  return {std::string(get_string(from, "url")), host.verify, std::move(host.tls), get_bool(from, "resolves", true),
          get_strings(from, "headers")};
}

Result<std::vector<Digest>> digests_of(const json::value& from, std::string_view key) {
  std::vector<Digest> out;
  for (const std::string& text : get_strings(from, key)) {
    Digest digest = TRY(Digest::parse(text));
    out.push_back(std::move(digest));
  }
  return out;
}

Result<void> outcome_of(const json::value& message) {
  if (get_bool(message, "ok")) return {};
  int64_t code = get_int(message, "code", -1);
  bool known = code >= 0 && code <= int64_t(Code::cancelled);
  Error error(known ? Code(code) : Code::internal,
              shortened_text(std::string(get_string(message, "text")), kOutcomeTextMax + 3));  // with the "..."
  if (!get_bool(message, "unreachable")) return error;
  ErrorDetails details;
  details.reason = runtime::kRegistryUnreachable;
  return std::move(error).with(std::move(details));
}

}  // namespace

json::object Job::to_json() const {
  json::object out{{"kind", kind_text(kind)},
                   {"store", store},
                   {"staging", staging},
                   {"architecture", platform.architecture},
                   {"os", platform.os},
                   {"variant", platform.variant},
                   {"name", name},
                   {"insecureRegistries", array_of(insecure_registries)},
                   {"retryDelayMs", retry_delay.count()}};
  json::array& what = out["images"].emplace_array();
  for (const Record& each : images) what.push_back(image::to_json(each));
  json::array& who = out["credentials"].emplace_array();
  for (const runtime::Credentials& each : credentials) who.push_back(credentials_json(each));
  json::object& where = out["mirrors"].emplace_object();
  for (const auto& [registry, urls] : mirrors) where[registry] = array_of(urls);
  json::object& how = out["hosts"].emplace_object();
  for (const auto& [host, settings] : hosts) how[host] = host_json(settings);
  out["mirrorRepository"] = mirror_repository;
  if (servers) {
    json::array& whom = out["servers"].emplace_array();
    for (const runtime::RegistryServer& each : *servers) whom.push_back(server_json(each));
  }
  return out;
}

Result<Job> Job::from_json(const json::value& from) {
  auto text = [&](std::string_view key) { return std::string(get_string(from, key)); };
  Job job;
  auto kind = std::ranges::find(kKinds, get_string(from, "kind"));
  if (kind == std::end(kKinds)) return Error(Code::invalid, "a job of an unknown kind");
  job.kind = JobKind(kind - std::begin(kKinds));
  job.store = text("store");
  job.staging = text("staging");
  job.platform = {text("architecture"), text("os"), text("variant")};
  job.name = text("name");
  for (const json::value& each : get_array(from, "images")) {
    Record record = TRY(record_from(each));
    job.images.push_back(std::move(record));
  }
  job.insecure_registries = get_strings(from, "insecureRegistries");
  job.retry_delay = std::chrono::milliseconds(get_int(from, "retryDelayMs"));
  for (const json::value& each : get_array(from, "credentials")) job.credentials.push_back(credentials_of(each));
  const json::object& where = get_object(from, "mirrors");
  for (const auto& [registry, urls] : where) {
    auto& list = job.mirrors[std::string(registry)];
    if (const json::array* all = urls.if_array())
      for (const json::value& url : *all)
        if (url.is_string()) list.emplace_back(url.get_string());
  }
  const json::object& how = get_object(from, "hosts");
  for (const auto& [host, settings] : how) job.hosts[std::string(host)] = host_of(settings);
  job.mirror_repository = text("mirrorRepository");
  if (find(from, "servers")) {
    job.servers.emplace();
    for (const json::value& each : get_array(from, "servers")) job.servers->push_back(server_of(each));
  }
  return job;
}

Result<void> Wire::send(const json::object& message) { return sys::write_all(socket_, to_text(message) + "\n"); }

Result<std::optional<json::value>> Wire::receive() {
  size_t end;
  while ((end = arrived_.find('\n')) == arrived_.npos) {
    if (arrived_.size() > kMessageMax) return Error(Code::too_large, "a message of more than 16 MiB");
    std::byte piece[kPiece];
    auto got = sys::receive_message(socket_, piece);
    if (!got && got.error().err() != ECONNRESET) return got.take_error();  // the peer may have closed with unread data
    if (!got || got->size == 0) return std::optional<json::value>();
    arrived_.append(reinterpret_cast<const char*>(piece), got->size);
  }
  json::value message = TRY(parse_json(std::string_view(arrived_).substr(0, end)));
  arrived_.erase(0, end + 1);
  return std::optional<json::value>(std::move(message));
}

Result<void> Wire::send_files(const std::vector<const Fd*>& files) {
  const std::byte carrier{};
  std::vector<int> numbers;
  for (const Fd* file : files) numbers.push_back(file->get());
  return sys::send_message(socket_, {&carrier, 1}, numbers);
}

Result<std::vector<Fd>> Wire::receive_files() {
  std::byte carrier;
  sys::Message got = TRY(sys::receive_message(socket_, {&carrier, 1}));
  return std::vector<Fd>(std::make_move_iterator(got.fds.begin()), std::make_move_iterator(got.fds.end()));
}

json::object pin_message(const Digest& id, const std::vector<Digest>& chain) {
  json::array layers;
  for (const Digest& each : chain) layers.push_back(json::string(each.text()));
  return {{"pin", id.text()}, {"layers", std::move(layers)}};
}

json::object add_message(const Record& image, std::optional<size_t> used) {
  json::object message{{"add", to_json(image)}};
  if (used) message["used"] = int64_t(*used);
  return message;
}

json::object progress_message(const runtime::PullProgress& progress) {
  return {{"progress",
           {{"done", progress.done.count},
            {"total", progress.total.count},
            {"layersDone", progress.layers_done},
            {"layersTotal", progress.layers_total}}}};
}

json::object counted_message(const runtime::TreeCount& count) {
  return {{"counted", {{"entries", count.entries}, {"bytes", count.bytes.count}}}};
}

bool wants_leave(const json::value& message) { return find(message, "pin") || find(message, "add"); }

json::object outcome_message(const Result<void>& outcome) {
  if (outcome) return {{"outcome", {{"ok", true}}}};
  const std::string text = shortened_text(as_utf8(outcome.error().text()), kOutcomeTextMax);  // archives' names may be any bytes
  return {{"outcome",
           {{"code", int64_t(outcome.error().code())},
            {"text", text},
            {"unreachable", runtime::is_registry_unreachable(outcome.error())}}}};
}

Result<std::optional<Result<void>>> hear(const json::value& message, const JobEvents& events) {
  std::optional<Result<void>> outcome;
  if (const json::value* said = find(message, "outcome")) {
    outcome = outcome_of(*said);
  } else if (const json::value* image = find(message, "add"); image && events.add) {
    Record record = TRY(record_from(*image));
    int64_t used = get_int(message, "used", -1);
    TRY(events.add(record, used < 0 ? std::nullopt : std::optional(size_t(used))));
  } else if (find(message, "pin") && events.pin) {
    Digest id = TRY(Digest::parse(get_string(message, "pin")));
    std::vector<Digest> chain = TRY(digests_of(message, "layers"));
    TRY(events.pin(id, chain));
  } else if (const json::value* at = find(message, "progress")) {
    runtime::PullProgress progress{Bytes(get_int(*at, "done")), Bytes(get_int(*at, "total")), int(get_int(*at, "layersDone")),
                                   int(get_int(*at, "layersTotal"))};
    if (events.progress) events.progress(progress);
  } else if (const json::value* count = find(message, "counted")) {
    if (events.counted) events.counted({get_int(*count, "entries"), Bytes(get_int(*count, "bytes"))});
  } else {
    return Error(Code::internal, "coracle-image said something else");
  }
  return outcome;
}

}  // namespace coracle::image
