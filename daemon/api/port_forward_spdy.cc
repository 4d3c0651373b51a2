// SPDX-License-Identifier: Apache-2.0
// Port-forward over SPDY: one SPDY connection for all of a client's connections to a pod's ports, with two streams each.
#include <list>
#include <map>

#include "daemon/api/forward.h"
#include "daemon/api/port_forward.h"
#include "daemon/api/port_forward_pairs.h"
#include "daemon/api/spdy_session.h"
#include "daemon/api/upgrade.h"

namespace coracle::api {
namespace {

Result<ForwardStream> read_stream(const SpdyStream& stream) {
  return read_forward_stream(stream.id(), stream.header("streamtype"), stream.header("port"), stream.header("requestid"));
}

class Forwards {  // used by the session's thread only
 public:
  Forwards(PodStreams& streams, const ForwardRequest& request) : streams_(streams), request_(request) {}

  void add(const SpdyStreamPtr& stream) {
    auto now = std::chrono::steady_clock::now();
    for (const StreamPair& late : pairs_.take_overdue(now, kStreamCreation)) give_up(late, "timed out waiting for streams");
    std::erase_if(running_, [](const Forward& forward) { return forward.over(); });
    auto read = read_stream(*stream);
    if (!read) return;  // it was checked on admission
    if (waiting_.size() >= kStreamsMax)
      return stream->reset(spdy::ResetStatus::refused_stream);  // the earlier streams were reset and count too
    waiting_.emplace(stream->id(), stream);
    auto added = pairs_.add(stream->id(), *read, now);
    if (!added.trouble.empty()) {
      waiting_.erase(stream->id());
      if (auto told = waiting_.find(added.error_stream); told != waiting_.end()) told->second->write(added.trouble);
      return stream->reset();
    }
    if (!added.complete) return;
    if (running_.size() < kStreamsMax / 2) begin(*added.complete);
    else give_up(*added.complete, "too many connections at once");
  }

 private:
  SpdyStreamPtr take(uint32_t id) {
    auto found = waiting_.extract(id);
    return found ? found.mapped() : nullptr;
  }
  void give_up(const StreamPair& pair, std::string_view why) {
    SpdyStreamPtr data = take(pair.data), error = take(pair.error);
    if (error) error->write(why), error->finish(), error->stop_reading();
    if (data) data->reset();
  }
  void begin(const StreamPair& pair) {
    SpdyStreamPtr data = take(pair.data), error = take(pair.error);
    error->stop_reading();  // clients send nothing on the error stream
    running_.emplace_back(streams_, request_.pod, request_.uid, pair.port,
                          ForwardEnds{[data] { return data->read(); }, [data] { data->stop_reading(); },
                                      [data](std::string_view bytes) { return data->write(bytes); }, [data] { data->finish(); },
                                      [data, error](std::string_view why) {
                                        error->write(why);
                                        data->finish();
                                        error->finish();
                                      }});
  }

  PodStreams& streams_;
  const ForwardRequest& request_;
  StreamPairs pairs_;
  std::map<uint32_t, SpdyStreamPtr> waiting_;  // streams whose partner is missing
  std::list<Forward> running_;
};

}  // namespace

void forward_streams(PodStreams& streams, ByteLink& link, const ForwardRequest& request) {
  // The objects that the session's streams use are destroyed before it. The session does not call them after run() has returned.
  std::optional<Forwards> forwards;
  SpdySession session(link, {[](const SpdyStream& stream) { return read_stream(stream).ok(); },
                             [&](const SpdyStreamPtr& stream) { forwards->add(stream); }});
  forwards.emplace(streams, request);
  (void)session.run();  // protocol errors were reported to the client
  forwards.reset();
}

}  // namespace coracle::api
