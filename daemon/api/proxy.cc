// SPDX-License-Identifier: Apache-2.0
// pods/x/proxy, services/x/proxy, nodes/x/proxy: a request is handed on to a port of a pod, of a service or of a node, and the
// answer back. Names are [scheme:]name[:port]; certificates of what is behind are not checked. Who asks here is nobody
// there: credentials stay here.
//   client ⇄ TLS ⇄ this room ⇄ libcurl ⇄ pod
// Source: Kubernetes API reference, "connect Proxy"; apimachinery util/net (SplitSchemeNamePort), util/proxy.
#include <curl/curl.h>

#include <memory>

#include "daemon/api/handlers.h"
#include "runtime/base/text.h"
#include "store/object/status.h"

namespace coracle::api {
namespace {

constexpr size_t kAnswerBytesMax = 64 << 20;  // of an answer that is not passed on as it comes
constexpr long kConnectSeconds = 30;

struct Name {
  std::string scheme, name, port;
};

std::optional<Name> split_name(const std::string& text) {
  std::vector<std::string_view> parts = split(text, ':');
  auto as_text = [](std::string_view part) { return std::string(part); };
  if (parts.size() == 1) return Name{"", as_text(parts[0]), ""};
  if (parts.size() == 2) return Name{"", as_text(parts[0]), as_text(parts[1])};
  if (parts.size() != 3 || (parts[0] != "http" && parts[0] != "https" && !parts[0].empty())) return std::nullopt;
  return Name{as_text(parts[0]), as_text(parts[1]), as_text(parts[2])};
}

struct Place {
  std::string scheme, address, port;
  std::string origin() const {
    bool six = address.find(':') != address.npos;
    return (scheme.empty() ? "http" : scheme) + "://" + (six ? "[" + address + "]" : address) + (port.empty() ? "" : ":" + port);
  }
};

// The machine itself is not to be reached in this way.
bool is_reachable(std::string_view address) {
  for (std::string_view own : {"127.", "169.254.", "0.", "fe80:", "::1", "::ffff:"}) {
    if (address.starts_with(own)) return false;
  }
  return !address.empty();
}

Result<Place> pod_place(Call& call, const Name& asked) {
  ObjectPtr pod = TRY(call.house.registry.get(kPod, {call.route.ns, asked.name}));
  Place place{asked.scheme, std::string(get_string(pod->json(), "status.podIP")), asked.port};
  for (const json::value& container : get_array(pod->json(), "spec.containers")) {
    const json::array& ports = get_array(container, "ports");
    if (!place.port.empty() || ports.empty()) continue;
    place.port = std::to_string(get_int(ports[0], "containerPort"));
  }
  if (!is_reachable(place.address)) return bad_request("address not allowed");
  return place;
}

// The service's port by name or number; its only one when none is named.
const json::value* service_port(const json::value& service, const std::string& asked) {
  const json::array& ports = get_array(service, "spec.ports");
  if (asked.empty()) return ports.size() == 1 ? &ports[0] : nullptr;
  for (const json::value& port : ports) {
    if (get_string(port, "name") == asked || std::to_string(get_int(port, "port")) == asked) return &port;
  }
  return nullptr;
}

Result<Place> service_place(Call& call, const Name& asked) {
  Key key{call.route.ns, asked.name};
  ObjectPtr service = TRY(call.house.registry.get(kService, key));
  const json::value* port = service_port(service->json(), asked.port);
  if (!port) return Error(Code::unavailable, "no service port " + quoted(asked.port) + " found for service " + quoted(asked.name));
  ObjectPtr endpoints = TRY(call.house.registry.get(kEndpoints, key));
  for (const json::value& subset : get_array(endpoints->json(), "subsets")) {
    const json::array& addresses = get_array(subset, "addresses");
    for (const json::value& behind : get_array(subset, "ports")) {
      if (addresses.empty() || get_string(behind, "name") != get_string(*port, "name")) continue;
      Place place{asked.scheme, std::string(get_string(addresses[0], "ip")), std::to_string(get_int(behind, "port"))};
      if (!is_reachable(place.address)) return bad_request("address not allowed");
      return place;
    }
  }
  return Error(Code::unavailable, "no endpoints available for service " + quoted(asked.name));
}

Result<Place> node_place(Call& call, const Name& asked) {
  ObjectPtr node = TRY(call.house.registry.get(kNode, {"", asked.name}));
  std::string port = asked.port;
  int64_t agent = get_int(node->json(), "status.daemonEndpoints.kubeletEndpoint.Port");
  if (port.empty() && agent > 0) port = std::to_string(agent);
  if (port.empty()) return Error(Code::unavailable, "error trying to reach service: node " + quoted(asked.name) + " offers no port");
  for (const json::value& address : get_array(node->json(), "status.addresses")) {
    if (get_string(address, "type") == "InternalIP") return Place{asked.scheme, std::string(get_string(address, "address")), port};
  }
  return Error(Code::unavailable, "error trying to reach service: node " + quoted(asked.name) + " has no address");
}

// What follows ".../proxy" in the path as it was sent; nothing when that is its end.
std::string_view rest_of(const Call& call) {
  std::string_view path = call.head().path;
  size_t segments = call.kind().namespaced ? 7 : 5;  // /api/v1/namespaces/<ns>/pods/<name>/proxy, /api/v1/nodes/<name>/proxy
  size_t at = 0;
  for (size_t seen = 0; seen < segments && at < path.size(); ++seen) {
    at = path.find_first_not_of('/', at);
    at = at == path.npos ? path.size() : std::min(path.find('/', at), path.size());
  }
  return path.substr(at);
}

class Relay {
 public:
  Relay(Call& call, const Place& place, std::string_view rest)
      : call_(call), prefix_(call.head().path.substr(0, call.head().path.size() - rest.size())), origin_(place.origin()),
        easy_(curl_easy_init(), curl_easy_cleanup), headers_(nullptr, curl_slist_free_all) {
    url_ = origin_ + std::string(rest);
    if (!call.head().query_text.empty()) url_ += "?" + call.head().query_text;
  }

  Result<void> run() {
    if (!easy_) return Error(Code::internal, "libcurl gave no handle");
    std::string body = TRY(call_.exchange.read_body());
    prepare(body);
    CURLcode code = curl_easy_perform(easy_.get());
    if (chunks_) {
      if (code == CURLE_OK) chunks_->end();
      return {};  // else the client sees that the answer breaks off
    }
    if (too_large_) return Error(Code::unavailable, "error trying to reach service: the answer is too large");
    if (code != CURLE_OK) return Error(Code::unavailable, "error trying to reach service: " + std::string(curl_easy_strerror(code)));
    Answer& answer = call_.answer();
    answer.status = status_;
    answer.content_type = content_type_;
    answer.headers = std::move(received_);
    answer.body = std::move(buffered_);
    return {};
  }

 private:
  void prepare(const std::string& body) {
    CURL* easy = easy_.get();
    const Head& head = call_.head();
    curl_easy_setopt(easy, CURLOPT_URL, url_.c_str());
    curl_easy_setopt(easy, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, head.method.c_str());
    if (head.method == "HEAD") curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    bool sends = head.has_body() || !body.empty();
    if (sends) {
      curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
      curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, curl_off_t(body.size()));
    }
    for (const auto& [name, value] : head.headers.items()) {
      if (!stays_here(name)) add_header(name + ": " + value);
    }
    if (sends && !head.headers.has("Content-Type")) add_header("Content-Type:");  // curl would say that it is a form
    if (sends) add_header("Expect:");
    add_header("X-Forwarded-For: " + call_.exchange.connection.peer().address);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_.get());
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, this);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, this);
  }

  void add_header(const std::string& line) {
    if (curl_slist* longer = curl_slist_append(headers_.get(), line.c_str())) {
      (void)headers_.release();
      headers_.reset(longer);
    }
  }

  // Of this connection, or about who asks.
  static bool stays_here(std::string_view name) {
    for (std::string_view own : {"Authorization", "Host", "Connection", "Keep-Alive", "Upgrade", "Transfer-Encoding", "Content-Length", "TE", "Trailer",
                                 "Proxy-Authorization", "Proxy-Connection", "X-Forwarded-For", "Expect"}) {
      if (equal_fold(name, own)) return true;
    }
    return to_lower(name).starts_with("impersonate-");
  }

  static size_t take_header(char* bytes, size_t size, size_t count, void* self) {
    static_cast<Relay*>(self)->header({bytes, size * count});
    return size * count;
  }
  static size_t take_body(char* bytes, size_t size, size_t count, void* self) {
    return static_cast<Relay*>(self)->body({bytes, size * count}) ? size * count : 0;
  }

  void header(std::string_view line) {
    line = trim(line);
    if (line.starts_with("HTTP/")) {  // of the last answer, after a 100
      received_.clear();
      content_type_.clear();
      auto status = parse_number<uint32_t>(line.substr(std::min(line.find(' ') + 1, line.size())).substr(0, 3));
      status_ = int(status.value_or(502));
      return;
    }
    size_t colon = line.find(':');
    if (colon == line.npos) return;
    std::string name(trim(line.substr(0, colon))), value(trim(line.substr(colon + 1)));
    if (equal_fold(name, "Content-Type")) content_type_ = value;
    else if (equal_fold(name, "Location")) received_.emplace_back(name, relocated(value));
    else if (!stays_here(name)) received_.emplace_back(name, value);
  }

  // A redirection within what is behind leads through here, too.
  std::string relocated(const std::string& to) const {
    if (to.starts_with(origin_)) return prefix_ + to.substr(origin_.size());
    return to.starts_with('/') && !to.starts_with("//") ? prefix_ + to : to;
  }

  bool body(std::string_view bytes) {
    if (status_ == 200 && !chunks_) chunks_.emplace(call_.exchange, content_type_.empty() ? "text/plain" : content_type_, received_);
    if (chunks_) return chunks_->write(bytes) && chunks_->flush();
    too_large_ = buffered_.size() + bytes.size() > kAnswerBytesMax;
    if (!too_large_) buffered_ += bytes;
    return !too_large_;
  }

  Call& call_;
  std::string prefix_, origin_, url_;
  std::unique_ptr<CURL, void (*)(CURL*)> easy_;
  std::unique_ptr<curl_slist, void (*)(curl_slist*)> headers_;
  int status_ = 502;
  std::string content_type_, buffered_;
  std::vector<std::pair<std::string, std::string>> received_;
  bool too_large_ = false;
  std::optional<ChunkedAnswer> chunks_;
};

// Only a service's port has a name; anything else in a URL's place for one could lead elsewhere ("80@elsewhere").
bool is_port(const Kind& kind, const std::string& port) {
  auto number = parse_number<uint16_t>(port);
  return port.empty() || kind == kService || (number && *number > 0);
}

Result<void> proxy(Call& call) {
  auto asked = split_name(call.route.name);
  if (!asked || asked->name.empty() || !is_port(call.kind(), asked->port)) return bad_request("invalid " + to_lower(call.kind().kind) + " request " + quoted(call.route.name));
  Place place = TRY(call.kind() == kPod ? pod_place(call, *asked) : call.kind() == kService ? service_place(call, *asked) : node_place(call, *asked));
  std::string_view rest = rest_of(call);
  bool reads = call.head().method == "GET" || call.head().method == "HEAD";
  if (rest.empty() && reads) {  // a page's own links need the slash
    call.answer().status = 301;
    call.answer().headers.emplace_back("Location", call.head().path + "/" + (call.head().query_text.empty() ? "" : "?" + call.head().query_text));
    return {};
  }
  return Relay(call, place, rest).run();
}

}  // namespace

void serve_proxy(Call& call) { answer_with(call, proxy(call)); }

}  // namespace coracle::api
