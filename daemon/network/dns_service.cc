// SPDX-License-Identifier: Apache-2.0
// See dns_service.h.
#include "daemon/network/dns_service.h"

namespace coracle::network {

Result<void> ensure_dns_service(Client& client, Ipv4 address) {
  const Key key{"kube-system", "kube-dns"};
  Result<ObjectPtr> there = client.get(kService, key);
  if (there) return {};
  if (there.error().code() != Code::not_found) return there.take_error();
  auto port = [](std::string_view name, std::string_view protocol) {
    return json::object{{"name", name}, {"port", 53}, {"protocol", protocol}, {"targetPort", 53}};
  };
  json::object labels{{"k8s-app", "kube-dns"}, {"kubernetes.io/cluster-service", "true"}, {"kubernetes.io/name", "CoreDNS"}};
  json::object body{
      {"apiVersion", "v1"},
      {"kind", "Service"},
      {"metadata", json::object{{"name", key.name}, {"namespace", key.ns}, {"labels", std::move(labels)}}},
      {"spec", json::object{{"clusterIP", address.text()}, {"ports", json::array{port("dns", "UDP"), port("dns-tcp", "TCP")}}}},
  };
  Result<ObjectPtr> created = client.create(kService, body);
  if (!created && created.error().code() != Code::already_exists) return created.take_error();
  return {};
}

}  // namespace coracle::network
