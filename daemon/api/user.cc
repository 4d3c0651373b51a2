// SPDX-License-Identifier: Apache-2.0
// See user.h.
#include "daemon/api/user.h"

#include "daemon/api/websocket.h"
#include "runtime/base/text.h"
#include "store/object/selector.h"

namespace coracle::api {

namespace {

// The bearer token of a WebSocket request, or "". Browsers cannot set headers for a WebSocket, so the token is one of the
// subprotocols; another one must remain to be selected. A malformed token is returned as a wrong one. Source: apiserver
// authentication/request/websocket.
std::string websocket_bearer(const Head& head) {
  constexpr std::string_view kPrefix = "base64url.bearer.authorization.k8s.io.";
  if (!asks_for_websocket(head)) return {};
  std::string found;
  size_t tokens = 0, others = 0;
  for (std::string_view field : head.headers.all("Sec-WebSocket-Protocol"))
    for (std::string_view protocol : split(field, ',')) {
      protocol = trim(protocol);
      if (!protocol.starts_with(kPrefix)) {
        others++;
        continue;
      }
      tokens++;
      if (auto token = base64url_decode(protocol.substr(kPrefix.size())); token && is_utf8(*token)) found = *token;
    }
  if (tokens == 0) return {};
  bool sound = tokens == 1 && others > 0 && !found.empty();
  return "Bearer " + (sound ? found : "-");
}

}  // namespace

auth::Credentials credentials_of(const Head& head, const Connection& connection) {
  auth::Credentials out;
  out.authorization = head.headers.get("Authorization");
  if (out.authorization.empty()) out.of_protocols = websocket_bearer(head);
  const PeerCertificate& certificate = connection.peer_certificate();
  out.certificate = certificate.presented, out.trusted = certificate.valid;
  out.certified = certificate.user;
  return out;
}

auth::Impersonation impersonation_of(const Head& head) {
  constexpr std::string_view kExtra = "Impersonate-Extra-";
  auth::Impersonation out;
  for (const auto& [name, value] : head.headers) {
    if (equals_ignore_case(name, "Impersonate-User")) out.user = value;
    else if (equals_ignore_case(name, "Impersonate-Uid")) out.uid = value;
    else if (equals_ignore_case(name, "Impersonate-Group")) out.groups.emplace_back(value);
    else if (name.size() > kExtra.size() && equals_ignore_case(std::string_view(name).substr(0, kExtra.size()), kExtra)) {
      std::string key = to_lower(std::string_view(name).substr(kExtra.size()));
      auto decoded = percent_decode(key);
      out.extra[decoded ? *decoded : key].emplace_back(value);
    }
  }
  return out;
}

auth::Attributes attributes_of(const Route& route, const Head& head) {
  auth::Attributes out;
  out.verb = route.verb(head);
  out.is_resource = route.what == Route::What::resource;
  if (!out.is_resource) return out.path = route.path, out;
  out.group = route.group, out.resource = route.resource, out.subresource = route.subresource;
  out.ns = route.ns, out.name = route.name;
  bool of_many = out.verb == "list" || out.verb == "watch" || out.verb == "deletecollection";
  if (!of_many) return out;
  out.field_selector = head.query.get("fieldSelector");
  if (!out.name.empty()) return out;
  // A list with a selector for one name is authorized as a request for that object.
  if (auto selector = FieldSelector::parse(out.field_selector))
    if (auto name = selector->required("metadata.name")) out.name = *name;
  return out;
}

}  // namespace coracle::api
