// SPDX-License-Identifier: Apache-2.0
// An API server with a few objects behind plain HTTP, and coraclectl command lines against it: their output, their requests, and
// the changed objects. It stores objects by path, supports dry runs like Kubernetes' server, and validates nothing. The log of a
// container is a JSON text: "POD CONTAINER".
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/result.h"

namespace coracle::ctl {

class FakeApi {
 public:
  FakeApi();
  ~FakeApi();

  using Objects = std::map<std::string, json::value>;          // by path: "/api/v1/namespaces/default/pods/web"
  void put(const std::string& path, std::string_view object);  // JSON; also what is no object: "/version"
  void reset(Objects objects);
  Objects objects() const;

  struct Sent {  // a request that may write: all except GET
    std::string method, path, content_type;
    std::map<std::string, std::string> query;
    json::value body;
    bool says_dry_run() const { return query.contains("dryRun") && query.at("dryRun") == "All"; }
  };
  std::vector<Sent> take_writes();                         // those since the last call
  void answer_watches(std::string events);                 // each later one with these lines, and then it ends; "": with nothing
  void keep_watches_open();                                // for seconds behind those lines, instead
  std::vector<Sent> take_watches();                        // those since the last call that were answered so
  void hold(const std::string& path);                      // a deletion of this object is accepted, and it stays
  void make_no_tables();                                   // as some aggregated servers
  void lack(const std::string& prefix);                    // there are no paths that begin so: an older server's
  void warn(std::string text);                             // added to every later response
  void forbid(const std::string& resource);                // refuses to read any: "pods"
  void forbid_watches();                                   // refuses each
  void refuse_writes(Error error);                         // answers each later one with it
  void refuse_once(const std::string& path, Error error);  // answers the next write there with it
  // Answers so many requests for the log of a container with an error, whose pod it is.
  void refuse_logs(const std::string& container, int times, Error error);
  std::string url() const;  // "http://127.0.0.1:PORT"

  struct Outcome {
    int code;
    std::string out, err;
  };
  // Runs `coraclectl WORDS...` against this server, in the namespace default.
  Outcome run(const std::vector<std::string>& words);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace coracle::ctl
