// SPDX-License-Identifier: Apache-2.0
// See proxy.h.
#include "store/client/proxy.h"

#include <arpa/inet.h>

#include <array>
#include <cstdlib>
#include <optional>

#include "runtime/base/text.h"

namespace coracle {
namespace {

using Address = std::array<uint8_t, 16>;  // of IPv4: ::ffff:a.b.c.d

std::optional<Address> address_of(std::string_view text) {
  std::string copy(text);
  Address address{};
  if (::inet_pton(AF_INET6, copy.c_str(), address.data()) == 1) return address;
  address = {};
  address[10] = address[11] = 0xff;
  if (::inet_pton(AF_INET, copy.c_str(), address.data() + 12) == 1) return address;
  return std::nullopt;
}

bool is_mapped(const Address& address) {
  for (size_t i = 0; i < 10; ++i)
    if (address[i]) return false;
  return address[10] == 0xff && address[11] == 0xff;
}

bool is_loopback(const Address& address) {
  if (is_mapped(address)) return address[12] == 127;
  Address one{};
  one[15] = 1;
  return address == one;
}

bool in_network(const Address& address, std::string_view network) {
  size_t slash = network.find('/');
  auto base = address_of(network.substr(0, slash));
  auto bits = parse_number<uint32_t>(network.substr(slash + 1));
  if (!base || !bits || is_mapped(*base) != is_mapped(address)) return false;
  if (is_mapped(*base)) *bits += 96;
  if (*bits > 128) return false;
  for (uint32_t i = 0; i < *bits; ++i)
    if (((*base)[i / 8] ^ address[i / 8]) & (0x80 >> i % 8)) return false;
  return true;
}

struct HostAndPort {
  std::string host, port;  // the host without brackets
};

HostAndPort host_and_port_of(std::string_view text) {
  if (text.starts_with('[')) {
    size_t end = text.find(']');
    if (end == text.npos) return {std::string(text), {}};
    std::string_view rest = text.substr(end + 1);
    return {std::string(text.substr(1, end - 1)), std::string(rest.starts_with(':') ? rest.substr(1) : "")};
  }
  size_t colon = text.find(':');
  if (colon == text.npos || text.find(':', colon + 1) != text.npos) return {std::string(text), {}};  // an IPv6 address
  return {std::string(text.substr(0, colon)), std::string(text.substr(colon + 1))};
}

// Whether one entry of NO_PROXY means the host: "*", a network, an address, a name, ".suffix" or "*.suffix", perhaps with a port.
bool excludes(std::string_view entry, const std::string& host, const std::string& port, const std::optional<Address>& address) {
  if (entry == "*") return true;
  if (entry.find('/') != entry.npos) return address && in_network(*address, entry);
  auto [name, only_port] = host_and_port_of(entry);
  if (name.empty() || (!only_port.empty() && only_port != port)) return false;
  if (auto other = address_of(name)) return address == other;
  if (name.starts_with("*.")) name.erase(0, 1);
  if (name.starts_with('.')) return host.ends_with(name);
  return host == name || host.ends_with("." + name);
}

std::string variable(const char* upper, const char* lower) {
  for (const char* name : {upper, lower})
    if (const char* value = std::getenv(name); value && *value) return value;
  return {};
}

}  // namespace

ProxyEnvironment ProxyEnvironment::read() {
  return {variable("HTTPS_PROXY", "https_proxy"), variable("HTTP_PROXY", "http_proxy"), variable("NO_PROXY", "no_proxy")};
}

std::string proxy_for(std::string_view server, const ProxyEnvironment& environment) {
  bool tls = server.starts_with("https://");
  std::string proxy = tls ? environment.https_proxy : environment.http_proxy;
  if (proxy.empty()) return {};
  std::string_view rest = server.substr(std::min(server.find("://") + 3, server.size()));
  rest = rest.substr(0, rest.find('/'));
  auto [host, port] = host_and_port_of(rest);
  host = to_lower(host);
  if (port.empty()) port = tls ? "443" : "80";
  auto address = address_of(host);
  if (host == "localhost" || (address && is_loopback(*address))) return {};
  for (std::string_view entry : split(environment.no_proxy, ','))
    if (std::string clean = to_lower(trim(entry)); !clean.empty() && excludes(clean, host, port, address)) return {};
  if (proxy.find("://") == proxy.npos) proxy.insert(0, "http://");
  return proxy;
}

Result<void> check_proxy_url(std::string_view url) {
  size_t colon = url.find("://");
  std::string scheme = to_lower(url.substr(0, colon == url.npos ? 0 : colon));
  if (scheme != "http" && scheme != "https" && scheme != "socks5")
    return Error(Code::invalid, "unsupported scheme " + coracle::quoted(scheme) + ", must be http, https, or socks5");
  std::string_view rest = url.substr(colon + 3);
  if (rest.substr(0, rest.find('/')).empty()) return Error(Code::invalid, "names no host");
  return {};
}

}  // namespace coracle
