// SPDX-License-Identifier: Apache-2.0
// See user.h.
#include "daemon/api/user.h"

#include "runtime/base/text.h"
#include "store/object/selector.h"

namespace coracle::api {

access::Credentials credentials_of(const Head& head, const TlsConnection& connection) {
  access::Credentials out;
  out.authorization = head.headers.get("Authorization");
  PeerCertificate certificate = connection.peer_certificate();
  out.certificate = certificate.presented, out.trusted = certificate.valid;
  out.common_name = std::move(certificate.common_name), out.organizations = std::move(certificate.organizations);
  out.fingerprint = std::move(certificate.fingerprint);
  return out;
}

access::Impersonation impersonation_of(const Head& head) {
  constexpr std::string_view kExtra = "Impersonate-Extra-";
  access::Impersonation out;
  for (const auto& [name, value] : head.headers.items()) {
    if (equal_fold(name, "Impersonate-User")) out.user = value;
    else if (equal_fold(name, "Impersonate-Uid")) out.uid = value;
    else if (equal_fold(name, "Impersonate-Group")) out.groups.push_back(value);
    else if (name.size() > kExtra.size() && equal_fold(std::string_view(name).substr(0, kExtra.size()), kExtra)) {
      std::string key = to_lower(std::string_view(name).substr(kExtra.size()));
      auto decoded = percent_decode(key);
      out.extra[decoded ? *decoded : key].push_back(value);
    }
  }
  return out;
}

access::Attributes attributes_of(const Route& route, const Head& head) {
  access::Attributes out;
  out.verb = route.verb(head);
  out.is_resource = route.what == Route::What::resource;
  if (!out.is_resource) return out.path = route.path, out;
  out.group = route.group, out.resource = route.resource, out.subresource = route.subresource;
  out.ns = route.ns, out.name = route.name;
  bool of_many = out.verb == "list" || out.verb == "watch" || out.verb == "deletecollection";
  if (!of_many) return out;
  out.field_selector = head.query.get("fieldSelector");
  if (!out.name.empty()) return out;
  if (auto selector = FieldSelector::parse(out.field_selector))  // a list of one named object is a question about that object
    if (auto name = selector->required("metadata.name")) out.name = *name;
  return out;
}

}  // namespace coracle::api
