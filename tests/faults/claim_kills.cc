// SPDX-License-Identifier: Apache-2.0
// Runs the life cycle of claims in a process that is killed before each call that changes a file of a claim or of the store, once
// for each such call: while volumes are created, bound, expanded, copied, refilled, deleted, retained and released. Another
// process then continues. Whatever the moment: no claim loses its data, no claim has two volumes and no volume two claims, no
// foreign directory is deleted, and in the end only what had to be kept is left.
//   claim_kills                  by default a part of the calls, the same in each run; with CORACLE_LONG=1 all, and half of the
//                                continuing processes are killed as well, at random
//   claim_kills begin DIRECTORY  creates a store with a node
//   claim_kills live DIRECTORY   the examined process: continues the script, prints "step NAME" for each step and "done"
//   CORACLE_SEED: seed of the random choices
// The store, the registry, the binder with all other controllers, the scheduler, the provisioner and its directories are the
// daemon's own. Only the pod is simulated: it runs when its volume exists, and writes one file into an empty one.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "daemon/controller/manager.h"
#include "daemon/informer/informers.h"
#include "daemon/registry/bootstrap.h"
#include "daemon/registry/local.h"
#include "daemon/scheduler/scheduler.h"
#include "daemon/volume/backing.h"
#include "daemon/volume/local/provisioner.h"
#include "daemon/volume/match.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/engine/engine.h"
#include "tests/catalogs.h"
#include "tests/faults/calls.h"
#include "tests/faults/tracer.h"
#include "tests/faults/trial.h"

namespace coracle::faults {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMachine = "pi";
constexpr std::chrono::seconds kTimeout{60};  // for a step, and for a process
const Key kScript{"default", "script"};       // the script's progress, and the expected content of each claim, by uid

Key here(const std::string& name) { return {"default", name}; }

[[noreturn]] void wrong(const std::string& what) {
  std::printf("wrong: %s\n", what.c_str());
  std::fflush(stdout);
  ::_exit(1);
}

template <typename T>
T need(Result<T> result, const std::string& doing) {
  if (!result) wrong(doing + ": " + result.error().text());
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// "name=text" for each file, except temporary files that a program was about to rename.
std::string content(const std::string& directory) {
  std::string out;
  for (const auto& entry : need(sys::list(directory), "list"))
    if (!entry.name.starts_with('.'))
      out += (out.empty() ? "" : ",") + entry.name + "=" + sys::read_file(directory + "/" + entry.name).value_or("?");
  return out;
}

struct NoEvents : EventSink {
  void post(EventRecord) override {}
};

struct WatchedDirectories : volume::DiskDirectories {
  using DiskDirectories::DiskDirectories;
  std::function<void(const std::string& path)> when_set_aside;
  Result<void> set_aside(const std::string& path) override {
    when_set_aside(path);
    return DiskDirectories::set_aside(path);
  }
};

// ---- the examined process ----

class Life {
 public:
  explicit Life(const std::string& directory) : root_(directory + "/volumes"), engine_(open(directory)) {
    auto hear = [this](const Kind& kind, auto tell) {
      informers_.of(kind).on_change([this, tell](const Informer::Change& change) { (provisioner_.*tell)(change); });
    };
    hear(kPersistentVolumeClaim, &volume::Provisioner::on_claim);
    hear(kPersistentVolume, &volume::Provisioner::on_volume);
    hear(kStorageClass, &volume::Provisioner::on_class);
    directories_.when_set_aside = [this](const std::string& path) { judge_deletion(path); };
  }

  // Prepares a machine's first start.
  void begin() {
    need(registry::bootstrap(registry_, {}, {.api_address = "192.0.2.1", .storage_classes = true}), "bootstrap");
    (void)need(client_.create(kServiceAccount, {{"metadata", {{"name", "default"}, {"namespace", "default"}}}}), "account");
    json::value labels = {{"kubernetes.io/hostname", kMachine}};
    (void)need(client_.create(kNode, {{"metadata", {{"name", kMachine}, {"labels", std::move(labels)}}}}), "node");
    json::value capacity = {{"cpu", "4"}, {"memory", "2Gi"}, {"pods", "110"}};
    json::value ready = {{"type", "Ready"}, {"status", "True"}};
    json::value status = {{"status", {{"capacity", capacity}, {"allocatable", capacity}, {"conditions", json::array{ready}}}}};
    (void)need(client_.patch(kNode, {"", kMachine}, PatchType::merge, status, {.subresource = "status"}), "node");
    (void)need(
        client_.create(kConfigMap, {{"metadata", {{"name", kScript.name}, {"namespace", kScript.ns}}}, {"data", {{"at", "0"}}}}),
        "script");
    start();
    for (int idle = 0; idle < 200; idle = run_once() ? 0 : idle + 1) ::usleep(1000);
    informers_.stop();
  }

  void live() {
    judge();
    start();
    provisioner_.start();
    while (!background_.empty()) run_background();  // as threads do that are faster than what follows
    const std::vector<Step> all = script();
    for (size_t at = parse_number<size_t>(noted("at")).value_or(0); at < all.size(); note("at", std::to_string(++at))) {
      std::printf("step %s\n", all[at].name);
      std::fflush(stdout);
      all[at].act();
      come_to(all[at].name, all[at].done);
      judge();
    }
    informers_.stop();
    std::printf("done\n");
    std::fflush(stdout);
  }

 private:
  static std::unique_ptr<engine::Engine> open(const std::string& directory) {
    engine::Options options;
    options.find_kind = find_built_in();
    return need(engine::Engine::open(directory + "/state.db", options), "open the store");
  }

  void start() {
    need(informers_.start(), "start");
    if (!informers_.wait_synced({})) wrong("the caches are not level");
  }

  // ---- parts that run ----

  bool run_once() {
    bool did = manager_.run_once();
    did |= turn_provisioner();
    did |= turn_pods();
    did |= run_background();
    return did || scheduler_.run_once();
  }

  bool run_background() {
    if (background_.empty()) return false;
    auto task = std::move(background_.front());
    background_.pop_front();
    task({});
    return true;
  }

  bool turn_provisioner() {
    auto lease = queue_.try_take();
    if (lease) work_once(queue_, lease->key(), "volume", [this](const Key& key) { return provisioner_.reconcile(key); });
    return lease.has_value();
  }

  bool turn_pods() {
    bool did = false;
    for (const ObjectPtr& pod : informers_.of(kPod).list("default")) {
      if (get_string(pod->json(), "spec.nodeName") != kMachine) continue;
      if (pod->deleting()) did |= client_.remove(kPod, pod->key(), {.grace_period_seconds = 0}).ok();
      else if (get_string(pod->json(), "status.phase") != "Running") did |= run(*pod);
    }
    return did;
  }

  // Acts as the node agent and the pod's program: they record what they wrote before they report that the pod runs.
  bool run(const Object& pod) {
    auto backing = volume::backing_of(pod.json(), get_array(pod.json(), "spec.volumes").at(0), storage_);
    if (!backing) return false;
    std::string path(get_string(backing->volume->json(), "spec.local.path")), uid(backing->claim->uid());
    struct stat about {};
    if (::stat(path.c_str(), &about) < 0) return false;
    if ((about.st_mode & 07777) != 0777) wrong(path + " is not everybody's");
    if (content(path).empty()) {
      if (!noted(uid).empty()) wrong(path + " has lost " + noted(uid));
      Fd directory = need(sys::open_directory(path), "open");
      need(sys::replace_file_at(directory, "of", uid), "write");
    }
    if (noted(uid).empty()) note(uid, content(path));
    return client_.patch(kPod, pod.key(), PatchType::merge, {{"status", {{"phase", "Running"}}}}, {.subresource = "status"}).ok();
  }

  void come_to(const std::string& name, const std::function<bool()>& done) {
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    while (!done()) {
      if (run_once()) continue;
      if (std::chrono::steady_clock::now() > end) wrong("it does not come to an end: " + name + "; " + state());
      ::usleep(200);
    }
  }

  // ---- checks ----

  std::vector<ObjectPtr> all(const Kind& kind) { return need(client_.list(kind, {}), "list").items; }

  std::string state() {
    std::string out;
    for (const Kind* kind : {&kPersistentVolumeClaim, &kPersistentVolume, &kPod})
      for (const ObjectPtr& each : all(*kind))
        out += each->name() + " " + std::string(get_string(each->json(), "status.phase")) + (each->deleting() ? " ends; " : "; ");
    for (const std::string& name : names()) out += name + "; ";
    return out;
  }

  std::set<std::string> names() const {
    std::set<std::string> out;
    if (fs::exists(root_))
      for (const auto& entry : fs::directory_iterator(root_)) out.insert(entry.path().filename());
    out.erase(".coracle");
    return out;
  }

  // Checks the store and the disk alone; valid at any moment.
  void judge() {
    std::set<std::string> claims, paths;
    for (const ObjectPtr& volume : all(kPersistentVolume)) {
      std::string path(get_string(volume->json(), "spec.local.path"));
      if (!claims.emplace(get_string(volume->json(), "spec.claimRef.uid")).second) wrong("two volumes of one claim");
      if (!paths.insert(path).second) wrong("two volumes in " + path);
    }
    for (const ObjectPtr& claim : all(kPersistentVolumeClaim)) {
      if (!volume::is_bound(*claim)) continue;
      auto volume = client_.get(kPersistentVolume, {"", std::string(get_string(claim->json(), "spec.volumeName"))});
      if (!volume || get_string((*volume)->json(), "spec.claimRef.uid") != claim->uid())
        wrong(claim->name() + " has not the volume that it is bound to");
      judge_content(std::string(get_string((*volume)->json(), "spec.local.path")), std::string(claim->uid()));
    }
    for (const std::string& name : names())
      if (!name.starts_with('.') && !paths.contains(root_ + "/" + name) && name != noted("kept")) wrong("nobody names " + name);
    if (!noted("kept").empty()) judge_content(root_ + "/" + noted("kept"), noted("kept-uid"));
  }

  void judge_content(const std::string& path, const std::string& uid) {
    std::string fresh = root_ + "/.new_" + path.substr(root_.size() + 1);
    if (!fs::exists(path) && !fs::exists(fresh)) wrong(path + " is gone");
    std::string wanted = noted(uid), held = fs::exists(path) ? content(path) : "";
    if (wanted.empty()) return;
    for (std::string_view each : split(wanted, '|'))
      if (each == held) return;
    wrong(path + " holds '" + held + "', not '" + wanted + "'");
  }

  void judge_deletion(const std::string& path) {
    for (const ObjectPtr& claim : all(kPersistentVolumeClaim))
      if (path.ends_with("_" + claim->uid())) wrong(path + " is deleted, and its claim is there");
  }

  // ---- the script ----

  struct Step {
    const char* name;
    std::function<void()> act;  // repeated after a kill
    std::function<bool()> done;
  };

  std::string noted(const std::string& name) {
    ObjectPtr script = need(client_.get(kConfigMap, kScript), "read the script");
    const json::value* data = find(script->json(), "data");
    const json::value* found = data ? data->if_object()->if_contains(name) : nullptr;
    return found ? std::string(found->get_string()) : "";
  }
  void note(const std::string& name, const std::string& text) {
    json::object data{{name, text}};
    (void)need(client_.patch(kConfigMap, kScript, PatchType::merge, {{"data", std::move(data)}}), "note");
  }

  void make(const Kind& kind, const json::value& body) {
    auto made = client_.create(kind, body);
    if (!made && made.error().code() != Code::already_exists) wrong("create: " + made.error().text());
  }
  void make_claim(const std::string& name, const std::string& size, const std::string& source = "") {
    json::object spec{{"accessModes", {"ReadWriteOnce"}}, {"resources", {{"requests", {{"storage", size}}}}}};
    if (!source.empty()) spec["dataSource"] = {{"kind", "PersistentVolumeClaim"}, {"name", source}};
    make(kPersistentVolumeClaim, {{"metadata", {{"name", name}, {"namespace", "default"}}}, {"spec", std::move(spec)}});
  }
  void make_pod(const std::string& name, const std::string& claim) {
    json::value volume = {{"name", "v"}, {"persistentVolumeClaim", {{"claimName", claim}}}};
    json::object spec{{"containers", json::array{{{"name", "c"}, {"image", "x"}}}}, {"volumes", json::array{std::move(volume)}}};
    make(kPod, {{"metadata", {{"name", name}, {"namespace", "default"}}}, {"spec", std::move(spec)}});
  }
  void drop(const Kind& kind, const Key& key) {
    auto dropped = client_.remove(kind, key);
    if (!dropped && dropped.error().code() != Code::not_found) wrong("delete: " + dropped.error().text());
  }
  void patch(const Kind& kind, const Key& key, const json::value& patch) {
    (void)need(client_.patch(kind, key, PatchType::merge, patch), "patch " + key.text());
  }

  ObjectPtr at(const Kind& kind, const Key& key) {
    auto found = client_.get(kind, key);
    return found ? *found : nullptr;
  }
  ObjectPtr claim(const std::string& name) { return at(kPersistentVolumeClaim, here(name)); }
  ObjectPtr volume_of(const std::string& name) {
    for (const ObjectPtr& each : all(kPersistentVolume))
      if (get_string(each->json(), "spec.claimRef.name") == name) return each;
    return nullptr;
  }
  std::string path_of(const std::string& name) {
    ObjectPtr volume = volume_of(name);
    return volume ? std::string(get_string(volume->json(), "spec.local.path")) : "";
  }
  bool runs(const std::string& pod) {
    ObjectPtr found = at(kPod, here(pod));
    return found && get_string(found->json(), "status.phase") == "Running";
  }
  bool has(const Object& object, std::string_view path, std::string_view value) {
    return get_string(object.json(), path) == value;
  }

  void import_anew() {
    std::string path = path_of("data"), uid(claim("data")->uid()), second = "second=" + uid;
    if (content(path) == second) return;
    note(uid, "of=" + uid + "|" + second);
    Fd staged = need(directories_.stage(path, Bytes(1 << 20)), "stage");
    need(sys::replace_file_at(staged, "second", uid), "write");
    need(directories_.put_staged(path), "put");
    provisioner_.clear();
  }

  // Before the volume is bound; or, after a kill, before its directory has a volume object.
  void give_up() {
    bool is_fresh = std::ranges::any_of(names(), [](const std::string& name) { return name.starts_with(".new_"); });
    ObjectPtr there = claim("early");
    const bool ends = there && there->deleting();  // another pod would wait for it for ever
    if (!is_fresh && !ends) {
      make_claim("early", "1Gi");
      make_pod("five", "early");
      come_to("give up", [this] { return volume_of("early") != nullptr; });
    }
    drop(kPod, here("five"));
    drop(kPersistentVolumeClaim, here("early"));
  }

  std::vector<Step> script() {
    return {
        {"make", [this] { make_claim("data", "1Gi"), make_pod("one", "data"); }, [this] { return runs("one"); }},
        {"grow",
         [this] {
           patch(kPersistentVolumeClaim, here("data"), {{"spec", {{"resources", {{"requests", {{"storage", "2Gi"}}}}}}}});
         },
         [this] {
           return has(*claim("data"), "status.capacity.storage", "2Gi") &&
                  has(*volume_of("data"), "spec.capacity.storage", "2Gi");
         }},
        {"end", [this] { drop(kPod, here("one")); }, [this] { return !at(kPod, here("one")); }},
        {"copy", [this] { make_claim("twin", "2Gi", "data"), make_pod("two", "twin"); },
         [this] {
           if (!runs("two")) return false;
           if (content(path_of("twin")) != content(path_of("data"))) wrong("the copy is another: " + content(path_of("twin")));
           return true;
         }},
        {"import", [this] { import_anew(); },
         [this] { return content(path_of("data")).starts_with("second=") && names().size() == 2; }},
        {"use again", [this] { make_pod("three", "data"); }, [this] { return runs("three"); }},
        {"delete what is used",
         [this] {
           std::string uid(claim("data")->uid());
           note("old", uid), note(uid, "second=" + uid);
           drop(kPersistentVolumeClaim, here("data"));
         },
         [this] { return claim("data")->deleting(); }},
        {"make anew under its name", [this] { drop(kPod, here("three")); },
         [this] {
           ObjectPtr there = claim("data");
           if (!there) make_claim("data", "1Gi"), make_pod("four", "data");
           if (!there || there->uid() == noted("old")) return false;
           make_pod("four", "data");
           auto is_old = [old = noted("old")](const ObjectPtr& volume) {
             return get_string(volume->json(), "spec.claimRef.uid") == old;
           };
           return runs("four") && std::ranges::none_of(all(kPersistentVolume), is_old) && names().size() == 2;
         }},
        {"keep",
         [this] {
           std::string path = path_of("twin");
           note("kept-uid", path.substr(path.rfind('_') + 1)), note("kept", path.substr(root_.size() + 1));
           patch(kPersistentVolume, volume_of("twin")->key(), {{"spec", {{"persistentVolumeReclaimPolicy", "Retain"}}}});
           drop(kPod, here("two"));
           drop(kPersistentVolumeClaim, here("twin"));
         },
         [this] { return has(*volume_of("twin"), "status.phase", "Released"); }},
        {"forget",
         [this] {
           if (ObjectPtr volume = volume_of("twin")) drop(kPersistentVolume, volume->key());
         },
         [this] { return !volume_of("twin"); }},
        {"give up", [this] { give_up(); },
         [this] { return !at(kPod, here("five")) && !claim("early") && !volume_of("early") && names().size() == 2; }},
        {"delete",
         [this] {
           drop(kPod, here("four"));
           drop(kPersistentVolumeClaim, here("data"));
         },
         [this] {
           return all(kPersistentVolumeClaim).empty() && all(kPersistentVolume).empty() &&
                  names() == std::set<std::string>{noted("kept")};
         }},
    };
  }

  bool is_used(const Key& claim) {
    for (const ObjectPtr& pod : informers_.of(kPod).list(claim.ns))
      if (!get_string(pod->json(), "spec.nodeName").empty())
        for (const json::value& volume : get_array(pod->json(), "spec.volumes"))
          if (volume::claim_name(pod->name(), volume) == claim.name) return true;
    return false;
  }

  Result<volume::Copied> copy(const Key& claim, const Fd& to) {
    std::string from = path_of(claim.name);
    volume::Copied copied;
    auto entries = TRY(sys::list(from));
    for (const auto& entry : entries) {
      std::string text = TRY(sys::read_file(from + "/" + entry.name));
      TRY(sys::replace_file_at(to, entry.name, text));
      copied.entries++, copied.bytes.count += int64_t(text.size());
    }
    return copied;
  }

  const std::string root_;
  std::unique_ptr<engine::Engine> engine_;
  registry::Registry registry_{*engine_, built_in_catalogs(), {}, system_clock()};
  registry::LocalClient local_client_{registry_};
  Client& client_ = local_client_;
  NoEvents events_;
  Informers informers_{client_};
  controller::Manager manager_{
      client_, informers_, events_, built_in_catalogs(), {.root_ca = "CERT", .local_node = kMachine}, system_clock()};
  scheduler::Scheduler scheduler_{client_, informers_, events_};
  WatchedDirectories directories_{{root_}, [](const std::string&) { return false; }, {"/dev/null", {}}};
  WorkQueue queue_{BackoffPolicy{}, system_clock()};
  std::deque<std::function<void(std::stop_token)>> background_;
  const volume::StorageObjects storage_{
      .claim = [this](const Key& key) { return informers_.of(kPersistentVolumeClaim).get(key); },
      .volume =
          [this](std::string_view name) {
            return informers_.of(kPersistentVolume).get({"", std::string(name)});
          }};
  volume::Provisioner provisioner_{
      kMachine,
      {.client = client_,
       .claims = informers_.of(kPersistentVolumeClaim),
       .volumes = informers_.of(kPersistentVolume),
       .classes = informers_.of(kStorageClass),
       .events = EventRecorder(events_, "kubelet", kMachine),
       .directories = directories_,
       .enqueue = [this](Key key) { queue_.add(std::move(key)); },
       .delete_in_background = [this](auto task, const auto&) { background_.push_back(std::move(task)); },
       .copy_in_background = [this](auto task, const auto&) { background_.push_back(std::move(task)); },
       .answers = [](const std::string&) { return true; },
       .in_use = [this](const Key& claim) { return is_used(claim); },
       .in_use_yet = [](const Key&) { return false; },  // no pod is deleted by force
       .copy = [this](const Key& claim, const Fd& to, const volume::ProvisionerSeams::SoFar&,
                      std::stop_token) { return copy(claim, to); },
       .clock = system_clock()}};
};

// ---- examination ----

struct Part {  // the share of the calls
  const char* name;
  const char* place;
  int at_most;  // in a default run
};
constexpr Part kParts[] = {{"the volumes' directories", "/volumes", 60}, {"the store's file", "/state.db", 40}};
constexpr int kAllCalls = 1 << 30;

class Examination {
 public:
  Examination(std::string self, uint64_t seed, bool is_long) : self_(std::move(self)), dice_(seed), is_long_(is_long) {
    char path[] = "/dev/shm/coracle-claims-XXXXXX";
    directory_ = ::mkdtemp(path);
  }
  ~Examination() { fs::remove_all(directory_); }

  int examine() {
    if (auto began = run("begin", template_()); began.exit_code != 0) return say(false, "it begins: " + slurp(out())), 1;
    for (const Part& part : kParts) examine(part);
    std::printf("1..%d\n", number_);
    return bad_ ? 1 : 0;
  }

 private:
  void examine(const Part& part) {
    freshen();
    const int all = killed_before(part, kAllCalls);
    if (!is_done()) return say(false, "a good run: " + slurp(out()));
    if (all == 0) return say(false, "no call is seen: may we trace processes?");
    const int wanted = is_long_ ? all : std::min(all, part.at_most);
    std::map<std::string, int> by_step;
    int killed = 0, again = 0, bad = 0;
    for (int i = 0; i < wanted; ++i) {
      const int nth = wanted == 1 ? 0 : int(int64_t(i) * (all - 1) / (wanted - 1));
      freshen();
      (void)killed_before(part, nth);
      if (!tracer_.has_struck()) continue;  // a call that depends on thread timing
      std::string about = text_of(tracer_.struck());
      killed++;
      by_step[last_step()]++;
      std::string problem = wrong_so_far();
      if (problem.empty() && is_long_ && dice_() % 2) {
        (void)killed_before(part, int(dice_() % uint64_t(all - nth + 1)));
        if (tracer_.has_struck()) again++, about += ", then " + text_of(tracer_.struck());
        problem = wrong_so_far();
      }
      if (problem.empty() && !is_done()) {
        Outcome outcome = run("live", trial_());
        if (!is_done()) problem = wrong_so_far();
        if (!is_done() && problem.empty()) problem = outcome.hung ? "it hangs" : "it ends early";
      }
      if (problem.empty()) continue;
      bad++;
      std::printf("  | killed before call %d of %d, %s: %s\n", nth, all, about.c_str(), problem.c_str());
    }
    std::string steps;
    for (const auto& [name, count] : by_step) steps += (steps.empty() ? "" : ", ") + name + " " + std::to_string(count);
    say(bad == 0, "killed before " + std::to_string(killed) + " of " + std::to_string(all) + " changes of " + part.name +
                      (is_long_ ? ", and " + std::to_string(again) + " times again" : "") + ": " + steps);
    say(killed * 10 >= wanted * 9, "nearly all of these calls are made again");
  }

  // The number of calls.
  int killed_before(const Part& part, int nth) {
    tracer_.forget();
    tracer_.arm(Kill{"live", nth, [&](pid_t tid, int number, const uint64_t arguments[6]) {
                       std::string name = name_of_call(number);
                       if (!changes_files(name, arguments)) return false;
                       std::string detail = detail_of(tid, number, arguments);
                       return detail.find(directory_) != detail.npos && detail.find(part.place) != detail.npos;
                     }});
    (void)run("live", trial_());
    return tracer_.counted();
  }

  Outcome run(const std::string& verb, const std::string& directory) {
    Command command;
    command.name = verb;
    command.argv = {self_, verb, directory};
    command.out = out();
    command.err = directory_ + "/err";
    command.timeout = 2 * kTimeout;
    return tracer_.run(command);
  }

  void freshen() const {
    fs::remove_all(trial_());
    fs::copy(template_(), trial_(), fs::copy_options::recursive);
  }
  void say(bool good, const std::string& what) {
    std::printf("%s %d - %s\n", good ? "ok" : "not ok", ++number_, what.c_str());
    std::fflush(stdout);
    if (!good) ++bad_;
  }
  static std::string text_of(const Call& call) { return name_of_call(call.number) + "(" + call.detail + ")"; }
  bool is_done() const { return slurp(out()).ends_with("done\n"); }
  std::string last_step() const {
    std::string said = slurp(out());
    size_t at = said.rfind("step ");
    return at == said.npos ? "start" : said.substr(at + 5, said.find('\n', at) - at - 5);
  }
  std::string wrong_so_far() const {
    std::string said = slurp(out());
    size_t at = said.find("wrong: ");
    return at == said.npos ? "" : last_step() + ": " + said.substr(at + 7, said.find('\n', at) - at - 7);
  }
  std::string template_() const { return directory_ + "/begun"; }
  std::string trial_() const { return directory_ + "/trial"; }
  std::string out() const { return directory_ + "/out"; }

  const std::string self_;
  std::mt19937_64 dice_;
  const bool is_long_;
  std::string directory_;
  Tracer tracer_{{}};
  int number_ = 0, bad_ = 0;
};

int examine() {
  const char *seed = std::getenv("CORACLE_SEED"), *is_long = std::getenv("CORACLE_LONG");
  uint64_t number = seed ? std::strtoull(seed, nullptr, 10) : uint64_t(std::random_device()());
  std::printf("# CORACLE_SEED=%llu\n", static_cast<unsigned long long>(number));
  return Examination(fs::canonical("/proc/self/exe"), number, is_long && *is_long == '1').examine();
}

}  // namespace
}  // namespace coracle::faults

int main(int argc, char** argv) {
  const std::string verb = argc == 3 ? argv[1] : "";
  if (argc == 1) return coracle::faults::examine();
  if (verb != "begin" && verb != "live") {
    std::fprintf(stderr, "usage: %s [begin|live DIRECTORY]\n", argv[0]);
    return 2;
  }
  ::umask(027);  // stricter than a volume's mode
  std::filesystem::create_directories(argv[2]);
  coracle::faults::Life life(argv[2]);
  if (verb == "begin") life.begin();
  else life.live();
  return 0;
}
