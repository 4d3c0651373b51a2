// SPDX-License-Identifier: Apache-2.0
// See users.h.
#include "runtime/image/users.h"

#include <optional>
#include <string>

#include "runtime/base/text.h"
#include "runtime/sys/file.h"

namespace coracle::image {
namespace {

// Calls `f` with the fields of each line until it returns true.
template <typename F>
void each_line(std::string_view text, size_t fields_min, F f) {
  while (!text.empty()) {
    size_t end = text.find('\n');
    std::string_view line = trim(text.substr(0, end));
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.empty() || line[0] == '#') continue;
    auto fields = split(line, ':');
    if (fields.size() >= fields_min && f(fields)) return;
  }
}

std::optional<uint32_t> id_of(std::string_view text) {
  auto number = parse_number<uint32_t>(text);
  return number && *number <= kIdMax ? number : std::nullopt;
}

bool is_number(std::string_view text) { return !text.empty() && text.find_first_not_of("0123456789") == text.npos; }

}  // namespace

Result<oci::User> find_user(std::string_view user, std::string_view passwd, std::string_view group) {
  size_t colon = user.find(':');
  std::string_view who = user.substr(0, colon);
  std::string_view which = colon == user.npos ? std::string_view() : user.substr(colon + 1);
  if (user.empty()) who = "0";
  if (who.empty() || (colon != user.npos && which.empty())) return Error(Code::invalid, "no user[:group]: " + quoted(user));

  oci::User out;
  std::string name;  // as in the group file
  bool found = false, numeric = is_number(who);
  auto wanted = id_of(who);
  if (numeric && !wanted) return Error(Code::invalid, "the user id " + quoted(who) + " is out of range");
  if (numeric) out.uid = *wanted;
  each_line(passwd, 4, [&](const auto& fields) {
    auto uid = id_of(fields[2]), gid = id_of(fields[3]);
    if (!uid || !gid || (numeric ? *uid != *wanted : fields[0] != who)) return false;
    out.uid = *uid;
    out.gid = *gid;
    name = fields[0];
    if (fields.size() > 5 && fields[5].starts_with('/') && fields[5].find('\0') == fields[5].npos) out.home = fields[5];
    return found = true;
  });
  if (!found && !numeric) return Error(Code::invalid, "no user " + quoted(who) + " in the image's /etc/passwd");

  if (!which.empty()) {
    auto gid = id_of(which);
    bool known = is_number(which);
    if (known && !gid) return Error(Code::invalid, "the group id " + quoted(which) + " is out of range");
    if (known) out.gid = *gid;
    if (!known)
      each_line(group, 3, [&](const auto& fields) {
        auto id = id_of(fields[2]);
        if (!id || fields[0] != which) return false;
        out.gid = *id;
        return known = true;
      });
    if (!known) return Error(Code::invalid, "no group " + quoted(which) + " in the image's /etc/group");
    return out;  // with an explicit group there are no others
  }
  each_line(group, 4, [&](const auto& fields) {
    auto id = id_of(fields[2]);
    if (!id || name.empty()) return false;
    for (std::string_view member : split(fields[3], ','))
      if (member == name) {
        out.additional_gids.push_back(*id);
        break;
      }
    return out.additional_gids.size() >= kGroupsMax;
  });
  return out;
}

Result<std::string> read_account_file(const Fd& root, const std::string& path) {
  auto found = sys::open_in(root, path, O_PATH);  // links lead to what is in the root, whatever they say
  if (!found && found.error().code() == Code::not_found) return std::string();
  if (!found) return found.take_error().wrap("/" + path);
  Fd file = TRY(sys::open_found_file(*found, "/" + path));
  return sys::read_all(file, kPasswdMax).wrap("/" + path);
}

}  // namespace coracle::image
