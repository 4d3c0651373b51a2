// SPDX-License-Identifier: Apache-2.0
// See generate.h.
#include "ctl/kustomize/generate.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/sha256.h"
#include "runtime/base/text.h"

namespace coracle::kustomize {
namespace {

using Pairs = std::vector<std::pair<std::string, std::string>>;

Result<void> add_env_file(const Loader& loader, const std::string& path, Pairs& pairs) {
  std::string text = TRY(loader.load(path));
  size_t number = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (!is_utf8(line))
      return Error(Code::invalid, loader.shown(path) + ": line " + std::to_string(number) + " is not valid UTF-8");
    if (number == 1) line = without_byte_order_mark(line);
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line[0]))) line.remove_prefix(1);
    if (line.empty() || line[0] == '#') continue;
    size_t equals = line.find('=');
    std::string key(line.substr(0, equals));
    if (!key.empty()) pairs.emplace_back(key, equals == line.npos ? std::string() : std::string(line.substr(equals + 1)));
  }
  return {};
}

Result<void> add_literal(const std::string& literal, Pairs& pairs) {
  size_t equals = literal.find('=');
  if (equals == literal.npos || equals == 0)
    return Error(Code::invalid, "invalid literal " + quoted(literal) + ": expected key=value");
  std::string value = literal.substr(equals + 1);
  if (value.size() >= 2 && value.front() == value.back() && (value.front() == '"' || value.front() == '\''))
    value = value.substr(1, value.size() - 2);
  pairs.emplace_back(literal.substr(0, equals), value);
  return {};
}

Result<void> add_file(const Loader& loader, const std::string& source, Pairs& pairs) {
  size_t equals = source.find('=');
  if (equals != source.npos && source.find('=', equals + 1) != source.npos)
    return Error(Code::invalid, "file " + quoted(source) + ": the key and the path may not contain =");
  if (equals == 0) return Error(Code::invalid, "file " + quoted(source) + ": the key before = is missing");
  if (equals != source.npos && equals + 1 == source.size())
    return Error(Code::invalid, "file " + quoted(source) + ": the path behind = is missing");
  std::string path = equals == source.npos ? source : source.substr(equals + 1);
  std::string key = equals == source.npos ? std::filesystem::path(source).filename().string() : source.substr(0, equals);
  std::string text = TRY(loader.load(path));
  pairs.emplace_back(key, std::move(text));
  return {};
}

// Sorted by key.
Result<Pairs> data_of(const Loader& loader, const GeneratorArgs& args) {
  Pairs pairs;
  for (const std::string& path : args.envs) {
    TRY(add_env_file(loader, path, pairs).wrap("envs"));
  }
  if (!args.env.empty()) {
    TRY(add_env_file(loader, args.env, pairs).wrap("env"));
  }
  for (const std::string& literal : args.literals) {
    TRY(add_literal(literal, pairs).wrap("literals"));
  }
  for (const std::string& source : args.files) {
    TRY(add_file(loader, source, pairs).wrap("files"));
  }
  std::stable_sort(pairs.begin(), pairs.end(), [](const auto& left, const auto& right) { return left.first < right.first; });
  for (size_t i = 1; i < pairs.size(); ++i)
    if (pairs[i].first == pairs[i - 1].first) return Error(Code::invalid, "the key " + quoted(pairs[i].first) + " occurs twice");
  return pairs;
}

// In lines of 70 characters if it is longer, as kustomize writes it.
std::string lines_of_base64(std::string_view bytes) {
  constexpr size_t kLine = 70;
  std::string text = base64_encode(bytes), out;
  if (text.size() < kLine) return text;
  for (size_t at = 0; at < text.size(); at += kLine) out += text.substr(at, kLine) + "\n";
  return out;
}

Result<ResourcePtr> base_object(const char* kind, const GeneratorArgs& args) {
  if (args.name.empty()) return Error(Code::invalid, std::string("name: a ") + kind + " must have a name");
  const std::string& behavior = args.behavior;
  if (!behavior.empty() && behavior != "create" && behavior != "replace" && behavior != "merge" && behavior != "unspecified")
    return Error(Code::invalid, "behavior: " + quoted(behavior) + " is not create, replace or merge");
  Node object = Node::map();
  object.set("apiVersion", Node::string("v1"));
  object.set("kind", Node::string(kind));
  auto resource = std::make_shared<Resource>(std::move(object));
  resource->set_name(args.name);
  if (!args.ns.empty()) resource->set_ns(args.ns);
  resource->behavior = behavior == "merge"     ? Behavior::merge
                       : behavior == "replace" ? Behavior::replace
                       : behavior == "create"  ? Behavior::create
                                               : Behavior::unspecified;
  resource->needs_hash = !args.options || !args.options->disable_name_suffix_hash;
  return resource;
}

void add_options(Resource& resource, const std::optional<GeneratorOptions>& options) {
  if (!options) return;
  resource.set_map("labels", {options->labels.begin(), options->labels.end()});
  resource.set_map("annotations", {options->annotations.begin(), options->annotations.end()});
  if (options->immutable) resource.object.set("immutable", Node::scalar("true", Tag::boolean));
}

}  // namespace

Result<ResourcePtr> generate_config_map(const Loader& loader, const GeneratorArgs& args) {
  ResourcePtr resource = TRY(base_object("ConfigMap", args));
  Pairs pairs = TRY(data_of(loader, args));
  for (auto& [key, value] : pairs) {
    bool text = is_utf8(value);
    Node& data = resource->object.make(text ? "data" : "binaryData", Node::Kind::map);
    data.members.push_back({key, Node::string(text ? std::move(value) : lines_of_base64(value))});
  }
  add_options(*resource, args.options);
  return resource;
}

Result<ResourcePtr> generate_secret(const Loader& loader, const GeneratorArgs& args) {
  ResourcePtr resource = TRY(base_object("Secret", args));
  resource->object.set("type", Node::string(args.type.empty() ? "Opaque" : args.type));
  Pairs pairs = TRY(data_of(loader, args));
  Node& data = resource->object.make("data", Node::Kind::map);
  for (auto& [key, value] : pairs) data.members.push_back({key, Node::string(lines_of_base64(value))});
  add_options(*resource, args.options);
  return resource;
}

std::optional<GeneratorOptions> merged_options(std::optional<GeneratorOptions> own, const std::optional<GeneratorOptions>& all) {
  if (!all) return own;
  if (!own) own.emplace();
  own->labels.insert(all->labels.begin(), all->labels.end());
  own->annotations.insert(all->annotations.begin(), all->annotations.end());
  own->disable_name_suffix_hash = own->disable_name_suffix_hash || all->disable_name_suffix_hash;
  own->immutable = own->immutable || all->immutable;
  return own;
}

Result<std::string> content_hash(const Node& object) {
  json::value content = TRY(to_json(object));
  std::string kind(get_string(content, "kind"));
  json::object hashed{{"kind", kind}, {"name", ""}};
  auto take = [&](const char* field, bool always) {
    const json::value* value = find(content, field);
    if (value || always) hashed[field] = value ? *value : json::value("");
  };
  take("data", true);
  if (kind == "Secret") {
    take("type", true);
    take("stringData", false);
  } else {
    take("binaryData", false);
  }
  std::string digits = hex(as_text(sha256_of(go_json(hashed)))).substr(0, 10);
  for (char& c : digits) c = c == '0' ? 'g' : c == '1' ? 'h' : c == '3' ? 'k' : c == 'a' ? 'm' : c == 'e' ? 't' : c;
  return digits;
}

}  // namespace coracle::kustomize
