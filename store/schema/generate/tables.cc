// SPDX-License-Identifier: Apache-2.0
// Writes tables.inc: one pool of characters without duplicate strings, and arrays that refer to it by index.
#include <algorithm>
#include <map>
#include <sstream>

#include "store/schema/generate/model.h"

namespace generate {
namespace {

std::string literal(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

class Pool {
 public:
  std::string add(const std::string& text) {
    if (text.empty()) return "{0, 0}";
    auto [found, fresh] = at_.emplace(text, size_);
    if (fresh) {
      order_.push_back(text);
      size_ += text.size();
    }
    return "{" + std::to_string(found->second) + ", " + std::to_string(text.size()) + "}";
  }
  std::string write() const {
    std::string out = "const char kPool[] =\n";
    for (const std::string& text : order_) out += "    " + literal(text) + "\n";
    return out + "    ;\n";
  }

 private:
  std::map<std::string, size_t> at_;
  std::vector<std::string> order_;
  size_t size_ = 0;
};

std::string member_of(std::string word) {  // "created-by-update" → created_by_update
  std::replace(word.begin(), word.end(), '-', '_');
  return word;
}

const char* flag(bool value) { return value ? "true" : "false"; }

}  // namespace

std::string write_tables(const Model& model) {
  Pool pool;
  std::ostringstream fields, types, packages, kinds, subresources, columns, selectable;
  size_t field_count = 0, subresource_count = 0, column_count = 0, selectable_count = 0;

  for (const Package& package : model.packages) {
    packages << "    {" << pool.add(package.name) << ", " << pool.add(package.group) << ", " << pool.add(package.version) << ", "
             << pool.add(package.openapi) << "},\n";
  }
  for (const Type& type : model.types) {
    types << "    {" << pool.add(type.name) << ", " << pool.add(type.doc) << ", " << pool.add(type.api_version) << ", "
          << field_count << ", " << type.fields.size() << ", " << type.package << ", " << flag(type.root) << ", "
          << flag(type.atomic) << ", " << flag(type.either) << "},\n";
    field_count += type.fields.size();
    for (const Field& field : type.fields) {
      fields << "    {" << pool.add(field.name) << ", " << pool.add(field.default_json) << ", " << pool.add(field.values) << ", "
             << pool.add(field.merge_key) << ", " << pool.add(field.keys) << ", " << pool.add(field.doc) << ", "
             << (field.type < 0 ? 0 : field.type) << ", " << field.number << ", " << field.inlined << ", Form::" << field.form
             << ", Shape::" << field.shape << ", ListKind::" << field.list << ", " << flag(field.required) << ", "
             << flag(field.may_be_empty) << ", " << flag(field.always) << ", " << flag(field.pointer) << ", "
             << flag(field.closed) << ", " << flag(field.merges) << ", " << flag(field.retains) << ", " << flag(field.replaced)
             << ", " << flag(field.atomic) << ", " << flag(field.granular) << ", " << flag(field.ruled) << ", "
             << flag(field.default_by_rule) << "},  // " << type.name << "." << field.name << "\n";
    }
  }
  for (const Resource& resource : model.resources) {
    const Package& package = model.packages[resource.package];
    kinds << "    {{" << literal(package.group) << ", " << literal(package.version) << ", " << literal(resource.kind) << ", "
          << literal(resource.plural) << ", " << flag(!resource.cluster) << "}, "
          << literal(resource.list_type < 0 ? "" : resource.kind + "List") << ", " << literal(resource.singular) << ", "
          << literal(resource.short_names) << ", " << literal(resource.categories) << ", " << literal(resource.verbs) << ", "
          << literal(resource.names) << ", " << resource.type << ", " << (resource.list_type < 0 ? 0 : resource.list_type) << ", "
          << subresource_count << ", " << resource.subresources.size() << ", " << column_count << ", " << resource.columns.size()
          << ", " << resource.stored_at << ", {";
    for (const std::string& mark : kMarks)
      if (resource.marks.count(mark)) kinds << "." << member_of(mark) << " = true, ";
    for (const std::string& trait : kTraits)
      if (auto given = resource.traits.find(trait); given != resource.traits.end())
        kinds << "." << member_of(trait) << " = " << literal(given->second) << ", ";
    if (!resource.selectable.empty())
      kinds << ".selectable = {kSelectable + " << selectable_count << ", " << resource.selectable.size() << "}";
    kinds << "}},\n";
    for (const Selectable& field : resource.selectable) {
      selectable << "    {" << literal(field.name) << ", " << literal(field.path) << ", " << literal(field.other_path) << ", "
                 << literal(field.otherwise) << "},\n";
    }
    selectable_count += resource.selectable.size();
    for (const Subresource& sub : resource.subresources) {
      subresources << "    {" << literal(sub.name) << ", " << literal(sub.group) << ", " << literal(sub.version) << ", "
                   << literal(sub.kind) << ", " << literal(sub.verbs) << ", " << sub.type << "},\n";
    }
    for (const Column& column : resource.columns) {
      columns << "    {" << literal(column.name) << ", " << literal(column.type) << ", " << literal(column.format) << ", "
              << literal(column.cell) << ", " << literal(column.doc) << ", " << column.priority << "},\n";
    }
    subresource_count += resource.subresources.size();
    column_count += resource.columns.size();
  }

  std::ostringstream out;
  out << "// Generated from the text in store/kinds. Not to be edited.\n"
      << pool.write() << "constexpr Package kPackages[] = {\n"
      << packages.str() << "};\n"
      << "constexpr Field kFields[] = {\n"
      << fields.str() << "};\n"
      << "constexpr Type kTypes[] = {\n"
      << types.str() << "};\n"
      << "constexpr Subresource kSubresources[] = {\n"
      << subresources.str() << "};\n"
      << "constexpr Column kColumns[] = {\n"
      << columns.str() << "};\n"
      << "constexpr Selectable kSelectable[] = {\n"
      << selectable.str() << "};\n"
      << "constexpr KindRow kKinds[] = {\n"
      << kinds.str() << "};\n";
  return out.str();
}

}  // namespace generate
