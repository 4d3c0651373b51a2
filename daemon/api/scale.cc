// SPDX-License-Identifier: Apache-2.0
// Responses of /scale: the Scale itself, a Table or its metadata. Its columns are the same for every kind of workload. Source:
// Kubernetes printers, Scale.
#include <span>

#include "daemon/api/handlers.h"
#include "store/object/status.h"
#include "store/schema/table.h"
#include "store/schema/views.h"

namespace coracle::api {
namespace {

struct ScaleColumn {
  std::string_view name, type, format, doc;
};

constexpr ScaleColumn kScaleColumns[] = {{"Name", "string", "name", "The object's name."},
                                         {"Desired", "integer", "", "How many replicas are wanted."},
                                         {"Available", "integer", "", "How many replicas there are."},
                                         {"Age", "string", "", "How long ago the object was created."}};

json::object scale_table(const json::value& scale, schema::IncludeObject include, WallTime now) {
  json::array columns;
  for (const ScaleColumn& column : kScaleColumns)
    columns.push_back(json::object{
        {"name", column.name}, {"type", column.type}, {"format", column.format}, {"description", column.doc}, {"priority", 0}});
  view::Scale shown(scale);
  json::array cells{shown.metadata().name(), shown.spec().replicas(), shown.status().replicas(),
                    schema::human_age(shown.metadata().creation_timestamp(), now)};
  json::object row{{"cells", std::move(cells)}};
  if (include == schema::IncludeObject::metadata) row["object"] = schema::partial_metadata(scale);
  else row["object"] = include == schema::IncludeObject::object ? scale : json::value();
  return {{"kind", "Table"},
          {"apiVersion", "meta.k8s.io/v1"},
          {"metadata", json::object{{"resourceVersion", shown.metadata().resource_version()}}},
          {"columnDefinitions", std::move(columns)},
          {"rows", json::array{std::move(row)}}};
}

// Errors: bad_request, not_acceptable.
Result<json::value> form_of_scale(const Call& call, const json::value& scale, const Wanted& wanted) {
  json::value form = scale;
  switch (wanted.as) {
    case As::itself: return form;
    case As::table: {
      schema::IncludeObject include = TRY(include_object(call.query(), wanted));
      form = scale_table(scale, include, call.context.clock.now());
      break;
    }
    case As::partial: form = schema::partial_metadata(scale); break;
    case As::partial_list:
      return Error(Code::not_acceptable,
                   "you requested PartialObjectMetadataList, but the requested object is not a list (*autoscaling.Scale)");
  }
  set_version(form.get_object(), wanted);
  return form;
}

}  // namespace

Result<void> answer_scale(Call& call, const json::value& scale) {
  Wanted wanted = TRY(negotiate(call.head(), Offer::object));
  json::value form = TRY(form_of_scale(call, scale, wanted));
  std::string text = TRY(encode(form, wanted));
  set_answer(call, 200, wanted.media_type(), std::move(text), &form);
  return {};
}

}  // namespace coracle::api
