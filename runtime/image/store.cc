// SPDX-License-Identifier: Apache-2.0
// See store.h. There are two locks. `state_` is held briefly, for the state in memory. `disk_` is taken first, and is held while
// the index is written or garbage is collected; only pulls and removals wait for it. So nothing is collected that a pull has just
// found.
#include "runtime/image/store.h"

#include <linux/mount.h>

#include <algorithm>
#include <set>

#include "runtime/base/guarded.h"
#include "runtime/base/log.h"
#include "runtime/base/text.h"
#include "runtime/image/claims.h"
#include "runtime/image/content.h"
#include "runtime/image/job.h"
#include "runtime/image/pulled_record.h"
#include "runtime/image/reference.h"
#include "runtime/image/rewrite.h"
#include "runtime/image/snapshot_dir.h"
#include "runtime/image/users.h"
#include "runtime/image/worker.h"
#include "runtime/sys/file.h"
#include "runtime/sys/inode.h"
#include "runtime/sys/mount.h"
#include "runtime/sys/namespaces.h"

namespace coracle::image {
namespace {

constexpr std::chrono::seconds kOrphanAge = std::chrono::hours(24);  // leftovers of an unfinished pull may be reused
constexpr size_t kUsersCached = 512;

struct Known {  // one image in memory
  Record record;
  runtime::Image image;
  std::vector<Digest> chain;
  std::vector<std::string> lower;  // layer directories for the overlay, topmost first
  PulledRecord pulled;
};

struct State {
  std::vector<Known> images;
  std::map<std::string, std::string> snapshots;  // name → image id
  std::map<std::string, std::string> holds;      // holder → image id
  std::multiset<Digest> pinned;                  // layers and configurations of running pulls
  std::map<std::pair<std::string, std::string>, oci::User> users;
  std::map<std::string, SteadyTime> used_at;  // image id → when it came, or a use of it began or ended
  SteadyTime opened_at;                       // of the store: for images without such a time
};

using Written = std::vector<Record>;  // the contents of images.json

void note_use(State& state, const std::string& image_id) { state.used_at[image_id] = system_clock().steady(); }

SteadyTime last_use(const State& state, const std::string& image_id) {
  auto used = state.used_at.find(image_id);
  return used == state.used_at.end() ? state.opened_at : used->second;
}

// Why nothing may be pulled from a registry: RegistrySettings::refused. "": it may.
std::string refusal_of(const runtime::RegistrySettings& settings, const std::string& registry) {
  if (!settings.refused_all.empty()) return settings.refused_all;
  auto found = settings.refused.find(registry);
  if (found == settings.refused.end() && !settings.servers.contains(registry) && !settings.mirrors.contains(registry))
    found = settings.refused.find("*");
  return found == settings.refused.end() ? std::string() : found->second;
}

// Every name of it is a registry's: it can be pulled again.
bool was_pulled(const Known& known) {
  const auto& all = known.pulled.repositories;
  return !all.empty() && std::none_of(all.begin(), all.end(), [](const auto& from) { return from.second.imported; });
}

// The users of an image: names of snapshots and of holders.
std::vector<std::string> users_in(const State& state, std::string_view image_id) {
  std::vector<std::string> users;
  for (const auto* all : {&state.snapshots, &state.holds})
    for (const auto& [user, image] : *all)
      if (image == image_id) users.push_back(user);
  return users;
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

bool contains(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// Its names now belong to other images: it can no longer be requested, unless by a registry's digest. The digest of an imported
// image is only known on this machine. An image that never had a name is requested by its id.
bool has_lost_its_names(const Known& known) {
  if (!known.record.references.empty()) return false;
  const auto& all = known.pulled.repositories;
  if (known.record.digests.empty()) return !all.empty();
  return known.record.untagged && std::all_of(all.begin(), all.end(), [](const auto& from) { return from.second.imported; });
}

void take_tags(Known& known, const std::vector<std::string>& tags) {
  auto& its = known.record.references;
  auto taken = std::erase_if(its, [&](const std::string& name) { return contains(tags, name); });
  known.record.untagged |= taken > 0 && its.empty();
  known.image.references = its;
}

// The repository of a name in a record, which ends with a tag or a digest.
std::string repository_of(const std::string& name) {
  size_t at = name.find('@');
  return name.substr(0, at == name.npos ? name.rfind(':') : at);
}

std::set<std::string> repositories_of(const Record& record) {
  std::set<std::string> out;
  for (const auto* names : {&record.references, &record.digests})
    for (const std::string& name : *names) out.insert(repository_of(name));
  return out;
}

// Called before the first note in a record: an image that is older than these records stays available to everybody under its
// other names.
void note_names_before(PulledRecord& pulled, const Record& image, const std::set<std::string>& noted_next) {
  if (pulled.noted) return;
  for (const std::string& name : repositories_of(image))
    if (!noted_next.contains(name)) note_import(pulled, name);
}

// A reference or an id, as entered by a user.
struct Wanted {
  std::string id;                   // "sha256:…"
  std::string reference;            // "docker.io/library/nginx:1.27"
  std::string digest;               // "docker.io/library/nginx@sha256:…"
  std::string repository() const {  // "docker.io/library/nginx"; "" for an id
    return id.empty() ? repository_of(digest.empty() ? reference : digest) : "";
  }
  bool fits(const Record& record) const {
    if (!id.empty()) return record.id.text() == id;
    if (!digest.empty()) return contains(record.digests, digest);
    return contains(record.references, reference);
  }
};

// The beginning of an id, as printed in lists of images.
bool is_id_beginning(std::string_view text) {
  constexpr size_t kLeast = 6, kWhole = 64;
  if (text.starts_with("sha256:")) text.remove_prefix(7);
  return text.size() >= kLeast && text.size() < kWhole && text.find_first_not_of("0123456789abcdef") == text.npos;
}

// Finds an image by name or id, otherwise by the beginning of an id. Errors: not_found; invalid if several match.
Result<std::vector<Known>::iterator> find_known(std::vector<Known>& images, const Wanted& wanted, std::string_view text) {
  auto found = std::find_if(images.begin(), images.end(), [&](const Known& known) { return wanted.fits(known.record); });
  if (found != images.end()) return found;
  if (is_id_beginning(text)) {
    std::string beginning = text.starts_with("sha256:") ? std::string(text) : "sha256:" + std::string(text);
    auto begins_so = [&](const Known& known) { return known.record.id.text().starts_with(beginning); };
    if (std::count_if(images.begin(), images.end(), begins_so) > 1)
      return Error(Code::invalid, quoted(text) + " is the beginning of several images' ids");
    found = std::find_if(images.begin(), images.end(), begins_so);
  }
  if (found == images.end()) return Error(Code::not_found, "no image " + quoted(text) + " here");
  return found;
}

Result<Wanted> parse_wanted(std::string_view text) {
  for (const std::string& id : {std::string(text), "sha256:" + std::string(text)})
    if (Digest::parse(id)) return Wanted{id, "", ""};
  Reference reference = TRY(parse_reference(text));
  if (reference.digest) return Wanted{"", "", reference.name() + "@" + reference.digest->text()};
  return Wanted{"", reference.tagged(), ""};
}

class DirStore final : public Store {
 public:
  DirStore(const Options& options, Content content)
      : options_(options),
        platform_(this_machine()),
        content_(std::move(content)),
        snapshot_dir_(content_.snapshots(), content_.path() + "/snapshots", content_.spool(), content_.path() + "/staging") {
    if (!options.architecture.empty()) platform_ = {options.architecture, "linux", ""};
  }

  Result<void> load();

  std::vector<runtime::Image> list() override;
  Result<runtime::Image> find(std::string_view reference) override;
  runtime::ImageAccess access(const runtime::Image& image, std::string_view reference,
                              const std::vector<runtime::Credentials>& credentials) override;
  Result<runtime::Image> pull(std::string_view reference, const std::vector<runtime::Credentials>& credentials,
                              const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop) override;
  Result<std::vector<runtime::Image>> import(const Fd& archive, std::string_view name, std::stop_token stop) override;
  Result<void> write_archive(const std::vector<std::string>& references, const Fd& archive) override;
  Result<runtime::Removal> remove(std::string_view reference) override;
  Result<runtime::Image> tag(std::string_view reference, std::string_view name) override;
  Result<std::vector<runtime::Image>> prune(bool all) override;
  Result<std::vector<runtime::Image>> collect(std::chrono::seconds least, const std::function<bool()>& is_enough) override;
  Result<oci::User> resolve_user(const runtime::Image& image, std::string_view user) override;
  Result<void> mount(const std::string& image_id, const std::string& holder, const std::string& directory,
                     const std::vector<oci::IdMapping>& ids) override;
  Result<void> release(const std::string& holder) override;
  Snapshots& snapshots() override { return held_; }

 private:
  struct Held final : Snapshots {  // the second interface of the store
    DirStore& store;
    explicit Held(DirStore& store) : store(store) {}
    Result<void> create(const std::string& name, const std::string& image_id, const Fd* id_map) override;
    Result<Fd> mount(const std::string& name, const Fd* id_map) override;
    Result<Fd> writable(const std::string& name) override { return store.snapshot_dir_.writable(name); }
    Result<void> remove(const std::string& name) override;
    Result<std::vector<std::string>> list() override;
    Result<Fd> mount_image(const std::string& image_id) override;
  };

  Result<Known> know(const Record& record, std::string_view configuration) const;
  PulledRecord pulled_of(const Digest& id) const;
  Result<std::vector<std::string>> lower_of(const std::string& image_id);
  Scope pin(const Digest& id, const std::vector<Digest>& chain);
  // Adds the origin of an image to its record of pulls.
  using Note = std::function<void(PulledRecord& record, const std::string& repository)>;
  Result<runtime::Image> add(const Record& image, const Note& note);
  Result<void> note(const std::string& image_id, const Note& note, const std::string& repository);
  Result<std::vector<runtime::Image>> run(Job job, const Fd* archive,
                                          const std::function<void(const runtime::PullProgress&)>& progress,
                                          std::stop_token stop);
  Result<void> commit(Written& written, std::vector<Known> images, const std::set<Digest>& doomed);
  Result<runtime::Removal> drop(Written& written, const Wanted& wanted, std::string_view text);
  std::vector<std::string> users_of(const std::string& image_id) const;
  Result<bool> hold(const std::string& image_id, const std::string& holder);  // false: it already held this image
  void sweep_unnamed(const std::string& image_id);
  // Removes from the state and from `images` those that `is_unwanted` matches and no container uses. Returns them.
  std::vector<Known> take_unused(std::vector<Known>& images, const std::function<bool(const Known&)>& is_unwanted);
  // Commits `images` without them.
  Result<std::vector<runtime::Image>> sweep(Written& written, std::vector<Known> images,
                                            const std::function<bool(const Known&)>& is_unwanted);
  std::vector<Known> known() const {
    return state_.with([](const State& state) { return state.images; });
  }

  const Options options_;
  Platform platform_;
  Content content_;
  SnapshotDir snapshot_dir_;
  Claims claims_;
  Guarded<State> state_;
  Guarded<Written> disk_;
  Held held_{*this};
};

// ---- state ----

Result<Known> DirStore::know(const Record& record, std::string_view text) const {
  Configuration configuration = TRY(parse_configuration(text));
  Known known{record, {}, {}, {}, {}};
  known.image.id = record.id.text();
  known.image.references = record.references;
  known.image.digests = record.digests;
  known.image.created = configuration.created;
  known.image.config = configuration.config;
  known.image.platform = configuration.platform.text();
  if (!runs_on(configuration.platform, platform_)) known.image.other_machine = platform_.text();
  known.chain = chain_ids(configuration.diff_ids);
  bool hidden = false;  // the layers below an opaque root are hidden
  for (size_t i = known.chain.size(); i-- > 0;) {
    Bytes size = TRY(content_.layer_size(known.chain[i]).wrap("layer " + known.chain[i].text()));
    known.image.size += size;
    if (hidden) continue;
    Fd root = TRY(content_.open_layer(known.chain[i]));
    known.lower.push_back(content_.layer_path(known.chain[i]));
    auto opaque = sys::get_attribute(root, "trusted.overlay.opaque");
    hidden = opaque && *opaque == "y";
  }
  if (known.lower.empty()) known.lower.push_back(content_.path() + "/empty");
  known.pulled = pulled_of(record.id);
  return known;
}

// An unreadable record counts as unproven: registries are asked again.
PulledRecord DirStore::pulled_of(const Digest& id) const {
  PulledRecord nothing, lost;
  lost.noted = true;
  auto text = content_.read_pulled(id);
  if (!text && text.error().code() == Code::not_found) return nothing;
  auto document = text ? parse_json(*text) : Result<json::value>(text.take_error());
  auto record = document ? PulledRecord::from_json(*document) : Result<PulledRecord>(document.take_error());
  if (record) return *std::move(record);
  log_warning("image", "the record of an image's pulls is damaged: pods prove their right to it anew",
              {{"image", id.text()}, {"error", record.error().text()}});
  return lost;
}

Result<void> DirStore::load() {
  std::vector<Record> records = TRY(content_.read_index());
  SnapshotDir::Found found = TRY(snapshot_dir_.load().wrap("snapshots"));
  state_.with([&](State& state) {
    state.snapshots = std::move(found.snapshots), state.holds = std::move(found.holds);
    state.opened_at = system_clock().steady();
  });
  std::vector<Known> images;
  for (const Record& record : records) {
    auto text = content_.read_config(record.id);
    auto known = text ? know(record, *text) : Result<Known>(text.take_error());
    if (known) images.push_back(std::move(*known));
    else log_warning("image", "image is damaged and left out", {{"image", record.id.text()}, {"error", known.error().text()}});
  }
  return disk_.with([&](Written& written) {
    written = std::move(records);
    state_.with([&](State& state) { state.images = images; });
    return sys::unless_read_only(commit(written, std::move(images), {}));
  });
}

std::vector<runtime::Image> DirStore::list() {
  return state_.with([](const State& state) {
    std::vector<runtime::Image> out;
    for (const Known& known : state.images) out.push_back(known.image);
    return out;
  });
}

Result<runtime::Image> DirStore::find(std::string_view reference) {
  Wanted wanted = TRY(parse_wanted(reference));
  return state_.with([&](const State& state) -> Result<runtime::Image> {
    for (const Known& known : state.images)
      if (wanted.fits(known.record)) return known.image;
    return Error(Code::not_found, "no image " + quoted(reference) + " here");
  });
}

Result<std::vector<std::string>> DirStore::lower_of(const std::string& image_id) {
  return state_.with([&](const State& state) -> Result<std::vector<std::string>> {
    for (const Known& known : state.images)
      if (known.image.id == image_id) return known.lower;
    return Error(Code::not_found, "no image " + image_id + " here");
  });
}

runtime::ImageAccess DirStore::access(const runtime::Image& image, std::string_view text,
                                      const std::vector<runtime::Credentials>& credentials) {
  auto wanted = parse_wanted(text);
  if (!wanted) return runtime::ImageAccess::unproven;
  const std::string repository = wanted->repository();
  std::optional<PulledWith> learned;
  auto found = state_.with([&](const State& state) {
    for (const Known& known : state.images)
      if (known.image.id == image.id) return find_access(known.pulled, repository, credentials, learned);
    return runtime::ImageAccess::unproven;
  });
  if (!learned) return found;
  auto noted = note(
      image.id, [&](PulledRecord& record, const std::string& from) { note_pull(record, from, &*learned); }, repository);
  if (!noted)  // the result does not depend on it
    log_warning("image", "cannot note who may use an image", {{"image", image.id}, {"error", noted.error().text()}});
  return found;
}

// ---- changes ----

// Writes the index, then drops and deletes what is no longer needed: `doomed` at once, other orphans when they are old.
Result<void> DirStore::commit(Written& written, std::vector<Known> images, const std::set<Digest>& doomed) {
  std::vector<Record> records;
  std::set<Digest> configs, chains;
  for (const Known& known : images) {
    records.push_back(known.record);
    configs.insert(known.record.id);
    chains.insert(known.chain.begin(), known.chain.end());
  }
  if (written != records) TRY(content_.write_index(records).wrap("write the list of images"));
  written = std::move(records);
  state_.with([&](State& state) {
    state.images = std::move(images);
    for (const Digest& pinned : state.pinned) configs.insert(pinned), chains.insert(pinned);
  });
  return content_.collect(configs, chains, doomed, kOrphanAge).wrap("delete what no image needs");
}

// Nothing in the arguments is collected while the Scope lives. Waits for a running collection.
Scope DirStore::pin(const Digest& id, const std::vector<Digest>& chain) {
  std::vector<Digest> all = chain;
  all.push_back(id);
  disk_.with([&](Written&) { state_.with([&](State& state) { state.pinned.insert(all.begin(), all.end()); }); });
  return Scope([this, all] {
    state_.with([&](State& state) {
      for (const Digest& digest : all) state.pinned.erase(state.pinned.find(digest));
    });
  });
}

// The last step of a pull or import: adds the image with these names, which are taken from other images.
Result<runtime::Image> DirStore::add(const Record& added, const Note& note) {
  return disk_.with([&](Written& written) -> Result<runtime::Image> {
    std::string configuration = TRY(content_.read_config(added.id));
    std::vector<Known> images = known();
    for (Known& other : images) take_tags(other, added.references);
    auto there = std::find_if(images.begin(), images.end(), [&](const Known& known) { return known.record.id == added.id; });
    Record record = there != images.end() ? there->record : Record{added.id, {}, {}, false};
    for (const std::string& name : added.references) add_once(record.references, name);
    if (!record.references.empty()) record.untagged = false;
    for (const std::string& digest : added.digests) add_once(record.digests, digest);
    Known known = TRY(know(record, configuration));
    const std::set<std::string> came_from = repositories_of(added);
    if (there != images.end()) note_names_before(known.pulled, there->record, came_from);
    for (const std::string& name : came_from) note(known.pulled, name);
    TRY(content_.write_pulled(added.id, to_text(known.pulled.to_json())).wrap("note how the image came"));
    runtime::Image image = known.image;
    state_.with([&](State& state) { note_use(state, image.id); });
    if (there != images.end()) *there = std::move(known);
    else images.push_back(std::move(known));
    TRY(sweep(written, std::move(images), has_lost_its_names));
    return image;
  });
}

std::vector<std::string> DirStore::users_of(const std::string& image_id) const {
  return state_.with([&](const State& state) { return users_in(state, image_id); });
}

// create() and hold() look for the image under the same lock.
std::vector<Known> DirStore::take_unused(std::vector<Known>& images, const std::function<bool(const Known&)>& is_unwanted) {
  std::vector<Known> taken;
  state_.with([&](State& state) {
    auto goes = [&](const Known& known) { return is_unwanted(known) && users_in(state, known.image.id).empty(); };
    for (const Known& known : images)
      if (goes(known)) taken.push_back(known);
    std::erase_if(images, goes);
    std::erase_if(state.images, goes);
    for (const Known& known : taken) state.used_at.erase(known.image.id);
  });
  return taken;
}

Result<std::vector<runtime::Image>> DirStore::sweep(Written& written, std::vector<Known> images,
                                                    const std::function<bool(const Known&)>& is_unwanted) {
  std::vector<Known> taken = take_unused(images, is_unwanted);
  std::set<Digest> doomed;
  std::vector<runtime::Image> gone;
  for (const Known& known : taken) {
    doomed.insert(known.chain.begin(), known.chain.end());
    doomed.insert(known.record.id);
    gone.push_back(known.image);
  }
  TRY(commit(written, std::move(images), doomed));
  return gone;
}

// Adds to the record of a local image.
Result<void> DirStore::note(const std::string& image_id, const Note& note, const std::string& repository) {
  return disk_.with([&](Written&) -> Result<void> {
    std::optional<PulledRecord> record = state_.with([&](const State& state) -> std::optional<PulledRecord> {
      for (const Known& known : state.images)
        if (known.image.id == image_id) return known.pulled;
      return std::nullopt;
    });
    if (!record) return {};  // removed meanwhile, with its record
    note(*record, repository);
    Digest id = TRY(Digest::parse(image_id));
    TRY(content_.write_pulled(id, to_text(record->to_json())));
    state_.with([&](State& state) {
      for (Known& known : state.images)
        if (known.image.id == image_id) known.pulled = *record;
    });
    return {};
  });
}

// Runs the job in a worker. Returns the images that it has added.
Result<std::vector<runtime::Image>> DirStore::run(Job job, const Fd* archive,
                                                  const std::function<void(const runtime::PullProgress&)>& progress,
                                                  std::stop_token stop) {
  std::optional<Staging> staging;      // removed after the worker, with its leftovers
  if (job.kind != JobKind::export_) {  // a read-only job must work on a full or read-only disk
    Staging own = TRY(content_.stage());
    job.staging = staging.emplace(std::move(own)).name();
  }
  job.store = content_.path();
  job.platform = platform_;
  std::vector<runtime::Image> images;
  std::vector<Scope> pinned;
  JobEvents events;
  events.progress = progress;
  events.pin = [&](const Digest& id, const std::vector<Digest>& chain) -> Result<void> {
    pinned.push_back(pin(id, chain));
    return {};
  };
  events.add = [&](const Record& image, std::optional<size_t> used) -> Result<void> {
    if (used && *used >= job.credentials.size())
      return Error(Code::internal, "coracle-image used credentials that it was not given");
    runtime::Image added = TRY(add(image, [&](PulledRecord& record, const std::string& repository) {
      if (job.kind == JobKind::import) return note_import(record, repository);
      std::optional<PulledWith> with;
      const size_t of_pod = job.credentials.size() - job.machine_credentials;  // the machine's own are everybody's
      if (used && *used < of_pod) with = pulled_with(job.credentials[*used]);
      note_pull(record, repository, with ? &*with : nullptr);
    }));
    images.push_back(std::move(added));
    return {};
  };
  TRY(run_job(options_.worker_program, job, archive ? std::vector{archive} : std::vector<const Fd*>(), events, stop));
  return images;
}

Result<runtime::Image> DirStore::pull(std::string_view text, const std::vector<runtime::Credentials>& credentials,
                                      const std::function<void(const runtime::PullProgress&)>& progress, std::stop_token stop) {
  Reference reference = TRY(parse_reference(text));
  Scope claimed = TRY(claims_.take("registry " + reference.registry, stop));
  Job job;
  job.name = text;
  job.credentials = credentials;
  runtime::RegistrySettings registries;
  if (options_.registries) registries = options_.registries();
  if (std::string why = refusal_of(registries, reference.registry); !why.empty())
    return Error(Code::invalid, "pull " + reference.text() + ": " + why);
  job.insecure_registries = std::move(registries.insecure);
  auto servers = registries.servers.find(reference.registry);
  if (servers == registries.servers.end() && !registries.mirrors.contains(reference.registry))
    servers = registries.servers.find("*");
  if (servers != registries.servers.end()) job.servers = servers->second;
  job.mirrors = std::move(registries.mirrors);
  for (auto& [host, settings] : registries.hosts) {
    if (settings.credentials.registry.empty()) continue;
    job.credentials.push_back(std::move(settings.credentials));
    ++job.machine_credentials;
  }
  job.hosts = std::move(registries.hosts);
  if (!job.servers)
    job.mirror_repository = rewrite_repository(reference.repository, rewrites_of(registries.rewrites, reference.registry));
  job.retry_delay = options_.retry_delay;
  std::vector<runtime::Image> images = TRY(run(std::move(job), nullptr, progress, stop));
  if (images.size() != 1) return Error(Code::internal, "pull " + reference.text() + ": coracle-image brought no image");
  return std::move(images[0]);
}

Result<std::vector<runtime::Image>> DirStore::import(const Fd& archive, std::string_view name, std::stop_token stop) {
  Job job;
  job.kind = JobKind::import;
  job.name = name;
  return run(std::move(job), &archive, nullptr, std::move(stop));
}

Result<void> DirStore::write_archive(const std::vector<std::string>& references, const Fd& archive) {
  Job job;
  job.kind = JobKind::export_;
  std::vector<Scope> pinned;
  for (const std::string& text : references) {
    const Wanted wanted = TRY(parse_wanted(text));
    auto find_it = [&]() -> Result<Known> {
      std::vector<Known> images = known();
      auto found = TRY(find_known(images, wanted, text));
      return *found;
    };
    const Known found = TRY(find_it());
    pinned.push_back(pin(found.record.id, found.chain));
    TRY(find_it());  // it may have been removed before hold()
    auto there = std::find_if(job.images.begin(), job.images.end(), [&](const Record& r) { return r.id == found.record.id; });
    if (there == job.images.end()) there = job.images.insert(there, Record{found.record.id, {}, {}, false});
    const bool is_tag = wanted.fits(found.record) && !wanted.reference.empty();
    for (const std::string& name : is_tag ? std::vector{wanted.reference} : found.record.references)
      add_once(there->references, name);
  }
  TRY(run(std::move(job), &archive, nullptr, {}));
  return {};
}

Result<runtime::Image> DirStore::tag(std::string_view text, std::string_view name) {
  Wanted wanted = TRY(parse_wanted(text));
  Reference reference = TRY(parse_reference(name));
  if (reference.digest) return Error(Code::invalid, "a new name has a tag, no digest: " + quoted(name));
  const std::string tagged = reference.tagged();
  return disk_.with([&](Written& written) -> Result<runtime::Image> {
    std::vector<Known> images = known();
    auto found = TRY(find_known(images, wanted, text));
    for (Known& other : images)
      if (other.record.id != found->record.id) take_tags(other, {tagged});
    note_names_before(found->pulled, found->record, {reference.name()});
    add_once(found->record.references, tagged);
    found->record.untagged = false;
    found->image.references = found->record.references;
    note_import(found->pulled, reference.name());
    TRY(content_.write_pulled(found->record.id, to_text(found->pulled.to_json())).wrap("note how the image came"));
    runtime::Image image = found->image;
    TRY(sweep(written, std::move(images), has_lost_its_names));
    return image;
  });
}

Result<std::vector<runtime::Image>> DirStore::prune(bool all) {
  return disk_.with([&](Written& written) {
    return sweep(written, known(), [&](const Known& each) { return all || each.record.references.empty(); });
  });
}

Result<std::vector<runtime::Image>> DirStore::collect(std::chrono::seconds least, const std::function<bool()>& is_enough) {
  std::vector<std::pair<SteadyTime, std::string>> unused = state_.with([&](const State& state) {
    std::vector<std::pair<SteadyTime, std::string>> all;
    for (const Known& known : state.images) {
      const SteadyTime at = last_use(state, known.image.id);
      if (was_pulled(known) && at + least <= system_clock().steady() && users_in(state, known.image.id).empty())
        all.emplace_back(at, known.image.id);
    }
    return all;
  });
  std::sort(unused.begin(), unused.end());
  std::vector<runtime::Image> gone;
  for (const auto& [at, id] : unused) {
    if (is_enough()) break;
    std::vector<runtime::Image> removed = TRY(disk_.with([&](Written& written) -> Result<std::vector<runtime::Image>> {
      // The others took their time: meanwhile it may have been pulled again, for a container that is not begun yet.
      if (state_.with([&](const State& state) { return last_use(state, id) != at; })) return std::vector<runtime::Image>();
      return sweep(written, known(), [&](const Known& each) { return each.image.id == id && was_pulled(each); });
    }));
    for (runtime::Image& each : removed) gone.push_back(std::move(each));
  }
  return gone;
}

Result<runtime::Removal> DirStore::remove(std::string_view text) {
  Wanted wanted = TRY(parse_wanted(text));
  return disk_.with([&](Written& written) { return drop(written, wanted, text); });
}

Result<runtime::Removal> DirStore::drop(Written& written, const Wanted& wanted, std::string_view text) {
  std::vector<Known> images = known();
  auto found = TRY(find_known(images, wanted, text));
  const Known before = *found;
  Record& record = found->record;
  if (!wanted.fits(record) || !wanted.id.empty()) {
    record.references.clear();
  } else if (!wanted.reference.empty()) {
    std::erase(record.references, wanted.reference);
  } else {  // by digest: also removes the tags of this repository
    std::string name = wanted.digest.substr(0, wanted.digest.find('@'));
    std::erase(record.digests, wanted.digest);
    std::erase_if(record.references, [&](const std::string& tagged) { return tagged.substr(0, tagged.rfind(':')) == name; });
  }
  found->image.references = record.references;
  found->image.digests = record.digests;
  if (!record.references.empty() || (!wanted.digest.empty() && !record.digests.empty())) {
    // If the image is added under that name again, earlier rights must not apply.
    auto names = repositories_of(record);
    auto gone = std::erase_if(found->pulled.repositories, [&](const auto& from) { return !names.contains(from.first); });
    if (gone > 0) TRY(content_.write_pulled(record.id, to_text(found->pulled.to_json())));
    runtime::Removal left{found->image, false, users_of(before.image.id)};
    TRY(commit(written, std::move(images), {}));
    return left;
  }

  // The last name: from now on nobody can start to use the image. create() looks for it under the same lock.
  std::string user = state_.with([&](State& state) {
    if (auto users = users_in(state, before.image.id); !users.empty()) return users.front();
    std::erase_if(state.images, [&](const Known& known) { return known.record.id == before.record.id; });
    state.used_at.erase(before.image.id);
    return std::string();
  });
  if (!user.empty()) return Error(Code::conflict, "the image is in use by " + user);
  std::set<Digest> doomed(before.chain.begin(), before.chain.end());
  doomed.insert(before.record.id);
  images.erase(found);
  auto done = commit(written, std::move(images), doomed);
  bool still_listed = std::find(written.begin(), written.end(), before.record) != written.end();
  if (!done && still_listed) state_.with([&](State& state) { state.images.push_back(before); });
  if (!done) return done.take_error();
  return runtime::Removal{before.image, true, {}};
}

// ---- reading images ----

Result<oci::User> DirStore::resolve_user(const runtime::Image& image, std::string_view user) {
  std::pair<std::string, std::string> key(image.id, user);
  auto cached = state_.with([&](const State& state) -> std::optional<oci::User> {
    auto found = state.users.find(key);
    return found == state.users.end() ? std::nullopt : std::optional(found->second);
  });
  if (cached) return *cached;
  Fd root = TRY(held_.mount_image(image.id));
  std::string passwd = TRY(read_account_file(root, "etc/passwd"));
  std::string group = TRY(read_account_file(root, "etc/group"));
  oci::User resolved = TRY(find_user(user, passwd, group));
  state_.with([&](State& state) {
    if (state.users.size() >= kUsersCached) state.users.clear();
    state.users[key] = resolved;
  });
  return resolved;
}

// ---- holders ----

Result<void> DirStore::mount(const std::string& image_id, const std::string& holder, const std::string& directory,
                             const std::vector<oci::IdMapping>& ids) {
  if (!is_snapshot_name(holder)) return Error(Code::invalid, "no good holder of an image: " + coracle::quoted(holder));
  Fd place = TRY(sys::open_directory(directory));
  const bool is_new = TRY(hold(image_id, holder));
  Scope undo([&] {
    if (is_new) (void)release(holder);  // the original error is reported
  });
  std::vector<std::string> lower = TRY(lower_of(image_id));
  std::optional<sys::OwnedNamespaces> users;
  std::vector<sys::IdRange> ranges;
  for (const oci::IdMapping& each : ids) ranges.push_back({each.container_id, each.host_id, each.size});
  if (!ranges.empty()) users = TRY(sys::make_user_namespace(ranges, ranges, 0).wrap("map the owners of an image's files"));
  Fd mounted = TRY(snapshot_dir_.mount_read_only(lower, users ? &users->user : nullptr));
  constexpr uint64_t kOnlyData = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC;
  TRY(sys::change_mount(mounted, {.set = kOnlyData}));
  TRY(sys::attach_mount(mounted, place));
  undo.dismiss();
  return {};
}

Result<bool> DirStore::hold(const std::string& image_id, const std::string& holder) {
  std::string before;
  TRY(state_.with([&](State& state) -> Result<void> {
    auto is_it = [&](const Known& known) { return known.image.id == image_id; };
    if (std::none_of(state.images.begin(), state.images.end(), is_it))
      return Error(Code::not_found, "no image " + image_id + " here");
    before = std::exchange(state.holds[holder], image_id);
    note_use(state, image_id);
    if (!before.empty()) note_use(state, before);
    return {};
  }));
  if (before == image_id) return false;
  auto noted = snapshot_dir_.hold(holder, image_id);
  if (!noted) {
    state_.with([&](State& state) {
      if (before.empty()) state.holds.erase(holder);
      else state.holds[holder] = before;
    });
    return noted.take_error();
  }
  if (!before.empty()) sweep_unnamed(before);
  return true;
}

Result<void> DirStore::release(const std::string& holder) {
  auto held = state_.with([&](const State& state) {
    auto found = state.holds.find(holder);
    return found == state.holds.end() ? std::string() : found->second;
  });
  if (held.empty()) return {};
  TRY(snapshot_dir_.release(holder));
  state_.with([&](State& state) {
    state.holds.erase(holder);
    note_use(state, held);
  });
  sweep_unnamed(held);
  return {};
}

// Removes the image if its name was taken by a newer one while it was in use, and nobody uses it any more.
void DirStore::sweep_unnamed(const std::string& image_id) {
  bool may_go = state_.with([&](const State& state) {
    auto is_it = [&](const Known& known) { return known.image.id == image_id && has_lost_its_names(known); };
    return std::any_of(state.images.begin(), state.images.end(), is_it);
  });
  if (!may_go) return;
  auto swept = disk_.with([&](Written& written) { return sweep(written, known(), has_lost_its_names); });
  if (!swept) log_warning("image", "cannot remove an image without a name", {{"error", swept.error().text()}});
}

// ---- snapshots ----

Result<void> DirStore::Held::create(const std::string& name, const std::string& image_id, const Fd* id_map) {
  if (!is_snapshot_name(name)) return Error(Code::invalid, "no good snapshot name: " + coracle::quoted(name));
  std::vector<std::string> lower;
  bool mine = TRY(store.state_.with([&](State& state) -> Result<bool> {
    for (const Known& known : state.images)
      if (known.image.id == image_id) lower = known.lower;
    if (lower.empty()) return Error(Code::not_found, "no image " + image_id + " here");
    note_use(state, image_id);
    return state.snapshots.emplace(name, image_id).second;
  }));
  if (!mine) return Error(Code::already_exists, "the snapshot " + name + " exists");
  auto made = store.snapshot_dir_.create(name, image_id, lower.front(), id_map);
  if (!made) store.state_.with([&](State& state) { state.snapshots.erase(name); });
  return made;
}

Result<Fd> DirStore::Held::mount(const std::string& name, const Fd* id_map) {
  std::string image = store.state_.with([&](const State& state) {
    auto found = state.snapshots.find(name);
    return found == state.snapshots.end() ? std::string() : found->second;
  });
  if (image.empty()) return Error(Code::not_found, "no snapshot " + name);
  std::vector<std::string> lower = TRY(store.lower_of(image));
  return store.snapshot_dir_.mount(name, lower, id_map);
}

Result<void> DirStore::Held::remove(const std::string& name) {
  if (!is_snapshot_name(name)) return Error(Code::invalid, "no good snapshot name: " + coracle::quoted(name));
  TRY(store.snapshot_dir_.remove(name));
  auto mine = store.state_.with([&](State& state) {
    auto taken = state.snapshots.extract(name);
    if (!taken.empty()) note_use(state, taken.mapped());
    return taken;
  });
  if (!mine.empty()) store.sweep_unnamed(mine.mapped());
  return {};
}

Result<std::vector<std::string>> DirStore::Held::list() {
  return store.state_.with([](const State& state) {
    std::vector<std::string> names;
    for (const auto& [name, image] : state.snapshots) names.push_back(name);
    return names;
  });
}

Result<Fd> DirStore::Held::mount_image(const std::string& image_id) {
  std::vector<std::string> lower = TRY(store.lower_of(image_id));
  return store.snapshot_dir_.mount_read_only(lower);
}

}  // namespace

Result<std::unique_ptr<Store>> make_store(const Options& options) {
  Content content = TRY(Content::open(options.state_dir).wrap("open image store"));
  auto store = std::make_unique<DirStore>(options, std::move(content));
  TRY(store->load().wrap("open image store"));
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace coracle::image
