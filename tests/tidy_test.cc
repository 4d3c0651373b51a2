// SPDX-License-Identifier: Apache-2.0
// The rules of the tree: reads every source file and checks the table of layers and a few rules that readers rely on
// (daemon/README.md, "Components"). Run with the root of the source tree as CORACLE_SOURCE.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

struct Source {
  std::string path;  // relative to the root, "store/engine/engine.cc"
  std::vector<std::string> lines;
};

std::vector<Source> read_sources() {
  const char* root = std::getenv("CORACLE_SOURCE");
  std::vector<Source> sources;
  for (const char* folder : {"runtime", "store", "daemon", "ctl", "tests"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(root ? root : ".") / folder)) {
      std::string extension = entry.path().extension();
      if (extension != ".h" && extension != ".cc") continue;
      Source source{fs::relative(entry.path(), root ? root : "."), {}};
      std::ifstream file(entry.path());
      for (std::string line; std::getline(file, line);) source.lines.push_back(line);
      sources.push_back(std::move(source));
    }
  }
  return sources;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = read_sources();
  return all;
}

bool starts_with_any(const std::string& text, const std::vector<std::string>& prefixes) {
  for (const auto& prefix : prefixes)
    if (text.starts_with(prefix)) return true;
  return false;
}

std::string code_of(const std::string& line) {  // without comments and string contents; good enough for one-line rules
  std::string out;
  bool in_string = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (in_string) {
      if (line[i] == '\\') ++i;
      else if (line[i] == '"') in_string = false, out += '"';
      continue;
    }
    if (line[i] == '\'' && i + 2 < line.size() &&
        (line[i + 2] == '\'' || (line[i + 1] == '\\' && i + 3 < line.size() && line[i + 3] == '\''))) {
      i += line[i + 1] == '\\' ? 3 : 2;
      continue;
    }
    if (line[i] == '"') in_string = true;
    if (line[i] == '/' && i + 1 < line.size() && line[i + 1] == '/') break;
    out += line[i];
  }
  return out;
}

// Who may include whom: the first row whose prefix matches a file applies; its own directory is always allowed.
struct Layer {
  std::string folder;
  std::vector<std::string> may_include;
};

const std::vector<Layer>& layers() {
  static const std::vector<Layer> table = {
      {"runtime/base/", {}},
      {"runtime/sys/", {"runtime/base/"}},
      {"runtime/oci/", {"runtime/base/", "runtime/sys/"}},
      {"runtime/cgroup/", {"runtime/base/", "runtime/sys/", "runtime/oci/", "runtime/runtime.h"}},
      {"runtime/image/fetch/",
       {"runtime/base/", "runtime/sys/", "runtime/oci/", "runtime/image/", "runtime/runtime.h",
        "runtime/container/seccomp_program.h"}},
      {"runtime/image/", {"runtime/base/", "runtime/sys/", "runtime/oci/", "runtime/runtime.h"}},
      {"runtime/launch/", {}},
      {"runtime/pause/", {"runtime/launch/"}},
      {"runtime/container/",
       {"runtime/base/", "runtime/sys/", "runtime/oci/", "runtime/cgroup/", "runtime/image/", "runtime/launch/", "runtime/pause/",
        "runtime/runtime.h"}},
      {"runtime/cli/", {"runtime/"}},
      {"runtime/runtime.h", {"runtime/base/", "runtime/oci/spec.h"}},
      {"store/object/", {"runtime/base/", "runtime/sys/page_pool.h", "runtime/sys/slab_pool.h"}},
      {"store/kinds/*/server/", {"runtime/base/", "store/object/", "store/schema/", "store/engine/", "store/kinds/"}},
      {"store/kinds/strateg",
       {"runtime/base/", "store/object/", "store/engine/", "store/schema/strategies.inc", "store/kinds/default_ranges.h"}},
      {"store/kinds/", {"runtime/base/", "store/object/", "store/schema/"}},
      {"store/schema/", {"runtime/base/", "store/object/"}},
      {"store/engine/", {"runtime/base/", "runtime/sys/file.h", "runtime/sys/slab_pool.h", "store/object/", "store/schema/"}},
      {"store/client/client.h", {"runtime/base/", "store/object/"}},
      {"store/client/local_socket.h", {}},  // the daemon's API knows it too
      {"store/client/", {"runtime/base/", "runtime/sys/file.h", "runtime/sys/socket.h", "store/object/"}},
      {"daemon/queue/", {"runtime/base/", "store/object/"}},
      {"daemon/informer/", {"runtime/base/", "store/object/", "store/client/client.h"}},
      {"daemon/event/", {"runtime/base/", "store/object/", "store/schema/", "store/kinds/", "store/client/client.h"}},
      {"daemon/stream/", {"runtime/base/", "store/object/"}},
      {"daemon/quota/",
       {"runtime/base/", "store/object/", "store/schema/amounts.h", "store/schema/catalog.h", "store/schema/views.h",
        "store/kinds/meta/conditions.h", "store/kinds/pod/pod_state.h"}},
      {"daemon/placement/", {"runtime/base/", "store/object/", "store/schema/", "store/kinds/"}},
      {"daemon/volume/local/",
       {"runtime/base/", "runtime/sys/file.h", "runtime/sys/mount.h", "runtime/sys/project_quota.h", "runtime/sys/tree_removal.h",
        "store/object/", "store/schema/", "store/kinds/", "store/client/client.h", "daemon/informer/", "daemon/queue/",
        "daemon/event/", "daemon/volume/"}},
      {"daemon/volume/", {"runtime/base/", "daemon/quota/", "store/object/", "store/schema/", "store/kinds/"}},
      {"daemon/startup/",
       {"runtime/base/", "store/object/", "store/schema/", "store/kinds/", "daemon/informer/", "daemon/quota/disruption.h"}},
      {"daemon/admission/",
       {"runtime/base/", "store/object/", "store/schema/", "store/kinds/", "store/engine/", "daemon/quota/",
        "daemon/startup/dependencies.h"}},
      {"daemon/registry/",
       {"runtime/base/", "runtime/sys/file.h", "daemon/admission/", "daemon/quota/", "store/object/", "store/schema/",
        "store/kinds/", "store/engine/", "store/client/client.h"}},
      {"daemon/backup/",
       {"runtime/base/", "runtime/sys/file.h", "store/object/", "store/schema/", "store/kinds/", "store/engine/"}},
      {"daemon/auth/",
       {"runtime/base/", "runtime/sys/file.h", "runtime/sys/inode.h", "store/object/", "store/schema/", "store/kinds/",
        "store/engine/", "daemon/registry/"}},
      {"daemon/flowcontrol/",
       {"runtime/base/", "store/object/", "store/schema/", "store/kinds/", "store/engine/", "daemon/auth/attributes.h",
        "daemon/registry/"}},
      {"daemon/api/",
       {"runtime/base/", "runtime/sys/file.h", "runtime/sys/inet.h", "runtime/sys/socket.h", "store/object/", "store/schema/",
        "store/kinds/", "store/client/local_socket.h", "daemon/registry/", "daemon/auth/", "daemon/flowcontrol/", "daemon/backup/",
        "daemon/stream/"}},
      {"daemon/controller/",
       {"runtime/base/", "daemon/quota/", "daemon/placement/", "daemon/startup/", "daemon/volume/", "store/object/",
        "store/schema/", "store/kinds/", "store/client/client.h", "daemon/informer/", "daemon/queue/", "daemon/event/"}},
      {"daemon/scheduler/",
       {"runtime/base/", "daemon/quota/", "daemon/placement/", "daemon/volume/", "store/object/", "store/schema/", "store/kinds/",
        "store/client/client.h", "daemon/informer/", "daemon/queue/", "daemon/event/"}},
      {"daemon/network/",
       {"runtime/base/", "runtime/sys/", "store/object/", "store/schema/", "store/kinds/", "store/client/client.h",
        "daemon/informer/", "daemon/queue/", "daemon/event/"}},
      {"daemon/node/",
       {"runtime/base/",
        "runtime/sys/file.h",
        "runtime/sys/mount.h",
        "runtime/sys/netns.h",
        "runtime/sys/project_quota.h",
        "runtime/sys/socket.h",
        "runtime/sys/tree_group.h",
        "runtime/sys/tree_removal.h",
        "runtime/sys/tree_size.h",
        "runtime/runtime.h",
        "runtime/oci/spec.h",
        "store/object/",
        "store/schema/",
        "store/kinds/",
        "store/client/client.h",
        "daemon/informer/",
        "daemon/queue/",
        "daemon/event/",
        "daemon/stream/",
        "daemon/placement/",
        "daemon/volume/"}},
      {"daemon/", {"runtime/", "store/", "daemon/"}},  // the daemon, and the process around it
      {"ctl/kustomize/", {"runtime/base/", "runtime/sys/file.h", "store/object/", "store/schema/"}},
      // The doctor queries the kernel itself, since it must work without a daemon.
      {"ctl/",
       {"runtime/base/", "runtime/sys/file.h", "runtime/sys/netns.h", "runtime/sys/probe.h", "runtime/sys/process.h",
        "runtime/sys/project_quota.h", "runtime/sys/run.h", "runtime/sys/socket.h", "runtime/image/archive_handles.h",
        "runtime/image/oci_archive.h", "store/object/", "store/schema/", "store/kinds/meta/", "store/kinds/pod/pod_state.h",
        "store/client/"}},
      {"tests/", {"runtime/", "store/", "daemon/", "ctl/", "tests/"}},
  };
  return table;
}

// `*` stands for one name.
bool is_in(const std::string& path, const std::string& folder) {
  size_t star = folder.find('*');
  if (star == folder.npos) return path.starts_with(folder);
  if (!path.starts_with(folder.substr(0, star))) return false;
  size_t rest = path.find('/', star);
  return rest != path.npos && path.compare(rest, folder.size() - star - 1, folder, star + 1) == 0;
}

const Layer* layer_of(const std::string& path) {
  for (const auto& layer : layers())
    if (is_in(path, layer.folder)) return &layer;
  return nullptr;
}

TEST(Tidy, holds_the_table_of_layers) {
  static const std::regex include(R"(^\s*#\s*include\s+"([^"]+)\")");
  for (const auto& source : sources()) {
    const Layer* layer = layer_of(source.path);
    ASSERT_TRUE(layer) << source.path << " is in no folder of the table";
    for (size_t i = 0; i < source.lines.size(); ++i) {
      std::smatch match;
      if (!std::regex_search(source.lines[i], match, include)) continue;
      std::string target = match[1];
      EXPECT_TRUE(target.starts_with(layer->folder) || starts_with_any(target, layer->may_include))
          << source.path << ":" << i + 1 << ": " << layer->folder << " may not include " << target;
    }
  }
}

TEST(Tidy, every_file_says_what_it_is) {
  for (const auto& source : sources()) {
    ASSERT_GE(source.lines.size(), 3u) << source.path;
    EXPECT_EQ(source.lines[0], "// SPDX-License-Identifier: Apache-2.0") << source.path;
    EXPECT_TRUE(source.lines[1].starts_with("// ")) << source.path << " has no opening comment";
  }
}

// Rules for single lines: what is forbidden, and where.
struct Rule {
  std::string name;
  std::vector<std::string> words;  // every matching line contains one of them: a cheap check before the regex
  std::regex pattern;
  std::vector<std::string> except;  // exempt files and directories
};

TEST(Tidy, keeps_its_rules_of_one_line) {
  const std::vector<Rule> rules = {
      // Inside a larger expression, g++ 12 does not destroy already constructed values when TRY returns early. A statement of its
      // own, or the whole right side of = or return, is safe.
      {"TRY stands alone", {"TRY("}, std::regex(R"(\bTRY\()"), {"runtime/base/result.h"}},
      {"throw only at boundaries", {"throw"}, std::regex(R"(\bthrow\b)"), {"tests/"}},
      {"catch only at boundaries",
       {"catch"},
       std::regex(R"(\bcatch\s*\()"),
       {"runtime/base/json.cc", "runtime/cli/main.cc", "daemon/api/", "ctl/flags.cc", "tests/", "store/schema/generate"}},
      {"CLI11 behind one header", {"CLI/"}, std::regex(R"(#include <CLI/)"), {"ctl/flags.cc", "runtime/cli/main.cc"}},
      {"no using namespace in headers", {"using namespace"}, std::regex(R"(^\s*using namespace)"), {}},
      {"no dup(", {"dup"}, std::regex(R"(\bdup2?\()"), {"runtime/sys/", "runtime/pause/", "runtime/base/fd.h", "tests/"}},
      {"no system(", {"system("}, std::regex(R"((^|[^\w.:>_])(std::)?system\()"), {"tests/"}},
      {"no sleeping for something to happen",
       {"sleep"},
       std::regex(R"(\bsleep_for\b|\bsleep_until\b|\busleep\(|[^\w]sleep\(\d)"),
       {"tests/"}},
      {"processes and mounts are made in sys and pause only",
       {"fork", "clone", "exec", "unshare", "setns", "mount", "pivot_root", "chroot"},
       std::regex(R"((^|[^\w.>])::(fork|vfork|clone|clone3|execve|execvp|unshare|setns|mount|umount2|pivot_root|chroot)\()"),
       {"runtime/sys/", "runtime/pause/", "tests/"}},
      {"threads begin with a name: start_thread()",
       {"thread"},
       std::regex(R"(\bstd::j?thread(\(| \w+[({]))"),
       {"runtime/base/thread.h", "tests/"}},
      {"no numbers of 128 bits, which processors of 32 bits do not have", {"__int128"}, std::regex(R"(__int128)"), {}},
      {"times are computed by std::chrono: time_t may have 32 bits, and a CA is valid beyond 2038",
       {"time_t(", "timegm"},
       std::regex(R"(\b(to_time_t|from_time_t|timegm|mktime)\()"),
       {}},
      // g++ extends the sign of a 32-bit pointer in one cast to 64 bits, and a 64-bit kernel refuses such an address.
      {"pointers become numbers by uintptr_t",
       {"reinterpret_cast<"},
       std::regex(R"(reinterpret_cast<(u?int64_t|unsigned long long|long long)>)"),
       {}},
      {"objects are compared by same_json(): Boost's == copies them",
       {"raw()", "json()", "labels()", "annotations()", "members()", "get_object()", "get_array()"},
       std::regex(
           R"(\b(raw|json|labels|annotations|members|get_object|get_array)\(\) [!=]= |)"
           R"([!=]= ([\w:]+(\([*\w]*\))?(\.|->))+(raw|json|labels|annotations|members|get_object|get_array)\(\)( |\)|;|$))"),
       {"tests/"}},
      {"no TODO without an issue number",
       {"TODO", "FIXME", "XXX"},
       std::regex(R"(\b(TODO|FIXME|XXX)\b(?!.*#\d))"),
       {"tests/tidy_test.cc"}},
  };
  static const std::regex lone_try(R"(^(|.*[){};]|\s*case [\w:]+:|.*\b(else|return|do)|.*[^=!<>]=)\s*TRY\()");
  for (const auto& source : sources()) {
    bool header = source.path.ends_with(".h");
    for (size_t i = 0; i < source.lines.size(); ++i) {
      std::string code = code_of(source.lines[i]);
      for (const auto& rule : rules) {
        const std::string& text = rule.name.starts_with("no TODO") ? source.lines[i] : code;
        if (rule.name == "no using namespace in headers" && !header) continue;
        if (std::none_of(rule.words.begin(), rule.words.end(), [&](const auto& word) { return text.find(word) != text.npos; }))
          continue;
        if (starts_with_any(source.path, rule.except) || !std::regex_search(text, rule.pattern)) continue;
        if (rule.name == "TRY stands alone" && std::regex_search(text, lone_try)) continue;
        ADD_FAILURE() << source.path << ":" << i + 1 << ": " << rule.name << ": " << source.lines[i];
      }
    }
  }
}

// In store/kinds/, daemon/ and ctl/, built-in kinds are read by their views, by which the compiler checks the names
// (store/README.md). Paths are for code that reads any kind, or no Kubernetes object.
TEST(Tidy, reads_built_in_kinds_by_views) {
  const std::vector<std::string> other_json = {
      "ctl/about.cc",                                   // the server's version
      "ctl/backup.cc",                                  // answers about the store
      "ctl/completion.cc",                              // the machine's images
      "ctl/config",                                     // kubeconfigs, in several files
      "ctl/discovery.cc",                               // aggregated discovery, whose types are in no schema text
      "ctl/doctor_checks.cc",                           // the rules of nftables
      "ctl/doctor_machine.cc",                          // the settings, and answers about the store
      "ctl/image.cc",                                   // answers about images
      "ctl/kubeconfig_files.cc",                        // kubeconfigs
      "ctl/kustomize/",                                 // kustomizations, and objects of any kind
      "ctl/managed_fields.cc",                          // the tree of names in a field owner's entry
      "ctl/nft.cc",                                     // the rules of nftables
      "ctl/placement_text.cc",                          // the scheduler's explanation
      "ctl/preferences.cc",                             // kuberc
      "ctl/volume.cc",                                  // answers about volumes
      "daemon/api/exec_run.cc",                         // the size of a terminal
      "daemon/api/images.cc",                           // a user and password for a registry
      "daemon/auth/audit_policy.cc",                    // the audit policy's file
      "daemon/auth/jwt.cc",                             // the header of a token
      "daemon/controller/autoscaler/custom_metrics.h",  // lists of custom.metrics.k8s.io
      "daemon/network/attachment.cc",                   // the files of the node's network
      "daemon/node/docker_config.h",                    // Docker's config.json
      "daemon/node/image_archives.cc",                  // its note of imported archives
      "daemon/node/marks.cc",                           // what the node writes to sandboxes and containers
      "daemon/node/volume/token_refresh.cc",            // the claims in a token
      "daemon/scheduler/configuration.cc",              // the scheduler's configuration file
      "daemon/scheduler/plugins/legacy.cc",             // an annotation
  };
  // A literal path (code_of leaves only its quotes), after an argument with up to two levels of parentheses.
  static const std::regex by_path(
      R"((^|[^\w.>:])(get_(string|int|bool|object|array|strings)|find|find_keys)\(([^()]|\(([^()]|\([^()]*\))*\))*, \{?")");
  for (const auto& source : sources()) {
    if (!starts_with_any(source.path, {"ctl/", "daemon/", "store/kinds/"}) || starts_with_any(source.path, other_json)) continue;
    for (size_t i = 0; i < source.lines.size(); ++i) {
      std::string code = code_of(source.lines[i]);
      if (code.find('"') == code.npos || (code.find("get_") == code.npos && code.find("find") == code.npos)) continue;
      EXPECT_FALSE(std::regex_search(code, by_path)) << source.path << ":" << i + 1 << ": " << source.lines[i];
    }
  }
}

// `tests/run.sh --changed` finds the end-to-end scripts for a change by their line "# for:", a list of path prefixes.
TEST(Tidy, end_to_end_scripts_say_what_they_are_for) {
  const char* variable = std::getenv("CORACLE_SOURCE");
  const fs::path root = variable ? variable : ".";
  const std::vector<std::string> for_all = {"lib.sh", "fetch_kubectl.sh", "soak.sh"};
  std::vector<std::string> prefixes;
  std::ifstream meson(root / "tests/e2e/meson.build");
  const std::string listed{std::istreambuf_iterator<char>(meson), {}};
  for (const auto& entry : fs::directory_iterator(root / "tests/e2e")) {
    std::string name = entry.path().filename();
    if (!name.ends_with(".sh") || std::find(for_all.begin(), for_all.end(), name) != for_all.end()) continue;
    std::ifstream file(entry.path());
    std::string line, list;
    while (std::getline(file, line) && line.starts_with("#"))
      if (line.starts_with("# for: ")) list = line.substr(7);
    EXPECT_FALSE(list.empty()) << name << " does not say what it is for";
    EXPECT_NE(listed.find("'" + name.substr(0, name.size() - 3) + "'"), listed.npos) << name << " is run by nobody";
    std::istringstream words(list);
    for (std::string word; words >> word;) prefixes.push_back(word);
  }
  std::set<std::string> paths;
  for (const auto& source : sources()) paths.insert(source.path);
  for (const auto& entry : fs::recursive_directory_iterator(root / "store/kinds"))
    paths.insert(fs::relative(entry.path(), root).string());
  for (const auto& prefix : prefixes) {
    auto found = paths.lower_bound(prefix);
    EXPECT_TRUE(found != paths.end() && found->starts_with(prefix)) << "no file's path begins with " << prefix;
  }
}

const fs::path& source_root() {
  static const char* const variable = std::getenv("CORACLE_SOURCE");
  static const fs::path root = variable ? variable : ".";
  return root;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A source that no meson.build names is compiled by nobody, and a test in it runs nowhere. In store/kinds the build finds them.
TEST(Tidy, every_source_is_compiled) {
  for (const auto& source : sources()) {
    if (!source.path.ends_with(".cc") || source.path.starts_with("store/kinds/")) continue;
    bool named = false;
    for (fs::path folder = fs::path(source.path).parent_path();; folder = folder.parent_path()) {
      const std::string name = source.path.substr(folder.empty() ? 0 : folder.string().size() + 1);
      const std::string build = text_of(source_root() / folder / "meson.build");
      named = build.find("'" + name + "'") != build.npos ||
              build.find("'" + name.substr(0, name.size() - 3) + "'") != build.npos;  // a table adds ".cc"
      if (named || folder.empty()) break;
    }
    EXPECT_TRUE(named) << source.path << " is in no meson.build";
  }
}

// ---- pages ----

// The paths of all files and folders of the tree.
const std::set<std::string>& tree() {
  static const std::set<std::string> all = [] {
    std::set<std::string> paths{"README.md", "LICENSE", "meson.build"};
    for (const char* folder : {"runtime", "store", "daemon", "ctl", "systemd", "tests"}) {
      paths.insert(folder);
      for (const auto& entry : fs::recursive_directory_iterator(source_root() / folder))
        paths.insert(fs::relative(entry.path(), source_root()).string());
    }
    return paths;
  }();
  return all;
}

// Whether a path of the tree is `name` or, unless `whole`, ends with it. * stands for a part of one name.
bool is_in_tree(const std::string& name, bool whole) {
  auto any = [](auto fits) { return std::any_of(tree().begin(), tree().end(), fits); };
  if (name.find('*') == name.npos)
    return tree().contains(name) || (!whole && any([&](const std::string& path) { return path.ends_with("/" + name); }));
  std::string pattern = whole ? "" : "(.*/)?";
  for (char c : name) pattern += c == '*' ? std::string("[^/]*") : c == '.' ? std::string("\\.") : std::string(1, c);
  return any([wanted = std::regex(pattern)](const std::string& path) { return std::regex_match(path, wanted); });
}

// A program of the tests, such as tests/daemon/scheduler/scheduler_test, which the build makes.
bool is_built(const fs::path& path) {
  const std::string build = text_of(source_root() / path.parent_path() / "meson.build");
  return build.find("executable('" + path.filename().string() + "'") != build.npos;
}

// The pages name each file by its path, by the end of it, or by its path from the page's own folder.
TEST(Tidy, pages_name_what_is_there) {
  static const std::regex code("`([^`]*)`"), link(R"(\]\(([^)#]+)(#[^)]*)?\))");
  static const std::regex file(R"(([\w.-]+/)*[\w.*-]+\.(h|cc|sh|py|inc|tsv|build))");
  static const std::regex path(R"((^|[^\w./-])((runtime|store|daemon|ctl|systemd|tests)/[\w.*/-]*))");
  size_t named = 0;
  for (const std::string& page : tree()) {
    if (fs::path(page).filename() != "README.md") continue;
    const fs::path folder = fs::path(page).parent_path();
    std::istringstream text(text_of(source_root() / page));
    size_t number = 0;
    for (std::string line; std::getline(text, line);) {
      ++number;
      const std::sregex_iterator end;
      for (std::sregex_iterator one(line.begin(), line.end(), code); one != end; ++one) {
        std::istringstream words((*one)[1].str());
        for (std::string word; words >> word;) {
          if (!std::regex_match(word, file)) continue;
          ++named;
          EXPECT_TRUE(is_in_tree(word, false)) << page << ":" << number << ": there is no " << word;
        }
      }
      for (std::sregex_iterator one(line.begin(), line.end(), path); one != end; ++one) {
        std::string word = (*one)[2];
        while (word.ends_with('/') || word.ends_with('.')) word.pop_back();
        EXPECT_TRUE(is_in_tree(word, true) || is_in_tree((folder / word).string(), true) || is_built(word))
            << page << ":" << number << ": there is no " << word;
      }
      for (std::sregex_iterator one(line.begin(), line.end(), link); one != end; ++one) {
        const std::string to = (*one)[1];
        if (to.starts_with("http")) continue;
        EXPECT_TRUE(tree().contains((folder / to).lexically_normal().string()))
            << page << ":" << number << ": there is no " << to;
      }
    }
  }
  EXPECT_GT(named, 100u);
}

// The words of Kubernetes, OCI and the kernel are used, none of our own for the same things.
TEST(Tidy, has_no_private_words) {
  const std::vector<std::string> words = {"house",  "houses",  "rooms", "doorman", "keep_door", "StandIn",
                                          "Outbox", "GivesUp", "Inlet", "LookAt",  "BirthSpec", "Allotment"};
  auto is_letter = [](const std::string& line, size_t at) {
    return at < line.size() && std::isalpha(static_cast<unsigned char>(line[at]));
  };
  auto look = [&](const std::string& where, const std::string& line) {
    for (const std::string& word : words) {
      size_t at = line.find(word);
      if (at == line.npos || (at > 0 && is_letter(line, at - 1)) || is_letter(line, at + word.size())) continue;
      ADD_FAILURE() << where << ": " << word << ": " << line;
    }
  };
  for (const auto& source : sources())
    if (source.path != "tests/tidy_test.cc")
      for (size_t i = 0; i < source.lines.size(); ++i) look(source.path + ":" + std::to_string(i + 1), source.lines[i]);
  for (const std::string& page : tree()) {
    if (fs::path(page).filename() != "README.md") continue;
    std::istringstream text(text_of(source_root() / page));
    for (std::string line; std::getline(text, line);) look(page, line);
  }
}

TEST(Tidy, top_level_holds_nothing_else) {
  const std::vector<std::string> allowed = {"meson.build", "daemon", "runtime",   "store",  "ctl",
                                            "systemd",     "tests",  "README.md", "LICENSE"};
  const char* root = std::getenv("CORACLE_SOURCE");
  for (const auto& entry : fs::directory_iterator(root ? root : ".")) {
    std::string name = entry.path().filename();
    if (name.starts_with(".") || name.starts_with("build")) continue;
    EXPECT_NE(std::find(allowed.begin(), allowed.end(), name), allowed.end()) << name << " does not belong at the top level";
  }
}

}  // namespace
