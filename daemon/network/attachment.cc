// SPDX-License-Identifier: Apache-2.0
// See attachment.h.
#include "daemon/network/attachment.h"

#include "runtime/base/json.h"
#include "runtime/sys/file.h"

namespace coracle::network {
namespace {

constexpr size_t kRecordBytesMax = 64 << 10;

json::value to_json(const HostPort& port) {
  json::object out;
  out["protocol"] = protocol_name(port.protocol);
  if (port.host_ip) out["hostIP"] = port.host_ip.text();
  out["hostPort"] = port.host_port;
  out["podPort"] = port.pod_port;
  return out;
}

Result<uint16_t> read_port(const json::value& from, std::string_view name) {
  int64_t port = get_int(from, name);
  if (port < 1 || port > 65535) return Error(Code::invalid, std::string(name) + " is no port");
  return uint16_t(port);
}

Result<HostPort> read_host_port(const json::value& from) {
  HostPort port;
  std::string_view protocol = get_string(from, "protocol");
  for (Protocol one : {Protocol::tcp, Protocol::udp, Protocol::sctp})
    if (protocol == protocol_name(one)) port.protocol = one;
  if (std::string_view ip = get_string(from, "hostIP"); !ip.empty()) {
    port.host_ip = TRY(Ipv4::parse(ip));
  }
  port.host_port = TRY(read_port(from, "hostPort"));
  port.pod_port = TRY(read_port(from, "podPort"));
  return port;
}

}  // namespace

std::string encode(const Attachment& attachment) {
  json::object out;
  out["address"] = attachment.address.text();
  json::array ports;
  for (const HostPort& port : attachment.host_ports) ports.push_back(to_json(port));
  out["hostPorts"] = std::move(ports);
  return to_text(out);
}

Result<Attachment> decode_attachment(std::string_view sandbox, std::string_view text) {
  json::value value = TRY(parse_json(text));
  Attachment attachment;
  attachment.sandbox = sandbox;
  attachment.address = TRY(Ipv4::parse(get_string(value, "address")));
  for (const json::value& one : get_array(value, "hostPorts")) {
    HostPort port = TRY(read_host_port(one));
    attachment.host_ports.push_back(port);
  }
  return attachment;
}

Result<std::vector<Attachment>> AttachmentRecords::load() {
  TRY(sys::make_directories(directory_, 0700));
  std::vector<Attachment> out;
  Fd directory = TRY(sys::open_directory(directory_));
  std::vector<sys::DirEntry> entries = TRY(sys::list(directory));
  for (const sys::DirEntry& entry : entries) {
    Result<std::string> text = sys::read_file_at(directory, entry.name, kRecordBytesMax);
    Result<Attachment> attachment = text ? decode_attachment(entry.name, *text) : Result<Attachment>(text.take_error());
    if (attachment) {
      out.push_back(std::move(*attachment));
    } else {
      (void)sys::unlink_at(directory, entry.name);  // an incomplete file after a crash: no attachment depends on it
    }
  }
  return out;
}

Result<void> AttachmentRecords::store(const Attachment& attachment) {
  return sys::replace_file(directory_ + "/" + attachment.sandbox, encode(attachment), 0600, sys::Durability::volatile_)
      .wrap("record the address");
}

Result<void> AttachmentRecords::remove(const std::string& sandbox) {
  Result<void> removed = sys::unlink(directory_ + "/" + sandbox);
  if (!removed && removed.error().code() != Code::not_found) return removed;
  return {};
}

}  // namespace coracle::network
