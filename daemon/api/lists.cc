// SPDX-License-Identifier: Apache-2.0
// Responses to lists. Objects are unpacked, written and released one at a time, so that a list needs memory for its text only;
// all parsed objects together would need several times as much.
//   stored text unchanged ──▶ pieces, never joined
//   Tables, partial and indented forms, protobuf ──▶ head ▸ item ▸ item ▸ … ▸ end
// Only YAML is made from the whole list.
#include <array>
#include <deque>
#include <functional>
#include <utility>

#include "daemon/api/call.h"
#include "runtime/base/text.h"
#include "store/object/object.h"
#include "store/schema/protobuf.h"

namespace coracle::api {
namespace {

// Removes apiVersion and kind, with which stored texts begin, because list items do not have them.
class WithoutType {
 public:
  explicit WithoutType(const Kind& kind) {
    std::string api_version = "\"apiVersion\":\"" + kind.api_version() + "\",",
                name = "\"kind\":\"" + std::string(kind.kind) + "\",";
    heads_ = {"{" + api_version + name, "{" + name + api_version};
  }
  std::string_view operator()(std::string_view text) const {
    for (const std::string& head : heads_)
      if (text.starts_with(head)) return text.substr(head.size());
    return text.substr(1);
  }

 private:
  std::array<std::string, 2> heads_;
};

json::object list_metadata(const engine::RestingPage& page) {
  json::object out{{"resourceVersion", std::to_string(page.revision)}};
  if (!page.continue_token.empty()) out["continue"] = page.continue_token;
  if (page.remaining && *page.remaining > 0) out["remainingItemCount"] = int64_t(*page.remaining);
  return out;
}

// A list made of its objects' stored texts, without copying them. Only unpacked texts need memory.
struct ListText {
  std::string head;
  std::vector<RestingPtr> items;
  std::deque<std::string> unpacked;
};

void set_list_text(Answer& answer, const schema::KindInfo& info, const engine::RestingPage& page) {
  auto text = std::make_shared<ListText>();
  text->items = page.items;
  text->head = "{\"kind\":\"" + std::string(info.list_kind) + "\",\"apiVersion\":\"" + info.kind.api_version() +
               "\",\"metadata\":" + to_text(list_metadata(page)) + ",\"items\":[";
  answer.pieces.reserve(2 + 2 * text->items.size());
  WithoutType without_type(info.kind);
  answer.pieces.push_back(text->head);
  for (const RestingPtr& object : text->items) {
    answer.pieces.push_back(answer.pieces.size() > 1 ? ",{" : "{");
    answer.pieces.push_back(without_type(object->text(text->unpacked.emplace_back())));
    if (text->unpacked.back().empty()) text->unpacked.pop_back();
  }
  answer.pieces.push_back("]}\n");
  answer.holds = std::move(text);
}

// A representation of a list, without its items.
struct ListForm {
  json::object head;
  std::string_view member;  // the member that contains the items: "items", "rows"
  std::function<json::value(const Object&)> item;
};

ListForm whole_objects(const Call& call, const engine::RestingPage& page) {
  json::object head{
      {"kind", call.info->list_kind}, {"apiVersion", call.info->kind.api_version()}, {"metadata", list_metadata(page)}};
  return {std::move(head), "items", [](const Object& object) {
            json::value item = object.json();
            item.get_object().erase("apiVersion");
            item.get_object().erase("kind");
            return item;
          }};
}

ListForm partial_objects(const engine::RestingPage& page) {
  json::object head{{"kind", "PartialObjectMetadataList"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", list_metadata(page)}};
  return {std::move(head), "items", [](const Object& object) { return schema::partial_metadata(object.json()); }};
}

ListForm table(const Call& call, const engine::RestingPage& page, schema::IncludeObject include) {
  schema::TableOptions options{include, true, std::to_string(page.revision), page.continue_token};
  WallTime now = call.context.clock.now();
  json::object head = schema::table_head(*call.info, options);
  if (page.remaining && *page.remaining > 0) head["metadata"].get_object()["remainingItemCount"] = int64_t(*page.remaining);
  return {std::move(head), "rows", [&info = *call.info, include, now](const Object& object) {
            return schema::table_row(info, object.json(), include, now);
          }};
}

// Errors: not_acceptable.
Result<ListForm> form_of(const Call& call, const engine::RestingPage& page, const Wanted& wanted, schema::IncludeObject include) {
  switch (wanted.as) {
    case As::itself: return whole_objects(call, page);
    case As::table: return table(call, page, include);
    case As::partial_list: return partial_objects(page);
    case As::partial: break;
  }
  return Error(Code::not_acceptable,
               "you requested PartialObjectMetadata, but the requested object is a list (" + go_type(*call.info, "List") + ")");
}

std::string compact(const ListForm& form, const std::vector<RestingPtr>& items) {
  std::string out = to_text(form.head);
  out.back() = ',';
  out += quoted(form.member) + ":[";
  for (const RestingPtr& object : items) {
    if (object != items.front()) out += ',';
    out += to_text(form.item(*object->awake()));
  }
  return out + "]}\n";
}

// The same output as to_pretty() of the whole.
std::string indented(const ListForm& form, const std::vector<RestingPtr>& items) {
  constexpr int kIndent = 2;
  const std::string line = "\n" + std::string(kIndent, ' '), item_line = line + std::string(kIndent, ' ');
  std::string out = to_pretty(form.head, kIndent);
  out.resize(out.size() - std::string_view("\n}").size());
  out += "," + line + quoted(form.member) + ": [";
  for (const RestingPtr& object : items) {
    if (object != items.front()) out += ',';
    std::string text = to_pretty(form.item(*object->awake()), kIndent);
    out += item_line;
    for (char c : text) c == '\n' ? out += item_line : out += c;  // line breaks in strings are escaped, so each one is formatting
  }
  if (!items.empty()) out += line;
  return out + "]\n}\n";
}

Result<std::string> protobuf(const ListForm& form, const std::vector<RestingPtr>& items) {
  schema::ProtobufList list = TRY(schema::ProtobufList::begin(form.head, form.member));
  for (const RestingPtr& object : items) TRY(list.add(form.item(*object->awake())));
  return list.end();
}

Result<std::string> whole(const ListForm& form, const std::vector<RestingPtr>& items, const Wanted& wanted) {
  json::object list = form.head;
  json::array& all = list[form.member].emplace_array();
  for (const RestingPtr& object : items) all.push_back(form.item(*object->awake()));
  return encode(std::move(list), wanted);
}

Result<std::string> written(const ListForm& form, const std::vector<RestingPtr>& items, const Wanted& wanted) {
  switch (wanted.encoding) {
    case Encoding::json: return wanted.pretty ? indented(form, items) : compact(form, items);
    case Encoding::protobuf: return protobuf(form, items);
    case Encoding::yaml: break;
  }
  return whole(form, items, wanted);
}

}  // namespace

void answer_list(Call& call, const engine::RestingPage& page) {
  auto wanted = negotiate(call.head(), Offer::object);
  if (!wanted) return answer_error(call, wanted.error());
  auto include = include_object(call.query(), *wanted);
  if (!include) return answer_error(call, include.error());
  if (is_plain(*wanted)) return set_list_text(call.answer(), *call.info, page), finish_answer(call, 200, wanted->media_type());
  auto form = form_of(call, page, *wanted, *include);
  if (!form) return answer_error(call, form.error());
  if (wanted->as != As::itself) set_version(form->head, *wanted);
  auto text = written(*form, page.items, *wanted);
  if (!text) return answer_error(call, text.error());
  set_answer(call, 200, wanted->media_type(), *std::move(text));
}

}  // namespace coracle::api
