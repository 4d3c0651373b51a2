// SPDX-License-Identifier: Apache-2.0
// JSON patch and merge patch. See patch.h.
//
// A pointer is resolved to the object or array that contains its last step; each operation is a small function on that container.
#include "store/object/patch.h"

#include <algorithm>

#include "runtime/base/text.h"

namespace coracle {
namespace {

using Pointer = std::vector<std::string>;  // RFC 6901, unescaped

// Like json-patch v4, which Kubernetes uses, an operation whose fields are of the wrong type is malformed (bad_request), and one
// without a field or of an unknown sort cannot be applied (invalid).

Result<Pointer> parse_pointer(std::string_view text) {
  Pointer pointer;
  if (text.empty()) return pointer;
  auto wrong = [&](Code code, std::string_view why) {
    return Error(code, "path " + quoted(shortened_path(std::string(text))) + std::string(why));
  };
  if (text[0] != '/') return wrong(Code::invalid, " must begin with '/'");
  if (size_t(std::count(text.begin(), text.end(), '/')) > kJsonDepthMax) return wrong(Code::bad_request, " has too many steps");
  for (std::string_view part : split(text.substr(1), '/')) {
    std::string step;
    for (size_t i = 0; i < part.size(); i++) {
      if (part[i] != '~') step += part[i];
      else if (part.substr(i, 2) == "~0") step += '~', i++;
      else if (part.substr(i, 2) == "~1") step += '/', i++;
      else step += '~';  // RFC 6901 refuses it
    }
    pointer.push_back(std::move(step));
  }
  return pointer;
}

std::string pointer_text(const Pointer& pointer) {
  std::string out;
  for (const std::string& step : pointer) out += "/" + step;
  return shortened_path(std::move(out));
}

Error missing(const Pointer& pointer) {
  return Error(Code::invalid, "path " + quoted(pointer_text(pointer)) + " does not exist");
}

// The index that a step denotes in a list of that length. A negative one counts from the end, as in Kubernetes but not in RFC
// 6901.
std::optional<size_t> array_index(std::string_view step, size_t places) {
  bool from_end = step.starts_with('-');
  std::string_view digits = step.substr(from_end ? 1 : 0);
  if (digits.starts_with('0') && (digits.size() > 1 || from_end)) return std::nullopt;
  auto index = parse_number<uint32_t>(digits);
  if (!index || *index > places || (*index == places && !from_end)) return std::nullopt;
  return from_end ? places - *index : *index;
}

json::value* child(json::value& at, const std::string& step) {
  if (json::object* object = at.if_object()) return object->if_contains(step);
  json::array* array = at.if_array();
  auto index = array ? array_index(step, array->size()) : std::nullopt;
  return index ? &(*array)[*index] : nullptr;
}

json::value* resolve_pointer(json::value& root, const Pointer& pointer, size_t steps) {
  json::value* at = &root;
  for (size_t i = 0; i < steps && at; i++) at = child(*at, pointer[i]);
  return at;
}

// Applies one patch to one document.
class JsonPatcher {
 public:
  explicit JsonPatcher(json::value& document) : root_(document) {}

  Result<void> apply(const json::value& operation);

 private:
  Result<void> spend(size_t work) {
    work_ += work;
    if (work_ > kJsonPatchWorkMax) return Error(Code::too_large, "the patch moves too much of the document around");
    return {};
  }

  // Checks the depth of `value` at `path`. A moved or copied value may itself be as deep as the document.
  Result<void> check_depth(const Pointer& path, const json::value& value) {
    size_t seen = 0;
    bool deep = path.size() > kJsonDepthMax || deeper_than(value, kJsonDepthMax - path.size(), &seen);
    if (deep)
      return Error(Code::bad_request, "the result would be nested more than " + std::to_string(kJsonDepthMax) + " levels deep");
    return spend(seen);
  }

  // The object that contains the last step; nullptr if it is not an object.
  json::object* object_at(const Pointer& path) {
    json::value* parent = path.empty() ? nullptr : resolve_pointer(root_, path, path.size() - 1);
    return parent ? parent->if_object() : nullptr;
  }

  Result<void> add(const Pointer& path, json::value value) {
    TRY(check_depth(path, value));
    json::value* parent = path.empty() ? nullptr : resolve_pointer(root_, path, path.size() - 1);
    if (!parent) return missing(path);  // nothing is added in the document's own place. Source: as for replace
    if (json::object* object = parent->if_object()) return (*object)[path.back()] = std::move(value), Result<void>();
    json::array* array = parent->if_array();
    if (!array) return missing(path);
    auto index = path.back() == "-" ? array->size() : array_index(path.back(), array->size() + 1);
    if (!index) return Error(Code::invalid, "path " + quoted(pointer_text(path)) + ": no such index");
    TRY(spend((array->size() - *index) / kItemsPerWork));
    array->insert(array->begin() + ptrdiff_t(*index), std::move(value));
    return {};
  }

  Result<json::value> take(const Pointer& path) {
    if (path.empty()) return Error(Code::invalid, "the whole document cannot be removed");
    json::value* parent = resolve_pointer(root_, path, path.size() - 1);
    json::value* found = parent ? child(*parent, path.back()) : nullptr;
    if (!found) return missing(path);
    json::value taken = std::move(*found);
    if (json::object* object = parent->if_object()) {
      auto at = object->find(path.back());
      TRY(spend(size_t(object->end() - at)));
      object->stable_erase(at);
    } else {
      json::array& array = parent->get_array();
      size_t at = *array_index(path.back(), array.size());
      TRY(spend((array.size() - at) / kItemsPerWork));
      array.erase(array.begin() + ptrdiff_t(at));
    }
    return taken;
  }

  // Adds a missing member of an object. Source: json-patch v4, which Kubernetes uses; RFC 6902 rejects it.
  Result<void> replace(const Pointer& path, json::value value) {
    TRY(check_depth(path, value));
    if (path.empty() && !value.is_structured()) return Error(Code::invalid, "the whole document must be an object or a list");
    json::value* found = resolve_pointer(root_, path, path.size());
    json::object* holder = found ? nullptr : object_at(path);
    if (!found && !holder) return missing(path);
    (found ? *found : (*holder)[path.back()]) = std::move(value);
    return {};
  }

  // Reads a missing member of an object as null. Source: as for replace.
  Result<void> test(const Pointer& path, const json::value& want) {
    json::value* found = resolve_pointer(root_, path, path.size());
    if (!found && want.is_null() && object_at(path)) return {};
    if (!found) return missing(path);
    if (!json_equal(*found, want)) return Error(Code::invalid, "testing path " + quoted(pointer_text(path)) + " failed");
    return {};
  }

  Result<void> move(const Pointer& from, const Pointer& path) {
    bool inside = from.size() < path.size() && std::equal(from.begin(), from.end(), path.begin());
    if (inside) return Error(Code::invalid, "a value cannot be moved into itself");
    json::value value = TRY(take(from));
    return add(path, std::move(value));
  }

  Result<void> copy(const Pointer& from, const Pointer& path) {
    json::value* found = from.empty() ? nullptr : resolve_pointer(root_, from, from.size());
    if (!found) return missing(from);
    copied_bytes_ += to_text(*found).size();
    if (copied_bytes_ > kJsonPatchCopiedBytesMax) return Error(Code::too_large, "the patch copies more than 3 MiB");
    json::value value = *found;
    return add(path, std::move(value));
  }

  static constexpr size_t kItemsPerWork = 8;  // list items are moved as a block
  json::value& root_;
  size_t copied_bytes_ = 0, work_ = 0;
};

Result<Pointer> pointer_field(const json::value& operation, std::string_view name) {
  const json::value* value = operation.get_object().if_contains(name);
  if (!value || value->is_null()) return Error(Code::invalid, "missing " + quoted(name));
  if (!value->is_string()) return Error(Code::bad_request, quoted(name) + " must be a string");
  return parse_pointer(value->get_string());
}

Result<void> JsonPatcher::apply(const json::value& operation) {
  if (!operation.is_object()) return Error(Code::bad_request, "must be an object");
  const json::value* op = operation.get_object().if_contains("op");
  if (op && !op->is_string() && !op->is_null()) return Error(Code::bad_request, "\"op\" must be a string");
  std::string_view name = get_string(operation, "op");
  Pointer path = TRY(pointer_field(operation, "path"));
  if (name == "remove") {
    TRY(take(path));
    return {};
  }
  if (name == "move" || name == "copy") {
    Pointer from = TRY(pointer_field(operation, "from"));
    return name == "move" ? move(from, path) : copy(from, path);
  }
  bool known = name == "add" || name == "replace" || name == "test";
  if (!known) return Error(Code::invalid, "unknown op " + quoted(shortened_path(std::string(name))));
  const json::value* value = operation.get_object().if_contains("value");
  if (name == "test" && !value) return Error(Code::invalid, "testing path " + quoted(pointer_text(path)) + " failed");
  if (name == "test") return test(path, *value);
  json::value given(root_.storage());  // a missing value is null. Source: as for replace
  if (value) given = *value;
  if (name == "add") return add(path, std::move(given));
  return replace(path, std::move(given));
}

bool is_number(const json::value& value) { return value.is_int64() || value.is_uint64() || value.is_double(); }

}  // namespace

Result<void> apply_json_patch(json::value& document, const json::value& patch) {
  if (!patch.is_array()) return Error(Code::bad_request, "a JSON patch must be an array of operations");
  const json::array& operations = patch.get_array();
  if (operations.size() > kJsonPatchOperationsMax) {
    return Error(Code::too_large, "Request entity too large: The allowed maximum operations in a JSON patch is " +
                                      std::to_string(kJsonPatchOperationsMax) + ", got " + std::to_string(operations.size()));
  }
  JsonPatcher patcher(document);
  for (size_t i = 0; i < operations.size(); i++) TRY(patcher.apply(operations[i]).wrap("operation " + std::to_string(i)));
  return {};
}

void apply_merge_patch(json::value& document, const json::value& patch) {
  if (!patch.is_object()) {
    document = patch;
    return;
  }
  if (!document.is_object()) document.emplace_object();
  json::object& target = document.get_object();
  bool deletes = false;
  for (const auto& [key, change] : patch.get_object()) {
    if (!change.is_null()) apply_merge_patch(target[key], change);
    else deletes = deletes || target.contains(key);
  }
  if (!deletes) return;
  erase_members_if(target, [&](const auto& member) {
    const json::value* change = patch.get_object().if_contains(member.key());
    return change && change->is_null();
  });
}

json::value make_merge_patch(const json::value& before, const json::value& after) {
  if (!before.is_object() || !after.is_object()) return after;
  json::object patch;
  for (const auto& [key, value] : before.get_object())
    if (!after.get_object().contains(key)) patch[key] = nullptr;
  for (const auto& [key, value] : after.get_object()) {
    const json::value* old = before.get_object().if_contains(key);
    if (!old) patch[key] = value;
    else if (!json_equal(*old, value)) patch[key] = make_merge_patch(*old, value);
  }
  return patch;
}

bool json_equal(const json::value& left, const json::value& right) {
  if (is_number(left) && is_number(right)) {
    if (left.is_double() || right.is_double()) return left.to_number<double>() == right.to_number<double>();
    return left == right;
  }
  if (left.kind() != right.kind()) return false;
  if (const json::object* object = left.if_object()) {
    const json::object& other = right.get_object();
    return object->size() == other.size() && std::ranges::all_of(*object, [&](const auto& member) {
             const json::value* twin = other.if_contains(member.key());
             return twin && json_equal(member.value(), *twin);
           });
  }
  if (const json::array* array = left.if_array()) return std::ranges::equal(*array, right.get_array(), json_equal);
  return left == right;
}

}  // namespace coracle
