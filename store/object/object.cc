// SPDX-License-Identifier: Apache-2.0
// Object: reads metadata once when made, keeps the text, parses again only when somebody looks inside. See object.h.
//
// The body handed to make() is not kept: most objects rest unread for most of their life, and the text is a quarter of
// the parsed form. What json() makes lies in a block of its own.
#include "store/object/object.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <deque>
#include <functional>
#include <vector>

#include "runtime/base/guarded.h"
#include "runtime/base/json_walk.h"
#include "runtime/base/text.h"
#include "runtime/sys/page_pool.h"
#include "store/object/markup.h"
#include "store/object/status.h"

namespace coracle {
namespace {

// Parsed forms come and go by the megabyte, and between them lie texts that stay. Apart from these, what they took goes back.
sys::PagePool& parsed_pages() {
  static sys::PagePool& pool = *new sys::PagePool;  // never destroyed: threads may outlive statics
  return pool;
}

// What the parsed form of one snapshot lies in: blocks, each taken at once, all freed at once; and the heap when these are full.
// A copy of a json::value takes its memory from where the original has it, and copies are changed by many threads at once: here
// they may, and what they take of the blocks is bounded by `blocks`: what an object was made of lives as long as any copy.
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
    static Block* make(size_t size) {  // with its head
      void* pages = parsed_pages().take(size);
      return new (pages) Block(size - sizeof(Block));
    }
    static void free(Block* block) {  // there is nothing to destroy in it
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
  // Whoever is first adds it.
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

  const size_t count_;
  std::array<std::atomic<Block*>, kBlocksMax> blocks_;  // all of one size; the first is there from the beginning
};

// Who is awake is looked up and noted under one of these; an object has no lock of its own, for there are many.
std::mutex& awake_mutex(const void* facts) {
  static std::array<std::mutex, 32> all;
  return all[(reinterpret_cast<uintptr_t>(facts) >> 6) % all.size()];
}

// What was parsed lately, so that who looks again soon does not parse again. The oldest goes first.
class KeptParsed {
 public:
  void add(ObjectPtr object) {
    std::vector<ObjectPtr> gone;  // freed outside the lock
    kept_.with([&](Kept& kept) {
      kept.bytes += weight(*object);
      kept.objects.push_back(std::move(object));
      while (kept.bytes > kKeptParsedBytes) {
        kept.bytes -= weight(*kept.objects.front());
        gone.push_back(std::move(kept.objects.front()));
        kept.objects.pop_front();
      }
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
  struct Kept {
    std::deque<ObjectPtr> objects;
    size_t bytes = 0;
  };
  static size_t weight(const Object& object) { return std::max(3 * object.text().size(), sys::PagePool::kPage) + 512; }
  Guarded<Kept> kept_;
};

// "" when absent or null.
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

// The body's text, and where in it metadata.resourceVersion's digits stand: a new revision then is a splice.
struct Canonical {
  std::string text;
  size_t revision_at = 0, revision_size = 0;
};

class CanonicalWriter {
 public:
  // `for_comparison`: clients compare its bytes with those that Go writes.
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

  auto facts = std::make_shared<Facts>();
  facts->kind = &kind;
  facts->key.name = TRY(string_field(metadata, "name"));
  facts->key.ns = TRY(string_field(metadata, "namespace"));
  facts->uid = TRY(string_field(metadata, "uid"));
  facts->revision = TRY(revision_field(metadata));
  if (facts->key.name.empty()) return invalid_field("metadata.name", "Required value", "FieldValueRequired");
  if (kind.namespaced && facts->key.ns.empty())
    return invalid_field("metadata.namespace", "Required value", "FieldValueRequired");
  if (!kind.namespaced && !facts->key.ns.empty())
    return invalid_field("metadata.namespace", "Forbidden: not allowed on this type", "FieldValueForbidden");
  TRY(check_string_map(metadata, "labels"));
  TRY(check_string_map(metadata, "annotations"));
  TRY(check_array_of(metadata, "finalizers", json::kind::string));
  TRY(check_array_of(metadata, "ownerReferences", json::kind::object));

  Canonical canonical = CanonicalWriter(kind == kControllerRevision).write(body.get_object());
  if (!is_json_object(canonical.text)) return invalid_field(std::string(kind.kind), "nested too deeply, or not UTF-8");
  facts->revision_at = canonical.revision_at;
  facts->revision_size = canonical.revision_size;
  facts->text = std::move(canonical.text);
  return wrap(std::move(facts));
}

Result<ObjectPtr> Object::from_text(const Kind& kind, Key key, Revision revision, std::string uid, std::string text) {
  if (!is_json_object(text))
    return Error(Code::internal, kind.qualified_resource() + " " + quoted(key.text()) + ": stored text is damaged");
  auto facts = std::make_shared<Facts>();
  facts->kind = &kind;
  facts->key = std::move(key);
  facts->revision = revision;
  facts->uid = std::move(uid);
  facts->text = std::move(text);
  return wrap(std::move(facts));
}

ObjectPtr Object::at_rest() const {
  if (resting_) return shared_from_this();
  std::lock_guard lock(awake_mutex(facts_.get()));
  if (facts_->awake.expired()) facts_->awake = weak_from_this();
  ObjectPtr found = facts_->resting.lock();
  if (!found) facts_->resting = found = std::make_shared<const Object>(Private(), facts_, true);
  return found;
}

ObjectPtr Object::awake() const {
  if (!resting_) return shared_from_this();
  std::lock_guard lock(awake_mutex(facts_.get()));
  ObjectPtr found = facts_->awake.lock();
  if (!found) facts_->awake = found = wrap(facts_);
  return found;
}

void Object::take_over(json::value parsed) const {
  bool of_one_thread = parsed.storage().is_deallocate_trivial();  // a monotonic_resource: copies must not meet there
  if (!parsed.is_object() || of_one_thread) return;
  coracle::make(parsed, "metadata.resourceVersion") = std::to_string(revision());
  std::call_once(parse_once_, [&] { new (&json_) json::value(std::move(parsed)); });
}

ObjectPtr Object::with_revision(Revision revision, json::value body) const {
  std::string digits = std::to_string(revision);
  const Facts& old = *facts_;
  if (!old.revision_at) {  // the text came from elsewhere: read it once to find the place
    json::value read = MUST(parse_json(old.text));
    coracle::make(read, "metadata.resourceVersion") = digits;
    return MUST(make(*old.kind, read));
  }
  auto facts = std::make_shared<Facts>();
  facts->kind = old.kind;
  facts->key = old.key;
  facts->uid = old.uid;
  facts->revision = revision;
  facts->revision_at = old.revision_at;
  facts->revision_size = digits.size();
  facts->text.reserve(old.text.size() + digits.size());
  facts->text.append(old.text, 0, old.revision_at).append(digits).append(old.text, old.revision_at + old.revision_size);
  ObjectPtr out = wrap(std::move(facts));
  out->take_over(std::move(body));
  return out;
}

bool Object::same_as(const Object& stored) const {
  std::string digits = std::to_string(stored.revision());
  std::string_view mine = text(), other = stored.text();
  size_t at = facts_->revision_at, size = facts_->revision_size;
  if (!at || other.size() + size != mine.size() + digits.size()) return false;
  return other.substr(0, at) == mine.substr(0, at) && other.substr(at, digits.size()) == digits &&
         other.substr(at + digits.size()) == mine.substr(at + size);
}

const json::value& json_of(const Object& object) { return object.json(); }

const json::value& Object::json() const {
  std::call_once(parse_once_, [this] {
    json::stream_parser parser({}, [] {
      json::parse_options options;
      options.max_depth = kJsonDepthMax;
      return options;
    }());
    parser.reset(json::make_shared_resource<SnapshotMemory>(text().size() * 3, 1));
    json::error_code failed;
    (void)parser.write(text(), failed);  // make() wrote it or from_text() read it: it is JSON
    if (!failed) parser.finish(failed);
    if (failed) bug("Object::json", failed.message().c_str(), std::source_location::current());
    new (&json_) json::value(parser.release());  // not assignment: the value keeps its own memory resource
    if (can_be_found()) KeptParsed::of_process().add(shared_from_this());
  });
  return json_;
}

// Whether somebody who holds the same object at rest would come upon this one.
bool Object::can_be_found() const {
  if (resting_) return false;
  std::lock_guard lock(awake_mutex(facts_.get()));
  return facts_->awake.lock().get() == this && !facts_->resting.expired();
}

bool Object::mentions(std::string_view word) const {
  std::string needle = quoted(word);
  return ::memmem(text().data(), text().size(), needle.data(), needle.size()) != nullptr;
}

const json::object& Object::labels() const { return get_object(json(), "metadata.labels"); }
std::string_view Object::label(std::string_view name) const { return member(labels(), name); }
std::string_view Object::annotation(std::string_view name) const {
  return member(get_object(json(), "metadata.annotations"), name);
}

bool Object::deleting() const { return !get_string(json(), "metadata.deletionTimestamp").empty(); }

std::vector<OwnerReference> Object::owners() const {
  std::vector<OwnerReference> out;
  for (const json::value& reference : get_array(json(), "metadata.ownerReferences")) out.push_back(read_owner(reference));
  return out;
}

std::optional<OwnerReference> Object::controller() const {
  for (const json::value& reference : get_array(json(), "metadata.ownerReferences"))
    if (get_bool(reference, "controller")) return read_owner(reference);
  return std::nullopt;
}

}  // namespace coracle
