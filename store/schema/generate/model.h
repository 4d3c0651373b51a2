// SPDX-License-Identifier: Apache-2.0
// The generator's picture of the schema text: what parse.cc reads and tables.cc and views.cc write. Build-time only.
//
// The text, one statement a line; `#` starts a comment line, ` | ` the documentation, indentation belongs to the line above:
//
//   package core v1 io.k8s.api.core.v1        name, apiVersion, prefix of OpenAPI names; the rest of the file is in it; a package
//                                             may be spread over several files
//   order meta core apps                      the order of packages in discovery (meta.v1); others follow by name
//   type Probe [atomic] | What it is.         a type; `root` instead of `type`: it has apiVersion and kind of its own
//   root Table api=meta.k8s.io/v1             the apiVersion in its objects, where it is not the package's
//   type BoolOrProbe either | One of several. in JSON not an object with these fields but the value of one of them: the first one
//                                             that fits
//     httpGet       HTTPGetAction?  1/2       a field: JSON name, type, protobuf number, options
//     periodSeconds int32           2  default=10 | How often.
//   resource pods Pod                         a served kind: URL name and type. Indented below it, one a line:
//     stored v1                               the version that the store holds, if it is another one; the folder's conversions go
//                                             from one to the other
//     cluster                                 it has no namespace
//     short po                                further: categories all, singular x, names label
//     verbs all
//     sub status get,patch,update             a subresource and its verbs; `sub scale pkg.Type VERBS`: its body has another type
//     column Name string/name = path metadata.name     `wide` before `=`: only with -o wide; ` | ` its description
//     selectable NAME [= PATH] [or PATH] [else TEXT]     what field selectors may name beside metadata; where it is in the
//                                             stored object; where else to look, and what it is if it is nowhere
//     counts-generations                      a fact, or `FACT VALUE`: a word of kMarks or kTraits in parse.cc; KindTraits in
//                                             catalog.h explains it
//
// Types: string int32 int64 bool double bytes Time MicroTime Duration Quantity IntOrString Any Fields Strings, a type of the
// package, or package.Type; []T a list, map[T] a map from string. `?` after it: unset differs from zero; `!`: always written.
//
// Number: `3`; `2/3` if protobuf holds it as field 3 of a nested message 2 (Go's inlined structs), `2/2/3` one deeper; `-`: none.
//
// Names: subdomain (the rule if nothing is said), label or 1035: which of DNS's syntaxes an object's name follows; ip: it is an
// address; path: what a URL can contain.
//
// Options:
//   required           with `empty`: but it may be empty
//   default=<JSON>     default=rule: it depends on more, and the code of its folder has it
//   enum=A,B           closed; known=A,B: open
//   ruled              required and enum are for documents only: a rule of its folder checks the field
//   keys=a,b           a list merges by these; set: the list is a set
//   merge[=key]        strategic merge patch; likewise retain and replace
//   atomic             the map or object is replaced as a whole; granular: the object merges by its fields, though its type is
//                      atomic
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

namespace generate {

struct Field {
  std::string name, base, form, default_json, values, merge_key, keys, doc;
  std::string where;  // file:line, for messages
  int type = -1;      // index of the type for form "object"
  std::string shape = "one", list = "atomic";
  int number = 0, inlined = 0;  // inlined: number of the nested message; for two levels, outer * 256 + inner
  bool required = false, may_be_empty = false, always = false, pointer = false, closed = false, merges = false, retains = false,
       replaced = false, atomic = false, granular = false, ruled = false, default_by_rule = false;
};

struct Type {
  std::string name, doc, api_version, view, where;
  int package = 0;
  bool root = false, atomic = false, either = false;
  std::vector<Field> fields;
};

struct Package {
  std::string name, group, version, api_version, openapi;
};

struct Subresource {
  std::string name, kind, verbs, where;
  int type = -1;
  std::string group, version;
};

struct Column {
  std::string name, type, format, cell, doc;
  int priority = 0;
};

struct Selectable {
  std::string name, path, other_path, otherwise;
};

struct Resource {
  std::string plural, kind, singular, short_names, categories, verbs, names = "subdomain", stored, where;
  int package = 0, type = -1, list_type = -1, stored_at = -1;
  bool cluster = false;
  std::vector<Subresource> subresources;
  std::vector<Column> columns;
  std::vector<Selectable> selectable;
  std::set<std::string> marks;
  std::map<std::string, std::string> traits;
};

struct Model {
  std::vector<Package> packages;
  std::vector<Type> types;
  std::vector<Resource> resources;
};

extern const std::vector<std::string> kMarks, kTraits;  // in the order of KindTraits, with "-" for "_"

Model parse(const std::vector<std::string>& files);  // on an error, ends the process with file:line and the reason
std::string write_tables(const Model& model);
std::string write_families(const std::vector<std::string>& files);    // of the folders that have code
std::string write_strategies(const std::vector<std::string>& files);  // of the folders that have code for the server
std::string write_views(const Model& model);

[[noreturn]] void fail(const std::string& where, const std::string& what);

}  // namespace generate
