// SPDX-License-Identifier: Apache-2.0
// Parses the schema text into a Model and resolves names. An error stops the build with file:line.
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "store/schema/generate/model.h"

namespace generate {

void fail(const std::string& where, const std::string& what) {
  std::cerr << where << ": " << what << "\n";
  std::exit(1);
}

const std::vector<std::string> kMarks = {"created-by-update",
                                         "update-needs-revision",
                                         "returns-deleted",
                                         "orphans-dependents",
                                         "counts-generations",
                                         "graceful",
                                         "awaits-finalize",
                                         "keeps-first-status",
                                         "from-template",
                                         "names-pods",
                                         "uncounted",
                                         "no-owners",
                                         "review"};
const std::vector<std::string> kTraits = {"status-keeps", "durability", "pod-template",      "heartbeat",
                                          "finalizer",    "warns",      "selectable-refusal"};

namespace {

const std::map<std::string, std::string> kForms = {{"string", "string"},
                                                   {"int32", "int32"},
                                                   {"int64", "int64"},
                                                   {"bool", "boolean"},
                                                   {"double", "number"},
                                                   {"bytes", "bytes"},
                                                   {"Time", "time"},
                                                   {"MicroTime", "micro_time"},
                                                   {"Duration", "duration"},
                                                   {"Quantity", "quantity"},
                                                   {"IntOrString", "int_or_string"},
                                                   {"Any", "any"},
                                                   {"Fields", "fields"},
                                                   {"Strings", "strings"}};

const char* const kAllVerbs = "create,delete,deletecollection,get,list,patch,update,watch";

// Words separated by spaces; "..." and '...' at the start of a word may contain spaces.
std::vector<std::string> words_of(const std::string& text, const std::string& where) {
  std::vector<std::string> words;
  for (size_t at = 0; (at = text.find_first_not_of(' ', at)) != text.npos;) {
    bool quoted = text[at] == '"' || text[at] == '\'';
    size_t end = quoted ? text.find(text[at], at + 1) : text.find(' ', at);
    if (quoted && end == text.npos) fail(where, "a quote is not closed");
    if (end == text.npos) end = text.size();
    words.push_back(text.substr(at + quoted, end - at - quoted));
    at = end + quoted;
  }
  return words;
}

bool take_prefix(std::string& text, const std::string& prefix) {
  if (text.compare(0, prefix.size(), prefix) != 0) return false;
  text.erase(0, prefix.size());
  return true;
}

bool take_suffix(std::string& text, const std::string& suffix) {
  if (text.size() < suffix.size() || text.compare(text.size() - suffix.size(), suffix.size(), suffix) != 0) return false;
  text.resize(text.size() - suffix.size());
  return true;
}

bool is_among(const std::vector<std::string>& all, const std::string& word) {
  return std::find(all.begin(), all.end(), word) != all.end();
}

class Reader {
 public:
  void read(const std::string& path) {
    std::ifstream in(path);
    if (!in) fail(path, "cannot be read");
    std::string line;
    package_ = -1;
    open_ = Open::nothing;
    for (int number = 1; std::getline(in, line); ++number) {
      where_ = path + ":" + std::to_string(number);
      if (line.empty() || line[0] == '#') continue;
      doc_.clear();
      if (size_t bar = line.find(" | "); bar != line.npos) {
        doc_ = line.substr(bar + 3);
        line.resize(bar);
      }
      bool indented = line[0] == ' ';
      std::vector<std::string> words = words_of(line, where_);
      if (words.empty()) continue;
      if (!indented) headline(words);
      else if (open_ == Open::type) field(words);
      else if (open_ == Open::resource) trait(words);
      else fail(where_, "an indented line belongs to a type or a resource");
    }
  }

  Model finish() {
    sort_packages();
    make_list_types();
    for (size_t i = 0; i < model_.types.size(); ++i) {
      const Type& type = model_.types[i];
      if (!names_.emplace(model_.packages[type.package].name + "." + type.name, int(i)).second) {
        fail(type.where, type.name + " is described twice");
      }
    }
    for (Type& type : model_.types) resolve(type);
    for (Resource& resource : model_.resources) resolve(resource);
    name_views();
    return std::move(model_);
  }

 private:
  void headline(const std::vector<std::string>& words) {
    const std::string& verb = words[0];
    if (verb == "package") {
      if (words.size() != 4) fail(where_, "package: name, apiVersion and OpenAPI prefix are needed");
      size_t slash = words[2].find('/');
      Package package{words[1], slash == std::string::npos ? "" : words[2].substr(0, slash),
                      slash == std::string::npos ? words[2] : words[2].substr(slash + 1), words[2], words[3]};
      package_ = find_or_add(package);
      open_ = Open::nothing;
      return;
    }
    if (verb == "order") {
      order_.assign(words.begin() + 1, words.end());
      open_ = Open::nothing;
      return;
    }
    if (package_ < 0) fail(where_, "the file must begin with its package");
    if (verb == "type" || verb == "root") {
      if (words.size() < 2) fail(where_, verb + ": a name is needed");
      Type type;
      type.name = words[1];
      type.doc = doc_;
      type.where = where_;
      type.package = package_;
      type.root = verb == "root";
      if (type.root) type.api_version = model_.packages[package_].api_version;
      for (size_t i = 2; i < words.size(); ++i) {
        std::string option = words[i];
        if (option == "atomic") type.atomic = true;
        else if (option == "either") type.either = true;
        else if (take_prefix(option, "api=")) type.api_version = option;
        else fail(where_, "unknown option " + option);
      }
      if (type.root) {
        type.fields.push_back(plain("apiVersion", "Version of the schema that the object is written in, with its group."));
        type.fields.push_back(plain("kind", "What the object is, in CamelCase."));
      }
      model_.types.push_back(std::move(type));
      open_ = Open::type;
    } else if (verb == "resource") {
      if (words.size() != 3) fail(where_, "resource: URL name and type are needed");
      Resource resource;
      resource.plural = words[1];
      resource.kind = words[2];
      resource.where = where_;
      resource.package = package_;
      resource.singular = words[2];
      std::transform(resource.singular.begin(), resource.singular.end(), resource.singular.begin(), ::tolower);
      model_.resources.push_back(std::move(resource));
      open_ = Open::resource;
    } else {
      fail(where_, "unknown word " + verb);
    }
  }

  // A package may be spread over several files.
  int find_or_add(const Package& package) {
    for (size_t i = 0; i < model_.packages.size(); ++i) {
      const Package& other = model_.packages[i];
      if (other.name != package.name) continue;
      if (other.api_version != package.api_version || other.openapi != package.openapi)
        fail(where_, "package " + package.name + " has another apiVersion or prefix elsewhere");
      return int(i);
    }
    model_.packages.push_back(package);
    return int(model_.packages.size()) - 1;
  }

  // The order of discovery: packages as in `order`, others after them by name; resources of a package by name.
  void sort_packages() {
    auto place = [&](const Package& package) {
      size_t at = size_t(std::find(order_.begin(), order_.end(), package.name) - order_.begin());
      return std::make_pair(at, package.name);
    };
    std::vector<Package> sorted = model_.packages;
    std::sort(sorted.begin(), sorted.end(), [&](const Package& a, const Package& b) { return place(a) < place(b); });
    std::vector<int> now(sorted.size());  // by the index before
    for (size_t i = 0; i < sorted.size(); ++i) {
      auto same = [&](const Package& package) { return package.name == sorted[i].name; };
      now[size_t(std::find_if(model_.packages.begin(), model_.packages.end(), same) - model_.packages.begin())] = int(i);
    }
    model_.packages = std::move(sorted);
    for (Type& type : model_.types) type.package = now[size_t(type.package)];
    for (Resource& resource : model_.resources) resource.package = now[size_t(resource.package)];
    auto earlier = [](const auto& a, const auto& b) { return a.package < b.package; };
    std::stable_sort(model_.types.begin(), model_.types.end(), earlier);
    std::sort(model_.resources.begin(), model_.resources.end(), [](const Resource& a, const Resource& b) {
      return std::tie(a.package, a.plural) < std::tie(b.package, b.plural);
    });
  }

  Field plain(const std::string& name, const std::string& doc) {
    Field field;
    field.name = name;
    field.base = "string";
    field.doc = doc;
    field.where = where_;
    return field;
  }

  void field(const std::vector<std::string>& words) {
    if (words.size() < 3) fail(where_, "a field needs a name, a type and a number");
    Field field;
    field.name = words[0];
    field.doc = doc_;
    field.where = where_;
    std::string type = words[1];
    if (take_suffix(type, "!")) field.always = true;
    if (take_suffix(type, "?")) field.pointer = true;
    if (take_prefix(type, "[]")) field.shape = "list";
    else if (take_prefix(type, "map[") && take_suffix(type, "]")) field.shape = "map";
    field.base = type;
    if (words[2] != "-") {
      std::string rest = words[2];
      for (size_t slash; (slash = rest.find('/')) != rest.npos; rest.erase(0, slash + 1)) {
        field.inlined = field.inlined * 256 + number(rest.substr(0, slash));
      }
      field.number = number(rest);
      if (field.inlined > 0xffff) fail(where_, "messages nest too deeply");
    }
    for (size_t i = 3; i < words.size(); ++i) option(field, words[i]);
    model_.types.back().fields.push_back(std::move(field));
  }

  int number(const std::string& text) {
    if (text.empty() || text.find_first_not_of("0123456789") != text.npos) fail(where_, "not a number: " + text);
    return std::atoi(text.c_str());
  }

  void option(Field& field, std::string word) {
    if (word == "required") field.required = true;
    else if (word == "empty") field.may_be_empty = true;
    else if (word == "ruled") field.ruled = true;
    else if (word == "set") field.list = "set";
    else if (word == "atomic") field.atomic = true;
    else if (word == "granular") field.granular = true;
    else if (word == "merge") field.merges = true;
    else if (word == "retain") field.retains = true;
    else if (word == "replace") field.replaced = true;
    else if (take_prefix(word, "merge=")) field.merges = true, field.merge_key = word;
    else if (take_prefix(word, "keys=")) field.list = "map", field.keys = word;
    else if (take_prefix(word, "enum=")) field.closed = true, field.values = word;
    else if (take_prefix(word, "known=")) field.values = word;
    else if (word == "default=rule") field.default_by_rule = true;
    else if (take_prefix(word, "default=")) field.default_json = word;
    else fail(where_, "unknown option " + word);
  }

  void trait(const std::vector<std::string>& words) {
    Resource& resource = model_.resources.back();
    const std::string& verb = words[0];
    auto value = [&]() -> const std::string& {
      if (words.size() != 2) fail(where_, verb + ": one value is needed");
      return words[1];
    };
    if (verb == "cluster") resource.cluster = true;
    else if (verb == "short") resource.short_names = value();
    else if (verb == "categories") resource.categories = value();
    else if (verb == "singular") resource.singular = value();
    else if (verb == "names") resource.names = value();
    else if (verb == "stored") resource.stored = value();
    else if (verb == "verbs") resource.verbs = value() == "all" ? kAllVerbs : value();
    else if (verb == "sub") subresource(resource, words);
    else if (verb == "column") column(resource, words);
    else if (verb == "selectable") selectable(resource, words);
    else if (is_among(kMarks, verb)) mark(resource, words);
    else if (is_among(kTraits, verb)) resource.traits[verb] = value();
    else fail(where_, "unknown word " + verb);
  }

  void mark(Resource& resource, const std::vector<std::string>& words) {
    if (words.size() != 1) fail(where_, words[0] + ": nothing follows");
    resource.marks.insert(words[0]);
  }

  void selectable(Resource& resource, const std::vector<std::string>& words) {
    if (words.size() % 2) fail(where_, "selectable: a name, and perhaps = path, or path, else text");
    Selectable field;
    field.name = field.path = words[1];
    for (size_t i = 2; i < words.size(); i += 2) {
      if (words[i] == "=") field.path = words[i + 1];
      else if (words[i] == "or") field.other_path = words[i + 1];
      else if (words[i] == "else") field.otherwise = words[i + 1];
      else fail(where_, "selectable: unknown word " + words[i]);
    }
    resource.selectable.push_back(std::move(field));
  }

  void subresource(Resource& resource, const std::vector<std::string>& words) {
    if (words.size() != 3 && words.size() != 4) fail(where_, "sub: a name, perhaps a type, and verbs are needed");
    Subresource sub;
    sub.name = words[1];
    sub.kind = words.size() == 4 ? words[2] : resource.kind;
    sub.verbs = words.back();
    sub.where = where_;
    resource.subresources.push_back(std::move(sub));
  }

  void column(Resource& resource, const std::vector<std::string>& words) {
    auto equals = std::find(words.begin(), words.end(), "=");
    if (words.size() < 5 || equals == words.end()) fail(where_, "column: \"Name\" type = cell");
    Column column;
    column.name = words[1];
    column.type = words[2];
    if (size_t slash = column.type.find('/'); slash != column.type.npos) {
      column.format = column.type.substr(slash + 1);
      column.type.resize(slash);
    }
    column.priority = words[3] == "wide" ? 1 : 0;
    for (auto word = equals + 1; word != words.end(); ++word) column.cell += (column.cell.empty() ? "" : " ") + *word;
    column.doc = doc_;
    resource.columns.push_back(std::move(column));
  }

  // Every kind with a list has a <Kind>List of the same form: ListMeta and items.
  void make_list_types() {
    for (const Resource& resource : model_.resources) {
      if (("," + resource.verbs + ",").find(",list,") == std::string::npos) continue;
      where_ = resource.where;
      Type list;
      list.name = resource.kind + "List";
      list.doc = "A list of " + resource.kind + " objects.";
      list.where = resource.where;
      list.package = resource.package;
      list.root = true;
      list.api_version = model_.packages[resource.package].api_version;
      Field metadata = plain("metadata", "The list's own metadata: where it stands in time, and how to go on."),
            items = plain("items", "The objects.");
      metadata.base = "meta.ListMeta";
      metadata.number = 1;
      metadata.always = true;
      items.base = resource.kind;
      items.shape = "list";
      items.number = 2;
      items.always = items.required = true;
      list.fields = {plain("apiVersion", "Version of the schema that the list is written in, with its group."),
                     plain("kind", "What the list is, in CamelCase."), metadata, items};
      model_.types.push_back(std::move(list));
    }
  }

  int find_type(const std::string& name, int package) const {
    bool qualified = name.find('.') != std::string::npos;
    auto found = names_.find(qualified ? name : model_.packages[package].name + "." + name);
    return found == names_.end() ? -1 : found->second;
  }

  void resolve(Type& type) {
    std::set<std::string> seen;
    std::set<std::pair<int, int>> numbers;
    std::vector<int> last;  // the order of protobuf output, nested messages together
    for (Field& field : type.fields) {
      if (!seen.insert(field.name).second) fail(field.where, field.name + " is described twice");
      if (field.number && !numbers.insert({field.inlined, field.number}).second) {
        fail(field.where, "number " + std::to_string(field.number) + " is used twice");
      }
      std::vector<int> at;
      if (field.inlined > 255) at.push_back(field.inlined / 256);
      if (field.inlined) at.push_back(field.inlined % 256);
      at.push_back(field.number);
      if (field.number && at < last) fail(field.where, "fields stand in the order of their numbers");
      if (field.number) last = at;
      if (auto form = kForms.find(field.base); form != kForms.end()) {
        field.form = form->second;
        continue;
      }
      field.form = "object";
      field.type = find_type(field.base, type.package);
      if (field.type < 0) fail(field.where, "unknown type " + field.base);
    }
    for (const Field& field : type.fields) {
      if (field.inlined && numbers.count({field.inlined / 256, field.inlined % 256})) {
        fail(field.where, "its message's number is a field's");
      }
    }
  }

  void resolve(Resource& resource) {
    resource.type = find_type(resource.kind, resource.package);
    resource.list_type = find_type(resource.kind + "List", resource.package);
    if (resource.type < 0 || !model_.types[resource.type].root) fail(resource.where, "no root type " + resource.kind);
    if (resource.verbs.empty()) fail(resource.where, "verbs are missing");
    for (size_t i = 0; i < model_.resources.size(); ++i) {
      const Resource& other = model_.resources[i];
      bool same = resource.stored.empty()
                      ? &other == &resource
                      : other.kind == resource.kind && model_.packages[other.package].api_version == resource.stored;
      if (same) resource.stored_at = int(i);
    }
    if (resource.stored_at < 0) fail(resource.where, "no kind " + resource.kind + " in " + resource.stored);
    for (Subresource& sub : resource.subresources) {
      sub.type = find_type(sub.kind, resource.package);
      if (sub.type < 0 && sub.kind.find('.') != std::string::npos) fail(sub.where, "unknown type " + sub.kind);
      const Package& package = model_.packages[sub.type < 0 ? resource.package : model_.types[sub.type].package];
      sub.group = package.group;
      sub.version = package.version;
      if (size_t dot = sub.kind.find('.'); dot != sub.kind.npos) sub.kind.erase(0, dot + 1);
    }
  }

  // C++ names of the views: the type's name; if two packages have the same, the later one gets its package's name as a prefix.
  void name_views() {
    std::set<std::string> taken;
    for (Type& type : model_.types) {
      type.view = type.name;
      if (!taken.insert(type.view).second) {
        std::string package = model_.packages[type.package].name;
        package[0] = char(::toupper(package[0]));
        type.view = package + type.name;
        if (!taken.insert(type.view).second) fail(type.where, "no C++ name is left for " + type.name);
      }
    }
  }

  enum class Open { nothing, type, resource };
  Model model_;
  std::vector<std::string> order_;  // of packages
  std::map<std::string, int> names_;
  std::string where_, doc_;
  int package_ = -1;
  Open open_ = Open::nothing;
};

}  // namespace

Model parse(const std::vector<std::string>& files) {
  Reader reader;
  for (const std::string& file : files) reader.read(file);
  return reader.finish();
}

}  // namespace generate
