// SPDX-License-Identifier: Apache-2.0
// See syntax.h.
#include "store/schema/validate/syntax.h"

#include <arpa/inet.h>

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle::schema {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string address_bytes(std::string_view text) {
  if (text.find('\0') != text.npos) return {};
  std::string copy(text);
  unsigned char bytes[16];
  if (::inet_pton(AF_INET, copy.c_str(), bytes) == 1) return {reinterpret_cast<char*>(bytes), 4};
  if (::inet_pton(AF_INET6, copy.c_str(), bytes) == 1) return {reinterpret_cast<char*>(bytes), 16};
  return {};
}

std::string address_text(const std::string& address) {
  char text[INET6_ADDRSTRLEN] = {};
  ::inet_ntop(address.size() == 4 ? AF_INET : AF_INET6, address.data(), text, sizeof text);
  return text;
}

bool is_mapped(const std::string& address) {  // ::ffff:1.2.3.4
  static const std::string prefix("\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
  return address.size() == 16 && address.compare(0, 12, prefix) == 0;
}

// 010.1.2.3: an address with leading zeros.
bool has_leading_zeros(std::string_view text) {
  std::vector<std::string_view> parts = split(text, '.');
  if (parts.size() != 4) return false;
  std::string without;
  for (std::string_view part : parts) {
    if (part.empty() || !std::all_of(part.begin(), part.end(), is_digit)) return false;
    part.remove_prefix(std::min(part.find_first_not_of('0'), part.size() - 1));
    without += (without.empty() ? "" : ".") + std::string(part);
  }
  return without != text && !address_bytes(without).empty();
}

std::string masked(std::string address, int prefix) {
  for (size_t i = 0; i < address.size(); ++i) {
    int kept = std::clamp(prefix - int(i) * 8, 0, 8);
    address[i] = char(uint8_t(address[i]) & uint8_t(0xff00 >> kept));
  }
  return address;
}

}  // namespace

bool Network::contains(const Network& other) const {
  return address.size() == other.address.size() && other.prefix >= prefix && masked(other.address, prefix) == address;
}

std::string Network::text() const { return address_text(address) + "/" + std::to_string(prefix); }

std::optional<Network> parse_network(std::string_view text) {
  size_t slash = text.find('/');
  if (slash == text.npos) return std::nullopt;
  std::string address = address_bytes(text.substr(0, slash));
  std::string_view length = text.substr(slash + 1);
  bool digits = !length.empty() && length.size() <= 3 && std::all_of(length.begin(), length.end(), is_digit);
  auto prefix = digits ? parse_number<uint32_t>(length) : std::nullopt;
  if (address.empty() || !prefix || *prefix > address.size() * 8) return std::nullopt;
  return Network{masked(std::move(address), int(*prefix)), int(*prefix)};
}

std::vector<std::string> ip_problems(std::string_view text, bool canonical) {
  std::string address = address_bytes(text);
  if (address.empty()) return {has_leading_zeros(text) ? "must not have leading 0s" : std::string(kNotAnIp)};
  if (is_mapped(address)) return {"must not be an IPv4-mapped IPv6 address"};
  if (canonical && address_text(address) != text)
    return {"must be in canonical form (" + quoted(std::string_view(address_text(address))) + ")"};
  return {};
}

std::vector<std::string> network_problems(std::string_view text, bool canonical) {
  auto network = parse_network(text);
  if (!network) {
    size_t slash = text.find('/');
    bool zeros = slash != text.npos && has_leading_zeros(text.substr(0, slash));
    return {zeros ? "must not have leading 0s in IP or prefix length" : std::string(kNotANetwork)};
  }
  std::string given = address_bytes(text.substr(0, text.find('/')));
  if (text.substr(text.find('/') + 1).starts_with('0') && !text.ends_with("/0"))
    return {"must not have leading 0s in IP or prefix length"};
  if (is_mapped(given)) return {"must not have an IPv4-mapped IPv6 address"};
  if (given != network->address) return {"must not have bits set beyond the prefix length"};
  if (canonical && network->text() != text)
    return {"must be in canonical form (" + quoted(std::string_view(network->text())) + ")"};
  return {};
}

void check_not_special(Findings& out, const std::string& path, std::string_view ip) {
  std::string address = address_bytes(ip);
  auto within = [&](std::string_view network) { return parse_network(network)->contains({address, int(address.size() * 8)}); };
  if (address.empty()) return;
  if (is_mapped(address)) address.erase(0, 12);  // ::ffff:127.0.0.1 is 127.0.0.1
  if (within("0.0.0.0/32") || within("::/128")) out.invalid(path, ip, "may not be unspecified (" + std::string(ip) + ")");
  if (within("127.0.0.0/8") || within("::1/128"))
    out.invalid(path, ip, "may not be in the loopback range (127.0.0.0/8, ::1/128)");
  if (within("169.254.0.0/16") || within("fe80::/10"))
    out.invalid(path, ip, "may not be in the link-local range (169.254.0.0/16, fe80::/10)");
  if (within("224.0.0.0/24") || within("ff02::/16"))
    out.invalid(path, ip, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
}

bool is_multicast(std::string_view ip) {
  std::string address = address_bytes(ip);
  if (is_mapped(address)) address.erase(0, 12);
  return !address.empty() && (address.size() == 4 ? uint8_t(address[0]) >> 4 == 14 : uint8_t(address[0]) == 255);
}

std::vector<std::string> path_segment_problems(std::string_view text) {
  if (text == "." || text == "..") return {"may not be '" + std::string(text) + "'"};
  std::vector<std::string> out;
  for (std::string_view forbidden : {"/", "%"}) {
    if (text.find(forbidden) != text.npos) out.push_back("may not contain '" + std::string(forbidden) + "'");
  }
  if (text.find('\0') != text.npos) out.push_back("may not contain NUL");  // no path can contain it
  return out;
}

std::vector<std::string> wildcard_subdomain_problems(std::string_view text) {
  std::vector<std::string> out;
  if (text.size() > 253) out.push_back("must be no more than 253 characters");
  std::string_view rest = text.starts_with("*.") ? text.substr(2) : std::string_view();
  // Only the syntax of the rest is checked here; its length was checked before.
  if (rest.empty() || !dns_subdomain_problems(rest.substr(0, 253)).empty()) {
    out.push_back(
        "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
        "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for "
        "validation is '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')");
  }
  return out;
}

std::vector<std::string> percent_problems(std::string_view text) {
  if (text.size() > 1 && text.ends_with('%') && std::all_of(text.begin(), text.end() - 1, is_digit)) return {};
  return {
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for "
      "validation is "
      "'[0-9]+%')"};
}

std::vector<std::string> header_name_problems(std::string_view text) {
  auto good = [](char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-'; };
  if (!text.empty() && std::all_of(text.begin(), text.end(), good)) return {};
  return {
      "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. 'X-Header-Name', regex used for validation is "
      "'[-A-Za-z0-9]+')"};
}

void check_domain_path(Findings& out, const std::string& path, std::string_view text) {
  if (text.empty()) return out.required(path);
  size_t slash = text.find('/');
  if (slash == text.npos || slash == 0 || slash + 1 == text.size()) {
    return out.invalid(path, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  }
  out.invalid_all(path, text.substr(0, slash), dns_subdomain_problems(text.substr(0, slash)));
  std::string_view rest = text.substr(slash + 1);
  auto good = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("/-._~%!$&'()*+,;=:").find(c) != std::string_view::npos;
  };
  if (!std::all_of(rest.begin(), rest.end(), good)) {
    out.invalid(path, rest, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  }
}

void check_amount(Findings& out, const std::string& path, const json::value* amount) {
  if (!amount) return;
  if (amount->is_int64()) return out.not_negative(path, amount->get_int64());
  if (amount->is_string()) out.invalid_all(path, amount->get_string(), percent_problems(amount->get_string()));
}

void check_at_most_all(Findings& out, const std::string& path, const json::value* amount) {
  if (amount && amount->is_string() && amount_of(amount) > 100) out.invalid_json(path, *amount, "must not be greater than 100%");
}

int64_t amount_of(const json::value* amount) {
  if (!amount) return 0;
  if (amount->is_int64()) return amount->get_int64();
  std::string_view text = amount->is_string() ? std::string_view(amount->get_string()) : std::string_view();
  if (!percent_problems(text).empty()) return 0;
  return int64_t(parse_number<uint32_t>(text.substr(0, text.size() - 1)).value_or(UINT32_MAX));
}

}  // namespace coracle::schema
