// SPDX-License-Identifier: Apache-2.0
// Object: reads metadata once when made, keeps the text, parses again only when somebody looks inside. See object.h.
//
// The body handed to make() is not kept: most objects rest unread for most of their life, and the text is a quarter of
// the parsed form. What json() makes lies in one block of its own, exactly as large as needed.
#include "store/object/object.h"

#include <algorithm>
#include <boost/json/basic_parser_impl.hpp>
#include <vector>

#include "runtime/base/text.h"

namespace coracle {
namespace {

// What the parsed form of one snapshot lies in: a few blocks that are filled while it is parsed and freed together. A copy
// of a json::value takes its memory from where the original has it, so after seal() everything comes from the heap: copies
// are changed by many threads at once, and must neither meet in our blocks nor make them grow.
class SnapshotMemory : public json::memory_resource {
 public:
  SnapshotMemory(size_t guess, SnapshotMemory*& self) : next_size_(guess) { self = this; }  // made inside a storage_ptr
  ~SnapshotMemory() override {
    for (const Block& block : blocks_) ::operator delete(block.begin);
  }
  void seal() { sealed_ = true; }

 private:
  struct Block {
    char *begin, *end;
  };
  void* do_allocate(size_t size, size_t alignment) override {
    if (sealed_) return ::operator new(size);
    size_t skip = -reinterpret_cast<uintptr_t>(at_) & (alignment - 1);
    if (blocks_.empty() || size_t(blocks_.back().end - at_) < size + skip) {
      size_t bytes = std::max(size, next_size_);
      char* begin = static_cast<char*>(::operator new(bytes));
      blocks_.push_back({begin, begin + bytes});
      at_ = begin, skip = 0, next_size_ = std::max<size_t>(next_size_ / 2, 1024);
    }
    char* out = at_ + skip;
    at_ = out + size;
    return out;
  }
  void do_deallocate(void* what, size_t, size_t) override {
    auto* at = static_cast<char*>(what);
    for (const Block& block : blocks_)
      if (at >= block.begin && at < block.end) return;  // goes with its block
    ::operator delete(what);
  }
  bool do_is_equal(const json::memory_resource& other) const noexcept override { return this == &other; }

  std::vector<Block> blocks_;
  char* at_ = nullptr;
  size_t next_size_;
  bool sealed_ = false;
};

Error malformed(std::string field, std::string what, std::string reason = "FieldValueInvalid") {
  ErrorDetails details;
  details.causes.push_back({std::move(reason), what, field});
  return Error(Code::invalid, field + ": " + what).with(std::move(details));
}

// "" when absent or null.
Result<std::string> string_field(const json::object& metadata, std::string_view name) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return std::string();
  if (!value->is_string()) return malformed("metadata." + std::string(name), "must be a string");
  return std::string(value->get_string());
}

Result<Revision> revision_field(const json::object& metadata) {
  std::string text = TRY(string_field(metadata, "resourceVersion"));
  if (text.empty()) return Revision(0);
  auto revision = parse_number<Revision>(text);
  if (!revision) return malformed("metadata.resourceVersion", "Invalid value: " + quoted(text) + ": must be a number");
  return *revision;
}

Result<void> check_string_map(const json::object& metadata, std::string_view name) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return {};
  std::string field = "metadata." + std::string(name);
  if (!value->is_object()) return malformed(field, "must be an object of strings");
  for (const auto& [key, item] : value->get_object())
    if (!item.is_string()) return malformed(field + "." + std::string(key), "must be a string");
  return {};
}

Result<void> check_array_of(const json::object& metadata, std::string_view name, json::kind kind) {
  const json::value* value = metadata.if_contains(name);
  if (!value || value->is_null()) return {};
  std::string field = "metadata." + std::string(name);
  if (!value->is_array()) return malformed(field, "must be an array");
  const json::array& array = value->get_array();
  for (size_t i = 0; i < array.size(); i++)
    if (array[i].kind() != kind)
      return malformed(field + "[" + std::to_string(i) + "]", "must be " + std::string(json::to_string(kind)));
  return {};
}

// Reads a whole text and keeps nothing: is it JSON?
struct Sieve {
  static constexpr size_t max_object_size = size_t(-1), max_array_size = size_t(-1);
  static constexpr size_t max_key_size = size_t(-1), max_string_size = size_t(-1);
  using error_code = json::error_code;
  bool on_document_begin(error_code&) { return true; }
  bool on_document_end(error_code&) { return true; }
  bool on_object_begin(error_code&) { return true; }
  bool on_object_end(size_t, error_code&) { return true; }
  bool on_array_begin(error_code&) { return true; }
  bool on_array_end(size_t, error_code&) { return true; }
  bool on_key_part(json::string_view, size_t, error_code&) { return true; }
  bool on_key(json::string_view, size_t, error_code&) { return true; }
  bool on_string_part(json::string_view, size_t, error_code&) { return true; }
  bool on_string(json::string_view, size_t, error_code&) { return true; }
  bool on_number_part(json::string_view, error_code&) { return true; }
  bool on_int64(int64_t, json::string_view, error_code&) { return true; }
  bool on_uint64(uint64_t, json::string_view, error_code&) { return true; }
  bool on_double(double, json::string_view, error_code&) { return true; }
  bool on_bool(bool, error_code&) { return true; }
  bool on_null(error_code&) { return true; }
  bool on_comment_part(json::string_view, error_code&) { return true; }
  bool on_comment(json::string_view, error_code&) { return true; }
};

bool is_json_object(std::string_view text) {
  if (text.empty() || text.front() != '{') return false;
  json::parse_options options;
  options.max_depth = kJsonDepthMax;
  json::basic_parser<Sieve> sieve(options);
  json::error_code failed;
  size_t read = sieve.write_some(false, text.data(), text.size(), failed);
  return !failed && read == text.size();
}

// The body's text, and where in it metadata.resourceVersion's digits stand: a new revision then is a splice.
struct Canonical {
  std::string text;
  size_t revision_at = 0, revision_size = 0;
};

Canonical write_canonical(const json::object& body) {
  Canonical out;
  auto members = [&out](const json::object& object, auto&& value) {
    out.text += '{';
    for (const auto& member : object) {
      if (out.text.back() != '{') out.text += ',';
      out.text.append(json::serialize(json::string(member.key()))).append(":");
      value(member);
    }
    out.text += '}';
  };
  auto metadata_member = [&out](const json::key_value_pair& member) {
    if (member.key() == "resourceVersion" && member.value().is_string()) {
      out.revision_at = out.text.size() + 1;
      out.revision_size = member.value().get_string().size();
    }
    out.text += json::serialize(member.value());
  };
  members(body, [&](const json::key_value_pair& member) {
    if (member.key() == "metadata") members(member.value().get_object(), metadata_member);
    else out.text += json::serialize(member.value());
  });
  return out;
}

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

Result<ObjectPtr> Object::make(const Kind& kind, json::value body) {
  if (!body.is_object()) return malformed(std::string(kind.kind), "must be an object");
  const json::value* found = body.get_object().if_contains("metadata");
  if (!found || !found->is_object()) return malformed("metadata", "Required value", "FieldValueRequired");
  const json::object& metadata = found->get_object();

  std::shared_ptr<Object> object(new Object);
  object->kind_ = &kind;
  object->key_.name = TRY(string_field(metadata, "name"));
  object->key_.ns = TRY(string_field(metadata, "namespace"));
  object->uid_ = TRY(string_field(metadata, "uid"));
  object->revision_ = TRY(revision_field(metadata));
  if (object->key_.name.empty()) return malformed("metadata.name", "Required value", "FieldValueRequired");
  if (kind.namespaced && object->key_.ns.empty())
    return malformed("metadata.namespace", "Required value", "FieldValueRequired");
  if (!kind.namespaced && !object->key_.ns.empty())
    return malformed("metadata.namespace", "Forbidden: not allowed on this type", "FieldValueForbidden");
  TRY(check_string_map(metadata, "labels"));
  TRY(check_string_map(metadata, "annotations"));
  TRY(check_array_of(metadata, "finalizers", json::kind::string));
  TRY(check_array_of(metadata, "ownerReferences", json::kind::object));

  Canonical canonical = write_canonical(body.get_object());
  if (!is_json_object(canonical.text)) return malformed(std::string(kind.kind), "nested too deeply, or not UTF-8");
  object->revision_at_ = canonical.revision_at;
  object->revision_size_ = canonical.revision_size;
  object->text_ = std::make_shared<const std::string>(std::move(canonical.text));
  return ObjectPtr(std::move(object));
}

Result<ObjectPtr> Object::from_text(const Kind& kind, Key key, Revision revision, std::string uid, std::string text) {
  if (!is_json_object(text))
    return Error(Code::internal, kind.qualified_resource() + " " + quoted(key.text()) + ": stored text is damaged");
  std::shared_ptr<Object> object(new Object);
  object->kind_ = &kind;
  object->key_ = std::move(key);
  object->revision_ = revision;
  object->uid_ = std::move(uid);
  object->text_ = std::make_shared<const std::string>(std::move(text));
  return ObjectPtr(std::move(object));
}

ObjectPtr Object::unparsed() const {
  std::shared_ptr<Object> copy(new Object);
  copy->kind_ = kind_;
  copy->key_ = key_;
  copy->uid_ = uid_;
  copy->revision_ = revision_;
  copy->text_ = text_;
  copy->revision_at_ = revision_at_;
  copy->revision_size_ = revision_size_;
  return copy;
}

ObjectPtr Object::with_revision(Revision revision) const {
  std::string digits = std::to_string(revision);
  std::shared_ptr<Object> copy = std::const_pointer_cast<Object>(unparsed());
  copy->revision_ = revision;
  if (!revision_at_) {  // the text came from elsewhere: read it once to find the place
    json::value body = MUST(parse_json(*text_));
    coracle::make(body, "metadata.resourceVersion") = digits;
    return MUST(make(*kind_, std::move(body)));
  }
  std::string text;
  text.reserve(text_->size() + digits.size());
  text.append(*text_, 0, revision_at_).append(digits).append(*text_, revision_at_ + revision_size_);
  copy->revision_size_ = digits.size();
  copy->text_ = std::make_shared<const std::string>(std::move(text));
  return copy;
}

bool Object::same_as(const Object& stored) const {
  std::string digits = std::to_string(stored.revision_);
  std::string_view mine = *text_, other = *stored.text_;
  if (!revision_at_ || other.size() + revision_size_ != mine.size() + digits.size()) return false;
  return other.substr(0, revision_at_) == mine.substr(0, revision_at_) &&
         other.substr(revision_at_, digits.size()) == digits &&
         other.substr(revision_at_ + digits.size()) == mine.substr(revision_at_ + revision_size_);
}

const json::value& Object::json() const {
  std::call_once(parse_once_, [this] {
    json::stream_parser parser({}, [] {
      json::parse_options options;
      options.max_depth = kJsonDepthMax;
      return options;
    }());
    SnapshotMemory* memory = nullptr;
    parser.reset(json::make_shared_resource<SnapshotMemory>(text_->size() * 2, memory));
    json::error_code failed;
    (void)parser.write(*text_, failed);  // make() wrote it or from_text() read it: it is JSON
    if (!failed) parser.finish(failed);
    if (failed) bug("Object::json", failed.message().c_str(), std::source_location::current());
    memory->seal();
    new (&json_) json::value(parser.release());  // not assignment: the value keeps its own memory resource
  });
  return json_;
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
