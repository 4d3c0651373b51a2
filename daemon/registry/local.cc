// SPDX-License-Identifier: Apache-2.0
// See local.h.
#include "daemon/registry/local.h"

#include "daemon/registry/watch.h"
#include "store/kinds/meta/metadata.h"
#include "store/object/object.h"
#include "store/object/status.h"
#include "store/schema/convert.h"

namespace coracle::registry {
namespace {

class LocalWatch : public Watch {
 public:
  explicit LocalWatch(std::unique_ptr<engine::Subscription> subscription) : subscription_(std::move(subscription)) {}

 private:
  std::unique_ptr<engine::Subscription> subscription_;
};

Key key_of(const json::value& body) {
  view::ObjectMeta metadata = metadata_of(body);
  return {std::string(metadata.namespace_()), std::string(metadata.name())};
}

// A copy for the write pipeline to change, in blocks that the new object's parsed form can keep (Object::with_revision). A plain
// one would be in as many pieces of the heap as the body of the component.
json::value copy_of(const json::value& body) { return json::value(body, body_memory({})); }

Writer writer_for(const UpdateOptions& options) {
  Writer writer = internal_writer(options.field_manager);
  writer.is_repeated = options.is_repeated;
  return writer;
}

}  // namespace

Result<ObjectPtr> LocalClient::get(const Kind& kind, const Key& key) { return registry_.get(kind, key); }

Result<json::value> LocalClient::read(const Kind& kind, const Key& key, std::string_view subresource, const ReadParameters&) {
  const schema::KindPtr info = TRY(registry_.catalogs().find(kind));
  const schema::Subresource* part = info->subresource(subresource);
  if (!part || !part->has_verb("get") || (subresource != "scale" && subresource != "status"))
    return Error(Code::not_found, "the server could not find the requested resource").with(ErrorDetails{});
  if (subresource == "scale") return registry_.scale(info->kind, key);
  ObjectPtr object = TRY(registry_.get(info->kind, key));
  return object->json();
}

Result<ObjectList> LocalClient::list(const Kind& kind, const ListOptions& options) {
  engine::ListPage page = TRY(registry_.list(kind, {options, 0}));
  return ObjectList{std::move(page.items), page.revision, std::move(page.continue_token)};
}

Result<ObjectPtr> LocalClient::create(const Kind& kind, const json::value& body) {
  Written written = TRY(registry_.create(kind, {key_of(body).ns, ""}, copy_of(body), internal_writer()));
  return std::move(written.object);
}

Result<ObjectPtr> LocalClient::update(const Kind& kind, const json::value& body, const UpdateOptions& options) {
  Written written = TRY(registry_.update(kind, key_of(body), options.subresource, copy_of(body), writer_for(options)));
  return std::move(written.object);
}

Result<ObjectPtr> LocalClient::patch(const Kind& kind, const Key& key, PatchType type, const json::value& patch,
                                     const UpdateOptions& options) {
  Written written = TRY(registry_.patch(kind, key, options.subresource, type, patch, options.force, writer_for(options)));
  return std::move(written.object);
}

Result<void> LocalClient::remove(const Kind& kind, const Key& key, const DeleteOptions& options) {
  TRY(registry_.remove(kind, key, options, internal_writer()));
  return {};
}

Result<json::value> LocalClient::create_subresource(const Kind& kind, const Key& key, std::string_view subresource,
                                                    const json::value& body) {
  return registry_.create_subresource(kind, key, subresource, body, internal_writer());
}

Result<std::unique_ptr<Watch>> LocalClient::watch(const Kind& kind, const WatchOptions& options, WatchSink& sink) {
  const schema::KindPtr served = TRY(registry_.catalogs().find(kind));
  Filter filter = TRY(make_filter(served, options.label_selector, options.field_selector));
  engine::Callbacks callbacks;
  callbacks.event = [filter = std::move(filter), served, &sink](const engine::Event& event) {
    auto seen = seen_through(filter, event);
    if (!seen) return;
    seen->object = schema::shown_as(*served, std::move(seen->object));
    sink.on_event(*seen);
  };
  callbacks.end = [&sink](const Error& why) { sink.on_end(why); };
  auto subscription = TRY(registry_.engine().subscribe(served->stored().kind, options.ns, options.after, std::move(callbacks)));
  return std::unique_ptr<Watch>(std::make_unique<LocalWatch>(std::move(subscription)));
}

}  // namespace coracle::registry
