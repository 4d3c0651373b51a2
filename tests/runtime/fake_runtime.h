// SPDX-License-Identifier: Apache-2.0
// FakeRuntime: the Runtime interface in memory, for tests of the node agent. Containers follow the test's script: they exit at
// once, exit on a signal, ignore it, or write log lines; the nth call of a method can fail; change notifications can be lost. It
// passes the same contract suite as the real one (runtime_contract.h).
//
//   FakeRuntime runtime;
//   runtime.images_fake().add("docker.io/library/web:1");
//   runtime.script("app", {.exits_at_once = 3});               // every container whose id is app or begins with app-
//   runtime.fail("start_container", 2, Error(Code::unavailable, "no space"));   // the second call from now
//   runtime.exit("pod-1", "app-0", 137, SIGKILL, /*oom=*/true);  // as if it had ended by itself
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/text.h"
#include "runtime/runtime.h"
#include "runtime/sys/file.h"

namespace coracle::runtime {

class FakeImageStore : public ImageStore {
 public:
  // Adds an image that is present, or that can be pulled if `present` is false. Returns its id.
  std::string add(const std::string& reference, ImageConfig config = {}, bool present = true) {
    std::lock_guard lock(mutex_);
    Image image;
    image.id = "sha256:" + hex_id(reference);
    image.references = {reference};
    image.digests = {reference.substr(0, reference.rfind(':')) + "@" + image.id};
    image.size = 1_MiB;
    image.config = std::move(config);
    (present ? present_ : pullable_)[reference] = image;
    return image.id;
  }
  void set_platform(const std::string& id, const std::string& platform, const std::string& other_machine) {
    std::lock_guard lock(mutex_);
    for (auto& [reference, image] : present_)
      if (image.id == id) image.platform = platform, image.other_machine = other_machine;
  }
  // Marks the image as pulled with credentials that no pod of the test has: a pod must pull it again to use it.
  void protect(const std::string& id) {
    std::lock_guard lock(mutex_);
    pulled_for_[id];
  }
  void fail_pull(Error error, int times = 1) {
    std::lock_guard lock(mutex_);
    for (int i = 0; i < times; ++i) pull_errors_.push_back(error);
  }
  int pulls() const {
    std::lock_guard lock(mutex_);
    return pulls_;
  }
  std::vector<Credentials> last_credentials() const {
    std::lock_guard lock(mutex_);
    return last_credentials_;
  }

  std::vector<Image> list() override {
    std::lock_guard lock(mutex_);
    std::vector<Image> out;
    for (auto& [name, image] : present_) out.push_back(image);
    return out;
  }
  Result<Image> find(std::string_view reference) override {
    std::lock_guard lock(mutex_);
    for (auto& [name, image] : present_)
      if (image.id == reference || name == reference || normal(name) == normal(reference)) return image;
    if (reference.empty() || reference.find(' ') != reference.npos || to_lower(path_of(reference)) != path_of(reference))
      return Error(Code::invalid, "malformed image reference " + coracle::quoted(reference));
    return Error(Code::not_found, "no image " + coracle::quoted(reference));
  }
  Result<Image> pull(std::string_view reference, const std::vector<Credentials>& credentials,
                     const std::function<void(const PullProgress&)>& progress, std::stop_token stop) override {
    std::lock_guard lock(mutex_);
    ++pulls_;
    last_credentials_ = credentials;
    if (stop.stop_requested()) return Error(Code::cancelled, "pull was cancelled");
    if (!pull_errors_.empty()) {
      Error error = pull_errors_.front();
      pull_errors_.erase(pull_errors_.begin());
      return error;
    }
    for (auto* map : {&pullable_, &present_}) {
      for (auto& [name, image] : *map) {
        if (normal(name) != normal(reference)) continue;
        if (progress) progress({.done = image.size, .total = image.size, .layers_done = 1, .layers_total = 1});
        Image found = image;
        present_[name] = found;
        if (auto whose = pulled_for_.find(found.id); whose != pulled_for_.end())
          for (const Credentials& each : credentials) whose->second.insert(each.source);
        return found;
      }
    }
    return Error(Code::not_found, "manifest for " + std::string(reference) + " not found");
  }
  ImageAccess access(const Image& image, std::string_view, const std::vector<Credentials>& credentials) override {
    std::lock_guard lock(mutex_);
    auto whose = pulled_for_.find(image.id);
    if (whose == pulled_for_.end()) return ImageAccess::preloaded;
    for (const Credentials& each : credentials)
      if (whose->second.count(each.source)) return ImageAccess::proven;
    return ImageAccess::unproven;
  }
  Result<std::vector<Image>> import(const Fd&, std::string_view name, std::stop_token) override {
    return std::vector<Image>{*find(add(std::string(name)))};
  }
  Result<Image> tag(std::string_view reference, std::string_view name) override {
    Image image = TRY(find(reference));
    std::lock_guard lock(mutex_);
    image.references.emplace_back(name);
    return present_[std::string(name)] = image;
  }
  Result<void> write_archive(const std::vector<std::string>&, const Fd&) override { return {}; }
  Result<std::vector<Image>> prune(bool) override { return std::vector<Image>(); }
  Result<std::vector<Image>> collect(std::chrono::seconds, const std::function<bool()>&) override { return std::vector<Image>(); }
  Result<Removal> remove(std::string_view reference) override {
    std::lock_guard lock(mutex_);
    for (auto it = present_.begin(); it != present_.end(); ++it) {
      if (it->second.id != reference && normal(it->first) != normal(reference)) continue;
      Removal removal{it->second, true, {}};
      pullable_[it->first] = it->second;
      present_.erase(it);
      return removal;
    }
    return Error(Code::not_found, "no image " + coracle::quoted(reference));
  }
  // Simulates a mount: the directory gets a file "of" with the image's id.
  Result<void> mount(const std::string& image_id, const std::string& holder, const std::string& directory,
                     const std::vector<oci::IdMapping>&) override {
    std::lock_guard lock(mutex_);
    bool is_here = std::any_of(present_.begin(), present_.end(), [&](const auto& each) { return each.second.id == image_id; });
    if (!is_here) return Error(Code::not_found, "no image " + image_id);
    std::ofstream(directory + "/of") << image_id;
    held_[holder] = image_id;
    return {};
  }
  Result<void> release(const std::string& holder) override {
    std::lock_guard lock(mutex_);
    held_.erase(holder);
    return {};
  }
  std::map<std::string, std::string> held() const {  // image ids by holder
    std::lock_guard lock(mutex_);
    return held_;
  }
  Result<oci::User> resolve_user(const Image&, std::string_view user) override {
    std::lock_guard lock(mutex_);
    oci::User out;
    if (user.empty()) return out;
    auto parts = split(user, ':');
    auto number = [&](std::string_view text) -> Result<uint32_t> {
      if (auto found = users_.find(std::string(text)); found != users_.end()) return found->second;
      auto value = parse_number<uint32_t>(text);
      if (!value || *value > 0x7fffffff) return Error(Code::invalid, "unknown user or group " + coracle::quoted(text));
      return *value;
    };
    out.uid = TRY(number(parts[0]));
    if (parts.size() > 1) out.gid = TRY(number(parts[1]));
    return out;
  }
  void add_user(const std::string& name, uint32_t id) {
    std::lock_guard lock(mutex_);
    users_[name] = id;
  }

 private:
  static std::string_view path_of(std::string_view reference) { return reference.substr(0, reference.rfind(':')); }
  static std::string normal(std::string_view reference) {  // docker's normalisation, as far as tests need it
    std::string out(reference);
    size_t slash = out.find('/');
    std::string host = slash == out.npos ? "" : out.substr(0, slash);
    if (slash == out.npos) {
      out = "docker.io/library/" + out;
    } else if (host.find_first_of(".:") == host.npos && host != "localhost") {
      out = "docker.io/" + out;
    }
    if (out.find('@') == out.npos && out.find(':', out.rfind('/')) == out.npos) out += ":latest";
    return out;
  }
  static std::string hex_id(const std::string& text) {
    uint64_t h = 1469598103934665603u;
    for (unsigned char c : text) h = (h ^ c) * 1099511628211u;
    std::string out;
    for (int i = 0; i < 4; ++i, h = h * 6364136223846793005u + 1)
      for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(h >> shift) & 15];
    return out;
  }

  mutable std::mutex mutex_;
  std::map<std::string, Image> present_, pullable_;
  std::vector<Error> pull_errors_;
  std::map<std::string, std::set<std::string>> pulled_for_;  // by image id: the sources of credentials; other images are
                                                             // preloaded
  std::map<std::string, uint32_t> users_;
  std::map<std::string, std::string> held_;
  std::vector<Credentials> last_credentials_;
  int pulls_ = 0;
};

// A fake archive lists the files in the directory's root, one name per line. Unpacking creates each file with the content "read".
class FakeTrees : public Trees {
 public:
  Result<TreeCount> write(const Fd& directory, const Fd& archive, const TreeProgress&, std::stop_token) override {
    TreeCount count;
    auto entries = TRY(sys::list(directory));
    for (const auto& entry : entries) {
      TRY(sys::write_all(archive, entry.name + "\n"));
      ++count.entries;
    }
    return count;
  }
  Result<TreeCount> read(const Fd& archive, const Fd& directory, const TreeProgress&, std::stop_token) override {
    TreeCount count;
    std::string text;
    for (char piece[4096];;) {
      size_t got = TRY(sys::read_some(archive, piece));
      if (got == 0) break;
      text.append(piece, got);
    }
    for (std::string_view name : split(text, '\n')) {
      if (name.empty()) continue;
      if (name == "damaged") return Error(Code::invalid, "damaged archive");
      TRY(sys::replace_file_at(directory, std::string(name), "read"));
      ++count.entries;
    }
    return count;
  }
  Result<TreeCount> copy(const Fd& from, const Fd& to, const TreeProgress& progress, std::stop_token) override {
    TreeCount count;
    auto entries = TRY(sys::list(from));
    for (const auto& entry : entries) {
      std::string text = TRY(sys::read_file_in(from, entry.name, 1 << 20));
      TRY(sys::replace_file_at(to, entry.name, text));
      ++count.entries, count.bytes += Bytes(int64_t(text.size()));
    }
    if (progress) progress(count);
    return count;
  }
};

class FakeRuntime : public Runtime {
 public:
  struct Script {
    std::optional<int> exits_at_once;                       // exit code of a container that ends as soon as it runs
    bool ignores_signals = false;                           // ignores all signals except SIGKILL
    std::vector<std::string> log;                           // lines that it writes to its log when it starts
    std::optional<Error> start_error;                       // the error of start_container
    std::string attached_out;                               // what an attach session hears
    std::optional<std::chrono::milliseconds> attached_for;  // an attach session ends together with the container after this time
    int attached_exit_code = 0;
  };
  struct ExecAnswer {
    int exit_code = 0;
    std::string out, err;
    std::chrono::milliseconds after{0};  // run time
    std::optional<Error> error;          // the error of exec itself
  };
  using ExecHandler = std::function<ExecAnswer(const std::string& sandbox, const std::string& container, const ExecSpec& spec)>;

  explicit FakeRuntime(const Clock& clock = system_clock()) : clock_(clock) {}

  // ---- scripting ----
  FakeImageStore& images_fake() { return images_; }
  // Applies to every container whose id is `name` or begins with `name` and a dash.
  void script(const std::string& name, Script script) {
    std::lock_guard lock(mutex_);
    scripts_[name] = std::move(script);
  }
  // Lets the `nth` call of `method` from now (1 = the next) fail with `error`, `times` times in a row.
  void fail(const std::string& method, int nth, Error error, int times = 1) {
    std::lock_guard lock(mutex_);
    for (int i = 0; i < times; ++i) failures_.insert_or_assign({method, counts_[method] + nth + i}, error);
  }
  void on_exec(ExecHandler handler) {
    std::lock_guard lock(mutex_);
    exec_handler_ = std::move(handler);
  }
  void lose_changes(bool lose) {  // while set, no notification is delivered
    std::lock_guard lock(mutex_);
    lose_changes_ = lose;
  }
  // Ends a running container as if by itself.
  void exit(const std::string& sandbox_id, const std::string& id, int code, int signal = 0, bool oom_killed = false) {
    {
      std::lock_guard lock(mutex_);
      Box* box = find_box(sandbox_id);
      if (!box) return;
      auto found = box->containers.find(id);
      if (found != box->containers.end()) finish(found->second, code, signal, oom_killed);
    }
    changed(sandbox_id);
  }
  void kill_pause(const std::string& sandbox_id) {  // as after a reboot: alive becomes false, nothing runs
    {
      std::lock_guard lock(mutex_);
      Box* box = find_box(sandbox_id);
      if (!box) return;
      box->alive = false;
      for (auto& [id, container] : box->containers) container.state.running = false, container.state.pid = 0;
    }
    changed(sandbox_id);
  }
  // Appends a line to the container's CRI log file, if its spec has one.
  void log(const std::string& sandbox_id, const std::string& id, const std::string& stream, const std::string& line) {
    std::lock_guard lock(mutex_);
    if (Box* box = find_box(sandbox_id))
      if (auto found = box->containers.find(id); found != box->containers.end()) write_log(found->second, stream, line);
  }
  void set_root(const std::string& sandbox_id, const std::string& id, const std::string& directory) {
    std::lock_guard lock(mutex_);
    roots_[sandbox_id + "/" + id] = directory;
  }
  void set_writable_layer(const std::string& sandbox_id, const std::string& id, const std::string& directory) {
    std::lock_guard lock(mutex_);
    layers_[sandbox_id + "/" + id] = directory;
  }
  void set_usage(const std::string& sandbox_id, const std::string& container_id, Usage usage) {
    std::lock_guard lock(mutex_);
    usages_[sandbox_id + "/" + container_id] = usage;
  }
  void set_enforcement(Enforcement enforcement) { enforcement_ = std::move(enforcement); }
  void set_memory_bound(std::optional<Bytes> bound) { memory_bound_ = bound; }
  // The calls in order: "create_sandbox pod-1", "start_container pod-1 app-0", "signal_container pod-1 app-0 15", ...
  std::vector<std::string> calls() const {
    std::lock_guard lock(mutex_);
    return calls_;
  }
  std::optional<ContainerSpec> container_spec(const std::string& sandbox_id, const std::string& id) const {
    std::lock_guard lock(mutex_);
    auto box = boxes_.find(sandbox_id);
    if (box == boxes_.end()) return std::nullopt;
    auto found = box->second.containers.find(id);
    if (found == box->second.containers.end()) return std::nullopt;
    return found->second.spec;
  }
  std::optional<SandboxSpec> sandbox_spec(const std::string& id) const {
    std::lock_guard lock(mutex_);
    auto box = boxes_.find(id);
    if (box == boxes_.end()) return std::nullopt;
    return box->second.spec;
  }

  // ---- Runtime ----
  ImageStore& images() override { return images_; }
  Trees& trees() override { return trees_; }
  Enforcement enforcement() const override { return enforcement_; }
  std::optional<Bytes> memory_bound() const override { return memory_bound_; }
  void on_change(std::function<void(const std::string&)> notify) override {
    std::lock_guard lock(mutex_);
    notify_ = std::move(notify);
  }
  Result<std::vector<SandboxState>> sandboxes() override {
    std::lock_guard lock(mutex_);
    TRY(enter("sandboxes", ""));
    std::vector<SandboxState> out;
    for (auto& [id, box] : boxes_) out.push_back(state_of(box));
    return out;
  }
  Result<SandboxState> sandbox(const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("sandbox", id));
    Box* box = find_box(id);
    if (!box) return no_sandbox(id);
    return state_of(*box);
  }
  Result<void> create_sandbox(const SandboxSpec& spec) override {
    std::lock_guard lock(mutex_);
    TRY(enter("create_sandbox", spec.id));
    if (spec.id.empty() || spec.id.size() > 64 ||
        spec.id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") != spec.id.npos)
      return Error(Code::invalid, "sandbox id " + coracle::quoted(spec.id) + " is not of [a-z0-9-]{1,64}");
    if (find_box(spec.id)) return Error(Code::already_exists, "sandbox " + spec.id + " exists");
    Box box;
    box.spec = spec;
    box.alive = true;
    box.pid = ++last_pid_;
    box.created = clock_.now();
    boxes_.emplace(spec.id, std::move(box));
    return {};
  }
  Result<Fd> network_namespace(const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("network_namespace", id));
    if (!find_box(id)) return no_sandbox(id);
    return Fd(::open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC));
  }
  Result<void> set_class_weight(const std::string& cgroup_class, uint64_t weight) override {
    std::lock_guard lock(mutex_);
    class_weights_[cgroup_class] = weight;
    return {};
  }
  std::map<std::string, uint64_t> class_weights() const {
    std::lock_guard lock(mutex_);
    return class_weights_;
  }
  Result<void> remove_sandbox(const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("remove_sandbox", id));
    boxes_.erase(id);
    ended_.notify_all();
    return {};
  }
  Result<void> start_container(const std::string& sandbox_id, const ContainerSpec& spec) override {
    {
      std::lock_guard lock(mutex_);
      TRY(enter("start_container", sandbox_id + " " + spec.id));
      Box* box = find_box(sandbox_id);
      if (!box) return no_sandbox(sandbox_id);
      if (!box->alive) return Error(Code::conflict, "sandbox " + sandbox_id + " is dead");
      if (box->containers.count(spec.id)) return Error(Code::conflict, "container id " + spec.id + " is in use");
      if (spec.spec.process.args.empty()) return Error(Code::invalid, "process.args is empty");
      const Script* script = find_script(spec.id);
      if (script && script->start_error) return *script->start_error;
      Box::Container container;
      container.spec = spec;
      container.state = {
          .id = spec.id, .metadata = spec.metadata, .running = true, .pid = ++last_pid_, .started = clock_.now(), .exit = {}};
      if (script) {
        for (const std::string& line : script->log) write_log(container, "stdout", line);
        container.ignores_signals = script->ignores_signals;
        if (script->exits_at_once) finish(container, *script->exits_at_once, 0, false);
      }
      box->containers.emplace(spec.id, std::move(container));
    }
    changed(sandbox_id);
    return {};
  }
  Result<void> signal_container(const std::string& sandbox_id, const std::string& id, int signal) override {
    {
      std::lock_guard lock(mutex_);
      TRY(enter("signal_container", sandbox_id + " " + id + " " + std::to_string(signal)));
      Box::Container* container = nullptr;
      TRY(find_container(sandbox_id, id, &container));
      if (!container->state.running) return {};
      if (container->ignores_signals && signal != SIGKILL) return {};
      finish(*container, 128 + signal, signal, false);
    }
    changed(sandbox_id);
    return {};
  }
  Result<void> kill_container(const std::string& sandbox_id, const std::string& id) override {
    {
      std::lock_guard lock(mutex_);
      TRY(enter("kill_container", sandbox_id + " " + id));
      Box::Container* container = nullptr;
      TRY(find_container(sandbox_id, id, &container));
      if (!container->state.running) return {};
      finish(*container, 128 + SIGKILL, SIGKILL, false);
    }
    changed(sandbox_id);
    return {};
  }
  Result<void> remove_container(const std::string& sandbox_id, const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("remove_container", sandbox_id + " " + id));
    Box* box = find_box(sandbox_id);
    if (!box) return {};
    auto found = box->containers.find(id);
    if (found == box->containers.end()) return {};
    if (found->second.state.running) return Error(Code::conflict, "container " + id + " is running");
    box->containers.erase(found);
    return {};
  }
  Result<std::unique_ptr<Exec>> exec(const std::string& sandbox_id, const std::string& id, const ExecSpec& spec) override {
    ExecHandler handler;
    {
      std::lock_guard lock(mutex_);
      TRY(enter("exec", sandbox_id + " " + id));
      Box::Container* container = nullptr;
      TRY(find_container(sandbox_id, id, &container));
      if (!container->state.running) return Error(Code::conflict, "container " + id + " is not running");
      handler = exec_handler_;
    }
    ExecAnswer answer = handler ? handler(sandbox_id, id, spec) : ExecAnswer{};
    if (answer.error) return *answer.error;
    std::unique_ptr<Exec> out = std::make_unique<FakeExec>(std::move(answer), spec.use_stdin);
    return out;
  }
  Result<std::unique_ptr<Exec>> attach(const std::string& sandbox_id, const std::string& id, bool use_stdin) override {
    std::lock_guard lock(mutex_);
    TRY(enter("attach", sandbox_id + " " + id));
    Box::Container* container = nullptr;
    TRY(find_container(sandbox_id, id, &container));
    if (!container->state.running) return Error(Code::conflict, "container " + id + " is not running");
    const Script* script = find_script(id);
    ExecAnswer answer;
    if (script) answer.exit_code = script->attached_exit_code, answer.after = script->attached_for.value_or(answer.after);
    if (script) answer.out = script->attached_out;
    std::unique_ptr<Exec> out = std::make_unique<FakeExec>(std::move(answer), use_stdin);
    return out;
  }
  Result<Usage> usage(const std::string& sandbox_id, const std::string& container_id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("usage", sandbox_id + " " + container_id));
    if (!find_box(sandbox_id)) return no_sandbox(sandbox_id);
    return usages_[sandbox_id + "/" + container_id];
  }
  Result<Fd> writable_layer(const std::string& sandbox_id, const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("writable_layer", sandbox_id + " " + id));
    Box::Container* container = nullptr;
    TRY(find_container(sandbox_id, id, &container));
    auto layer = layers_.find(sandbox_id + "/" + id);
    if (layer == layers_.end()) return Error(Code::not_found, "the test set no writable layer for " + id);
    return Fd(::open(layer->second.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  Result<Fd> container_root(const std::string& sandbox_id, const std::string& id) override {
    std::lock_guard lock(mutex_);
    TRY(enter("container_root", sandbox_id + " " + id));
    Box::Container* container = nullptr;
    TRY(find_container(sandbox_id, id, &container));
    auto root = roots_.find(sandbox_id + "/" + id);
    if (root == roots_.end()) return Error(Code::not_found, "the test set no root for " + id);
    return Fd(::open(root->second.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  }

 private:
  struct Box {
    struct Container {
      ContainerSpec spec;
      ContainerState state;
      bool ignores_signals = false;
    };
    SandboxSpec spec;
    bool alive = false;
    int pid = 0;
    WallTime created;
    std::map<std::string, Container> containers;
  };

  // An exec whose output is complete at once; it ends `after` later.
  class FakeExec : public Exec {
   public:
    FakeExec(ExecAnswer answer, bool use_stdin) : answer_(std::move(answer)), ends_(SteadyClock::now() + answer_.after) {
      out_ = filled(answer_.out);
      err_ = filled(answer_.err);
      int ends[2];
      if (use_stdin && ::pipe2(ends, O_CLOEXEC) == 0) stdin_reader_ = Fd(ends[0]), stdin_ = Fd(ends[1]);
    }
    Fd take_stdin() override { return std::move(stdin_); }
    Fd take_stdout() override { return std::move(out_); }
    Fd take_stderr() override { return std::move(err_); }
    Result<void> resize(uint16_t, uint16_t) override { return {}; }
    Result<int> wait(std::stop_token stop) override {
      std::mutex mutex;
      std::condition_variable_any changed;
      std::unique_lock lock(mutex);
      changed.wait_until(lock, stop, ends_, [] { return false; });
      if (stop.stop_requested()) return Error(Code::cancelled, "wait was cancelled");
      return answer_.exit_code;
    }

   private:
    using SteadyClock = std::chrono::steady_clock;
    static Fd filled(const std::string& text) {  // the output in tests fits into a pipe's 64 KiB
      int ends[2];
      if (::pipe2(ends, O_CLOEXEC) != 0) return Fd();
      Fd reader(ends[0]), writer(ends[1]);
      if (!text.empty()) (void)!::write(writer.get(), text.data(), text.size());
      return reader;
    }
    ExecAnswer answer_;
    SteadyClock::time_point ends_;
    Fd stdin_, stdin_reader_, out_, err_;
  };

  static Error no_sandbox(const std::string& id) { return Error(Code::not_found, "no sandbox " + id); }
  std::map<std::string, uint64_t> class_weights_;
  Box* find_box(const std::string& id) {
    auto found = boxes_.find(id);
    return found == boxes_.end() ? nullptr : &found->second;
  }
  Result<void> find_container(const std::string& sandbox_id, const std::string& id, Box::Container** out) {
    Box* box = find_box(sandbox_id);
    if (!box) return no_sandbox(sandbox_id);
    auto found = box->containers.find(id);
    if (found == box->containers.end()) return Error(Code::not_found, "no container " + id + " in " + sandbox_id);
    *out = &found->second;
    return {};
  }
  const Script* find_script(const std::string& id) const {
    for (const auto& [name, script] : scripts_)
      if (id == name || id.starts_with(name + "-")) return &script;
    return nullptr;
  }
  static SandboxState state_of(const Box& box) {
    SandboxState out{.id = box.spec.id,
                     .metadata = box.spec.metadata,
                     .alive = box.alive,
                     .pid = box.alive ? box.pid : 0,
                     .created = box.created,
                     .containers = {}};
    for (auto& [id, container] : box.containers) out.containers.push_back(container.state);
    return out;
  }
  void finish(Box::Container& container, int code, int signal, bool oom_killed) {
    if (!container.state.running) return;
    container.state.running = false;
    container.state.pid = 0;
    container.state.exit = ExitStatus{.exit_code = code,
                                      .signal = signal,
                                      .oom_killed = oom_killed,
                                      .started = container.state.started,
                                      .finished = clock_.now()};
  }
  void write_log(const Box::Container& container, const std::string& stream, const std::string& line) {
    if (container.spec.log.path.empty()) return;
    Fd file(::open(container.spec.log.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640));
    std::string text = format_nano_time(clock_.now()) + " " + stream + " F " + line + "\n";
    if (file) (void)!::write(file.get(), text.data(), text.size());
  }
  Result<void> enter(const std::string& method, const std::string& what) {
    calls_.push_back(what.empty() ? method : method + " " + what);
    auto failure = failures_.find({method, ++counts_[method]});
    if (failure == failures_.end()) return {};
    Error error = failure->second;
    failures_.erase(failure);
    return error;
  }
  void changed(const std::string& id) {
    std::function<void(const std::string&)> notify;
    {
      std::lock_guard lock(mutex_);
      if (!lose_changes_) notify = notify_;
      ended_.notify_all();
    }
    if (notify) notify(id);
  }

  const Clock& clock_;
  FakeImageStore images_;
  FakeTrees trees_;
  std::optional<Bytes> memory_bound_;
  Enforcement enforcement_{.memory = true, .cpu = true, .pids = true, .io = true, .cpuset = true, .missing = ""};
  mutable std::mutex mutex_;
  std::condition_variable ended_;
  std::map<std::string, Box> boxes_;
  std::map<std::string, Script> scripts_;
  std::map<std::pair<std::string, int>, Error> failures_;
  std::map<std::string, int> counts_;
  std::map<std::string, std::string> roots_, layers_;
  std::map<std::string, Usage> usages_;
  std::vector<std::string> calls_;
  std::function<void(const std::string&)> notify_;
  ExecHandler exec_handler_;
  bool lose_changes_ = false;
  int last_pid_ = 1000;
};

}  // namespace coracle::runtime
