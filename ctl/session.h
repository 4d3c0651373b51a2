// SPDX-License-Identifier: Apache-2.0
// Session: one run of coraclectl against one API server. It turns what the user typed (kinds, names, files, selectors) into
// requests, and failures into errors a person can act on. Kinds come from the schema's catalog: no discovery round trip.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"
#include "store/client/kubeconfig.h"
#include "store/schema/catalog.h"

namespace coracle::ctl {

struct GlobalFlags {  // accepted by every command, anywhere on the line
  std::string kubeconfig, context, cluster, user, server, token, certificate_authority, ns;
  bool insecure_skip_tls_verify = false;
  std::string request_timeout = "0";
  int verbosity = 0;
  std::string tls_server_name, client_certificate, client_key, username, password, as, as_uid;
  std::vector<std::string> as_groups, as_user_extra;  // of the latter each is KEY=VALUE
  bool warnings_as_errors = false, disable_compression = false;
  std::string cache_dir;
  std::string kuberc, profile = "none", profile_output = "profile.pprof", vmodule, log_flush_frequency = "5s";
  bool match_server_version = false;
  // Not flags: of the person's preferences (ctl/preferences.h).
  std::string plugin_policy;
  std::vector<std::string> plugin_allowlist;
  bool over_network = false;  // not a flag either: set by commands that judge the daemon, as others reach it
};

// What the flags say of the kubeconfig's fields. Errors: bad_request for an --as-user-extra that is no pair.
Result<KubeconfigChoice> kubeconfig_choice(const GlobalFlags& flags);

using Query = std::vector<std::pair<std::string, std::string>>;

// --dry-run. client: the answer is made here, and nothing that writes is sent. server: the server does all but keep it.
enum class DryRun : uint8_t { none, client, server };

struct Request {
  std::string method = "GET";
  std::string path;  // "/api/v1/namespaces/default/pods/web"; Session::path makes it
  Query query;
  std::string body;
  std::string content_type = "application/json";
  std::string accept = "application/json";
  bool path_as_typed = false;  // by the user, for --raw: it is not checked
};

class Session {
 public:
  // Finds the kubeconfig (--kubeconfig, $KUBECONFIG, ~/.kube/config, /etc/coracle/admin.kubeconfig). Errors: invalid for a
  // malformed one; not_found when there is none. Does not connect yet.
  static Result<std::unique_ptr<Session>> open(const GlobalFlags& flags);
  ~Session();

  const std::string& ns() const;  // the namespace in force
  bool ns_given() const;          // by -n: then files may name no other
  const std::string& server() const;
  std::string user_name() const;

  // The path of all objects of a kind, in a namespace or, with "", in all.
  std::string path(const schema::KindInfo& kind, std::string_view ns) const;
  // The path of one object. An empty name does not give the path of all of them, but one that every request refuses.
  std::string path(const schema::KindInfo& kind, std::string_view ns, std::string_view name,
                   std::string_view subresource = {}) const;

  // From now on no request may change anything, whichever command sends it: of the server's dry run, each that writes says
  // dryRun=All; of the client's, each that writes is an error (internal) instead.
  void set_dry_run(DryRun dry_run);
  // The head of a DeleteOptions. The server reads them instead of the query, so a dry run stands in them too.
  json::object delete_options() const;

  // Whether the server refuses fields that do not exist (fieldValidation). Asks for its version once; yes if that is not told.
  bool server_checks_fields();

  size_t warnings() const;  // of the server in all answers, each counted once

  // Sends and waits. Warnings of the server go to standard error, each once. Errors: the Status as Error; unavailable when the
  // server cannot be reached, with advice; bad_request for a path whose object has no name, or one that no object can have. An
  // older server may lack the version that we know of a kind: what is read, deleted, or changed in its metadata only is asked for
  // in the version that it has; see other_version() in discovery.h.
  Result<std::string> text(const Request& request);
  Result<json::value> json(const Request& request);
  // Hands the answer's body to `sink` as it comes, until it ends or the sink returns false.
  Result<void> stream(const Request& request, const std::function<bool(std::string_view)>& sink);
  // As stream(), for what only time ends: --request-timeout is no error once the answer has begun.
  Result<void> watch(const Request& request, const std::function<bool(std::string_view)>& sink);
  // As the request's body, what `source` gives until it returns 0 (fills a buffer). For archives.
  Result<void> upload(const Request& request, const std::function<size_t(char*, size_t)>& source,
                      const std::function<bool(std::string_view)>& sink);

  // A WebSocket to an exec or attach path; see ctl/websocket.h. Gives the connected socket's bytes.
  class Socket {
   public:
    virtual ~Socket() = default;
    virtual int fd() const = 0;                      // to wait on
    virtual Result<std::string> read() = 0;          // what is there; "" = nothing now. Errors: unavailable at the end
    virtual bool has_more() const { return false; }  // read again: there may be more, which no poll will tell
    virtual Result<void> write(std::string_view bytes) = 0;
    // Does not block: how many bytes were sent. The rest has to be sent next, from the same place in memory.
    virtual Result<size_t> write_some(std::string_view bytes) = 0;
  };
  // Connects, speaks TLS, sends the upgrade request and reads the answer's head. Errors: as json().
  Result<std::unique_ptr<Socket>> upgrade(const Request& request, std::string_view protocol);
  // Connects and speaks TLS. The caller writes requests himself, with the header lines that identity() gives. Errors: as json().
  Result<std::unique_ptr<Socket>> connect();
  Result<std::vector<std::string>> identity();

 private:
  struct State;
  bool find_version(const Request& request);  // in which the server has it; false: none, or it was looked for before
  explicit Session(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// ---- what the user named ----

struct Named {  // one object or, with an empty name, all of a kind
  const schema::KindInfo* kind = nullptr;
  std::string name;
};

// "pods", "pod a b", "pod/a svc/b", "pods,services", "all". Errors: bad_request, with a suggestion for a misspelt kind. With
// `unknown`, unknown kinds are told there, and the others are still given.
Result<std::vector<Named>> parse_named(const std::vector<std::string>& args, std::vector<Error>* unknown = nullptr);

struct Document {  // one object from a file
  json::value object;
  const schema::KindInfo* kind = nullptr;
  std::string source;  // "web.yaml:12", "standard input:1"
};

// The namespace a document goes to, written into it; "" for a kind without. Errors: bad_request when -n says another one.
Result<std::string> settle_namespace(const Session& session, Document& document);

// The objects of what -f names (manifest_files.h); Lists are opened. Errors: invalid, naming file and line; those of finding and
// reading the files. With `wrong`, files and documents that cannot be read are told there, and the others
// are still given. `validates`: a document that does not name its kind is told in the words of kubectl's validation.
Result<std::vector<Document>> read_documents(const std::vector<std::string>& files, bool recursive,
                                             std::vector<Error>* wrong = nullptr, bool validates = false);
// The same for objects that were read elsewhere: from `source`.
Result<std::vector<Document>> documents_of(std::vector<json::value> objects, const std::string& source,
                                           std::vector<Error>* wrong = nullptr);

// "pod/web", "deployment.apps/web": as kubectl names an object in its messages.
std::string message_name(const schema::KindInfo& kind, std::string_view name);
const schema::KindInfo* kind_of(const json::value& object);  // by apiVersion and kind; nullptr when unknown
std::string suggestion(std::string_view word, const std::vector<std::string>& known);  // "" or the closest one

}  // namespace coracle::ctl
