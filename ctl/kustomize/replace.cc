// SPDX-License-Identifier: Apache-2.0
// See replace.h.
#include "ctl/kustomize/replace.h"

#include <algorithm>

#include "ctl/kustomize/path.h"
#include "ctl/kustomize/read.h"
#include "ctl/kustomize/write.h"
#include "runtime/base/text.h"
#include "store/object/yaml.h"

namespace coracle::kustomize {
namespace {

std::vector<std::string> split_at(const std::string& text, const std::string& delimiter) {
  std::vector<std::string> parts;
  size_t from = 0;
  for (size_t at; (at = text.find(delimiter, from)) != text.npos; from = at + delimiter.size())
    parts.push_back(text.substr(from, at - from));
  parts.push_back(text.substr(from));
  return parts;
}

std::vector<ResId> ids_of(const Resource& resource) {
  std::vector<ResId> ids = resource.previous_ids();
  ids.insert(ids.begin(), resource.id());
  return ids;
}

Result<Node> source_value(const Resources& resources, const ReplacementArgs& args) {
  if (args.source_value && args.source) return Error(Code::invalid, "source and sourceValue are mutually exclusive");
  if (args.source_value) return Node::scalar(*args.source_value);
  const SourceArgs& source = *args.source;
  ResourcePtr found;
  for (const ResourcePtr& resource : resources.all()) {
    std::vector<ResId> ids = ids_of(*resource);
    if (std::none_of(ids.begin(), ids.end(), [&](const ResId& id) { return id.is_selected_by(source.id); })) continue;
    if (found) return Error(Code::conflict, "source: multiple matches for " + source.id.text());
    found = resource;
  }
  if (!found) return Error(Code::not_found, "source: nothing selected by " + source.id.text());
  std::string path = source.field_path.empty() ? "metadata.name" : source.field_path;
  Node* value = TRY(lookup(found->object, split_path(path)).wrap("source: fieldPath " + path));
  if (!value || value->empty())
    return Error(Code::not_found, "source: fieldPath " + quoted(path) + " is missing in " + source.id.text());
  Node out = *value;
  if (source.options.delimiter.empty()) return out;
  if (!out.is_scalar()) return Error(Code::invalid, "source: options.delimiter needs a text at " + path);
  std::vector<std::string> parts = split_at(out.text, source.options.delimiter);
  if (source.options.index < 0 || size_t(source.options.index) >= parts.size())
    return Error(Code::invalid, "source: options.index " + std::to_string(source.options.index) + " is out of bounds for " +
                                    quoted(shortened_text(out.text, 80)));
  out.text = parts[size_t(source.options.index)];
  return out;
}

Result<void> set_value(Node& target, Node value, const FieldOptions& options) {
  if (!options.delimiter.empty()) {
    if (!target.is_scalar()) return Error(Code::invalid, "options.delimiter needs a text");
    std::vector<std::string> parts = split_at(target.text, options.delimiter);
    std::string text(value.value());
    if (options.index < 0) parts.insert(parts.begin(), text);
    else if (size_t(options.index) >= parts.size()) parts.push_back(text);
    else parts[size_t(options.index)] = text;
    value.text = join(parts, options.delimiter);
    if (value.text.size() > kTextBytesMax) return Error(Code::too_large, "the text becomes longer than 16 MiB");
  }
  if (target.is_scalar()) target.text = value.text;  // the type stays
  else target = std::move(value);
  return {};
}

size_t byte_of(std::string_view text, size_t character) {
  size_t at = 0;
  while (at < text.size() && character > 0) {
    do ++at;
    while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xc0) == 0x80);
    --character;
  }
  return at;
}

// Puts a value in the place of scalars of a YAML text, of which everything else stays: comments, order and style. Nothing if a
// scalar has several lines.
std::optional<std::string> spliced(std::string text, std::vector<Node*> places, const std::string& value) {
  if (value.find('\n') != value.npos || text != without_byte_order_mark(text)) return std::nullopt;
  std::sort(places.begin(), places.end(), [](const Node* left, const Node* right) { return left->begin > right->begin; });
  for (const Node* place : places) {
    if (!place->is_scalar() || place->begin >= place->end) return std::nullopt;
    size_t begin = byte_of(text, place->begin), end = byte_of(text, place->end);
    char first = text[begin];
    if (first == '|' || first == '>' || first == '!' || first == '&') return std::nullopt;
    bool quoted = first == '"' || first == '\'';
    bool other_type = !quoted && place->tag == Tag::string && tag_of(value) != Tag::string;
    text.replace(begin, end - begin, write_scalar(value, quoted ? first : other_type ? '"' : ' '));
  }
  return std::string(trim(text));
}

// A path that leads into a text which is JSON or YAML itself. False: it does not.
Result<bool> set_in_text(Node& object, const Node& value, const std::vector<std::string>& path, const Creates& creates) {
  for (size_t i = 1; i < path.size(); ++i) {
    auto field = lookup(object, {path.begin(), path.begin() + long(i)});
    if (!field || !*field || !(*field)->is_scalar()) continue;
    Node& text = **field;
    auto documents = read_documents(text.text);
    if (!documents || documents->empty()) continue;
    std::string_view trimmed = trim(text.text);
    if (trimmed.empty()) return false;
    Node content = std::move((*documents)[0]);
    auto found = match(content, {path.begin() + long(i), path.end()}, creates);
    if (!found || found->empty()) return false;
    bool in_json = trimmed[0] == '{' || trimmed[0] == '[';
    if (!in_json && value.is_scalar() && !creates.creates) {
      if (auto changed = spliced(text.text, *found, value.text)) {
        text.text = std::move(*changed);
        return true;
      }
    }
    for (Node* one : *found) {
      if (one->is_scalar()) one->text = value.text;
      else *one = value;
    }
    json::value changed = TRY(to_json(content));
    if (in_json) {
      bool pretty = text.text.find('\n') != text.text.npos && text.text.find("  ") != text.text.npos;
      text.text = go_json(changed, pretty ? 2 : 0);
    } else {
      text.text = std::string(trim(write_node(content)));
    }
    return true;
  }
  return false;
}

Result<void> set_target(Resource& resource, const Node& value, const TargetArgs& target) {
  std::vector<std::string> paths = target.field_paths;
  if (paths.empty()) paths.push_back("metadata.name");
  for (const std::string& path : paths) {
    Creates creates{target.options.create, value.kind};
    std::vector<std::string> parts = split_path(path);
    bool in_text = TRY(set_in_text(resource.object, value, parts, creates).wrap(path));
    if (in_text) continue;
    std::vector<Node*> found = TRY(match(resource.object, parts, creates).wrap("field " + path));
    if (found.empty()) return Error(Code::not_found, "unable to find field " + quoted(path) + " in " + resource.id().text());
    for (Node* one : found) {
      TRY(set_value(*one, value, target.options).wrap("field " + path));
    }
    TRY(check_size(resource.object));
  }
  return {};
}

Result<void> apply_to_targets(Resources& resources, const Node& value, const std::vector<TargetArgs>& targets) {
  for (size_t i = 0; i < targets.size(); ++i) {
    const TargetArgs& target = targets[i];
    std::string at = "targets[" + std::to_string(i) + "]";
    if (!target.select) return Error(Code::invalid, at + ": select is missing");
    CompiledSelector select = TRY(CompiledSelector::compile(*target.select).wrap(at + ".select"));
    std::vector<CompiledSelector> rejects;
    for (const Selector& reject : target.reject) {
      CompiledSelector compiled = TRY(CompiledSelector::compile(reject).wrap(at + ".reject"));
      rejects.push_back(std::move(compiled));
    }
    for (const ResourcePtr& resource : resources.all()) {
      if (!select.matches_labels(*resource)) continue;
      std::vector<ResId> ids = ids_of(*resource);
      bool rejected = false;
      for (size_t j = 0; j < rejects.size(); ++j) {
        bool by_labels = !target.reject[j].labels.empty() || !target.reject[j].annotations.empty();
        if (by_labels && rejects[j].matches_labels(*resource)) rejected = true;
        if (!target.reject[j].id.empty() &&
            std::any_of(ids.begin(), ids.end(), [&](const ResId& id) { return rejects[j].matches_id(id); }))
          rejected = true;
      }
      if (rejected || std::none_of(ids.begin(), ids.end(), [&](const ResId& id) { return select.matches_id(id); })) continue;
      TRY(set_target(*resource, value, target).wrap(at));
    }
  }
  return {};
}

}  // namespace

Result<void> apply_replacements(Resources& resources, const std::vector<ReplacementArgs>& replacements) {
  for (size_t i = 0; i < replacements.size(); ++i) {
    const ReplacementArgs& one = replacements[i];
    std::string at = "replacements[" + std::to_string(i) + "]";
    if ((!one.source && !one.source_value) || one.targets.empty())
      return Error(Code::invalid, at + ": a source and at least one target must be given");
    Node value = TRY(source_value(resources, one).wrap(at));
    TRY(apply_to_targets(resources, value, one.targets).wrap(at));
  }
  return {};
}

}  // namespace coracle::kustomize
