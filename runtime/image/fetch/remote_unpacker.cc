// SPDX-License-Identifier: Apache-2.0
// See remote_unpacker.h.
#include "runtime/image/fetch/remote_unpacker.h"

#include <array>
#include <atomic>
#include <span>
#include <thread>
#include <utility>

#include "runtime/base/thread.h"
#include "runtime/image/fetch/layers.h"
#include "runtime/image/job.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

constexpr size_t kRequestMax = 64 << 10;  // kLayersMax digests are a sixth of it
constexpr size_t kReplyMax = 64 << 10;    // outcome_message() is less than half of it

json::object descriptor_json(const Descriptor& descriptor) {
  return {{"digest", descriptor.digest.text()}, {"size", descriptor.size}};
}

Result<std::optional<Descriptor>> descriptor_of(const json::value& request) {
  std::optional<Descriptor> none;
  const json::value* said = find(request, "descriptor");
  if (!said) return none;
  Digest digest = TRY(Digest::parse(get_string(*said, "digest")));
  int64_t size = get_int(*said, "size", -1);
  if (size < 0 || size > kLayerSizeMax) return Error(Code::invalid, "a layer has no good size");
  return std::optional<Descriptor>(Descriptor{"", std::move(digest), size, {}, {}});
}

// Copies the stream to the pipe. The reader may stop before the end: then its reply contains the reason.
Result<void> pass_on(Source& stream, const Fd& pipe) {
  for (;;) {
    std::string_view piece = TRY(stream.next());
    if (piece.empty()) return {};
    auto written = sys::write_all(pipe, piece);
    if (!written && written.error().err() == EPIPE) return {};
    if (!written) return written;
  }
}

Result<json::value> read_reply(const Fd& pipe) {
  std::string text = TRY(sys::read_all(pipe, kReplyMax).wrap("hear from the process that unpacks"));
  if (text.empty()) return Error(Code::internal, "the process that unpacks ended before its work was done");
  json::value reply = TRY(parse_json(text));
  std::optional<Result<void>> outcome = TRY(hear(reply, {}));
  if (!outcome) return Error(Code::internal, "the process that unpacks said something else");
  TRY(*std::move(outcome));
  return reply;
}

std::string reply_text(const Result<void>& done, const std::vector<bool>& present) {
  json::object reply = outcome_message(done);
  json::array& list = reply["present"].emplace_array();
  for (bool each : present) list.push_back(each);
  return to_text(reply);
}

struct Stager {  // one of kLayerWorkersMax
  std::atomic<bool> busy{false};
  std::jthread thread;
};

class Service {
 public:
  explicit Service(Unpacker& unpacker) : unpacker_(unpacker) {}

  // Errors: a malformed request.
  Result<void> handle(const json::value& request, std::vector<Fd> fds) {
    if (fds.empty()) return Error(Code::invalid, "a request to unpack has no place for the reply");
    Fd reply = std::move(fds[0]);
    if (find(request, "stage")) {
      if (fds.size() < 2) return Error(Code::invalid, "a request to unpack has no bytes");
      return stage(request, std::move(reply), std::move(fds[1]));
    }
    std::vector<bool> present;
    Result<void> done = find(request, "keep") ? unpacker_.keep(layer_of(request, "keep")) : begin(request, present);
    return sys::write_all(reply, reply_text(done, present));
  }

 private:
  static size_t layer_of(const json::value& request, std::string_view key) {
    return size_t(get_int(request, key, -1));  // an invalid index
  }

  Result<void> begin(const json::value& request, std::vector<bool>& present) {
    if (std::exchange(begun_, true)) return Error(Code::invalid, "a pull has one image");
    std::vector<Digest> diff_ids;
    for (const std::string& text : get_strings(request, "begin")) {
      Digest digest = TRY(Digest::parse(text));
      diff_ids.push_back(std::move(digest));
    }
    if (diff_ids.size() > kLayersMax) return Error(Code::too_large, "more than " + std::to_string(kLayersMax) + " layers");
    present = TRY(unpacker_.begin(diff_ids));
    return {};
  }

  Result<void> stage(const json::value& request, Fd reply, Fd bytes) {
    std::optional<Descriptor> descriptor = TRY(descriptor_of(request));
    for (Stager& stager : stagers_) {
      if (stager.busy) continue;
      stager.busy = true;
      stager.thread =
          start_thread("layers", [this, &stager, layer = layer_of(request, "stage"), descriptor = std::move(descriptor),
                                  reply = std::move(reply), bytes = std::move(bytes)]() mutable {
            Result<void> done = [&] {
              FileSource source(bytes);
              return unpacker_.stage(layer, source, descriptor ? &*descriptor : nullptr);
            }();
            bytes.reset();                                      // the writer gets EPIPE
            stager.busy = false;                                // before the reply, after which the next request may arrive
            (void)sys::write_all(reply, reply_text(done, {}));  // fails if the other side is gone
            reply.reset();
          });
      return {};
    }
    return Error(Code::invalid, "more than " + std::to_string(kLayerWorkersMax) + " layers at once");
  }

  Unpacker& unpacker_;
  bool begun_ = false;
  std::array<Stager, kLayerWorkersMax> stagers_;
};

}  // namespace

Result<Fd> RemoteUnpacker::send(const json::object& request, const Fd* bytes) const {
  sys::Pipe reply = TRY(sys::make_pipe());
  const std::string text = to_text(request);
  const int fds[] = {reply.write.get(), bytes ? bytes->get() : -1};
  TRY(sys::send_message(socket_, std::as_bytes(std::span(text)), std::span(fds, bytes ? 2 : 1))
          .wrap("ask the process that unpacks"));
  return std::move(reply.read);
}

Result<json::value> RemoteUnpacker::ask(const json::object& request) const {
  Fd reply = TRY(send(request, nullptr));
  return read_reply(reply);
}

Result<std::vector<bool>> RemoteUnpacker::begin(const std::vector<Digest>& diff_ids) {
  json::array texts;
  for (const Digest& each : diff_ids) texts.push_back(json::string(each.text()));
  json::value reply = TRY(ask({{"begin", std::move(texts)}}));
  std::vector<bool> present;
  for (const json::value& each : get_array(reply, "present")) present.push_back(each.is_bool() && each.get_bool());
  if (present.size() != diff_ids.size()) return Error(Code::internal, "the process that unpacks said something else");
  return present;
}

Result<void> RemoteUnpacker::stage(size_t layer, Source& stream, const Descriptor* descriptor) {
  json::object request{{"stage", int64_t(layer)}};
  if (descriptor) request["descriptor"] = descriptor_json(*descriptor);
  sys::Pipe bytes = TRY(sys::make_pipe());
  Fd reply = TRY(send(request, &bytes.read));
  bytes.read.reset();
  auto passed = pass_on(stream, bytes.write);
  bytes.write.reset();
  auto heard = read_reply(reply);
  TRY(std::move(passed));  // an error here causes the one reported there
  if (!heard) return heard.take_error();
  return {};
}

Result<void> RemoteUnpacker::keep(size_t layer) {
  TRY(ask({{"keep", int64_t(layer)}}));
  return {};
}

Result<void> serve_unpacker(const Fd& socket, Unpacker& unpacker) {
  Service service(unpacker);
  std::vector<std::byte> buffer(kRequestMax);
  for (;;) {
    auto got = sys::receive_message(socket, buffer);
    bool is_gone = got ? got->size == 0 : got.error().err() == ECONNRESET;
    if (is_gone) return {};
    if (!got) return got.take_error();
    json::value request = TRY(parse_json(std::string_view(reinterpret_cast<const char*>(buffer.data()), got->size)));
    TRY(service.handle(request, std::move(got->fds)));
  }
}

}  // namespace coracle::image
