// SPDX-License-Identifier: Apache-2.0
// See static_pods.h.
#include "daemon/node/static_pods.h"

#include <fcntl.h>

#include <cerrno>
#include <set>
#include <span>

#include "runtime/base/go_json.h"
#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/sys/file.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/status.h"
#include "store/object/yaml_numbers.h"
#include "store/schema/decode.h"
#include "store/schema/default.h"
#include "store/schema/validate.h"

namespace coracle::node {

namespace {

constexpr size_t kManifestMax = 10 << 20;  // bytes per file, as the kubelet
constexpr std::chrono::seconds kManifestsRetry{10};

// FNV-1a with 128 bits: identifies the content of a manifest; not cryptographic. The product with the prime, 2^88 + 0x13b, is
// made of parts, because processors of 32 bits have no numbers of 128.
std::string hash_of(std::string_view text) {
  constexpr uint64_t kFactor = 0x13b;
  uint64_t high = 0x6c62272e07bb0142, low = 0x62b821756295c58d;
  for (unsigned char byte : text) {
    low ^= byte;
    const uint64_t first = (low & 0xffffffff) * kFactor, second = (low >> 32) * kFactor + (first >> 32);
    high = high * kFactor + (second >> 32) + (low << 24);
    low = second << 32 | (first & 0xffffffff);
  }
  std::string bytes;
  for (uint64_t half : {high, low})
    for (int shift = 56; shift >= 0; shift -= 8) bytes += char(half >> shift & 0xff);
  return hex(bytes);
}

// What the file has is not known: a disk fails, or the process has too many files open.
bool may_be_a_manifest(const Error& error) { return error.err() != 0 && error.err() != ENOENT && error.err() != EISDIR; }

bool is_manifest(const std::string& name) { return name.ends_with(".yaml") || name.ends_with(".yml") || name.ends_with(".json"); }

void place_on(const std::string& node_name, json::value& pod) {
  view::ObjectMeta named = view::Pod(pod).metadata();
  const bool has_namespace = !named.namespace_().empty();
  std::string name = std::string(named.name()) + "-" + to_lower(node_name);
  json::object& metadata = make_object(pod, "metadata");
  if (!has_namespace) metadata["namespace"] = "default";
  metadata["name"] = std::move(name);
  make_object(pod, "spec")["nodeName"] = node_name;
}

// No taint evicts a static pod: its mirror would only be created again. Source: kubelet, pkg/kubelet/config/common.go.
void tolerate_every_eviction(json::value& pod) {
  json::array& tolerations = make_array(pod, "spec.tolerations");
  json::array kept;
  for (json::value& item : tolerations) {
    view::Toleration toleration(item);
    bool same = toleration.operator_() == "Exists" && toleration.effect() == "NoExecute" && toleration.key().empty();
    if (!same) kept.push_back(std::move(item));
  }
  kept.push_back({{"operator", "Exists"}, {"effect", "NoExecute"}});
  tolerations = std::move(kept);
}

// ---- references to the API, without which a static pod must run ----

struct Reference {
  const char *field, *resource;
};
constexpr Reference kOfVariables[] = {{"valueFrom.secretKeyRef", "secrets"}, {"valueFrom.configMapKeyRef", "configmaps"}};
constexpr Reference kOfEnvironments[] = {{"secretRef", "secrets"}, {"configMapRef", "configmaps"}};
constexpr Reference kOfVolumes[] = {{"secret", "secrets"},
                                    {"configMap", "configmaps"},
                                    {"persistentVolumeClaim", "persistentvolumeclaims"},
                                    {"ephemeral", "persistentvolumeclaims (via ephemeral volumes)"},
                                    {"csi", "csidrivers (via CSI volumes)"},
                                    {"glusterfs", "endpoints (via glusterFS volumes)"},
                                    {"azureFile", "secrets (via azureFile volumes)"},
                                    {"cephfs.secretRef", "secrets"},
                                    {"cinder.secretRef", "secrets"},
                                    {"flexVolume.secretRef", "secrets"},
                                    {"iscsi.secretRef", "secrets"},
                                    {"rbd.secretRef", "secrets"},
                                    {"scaleIO.secretRef", "secrets"},
                                    {"storageos.secretRef", "secrets"}};
constexpr Reference kOfProjections[] = {{"secret", "secrets"},
                                        {"configMap", "configmaps"},
                                        {"serviceAccountToken", "serviceaccounts (via projected volumes)"},
                                        {"clusterTrustBundle", "clustertrustbundles"},
                                        {"podCertificate", "podcertificates"}};

Error refused_reference(const std::string& field, const char* resource) {
  return Error(Code::invalid, field + ": Forbidden: static pods may not reference " + resource);
}

std::string item_of(std::string_view list, size_t i) { return std::string(list) + "[" + std::to_string(i) + "]"; }

// `path` names the items' owner and ends with a dot.
template <typename Items>
Result<void> check_items(const Items& items, const std::string& path, std::string_view list,
                         std::span<const Reference> references) {
  for (size_t i = 0; i < items.size(); ++i)
    for (const auto& [field, resource] : references)
      if (find(items[i].raw(), field)) return refused_reference(path + item_of(list, i) + "." + field, resource);
  return {};
}

template <typename Containers>
Result<void> check_environments(const Containers& containers, std::string_view list) {
  for (size_t i = 0; i < containers.size(); ++i) {
    std::string path = "spec." + item_of(list, i) + ".";
    TRY(check_items(containers[i].env(), path, "env", kOfVariables));
    TRY(check_items(containers[i].env_from(), path, "envFrom", kOfEnvironments));
  }
  return {};
}

// Source: Kubernetes pkg/api/pod/util.go, HasAPIObjectReference; feature PreventStaticPodAPIReferences.
Result<void> check_references(view::PodSpec spec) {
  if (!spec.service_account_name().empty()) return refused_reference("spec.serviceAccountName", "serviceaccounts");
  if (!spec.image_pull_secrets().empty()) return refused_reference("spec.imagePullSecrets", "secrets");
  if (!spec.resource_claims().empty()) return refused_reference("spec.resourceClaims", "resourceclaims");
  TRY(check_environments(spec.init_containers(), "initContainers"));
  TRY(check_environments(spec.containers(), "containers"));
  TRY(check_items(spec.volumes(), "spec.", "volumes", kOfVolumes));
  for (size_t i = 0; i < spec.volumes().size(); ++i)
    TRY(check_items(spec.volumes()[i].projected().sources(), "spec." + item_of("volumes", i) + ".projected.", "sources",
                    kOfProjections));
  return {};
}

// Completes the pod, and checks it, as the API does for the body of a request.
Result<void> complete_static_pod(json::value& pod) {
  tolerate_every_eviction(pod);
  const schema::KindInfo& info = schema::catalog().of(kPod);
  schema::apply_defaults(info, pod);
  std::vector<Cause> causes = schema::validate_create(info, pod);
  if (!causes.empty()) return invalid(kPod, view::Pod(pod).metadata().name(), std::move(causes));
  return check_references(view::Pod(pod).spec());
}

}  // namespace

Result<StaticPod> static_pod(std::string_view text, const std::string& file, const std::string& node_name,
                             const std::function<bool(const std::string& uid)>& is_here) {
  std::vector<std::string> duplicates;  // of duplicate keys the last one counts, as for the kubelet
  auto documents = TRY(parse_yaml_with_floats(text, &duplicates).wrap(file));
  if (!duplicates.empty())
    log_warning("node", "a static pod's file has keys twice, the last one counts",
                {{"file", file}, {"keys", join(duplicates, ", ")}});
  if (documents.size() != 1)
    return Error(Code::invalid, file + ": holds " + std::to_string(documents.size()) + " documents, wanted one Pod");
  json::value& given = documents.front();
  if (!says_kind(given, kPod)) return Error(Code::invalid, file + ": is no v1 Pod");
  // A view reads a value of the wrong type as 0 or false: as the root user, or as no time at all.
  json::value typed = given;
  store_whole_numbers_as_integers(typed);
  schema::Decoded decoded = TRY(schema::decode(*schema::root_type("v1", "Pod"), std::move(typed)).wrap(file));
  if (!decoded.warnings.empty())
    log_warning("node", "a static pod's file has fields that no pod has",
                {{"file", file}, {"fields", join(decoded.warnings, ", ")}});
  json::value& pod = decoded.value;
  if (view::Pod(pod).metadata().name().empty()) return Error(Code::invalid, file + ": metadata.name: Required value");
  if (view::Pod(pod).spec().containers().empty()) return Error(Code::invalid, file + ": spec.containers: Required value");
  place_on(node_name, given);
  place_on(node_name, pod);
  // As the file has it, with the numbers as they are written: a daemon of another version finds its pods again.
  std::string hash = hash_of(to_text(given));
  make_object(pod, "metadata")["uid"] = hash;
  json::object& annotations = make_object(pod, "metadata.annotations");
  annotations[kHashAnnotation] = hash;
  annotations[kSourceAnnotation] = "file";
  json::value complete = pod;
  auto checked = complete_static_pod(complete).wrap(file);
  if (!checked && !(is_here && is_here(hash))) return checked.take_error();
  StaticPod made;
  made.object = TRY(Object::make(kPod, checked ? complete : pod));
  if (!checked)
    made.refused = std::make_shared<const std::string>(
        checked.error().text() +
        "; the pod was started before: what runs goes on, and its volumes stay, but none of its containers is started again");
  return made;
}

json::value mirror_of(const Object& pod, std::string_view node_uid) {
  json::value mirror = pod.json();
  json::object& metadata = make_object(mirror, "metadata");
  metadata.erase("uid");
  json::object& annotations = make_object(mirror, "metadata.annotations");
  annotations[kMirrorAnnotation] = pod.annotation(kHashAnnotation);
  if (!node_uid.empty())
    metadata["ownerReferences"] = json::array{json::object{{"apiVersion", "v1"},
                                                           {"kind", "Node"},
                                                           {"name", view::Pod(mirror).spec().node_name()},
                                                           {"uid", node_uid},
                                                           {"controller", true}}};
  if (auto* object = mirror.if_object()) object->erase("status");
  return mirror;
}

StaticPods::StaticPods(const AgentConfig& config, Client& client, Informer& pods, PodTable& table,
                       std::function<void(const std::string&)> look_again)
    : config_(config), client_(client), pods_(pods), table_(table), look_again_(std::move(look_again)) {
  if (config_.manifests_dir.empty()) return;
  if (auto made = sys::make_directories(config_.manifests_dir, 0755); !made) log_warning("node", made.error().text());
  auto watch = files::DirectoryWatch::make();
  if (watch) watch_ = std::make_unique<files::DirectoryWatch>(*std::move(watch));
  else log_warning("node", "static pods: changes are noticed late", {{"why", watch.error().text()}});
}

// Its directory is removed last, and before the table forgets the pod.
bool StaticPods::is_here(const std::string& uid) const {
  auto known = table_.get(uid);
  return known ? !known->gone : sys::exists(config_.state_dir + "/" + uid);
}

StaticPods::ByFile StaticPods::read_files(Remarks& remarks, bool& is_complete) const {
  ByFile now;
  auto entries = sys::list(config_.manifests_dir);
  is_complete = entries || entries.error().code() == Code::not_found;
  if (!is_complete) {  // nobody has removed the manifests
    remarks[""] = "the directory cannot be read, its pods go on: " + entries.error().text();
    return by_file_;
  }
  for (const sys::DirEntry& entry : std::move(entries).value_or({})) {
    const std::string& name = entry.name;
    if (name.starts_with(".")) continue;
    if (!is_manifest(name)) {
      remarks[name] = "it is not read: its name does not end in .yaml, .yml or .json";
      continue;
    }
    std::string path = config_.manifests_dir + "/" + name;
    auto text = sys::read_file(path, kManifestMax);
    auto here = [this](const std::string& uid) { return is_here(uid); };
    auto pod = text ? static_pod(*text, path, config_.node_name, here) : Result<StaticPod>(text.take_error());
    if (pod) {
      if (pod->refused) remarks[name] = *pod->refused;
      now[name] = *std::move(pod);
      continue;
    }
    is_complete &= text || !may_be_a_manifest(text.error());
    remarks[name] = pod.error().text();
    // The file may be incomplete at the moment.
    if (auto before = by_file_.find(name); before != by_file_.end()) now[name] = before->second;
  }
  return now;
}

// Selects the files whose pods run.
std::map<Key, std::string> StaticPods::choose(Remarks& remarks) const {
  std::map<Key, std::string> chosen;
  for (const auto& [file, pod] : by_file_) {
    auto runs = [&](const std::string& other) {  // after a restart of the daemon, the table and the disk know it
      auto before = runs_.find(pod.object->key());
      if (before != runs_.end()) return before->second == other;
      return is_here(by_file_.at(other).object->uid());
    };
    auto [there, first] = chosen.try_emplace(pod.object->key(), file);
    if (first) continue;
    std::string waits = file;
    if (runs(file) && !runs(there->second)) std::swap(waits, there->second);
    remarks[waits] = "pod " + pod.object->key().text() + " waits: " + there->second + " defines one of this name, too";
  }
  return chosen;
}

void StaticPods::log_new(Remarks remarks) {
  for (const auto& [file, text] : remarks)
    if (auto before = remarks_.find(file); before == remarks_.end() || before->second != text)
      log_warning("node", "static pods: " + text, {{"file", config_.manifests_dir + "/" + file}});
  remarks_ = std::move(remarks);
}

void StaticPods::read() {
  Remarks remarks;
  by_file_ = read_files(remarks, is_complete_);
  runs_ = choose(remarks);
  log_new(std::move(remarks));
  std::map<std::string, StaticPod> wanted;  // by uid
  for (const auto& [key, file] : runs_) wanted[by_file_.at(file).object->uid()] = by_file_.at(file);
  // Removed pods first: their successors must find them gone and wait for their end.
  for (const auto& uid : table_.uids()) {
    if (wanted.count(uid)) continue;
    bool ends = false;
    table_.change_existing(uid, [&](RestingPod& desired) {
      // If not all could be read, one of which only the sandbox is known goes on, unless its file is another pod now.
      const bool is_known = is_complete_ || desired.object || !desired.adopted_as || runs_.contains(*desired.adopted_as);
      ends = desired.is_static && !desired.gone && is_known;
      desired.gone |= ends;
    });
    if (ends) look_again_(uid);
  }
  for (const auto& [uid, pod] : wanted) {
    ObjectPtr shown = pods_.get(pod.object->key());  // perhaps since before a reboot: on_mirror did not find its pod
    if (shown && shown->annotation(kMirrorAnnotation) != uid) shown = nullptr;
    table_.change(uid, [&](RestingPod& desired) {
      if (shown && !desired.mirror) desired.mirror = shown->at_rest();
      desired.object = pod.object->at_rest();
      desired.refused = pod.refused;
      desired.is_static = true;
      desired.gone = false;
    });
    look_again_(uid);
  }
}

namespace {

bool is_named(const DesiredPod& pod, KeyView name) {
  return pod.object ? pod.object->key() == name : pod.adopted_as && name == KeyView(*pod.adopted_as);
}

}  // namespace

Result<void> StaticPods::reflect() {
  std::set<std::string> shown;
  std::string node_uid;
  Result<void> outcome;  // the first error: a mirror that the API refuses does not keep the others from it
  for (const auto& object : pods_.list()) {
    if (object->annotation(kMirrorAnnotation).empty() || view::Pod(*object).spec().node_name() != config_.node_name) continue;
    auto pod = table_.get(std::string(object->annotation(kMirrorAnnotation)));
    bool fine = pod && pod->is_static && !pod->gone && !object->deleting() && is_named(*pod, object->key());
    if (fine) {
      shown.emplace(object->annotation(kMirrorAnnotation));
      continue;
    }
    if (!pod && !is_complete_) continue;  // its manifest may be one that could not be read
    auto removed = client_.remove(kPod, object->key(), {.grace_period_seconds = 0, .uid = object->uid()});
    if (!removed && removed.error().code() != Code::not_found && removed.error().code() != Code::conflict)
      return std::move(removed).wrap("remove mirror pod " + object->key().text());
  }
  for (const auto& uid : table_.uids()) {
    auto pod = table_.get(uid);
    if (!pod || !pod->is_static || pod->gone || !pod->object || shown.count(uid)) continue;
    if (node_uid.empty())
      if (auto node = client_.get(kNode, {"", config_.node_name})) node_uid = (*node)->uid();
    auto made = client_.create(kPod, mirror_of(*pod->object, node_uid));
    if (!made && pod->refused && made.error().code() == Code::invalid) continue;  // the API refuses it for the same reason
    if (!made && made.error().code() != Code::already_exists && outcome)
      outcome = made.take_error().wrap("make mirror pod " + pod->object->key().text());
  }
  return outcome;
}

bool StaticPods::on_mirror(const Informer::Change& change) {
  std::string uid(change.any().annotation(kMirrorAnnotation));
  if (uid.empty()) return false;
  table_.change_existing(uid, [&](RestingPod& desired) {
    if (desired.is_static) desired.mirror = change.after ? change.after->at_rest() : nullptr;
  });
  look_again_(uid);
  if (!change.after || change.after->deleting() || !change.before) touch();
  return true;
}

void StaticPods::run(std::stop_token stop) {
  // Opened before the directory: a disk that is mounted over it meanwhile is told by the first wait.
  const Fd mounts = sys::open("/proc/self/mountinfo", O_RDONLY).value_or(Fd());
  std::string told;  // why the directory is not watched, as last logged
  while (!stop.stop_requested()) {
    // Somebody may have put another directory in its place; until there is one, nothing tells that it has come.
    auto watched = watch_ ? watch_->follow(config_.manifests_dir) : Result<void>();
    const std::string why = watched || watched.error().code() == Code::not_found ? "" : watched.error().text();
    if (!why.empty() && why != told) log_warning("node", "static pods: changes are noticed late", {{"why", why}});
    told = why;
    read();
    auto reflected = reflect();
    if (!reflected) log_warning("node", reflected.error().text());
    const bool is_done = reflected && watched && is_complete_;
    if (watch_) {
      watch_->wait(stop, is_done ? std::nullopt : std::optional<std::chrono::milliseconds>(kManifestsRetry), &mounts);
    } else {
      Guarded<bool> nothing(false);
      nothing.wait_until(
          stop, std::chrono::steady_clock::now() + kManifestsRetry, [](bool) { return false; }, [](bool) {});
    }
  }
}

}  // namespace coracle::node
