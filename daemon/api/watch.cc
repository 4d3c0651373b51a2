// SPDX-License-Identifier: Apache-2.0
// Watches: the initial state (if requested), then all changes, as a streaming response: chunked HTTP or WebSocket messages; JSON
// or protobuf frames; objects, Tables or metadata.
//   engine::Watcher ▸ seen_through(selectors) ▸ represent ▸ frame ▸ client
// The thread sleeps in the watcher; the HTTP server wakes it when the client disconnects (Exchange::notice_peer). A watcher that
// is too slow is ended; it never loses events. Source: Kubernetes API concepts; wire formats in apiserver handlers/watch.
#include "daemon/registry/watch.h"

#include <chrono>

#include "daemon/api/handlers.h"
#include "daemon/api/options.h"
#include "daemon/api/websocket.h"
#include "runtime/base/random.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/convert.h"
#include "store/schema/protobuf.h"

namespace coracle::api {
namespace {

using std::chrono::seconds;

constexpr seconds kTimeoutMin{1800}, kTimeoutMax{3600};  // without timeoutSeconds
constexpr seconds kBookmarkEvery{60};
constexpr size_t kLargeBytes = 16 << 10;  // larger than a connection's buffer

struct WatchRequest {
  registry::Filter filter;
  std::string ns;
  bool bookmarks = false, marks_end_of_initial = false;
  Revision after = 0;       // 0: begin with the initial state
  Revision not_before = 0;  // the initial state must be at least of this revision
  SteadyTime deadline;
  Wanted wanted;
  schema::IncludeObject include = schema::IncludeObject::metadata;
};

seconds random_timeout() { return kTimeoutMin + seconds(random_below(uint32_t((kTimeoutMax - kTimeoutMin).count() + 1))); }

Result<WatchRequest> read_watch_request(Call& call) {
  WatchRequest request;
  request.wanted = TRY(negotiate(call.head(), Offer::stream));
  request.wanted.pretty = false;
  if (request.wanted.as == As::partial_list) request.wanted.as = As::partial;
  ListParameters list = TRY(read_list_parameters(call, true));
  ListOptions& options = list.options;
  request.ns = options.ns;
  if (!call.route.name.empty()) {  // a GET of a name with watch=1: watches this object only
    if (!options.field_selector.empty() && registry::name_demanded(options.field_selector) != call.route.name)
      return bad_request("fieldSelector metadata.name doesn't match requested name");
    if (options.field_selector.empty()) options.field_selector = "metadata.name=" + call.route.name;
  }
  request.filter =
      TRY(registry::make_filter(schema::KindPtr(call.catalog, call.info), options.label_selector, options.field_selector));
  request.bookmarks = list.bookmarks;

  auto revision = list.revision.empty() ? std::optional<Revision>(0) : parse_revision(list.revision);
  const Kind& kind = call.kind();
  if (!revision) return invalid({kind.group, kind.version, kind.resource, kind.resource}, "", {invalid_revision(list.revision)});
  bool initial = list.send_initial_events.value_or(*revision == 0);
  request.marks_end_of_initial = initial && list.bookmarks;
  if (initial) request.not_before = *revision;
  else request.after = *revision ? *revision : call.context.registry.engine().revision();

  auto timeout = random_timeout();
  if (list.timeout_seconds.value_or(0) > 0) timeout = seconds(std::min<int64_t>(*list.timeout_seconds, 24 * 3600));
  request.deadline = std::chrono::steady_clock::now() + timeout;
  request.include = TRY(include_object(call.query(), request.wanted));
  return request;
}

class Frames {  // the client's side, which events are written to
 public:
  virtual ~Frames() = default;
  virtual bool write(std::span<const std::string_view> pieces) = 0;  // writes one frame. False: the client is gone
  bool write(std::string_view frame) { return write(std::span(&frame, 1)); }
  virtual bool flush() = 0;
  virtual void end() = 0;
  virtual bool can_do_without_waiting() const { return false; }  // see Connection::without_waiting
};

class ChunkedFrames : public Frames {
 public:
  ChunkedFrames(Call& call, std::string_view type) : answer_(call.exchange, type, common_headers(call)) {}
  using Frames::write;
  bool write(std::span<const std::string_view> pieces) override { return answer_.write(pieces); }
  bool flush() override { return answer_.flush(); }
  void end() override { answer_.end(); }
  bool can_do_without_waiting() const override { return true; }

 private:
  ChunkedAnswer answer_;
};

class SocketFrames : public Frames {
 public:
  SocketFrames(WebSocket socket, bool binary) : socket_(std::move(socket)), opcode_(binary ? kBinary : kText) {}
  using Frames::write;
  bool write(std::span<const std::string_view> pieces) override {
    std::string frame;
    for (std::string_view piece : pieces) frame += piece;
    return socket_.send(opcode_, frame);
  }
  bool flush() override { return true; }
  void end() override { socket_.close(); }

 private:
  WebSocket socket_;
  Opcode opcode_;
};

const char* type_name(EventType type) {
  switch (type) {
    case EventType::added: return "ADDED";
    case EventType::modified: return "MODIFIED";
    case EventType::deleted: return "DELETED";
    case EventType::bookmark:
    case EventType::synced: return "BOOKMARK";
  }
  return "ERROR";
}

class Stream {  // converts events to frames
 public:
  Stream(Call& call, const WatchRequest& request, Frames& frames) : call_(call), request_(request), frames_(frames) {}

  bool send(const WatchEvent& event) {
    ObjectPtr object = schema::shown_as(*call_.info, event.object);
    // The most common case: the stored text, without a copy, because many watches may wait for clients that do not read.
    if (is_plain(request_.wanted)) {
      const std::string_view pieces[] = {"{\"type\":\"", type_name(event.type), "\",\"object\":", object->text(), "}\n"};
      return frames_.write(pieces);
    }
    schema::TableOptions table{request_.include, !std::exchange(columns_sent_, true), std::to_string(event.revision), {}};
    auto text = represent(*call_.info, object, request_.wanted, table, call_.context.clock.now());
    return text && frames_.write(framed(type_name(event.type), *std::move(text)));
  }

  bool bookmark(Revision revision, bool ends_initial) {
    json::object metadata{{"resourceVersion", std::to_string(revision)}};
    if (ends_initial) metadata["annotations"] = json::object{{"k8s.io/initial-events-end", "true"}};
    json::value object =
        json::object{{"kind", call_.kind().kind}, {"apiVersion", call_.kind().api_version()}, {"metadata", std::move(metadata)}};
    if (request_.wanted.as != As::itself) {
      if (request_.wanted.as == As::table) {
        json::object made =
            schema::table_head(*call_.info, {schema::IncludeObject::none, !columns_sent_, std::to_string(revision), {}});
        json::array& rows = made["rows"].emplace_array();
        if (ends_initial)  // in a Table, the annotation is in the object of a row
          rows.push_back(json::object{{"cells", json::array()}, {"object", schema::partial_metadata(object)}});
        columns_sent_ = true;
        object = std::move(made);
      } else {
        object = schema::partial_metadata(object);
      }
    }
    auto text = encode(object, request_.wanted);
    return text && frames_.write(framed("BOOKMARK", *std::move(text))) && frames_.flush();
  }

  void error(const Error& why) {
    auto text = encode(to_status(why), request_.wanted);
    if (text && frames_.write(framed("ERROR", *std::move(text)))) frames_.flush();
  }

 private:
  std::string framed(std::string_view type, std::string object) const {
    if (request_.wanted.encoding == Encoding::protobuf) return schema::watch_frame(type, object);
    return "{\"type\":\"" + std::string(type) + "\",\"object\":" + std::string(trim(object)) + "}\n";
  }

  Call& call_;
  const WatchRequest& request_;
  Frames& frames_;
  bool columns_sent_ = false;
};

// Whether the client has disconnected after a notification. Input during a watch is not allowed and ends it as well.
bool client_left(Connection& connection) { return connection.peer_gone() || connection.has_buffered_input(); }

// Writes one event with this watch's filter. False: the client is gone.
bool tell(const WatchRequest& request, const engine::Event& event, Stream& stream) {
  if (event.type == engine::EventType::synced) return !request.marks_end_of_initial || stream.bookmark(event.revision, true);
  if (event.revision <= request.after) return true;  // an event before the requested revision
  auto seen = registry::seen_through(request.filter, event);
  return !seen || !seen->object || stream.send(*seen);
}

// What a Delegate leaves for its sleeping thread.
struct LeftBehind {
  bool unflushed = false;              // buffered data in the connection must be flushed
  std::optional<engine::Event> large;  // too large for the connection's buffer: the thread writes it while the client reads
};

// Writes events without waking the watch's thread: for watches of plain stored texts whose client keeps up.
std::optional<engine::Delegate> make_delegate(Call& call, const WatchRequest& request, Stream& stream, Frames& frames,
                                              LeftBehind& left) {
  if (!is_plain(request.wanted) || !frames.can_do_without_waiting()) return std::nullopt;
  Connection& connection = call.exchange.connection;
  auto write = [&connection, &left](auto&& what) {
    bool written = false;
    try {
      written = connection.without_waiting(what);
    } catch (const std::exception&) {  // out of memory: a partly written frame cannot be completed
      connection.close();
    }
    left.unflushed |= !written;
    return written;
  };
  return engine::Delegate{
      [write, &request, &stream, &frames, &connection, &left](const engine::Event& event) {
        bool large = event.object && event.object->text().size() > kLargeBytes;
        if (large) return left.large = event, false;
        return write([&] { return tell(request, event, stream) && (!connection.has_record_to_send() || frames.flush()); });
      },
      [write, &frames] { return write([&] { return frames.flush(); }); }};
}

void follow(Call& call, const WatchRequest& request, engine::Watcher& watcher, Stream& stream, Frames& frames) {
  std::stop_token stirred = call.exchange.notice_peer();
  auto next_bookmark = std::chrono::steady_clock::now() + kBookmarkEvery;
  LeftBehind left;
  bool begun = false;  // the initial state was sent
  auto delegate = make_delegate(call, request, stream, frames, left);
  for (;;) {
    auto until = request.bookmarks ? std::min(next_bookmark, request.deadline) : request.deadline;
    bool sleeps = begun && !left.unflushed;
    auto event = watcher.take(stirred, sleeps ? until : SteadyTime(), sleeps && delegate ? &*delegate : nullptr);
    if (auto large = std::exchange(left.large, std::nullopt)) {  // before the events after it
      if (!tell(request, *large, stream)) return;
      left.unflushed = true;
    }
    if (!event) return stream.error(event.error());
    if (*event) {
      if (!tell(request, **event, stream)) return;
      left.unflushed = true;  // queued events are flushed together
      continue;
    }
    bool had_some = std::exchange(left.unflushed, false);
    if (had_some && !frames.flush()) return;
    if (!begun) call.exchange.take_held().reset();  // releases the seats: from now on the watch only waits
    if (!std::exchange(begun, true) || had_some) continue;
    if (stirred.stop_requested()) {
      if (client_left(call.exchange.connection)) return;
      stirred = call.exchange.notice_peer();
      continue;
    }
    bool over = std::chrono::steady_clock::now() >= request.deadline;
    if (request.bookmarks && !stream.bookmark(std::max(watcher.progress(), request.after), false)) return;
    if (over) return frames.end();
    next_bookmark += kBookmarkEvery;
  }
}

Result<std::unique_ptr<Frames>> open_frames(Call& call, const WatchRequest& request) {
  bool binary = request.wanted.encoding == Encoding::protobuf;
  if (asks_for_websocket(call.head())) {
    WebSocket socket = TRY(WebSocket::accept(call.exchange, {"", "binary.k8s.io", "base64.binary.k8s.io"}));
    return std::unique_ptr<Frames>(std::make_unique<SocketFrames>(std::move(socket), binary));
  }
  std::string type(request.wanted.media_type());
  if (binary) type += ";stream=watch";
  return std::unique_ptr<Frames>(std::make_unique<ChunkedFrames>(call, type));
}

Result<void> watch(Call& call) {
  WatchRequest request = TRY(read_watch_request(call));
  // Before the head is sent: a client that has it must see all later events.
  engine::Engine& engine = call.context.registry.engine();
  auto begin = [&]() -> Result<std::unique_ptr<engine::Watcher>> {
    TRY(await_revision(call, request.not_before));
    return engine.watch(call.info->stored().kind, request.ns, std::min(request.after, engine.revision()));
  };
  auto watcher = begin();
  auto frames = TRY(open_frames(call, request));
  Stream stream(call, request, *frames);
  auto fail = [&](const Error& why) {  // after the options were parsed, errors are events
    stream.error(why);
    return frames->end(), Result<void>();
  };
  if (!watcher) return fail(watcher.error());
  follow(call, request, **watcher, stream, *frames);
  return {};
}

}  // namespace

void serve_watch(Call& call) { answer_with(call, watch(call)); }

}  // namespace coracle::api
