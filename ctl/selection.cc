// SPDX-License-Identifier: Apache-2.0
// See selection.h.
#include "ctl/selection.h"

#include <algorithm>

#include "runtime/base/text.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/selector.h"

namespace coracle::ctl {
namespace {

Error wrong(const char* text) { return Error(Code::bad_request, text); }

bool has_slash(const std::string& word) { return word.find('/') != std::string::npos; }

// "pods/a services/b", or "pods,services a", which is short for it.
bool names_kind_by_kind(const std::vector<std::string>& args) {
  return std::any_of(args.begin(), args.end(), has_slash) || (args.size() > 1 && args.front().find(',') != std::string::npos);
}

Result<void> check_files(const SelectionFlags& selection, const std::vector<std::string>& args) {
  if (std::any_of(args.begin(), args.end(), has_slash))
    return wrong("resource/name arguments cannot be provided when a path is specified");
  if (!args.empty())
    return wrong("when paths, URLs, or stdin is provided as input, you may not specify resource arguments as well");
  if (!selection.fields().empty())  // kubectl takes it, and all of the files
    return wrong("--field-selector selects nothing among the objects of files: use --selector, or name the objects");
  return {};
}

}  // namespace

std::string SelectionFlags::labels() const { return std::string(trim(selector)); }

std::string SelectionFlags::fields() const {
  std::string text(trim(field_selector));
  auto parsed = FieldSelector::parse(text);
  return parsed && parsed->empty() ? std::string() : text;  // of a malformed one the server says what is wrong
}

Result<std::vector<Named>> named_by(const SelectionFlags& selection, const std::vector<std::string>& args,
                                    std::vector<Error>* unknown) {
  bool selects = selection.all || selection.has_selector();
  if (selection.all && selection.has_selector()) return wrong("setting 'all' parameter but found a non empty selector. ");
  if (!selection.files.empty()) {
    TRY(check_files(selection, args));
    return std::vector<Named>();
  }
  if (args.empty() && selects) return wrong("at least one resource must be specified to use a selector");
  if (args.empty())
    return wrong(
        "You must provide one or more resources by argument or filename.\nExample resource specifications include:\n"
        "   '-f rsrc.yaml'\n   '--filename=rsrc.json'\n   '<resource> <name>'\n   '<resource>'");
  std::vector<Named> named = TRY(parse_named(args, unknown));
  for (const Named& one : named) {
    if (one.name.empty() && !selects && !selection.kind_means_all)
      return wrong("resource(s) were provided, but no name was specified");
    if (one.name.empty()) continue;
    if (selects && names_kind_by_kind(args))
      return wrong("selectors and the all flag cannot be used when passing resource/name arguments");
    if (selects) return wrong("name cannot be provided when a selector is specified");
    if (selection.all_namespaces && one.kind->kind.namespaced)
      return wrong("a resource cannot be retrieved by name across all namespaces");
  }
  return named;
}

Result<void> select_documents(std::string_view selector, std::vector<Document>& documents) {
  LabelSelector labels = TRY(LabelSelector::parse(trim(selector)));
  if (labels.empty()) return {};
  std::erase_if(documents, [&](const Document& document) { return !labels.matches(metadata_of(document.object).labels()); });
  return {};
}

}  // namespace coracle::ctl
