// SPDX-License-Identifier: Apache-2.0
// Object: reads metadata once on creation, keeps the text, and parses it only when the contents are read. See object.h.
//
// make() does not keep the parsed body: most objects are rarely read, and the text is a quarter of the parsed form's size. The
// result of json() has its own memory blocks.
//
// A RestingObject has a bare pointer to its Object. The Object's destructor clears it. A user that finds the pointer takes a
// reference (weak_from_this) or, if the Object is being destroyed, creates another.
#include "store/object/object.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/json_walk.h"
#include "runtime/base/text.h"
#include "runtime/sys/page_pool.h"
#include "runtime/sys/slab_pool.h"
#include "store/object/markup.h"
#include "store/object/packed_text.h"
#include "store/object/status.h"

namespace coracle {
namespace {

// Parsed forms are allocated and freed by the megabyte, between long-lived texts. In a separate pool their pages can be returned.
sys::PagePool& parsed_pages() {
  static sys::PagePool& pool = *new sys::PagePool;  // never destroyed: threads may outlive statics
  return pool;
}

// The memory of an object's parsed form: blocks that are freed together, and the heap when they are full. A copy of a json::value
// uses the memory resource of the original, and many threads change copies at once, so allocation is thread-safe. `blocks` limits
// what copies take from the blocks, because the blocks live as long as any copy.
class SnapshotMemory : public json::memory_resource {
 public:
  SnapshotMemory(size_t size, size_t blocks) : count_(std::min(blocks, kBlocksMax)), blocks_{Block::make(size)} {}
  ~SnapshotMemory() override {
    for (const auto& block : blocks_) Block::free(block);
  }

 private:
  static constexpr size_t kAlignment = alignof(std::max_align_t), kBlocksMax = 4;

  class alignas(kAlignment) Block {
   public:
    static Block* make(size_t size) {  // `size` includes the header
      void* pages = parsed_pages().take(size);
      return new (pages) Block(size - sizeof(Block));
    }
    static void free(Block* block) {  // trivially destructible
      if (block) parsed_pages().give(block, sizeof(Block) + block->size);
    }
    void* take(size_t wanted) {
      if (wanted > size - std::min(used_.load(std::memory_order_relaxed), size)) return nullptr;
      size_t at = used_.fetch_add(wanted, std::memory_order_relaxed);
      return at + wanted <= size ? begin() + at : nullptr;
    }
    bool holds(const char* at) const { return !std::less<>()(at, begin()) && std::less<>()(at, begin() + size); }
    const size_t size;

   private:
    explicit Block(size_t size) : size(size) {}
    char* begin() const { return reinterpret_cast<char*>(const_cast<Block*>(this) + 1); }
    std::atomic<size_t> used_ = 0;
  };

  void* do_allocate(size_t size, size_t) override {
    size_t wanted = (size + kAlignment - 1) / kAlignment * kAlignment;
    for (size_t i = 0; i < count_; i++) {
      Block* block = blocks_[i].load(std::memory_order_acquire);
      if (!block) block = add_block(i);
      if (void* taken = block->take(wanted)) return taken;
    }
    return ::operator new(size);
  }
  // The first thread adds it; others use that.
  Block* add_block(size_t i) {
    Block* none = nullptr;
    Block* fresh = Block::make(sizeof(Block) + blocks_[0].load(std::memory_order_relaxed)->size);
    if (blocks_[i].compare_exchange_strong(none, fresh, std::memory_order_acq_rel)) return fresh;
    Block::free(fresh);
    return none;
  }
  void do_deallocate(void* what, size_t, size_t) override {
    auto* at = static_cast<char*>(what);
    for (const auto& each : blocks_) {
      const Block* block = each.load(std::memory_order_acquire);
      if (!block) break;
      if (block->holds(at)) return;
    }
    ::operator delete(what);
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }

  const size_t count_;                                  // at most so many blocks
  std::array<std::atomic<Block*>, kBlocksMax> blocks_;  // all of the same size; the first always exists
};

// The mutex for an object's pointer to its Object; shared by many objects, because there are too many for one each.
std::mutex& awake_mutex(const RestingObject* object) {
  static std::array<std::mutex, 32> all;
  return all[(reinterpret_cast<uintptr_t>(object) >> 6) % all.size()];
}

// Recently parsed objects, so that they are not parsed again. The oldest is dropped first. One that does not fit among them has a
// place of its own: it is not parsed by each reader, and the others stay. There are two such places, because who writes a large
// object often writes its copy: a Deployment's ReplicaSet.
class KeptParsed {
 public:
  void add(ObjectPtr object) {
    const size_t weight = std::max(3 * object->text().size(), sys::PagePool::kPage) + kBeside;
    std::vector<ObjectPtr> gone;  // freed outside the lock
    kept_.with([&](Kept& kept) {
      if (weight > kKeptParsedBytes)
        return gone.push_back(std::exchange(kept.large[1], std::exchange(kept.large[0], std::move(object))));
      kept.bytes += weight;
      kept.objects.push_back({std::move(object), weight});
      make_room(kept, gone);
    });
  }
  // Keeps `now` in the place of the state before it, if that is kept: nobody reads it again, while the next change reads this
  // one. `parsed_bytes`: of the parsed form of `now`.
  void replace(const Object& before, const ObjectPtr& now, size_t parsed_bytes) {
    const size_t weight = parsed_bytes + kBeside;
    std::vector<ObjectPtr> gone;
    kept_.with([&](Kept& kept) {
      for (ObjectPtr& large : kept.large)
        if (large.get() == &before) return gone.push_back(std::exchange(large, now));
      auto its = std::find_if(kept.objects.rbegin(), kept.objects.rend(),  // mostly it is one of the last
                              [&](const Entry& entry) { return entry.object.get() == &before; });
      if (its == kept.objects.rend() || weight > kKeptParsedBytes) return;
      kept.bytes = kept.bytes - its->weight + weight;
      its->weight = weight;
      gone.push_back(std::exchange(its->object, now));
      make_room(kept, gone);
    });
  }
  void clear() {
    Kept gone;  // freed outside the lock
    kept_.with([&](Kept& kept) { std::swap(kept, gone); });
  }
  static KeptParsed& of_process() {
    static KeptParsed& kept = *new KeptParsed;  // never destroyed: threads may outlive statics
    return kept;
  }

 private:
  static constexpr size_t kBeside = 512;  // bytes of an Object itself
  struct Entry {
    ObjectPtr object;
    size_t weight;
  };
  struct Kept {
    std::deque<Entry, sys::SlabAllocator<Entry>> objects;
    size_t bytes = 0;                // of `objects`
    std::array<ObjectPtr, 2> large;  // the newer first
  };
  static void make_room(Kept& kept, std::vector<ObjectPtr>& gone) {
    while (kept.bytes > kKeptParsedBytes) {
      kept.bytes -= kept.objects.front().weight;
      gone.push_back(std::move(kept.objects.front().object));
      kept.objects.pop_front();
    }
  }
  Guarded<Kept> kept_;
};

// "" if absent or null.
Result<std::string> string_field(const json::object& metadata, std::string_view name) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return std::string();
  if (!value->is_string()) return invalid_field("metadata." + std::string(name), "must be a string");
  return std::string(value->get_string());
}

Result<Revision> revision_field(const json::object& metadata) {
  std::string text = TRY(string_field(metadata, "resourceVersion"));
  if (text.empty()) return Revision(0);
  auto revision = parse_number<Revision>(text);
  if (!revision) return invalid_field("metadata.resourceVersion", "Invalid value: " + quoted(text) + ": must be a number");
  return *revision;
}

Result<void> check_string_map(const json::object& metadata, std::string_view name) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return {};
  std::string field = "metadata." + std::string(name);
  if (!value->is_object()) return invalid_field(field, "must be an object of strings");
  for (const auto& [key, item] : value->get_object())
    if (!item.is_string()) return invalid_field(field + "." + std::string(key), "must be a string");
  return {};
}

Result<void> check_array_of(const json::object& metadata, std::string_view name, json::kind kind) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return {};
  std::string field = "metadata." + std::string(name);
  if (!value->is_array()) return invalid_field(field, "must be an array");
  const json::array& array = value->get_array();
  for (size_t i = 0; i < array.size(); i++)
    if (array[i].kind() != kind)
      return invalid_field(field + "[" + std::to_string(i) + "]", "must be " + std::string(json::to_string(kind)));
  return {};
}

bool is_json_object(std::string_view text) {
  JsonWalker walker;
  return text.starts_with('{') && walk_json(text, walker);
}

// The body's text, and the offset of metadata.resourceVersion's digits in it: a new revision is then spliced in.
struct Canonical {
  std::string text;
  size_t revision_at = 0, revision_size = 0;
};

class CanonicalWriter {
 public:
  // `for_comparison`: uses Go's escapes, because clients compare the bytes.
  explicit CanonicalWriter(bool for_comparison) : for_comparison_(for_comparison) {}

  Canonical write(const json::object& body) {
    out_.text.reserve(kTextUsual);
    members(body, [&](const json::key_value_pair& member) {
      if (member.key() == "metadata") members(member.value().get_object(), [&](const auto& inner) { metadata_member(inner); });
      else value(member.value());
    });
    return std::move(out_);
  }

 private:
  static constexpr size_t kTextUsual = 4 << 10;

  template <typename F>
  void members(const json::object& object, F&& write_value) {
    out_.text += '{';
    for (const auto& member : object) {
      if (out_.text.back() != '{') out_.text += ',';
      serializer_.reset(member.key());
      drain();
      out_.text += ':';
      write_value(member);
    }
    out_.text += '}';
  }
  void metadata_member(const json::key_value_pair& member) {
    if (member.key() == "resourceVersion" && member.value().is_string()) {
      out_.revision_at = out_.text.size() + 1;
      out_.revision_size = member.value().get_string().size();
    }
    value(member.value());
  }
  void value(const json::value& what) {
    size_t from = out_.text.size();
    serializer_.reset(&what);
    drain();
    if (for_comparison_) escape_markup(out_.text, from);
  }
  void drain() {
    char piece[2048];
    while (!serializer_.done()) {
      json::string_view text = serializer_.read(piece);
      out_.text.append(text.data(), text.size());
    }
  }

  const bool for_comparison_;
  Canonical out_;
  json::serializer serializer_;
};

OwnerReference read_owner(const json::value& reference) {
  OwnerReference owner;
  owner.api_version = get_string(reference, "apiVersion");
  owner.kind = get_string(reference, "kind");
  owner.name = get_string(reference, "name");
  owner.uid = get_string(reference, "uid");
  owner.controller = get_bool(reference, "controller");
  owner.block_owner_deletion = get_bool(reference, "blockOwnerDeletion");
  return owner;
}

std::string_view member(const json::object& map, std::string_view name) {
  const json::value* value = map.if_contains(name);
  const json::string* text = value ? value->if_string() : nullptr;
  return text ? std::string_view(text->data(), text->size()) : std::string_view();
}

constexpr size_t kParsedPerText = 8;      // bytes of the parsed form for a byte of text, at most
constexpr size_t kLargeText = 256 << 10;  // its parsed form does not fit into three times the size if it has many small values

size_t size_of(const std::string_view (&pieces)[3]) { return pieces[0].size() + pieces[1].size() + pieces[2].size(); }

bool rests_packed(const Kind& kind) { return kind == kEvent; }

// Whether the JSON text contains the word in quotes. Each change of an object asks for some words, so that usual ones, which are
// written as they are, are found without a string of their own.
bool holds(std::string_view text, std::string_view word) {
  const bool is_plain = std::ranges::all_of(word, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\\'; });
  const std::string escaped = is_plain ? std::string() : quoted(word);
  const std::string_view needle = is_plain ? word : std::string_view(escaped);
  for (size_t from = 0; from < text.size();) {
    const void* found = ::memmem(text.data() + from, text.size() - from, needle.data(), needle.size());
    if (!found || !is_plain) return found != nullptr;
    const size_t at = size_t(static_cast<const char*>(found) - text.data()), end = at + needle.size();
    if (at > 0 && text[at - 1] == '"' && end < text.size() && text[end] == '"') return true;
    from = at + 1;
  }
  return false;
}

}  // namespace

void forget_parsed() {
  KeptParsed::of_process().clear();
  parsed_pages().give_pages_back();
}

json::storage_ptr body_memory(std::string_view text) {
  return json::make_shared_resource<SnapshotMemory>(std::max<size_t>(8 << 10, 2 * text.size()), 4);
}

Result<ObjectPtr> Object::make(const Kind& kind, const json::value& body) {
  if (!body.is_object()) return invalid_field(std::string(kind.kind), "must be an object");
  const json::value* found = body.get_object().if_contains("metadata");
  if (!found || !found->is_object()) return invalid_field("metadata", "Required value", "FieldValueRequired");
  const json::object& metadata = found->get_object();

  Key key;
  key.name = TRY(string_field(metadata, "name"));
  key.ns = TRY(string_field(metadata, "namespace"));
  std::string uid = TRY(string_field(metadata, "uid"));
  Revision revision = TRY(revision_field(metadata));
  if (key.name.empty()) return invalid_field("metadata.name", "Required value", "FieldValueRequired");
  if (kind.namespaced && key.ns.empty()) return invalid_field("metadata.namespace", "Required value", "FieldValueRequired");
  if (!kind.namespaced && !key.ns.empty())
    return invalid_field("metadata.namespace", "Forbidden: not allowed on this type", "FieldValueForbidden");
  TRY(check_string_map(metadata, "labels"));
  TRY(check_string_map(metadata, "annotations"));
  TRY(check_array_of(metadata, "finalizers", json::kind::string));
  TRY(check_array_of(metadata, "ownerReferences", json::kind::object));

  Canonical canonical = CanonicalWriter(kind == kControllerRevision).write(body.get_object());
  if (!is_json_object(canonical.text)) return invalid_field(std::string(kind.kind), "nested too deeply, or not UTF-8");
  return std::make_shared<const Object>(
      Private(),
      RestingObject::make({&kind, key, uid, revision, {canonical.text}, canonical.revision_at, canonical.revision_size}),
      std::string());
}

// ---- at rest ----

RestingObject::RestingObject(Private, const Parts& parts)
    : ns_size_(uint32_t(parts.key.ns.size())),
      name_size_(uint32_t(parts.key.name.size())),
      uid_size_(uint32_t(parts.uid.size())),
      text_size_(uint32_t(parts.text_size ? parts.text_size : size_of(parts.text))),
      packed_size_(uint32_t(parts.text_size ? size_of(parts.text) : 0)),
      revision_at_(uint32_t(parts.revision_at)),
      revision_size_(uint32_t(parts.revision_size)),
      kind_(parts.kind),
      revision_(parts.revision) {
  auto* to = reinterpret_cast<char*>(this + 1);
  for (std::string_view each : {parts.key.ns, parts.key.name, parts.uid, parts.text[0], parts.text[1], parts.text[2]})
    to = std::copy(each.begin(), each.end(), to);
}

size_t RestingObject::memory_size(const Parts& parts) {
  return sizeof(RestingObject) + parts.key.ns.size() + parts.key.name.size() + parts.uid.size() + size_of(parts.text);
}

// Events live for an hour after their objects are gone: among other objects each would keep a page in use.
sys::SlabPool& RestingObject::pool(const Kind& kind) {
  return rests_packed(kind) ? sys::SlabPool::of_lasting() : sys::SlabPool::of_process();
}

RestingPtr RestingObject::make(const Parts& parts) {
  void* place = pool(*parts.kind).take(memory_size(parts));
  return RestingPtr(new (place) RestingObject(Private(), parts));
}

RestingPtr RestingObject::make_packed(const Parts& parts, std::string_view whole_text) {
  std::string packed = pack_text(whole_text, std::string(parts.key.ns).append(parts.key.name).append(parts.uid));
  if (packed.empty()) return make(parts);
  return make(
      {parts.kind, parts.key, parts.uid, parts.revision, {packed}, parts.revision_at, parts.revision_size, whole_text.size()});
}

Result<RestingPtr> RestingObject::from_text(const Kind& kind, KeyView key, Revision revision, std::string_view uid,
                                            std::string_view text) {
  if (!is_json_object(text))
    return Error(Code::internal, kind.qualified_resource() + " " + quoted(Key(key).text()) + ": stored text is damaged");
  Parts parts{&kind, key, uid, revision, {text}};
  return rests_packed(kind) ? make_packed(parts, text) : make(parts);
}

std::string_view RestingObject::text(std::string& buffer) const {
  buffer.clear();
  if (!is_packed()) return kept();
  return buffer = unpack_text(kept(), text_size_, head());
}

void intrusive_ptr_add_ref(const RestingObject* object) noexcept { object->holders_.fetch_add(1, std::memory_order_relaxed); }

void intrusive_ptr_release(const RestingObject* object) noexcept {
  if (object->holders_.fetch_sub(1, std::memory_order_acq_rel) > 1) return;
  const size_t size = object->memory_size();
  sys::SlabPool& pool = RestingObject::pool(object->kind());
  object->~RestingObject();
  pool.give(const_cast<RestingObject*>(object), size);
}

ObjectPtr RestingObject::awake() const {
  std::string unpacked;
  for (bool ready = !is_packed();; ready = true) {
    std::unique_lock lock(awake_mutex(this));
    if (awake_)
      if (ObjectPtr found = awake_->weak_from_this().lock()) return found;
    if (ready) return std::make_shared<const Object>(Object::Private(), RestingPtr(this), std::move(unpacked));
    lock.unlock();
    unpacked = unpack_text(kept(), text_size_, head());
  }
}

bool RestingObject::mentions(std::string_view word) const {
  std::string buffer;
  return holds(text(buffer), word);
}

// ---- awake ----

// Either `resting` is not shared yet, or its lock is held.
Object::Object(Private, RestingPtr resting, std::string text)
    : resting_(std::move(resting)), key_(resting_->key()), uid_(resting_->uid()), text_(std::move(text)) {
  resting_->awake_ = this;
}

Object::~Object() {
  std::lock_guard lock(awake_mutex(resting_.get()));
  if (resting_->awake_ == this) resting_->awake_ = nullptr;
}

// Returns the size of what it took; 0: nothing.
size_t Object::take_over(json::value parsed) const {
  bool of_one_thread = parsed.storage().is_deallocate_trivial();  // a monotonic_resource is not thread-safe for copies
  if (!parsed.is_object() || of_one_thread) return 0;
  coracle::make(parsed, "metadata.resourceVersion") = std::to_string(revision());
  std::call_once(parse_once_, [&] {
    new (&json_) json::value(std::move(parsed));
    is_parsed_.store(true, std::memory_order_release);
  });
  return kParsedPerText * text().size();
}

ObjectPtr Object::with_revision(Revision revision, json::value body, const Object* replaced) const {
  std::string digits = std::to_string(revision);
  const RestingObject& old = *resting_;
  if (!old.revision_at_) {  // unknown offset: parse the text once to find it
    json::value read = MUST(parse_json(text()));
    coracle::make(read, "metadata.resourceVersion") = digits;
    return MUST(make(kind(), read));
  }
  std::string_view before = text().substr(0, old.revision_at_), after = text().substr(old.revision_at_ + old.revision_size_);
  RestingObject::Parts parts{&kind(), key_, uid_, revision, {before, digits, after}, before.size(), digits.size()};
  std::string whole;
  if (rests_packed(kind())) whole.reserve(size_of(parts.text)), whole.append(before).append(digits).append(after);
  RestingPtr resting = whole.empty() ? RestingObject::make(parts) : RestingObject::make_packed(parts, whole);
  auto out = std::make_shared<const Object>(Private(), std::move(resting), std::move(whole));
  const size_t parsed_bytes = out->take_over(std::move(body));
  if (replaced && parsed_bytes > 0) KeptParsed::of_process().replace(*replaced, out, parsed_bytes);
  return out;
}

bool Object::same_as(const Object& stored) const {
  std::string digits = std::to_string(stored.revision());
  std::string_view mine = text(), other = stored.text();
  size_t at = resting_->revision_at_, size = resting_->revision_size_;
  if (!at || other.size() + size != mine.size() + digits.size()) return false;
  return other.substr(0, at) == mine.substr(0, at) && other.substr(at, digits.size()) == digits &&
         other.substr(at + digits.size()) == mine.substr(at + size);
}

const json::value& json_of(const Object& object) { return object.json(); }

json::value changeable_copy(const Object& object) { return json::value(object.json(), body_memory(object.text())); }

const json::value& Object::json() const {
  std::call_once(parse_once_, [this] {
    json::parse_options options;
    options.max_depth = kJsonDepthMax;
    alignas(json::value) unsigned char stack[kJsonParserStack];
    json::stream_parser parser({}, options, stack);
    const size_t size = text().size();
    parser.reset(size < kLargeText ? json::make_shared_resource<SnapshotMemory>(size * 3, 1) : body_memory(text()));
    json::error_code failed;
    (void)parser.write(text(), failed);  // valid JSON, from make() or from_text()
    if (!failed) parser.finish(failed);
    if (failed) bug("Object::json", failed.message().c_str(), std::source_location::current());
    new (&json_) json::value(parser.release());  // not assignment: the value keeps its own memory resource
    is_parsed_.store(true, std::memory_order_release);
    if (can_be_found()) KeptParsed::of_process().add(shared_from_this());
  });
  return json_;
}

bool Object::mentions(std::string_view word) const { return holds(text(), word); }

// True if another holder of the RestingObject could find this one.
bool Object::can_be_found() const { return resting_->holders_.load(std::memory_order_relaxed) > 1; }

const json::object& Object::labels() const { return get_object(json(), "metadata.labels"); }
std::string_view Object::label(std::string_view name) const { return member(labels(), name); }
std::string_view Object::annotation(std::string_view name) const {
  return may_have(name) ? member(get_object(json(), "metadata.annotations"), name) : std::string_view();
}

bool Object::deleting() const {
  return may_have("deletionTimestamp") && !get_string(json(), "metadata.deletionTimestamp").empty();
}

std::vector<OwnerReference> Object::owners() const {
  std::vector<OwnerReference> out;
  if (!may_have("ownerReferences")) return out;
  for (const json::value& reference : get_array(json(), "metadata.ownerReferences")) out.push_back(read_owner(reference));
  return out;
}

std::optional<OwnerReference> Object::controller() const {
  if (!may_have("ownerReferences")) return std::nullopt;
  for (const json::value& reference : get_array(json(), "metadata.ownerReferences"))
    if (get_bool(reference, "controller")) return read_owner(reference);
  return std::nullopt;
}

json::object precondition_metadata(const Object& object) {
  return {{"uid", object.uid()}, {"resourceVersion", std::to_string(object.revision())}};
}

}  // namespace coracle
