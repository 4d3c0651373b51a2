// SPDX-License-Identifier: Apache-2.0
// Read-only commands: state, list, ps, events, spec, features.
#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "runtime/base/text.h"
#include "runtime/cli/commands.h"
#include "runtime/cli/log.h"
#include "runtime/oci/defaults.h"
#include "runtime/oci/parse.h"
#include "runtime/sys/file.h"
#include "runtime/sys/process.h"
#include "runtime/sys/run.h"

namespace coracle::cli {
namespace {

// From this machine's /etc/passwd; "#1000" for an unknown uid.
std::string user_name(uint32_t uid) {
  auto passwd = sys::read_file("/etc/passwd");
  for (std::string_view line : split(passwd ? std::string_view(*passwd) : std::string_view(), '\n')) {
    auto fields = split(line, ':');
    if (fields.size() > 2 && fields[2] == std::to_string(uid)) return std::string(fields[0]);
  }
  return "#" + std::to_string(uid);
}

// A row of `list`, in the format of runc and crun.
Result<json::object> row_of(const Container& container) {
  Status status = TRY(container.status());
  json::object out = container.state(status);
  out["rootfs"] = container.saved().rootfs;
  out["created"] = format_nano_time(container.saved().created);
  out["owner"] = user_name(container.saved().owner);
  return out;
}

std::string cell(const json::object& row, const char* name) {
  const json::value* value = row.if_contains(name);
  if (!value) return "";
  return value->is_string() ? std::string(value->get_string()) : to_text(*value);
}

Result<void> print_table(const std::vector<json::object>& rows) {
  constexpr const char* kNames[] = {"id", "pid", "status", "bundle", "created", "owner"};
  constexpr const char* kTitles[] = {"ID", "PID", "STATUS", "BUNDLE", "CREATED", "OWNER"};
  size_t widths[6];
  for (size_t i = 0; i < 6; ++i) {
    widths[i] = std::string_view(kTitles[i]).size();
    for (const json::object& row : rows) widths[i] = std::max(widths[i], cell(row, kNames[i]).size());
  }
  std::string table;
  auto line = [&](auto&& text_of) {
    std::string out;
    for (size_t i = 0; i < 6; ++i) {
      std::string text = text_of(i);
      out += text;
      if (i < 5) out += std::string(widths[i] - text.size() + 2, ' ');
    }
    table += out + "\n";
  };
  line([&](size_t i) { return std::string(kTitles[i]); });
  for (const json::object& row : rows) line([&](size_t i) { return cell(row, kNames[i]); });
  return print(table);
}

json::object event(const char* type, const std::string& id, json::value data) {
  json::object out{{"type", type}, {"id", id}};
  if (!data.is_null()) out["data"] = std::move(data);
  return out;
}

// "100ms", "1s", "1m30s"; a bare number is seconds. Nothing: invalid, or less than a millisecond.
std::optional<std::chrono::milliseconds> parse_interval(std::string_view text) {
  using std::chrono::milliseconds;
  if (auto seconds = parse_number<int32_t>(text))
    return *seconds > 0 ? std::optional<milliseconds>(std::chrono::seconds(*seconds)) : std::nullopt;
  auto duration = parse_duration(text);
  if (!duration || *duration < milliseconds(1)) return std::nullopt;
  return std::chrono::duration_cast<milliseconds>(*duration);
}

Result<void> print_line(const json::object& line) { return print(to_text(line) + "\n"); }

Result<void> print_stats(const cgroup::Container& cgroup, const std::string& id) {
  cgroup::Stats stats = TRY(cgroup.stats());
  return print_line(event("stats", id, cgroup::to_json(stats)));
}

}  // namespace

Result<int> state(const Options& options) {
  Containers containers = TRY(open_containers(options));
  Container container = TRY(containers.find(options.id));
  json::object out = TRY(row_of(container));
  TRY(print(to_pretty(out, 2) + "\n"));
  return 0;
}

Result<int> list(const Options& options) {
  if (options.format != "table" && options.format != "json")
    return Error(Code::invalid, "--format " + coracle::quoted(options.format) + " is neither table nor json");
  Containers containers = TRY(open_containers(options));
  auto ids = TRY(containers.list());
  std::vector<json::object> rows;
  bool complete = true;
  for (const std::string& id : ids) {
    auto container = containers.find(id);
    if (!container && container.error().code() == Code::not_found) continue;  // just deleted
    auto row = container ? row_of(*container) : Result<json::object>(container.take_error());
    if (row) {
      rows.push_back(std::move(*row));
    } else {  // the others are listed
      warn("container " + id + ": " + row.error().text());
      complete = false;
    }
  }
  if (options.quiet) {
    TRY(print(ids.empty() ? "" : join(ids, "\n") + "\n"));
  } else if (options.format == "json") {
    json::array all(rows.begin(), rows.end());
    TRY(print(to_text(all) + "\n"));
  } else {
    TRY(print_table(rows));
  }
  return complete ? 0 : 1;
}

Result<int> ps(const Options& options) {
  Containers containers = TRY(open_containers(options));
  Container container = TRY(containers.find(options.id));
  cgroup::Container cgroup = TRY(container.find_cgroup());
  // systemd removes the scope of a container that has ended.
  const bool is_gone = !cgroup.exists() && !cgroup.record().path.empty();
  std::vector<int> pids;
  if (!is_gone) pids = TRY(cgroup.pids());
  if (options.format == "json") {
    TRY(print(to_text(json::array(pids.begin(), pids.end())) + "\n"));
    return 0;
  }
  if (options.format != "table")
    return Error(Code::invalid, "--format " + coracle::quoted(options.format) + " is neither table nor json");
  std::vector<std::string> argv = {"ps"};
  if (options.command.empty()) argv.push_back("-ef");
  argv.insert(argv.end(), options.command.begin(), options.command.end());
  std::string table = TRY(sys::output_of(argv));
  auto lines = split(trim(table), '\n');
  auto words_of = [](std::string_view line) {
    std::vector<std::string_view> out;
    for (std::string_view word : split(line, ' '))
      if (!word.empty()) out.push_back(word);
    return out;
  };
  auto titles = words_of(lines[0]);
  const size_t column = size_t(std::find(titles.begin(), titles.end(), "PID") - titles.begin());
  if (column == titles.size()) return Error(Code::invalid, "ps prints no column PID");
  std::string out = std::string(lines[0]) + "\n";
  std::set<int> wanted(pids.begin(), pids.end());
  for (size_t i = 1; i < lines.size(); ++i) {
    auto words = words_of(lines[i]);
    auto pid = column < words.size() ? parse_number<int>(words[column]) : std::nullopt;
    if (pid && wanted.count(*pid)) out += std::string(lines[i]) + "\n";
  }
  TRY(print(out));
  return 0;
}

Result<int> events(const Options& options) {
  Containers containers = TRY(open_containers(options));
  Container container = TRY(containers.find(options.id));
  const Alive alive = TRY(container.alive());
  const cgroup::Container& cgroup = alive.cgroup;
  if (options.stats) {
    TRY(print_stats(cgroup, options.id));
    return 0;
  }
  auto interval = parse_interval(options.interval);
  if (!interval) return Error(Code::invalid, "--interval " + coracle::quoted(options.interval) + " is not a duration like 5s");
  cgroup::Watch watch = TRY(cgroup.watch());
  cgroup::CgroupEvent seen = TRY(watch.now());
  while (seen.populated && !seen.gone) {
    auto changed = TRY(watch.next(seen, *interval));
    if (!changed) {
      TRY(print_stats(cgroup, options.id));
      continue;
    }
    for (uint64_t i = seen.ooms; i < changed->ooms; ++i) TRY(print_line(event("oom", options.id, nullptr)));
    seen = *changed;
  }
  return 0;
}

Result<int> spec(const Options& options) {
  oci::Spec spec = oci::default_spec();
  spec.process.args = {"sh"};
  spec.process.cwd = "/";
  spec.process.terminal = true;
  spec.process.no_new_privileges = true;
  spec.process.env.push_back("TERM=xterm");
  spec.root = {"rootfs", true};
  spec.hostname = "coracle";
  for (const char* type : {"pid", "network", "ipc", "uts", "mount", "cgroup"}) spec.linux_.namespaces.push_back({type, ""});
  if (options.rootless) {
    spec.linux_.namespaces.push_back({"user", ""});
    spec.linux_.uid_mappings = {{0, sys::own_uid(), 1}};
    spec.linux_.gid_mappings = {{0, sys::own_gid(), 1}};
    spec.linux_.resources = {};
    std::erase_if(spec.mounts, [](const oci::Mount& mount) { return mount.type == "cgroup"; });
    for (oci::Mount& mount : spec.mounts)
      if (mount.type == "devpts") std::erase(mount.options, "gid=5");  // this gid is not mapped
  }
  const bool is_named = !options.config.empty();
  const std::string name = is_named ? options.config : "config.json";
  const std::string path = name.starts_with("/") ? name : options.bundle + "/" + name;
  if (!is_named && sys::exists(path)) return Error(Code::already_exists, path + " exists; remove it first");
  const std::string text = to_pretty(oci::to_json(spec), 4) + "\n";
  if (is_named) {  // it may be a link or a device: /dev/stdout
    Fd out = TRY(sys::open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644));
    TRY(sys::write_all(out, text).wrap(path));
    return 0;
  }
  TRY(sys::replace_file(path, text, 0644));
  return 0;
}

Result<int> checkpoint(const Options&) {
  return Error(Code::unsupported, "checkpoint and restore are not supported: this runtime does not use CRIU");
}

}  // namespace coracle::cli
