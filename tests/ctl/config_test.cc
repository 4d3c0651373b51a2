// SPDX-License-Identifier: Apache-2.0
// config: what it shows of kubeconfigs, and what it changes in their files.
#include "ctl/config.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ctl/config_view.h"
#include "ctl/kubeconfig_files.h"
#include "store/object/yaml.h"

namespace coracle::ctl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kFirst = R"(apiVersion: v1
kind: Config
current-context: a
unknown: {kept: true}
clusters:
- {name: ca, cluster: {server: "https://a:1", certificate-authority-data: Y2E=, novelty: 7}}
contexts:
- {name: a, context: {cluster: ca, user: ua}}
users:
- {name: ua, user: {token: secret, password: secret}}
)";
constexpr const char* kSecond = R"(contexts:
- {name: b, context: {cluster: cb, user: ub, namespace: shop}}
- {name: a, context: {cluster: never}}
clusters:
- {name: cb, cluster: {server: "https://b:1"}}
users: []
)";

class ConfigTest : public testing::Test {
 protected:
  ConfigTest() {
    place_ = testing::TempDir() + "/ctl-config-XXXXXX";
    EXPECT_TRUE(::mkdtemp(place_.data()));
    ::setenv("HOME", (place_ + "/home").c_str(), 1);
    first_ = write("first", kFirst), second_ = write("second", kSecond);
    use(first_ + ":" + second_);
  }
  ~ConfigTest() override {
    ::unsetenv("KUBECONFIG");
    fs::remove_all(place_);
  }
  static void use(const std::string& list) { ::setenv("KUBECONFIG", list.c_str(), 1); }
  std::string write(const std::string& name, std::string_view text) {
    std::ofstream(place_ + "/" + name) << text;
    return place_ + "/" + name;
  }
  static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path).rdbuf();
    return text.str();
  }
  static json::value parsed(const std::string& path) { return MUST(parse_yaml(read(path))).at(0); }

  struct Outcome {
    int code;
    std::string out, err;
  };
  static Outcome run(std::vector<std::string> words) {
    CommandLine line("coraclectl", "a test's");
    GlobalFlags flags;
    Commands commands(line.root(), flags);
    add_commands(commands);
    words.insert(words.begin(), {"coraclectl", "config"});
    std::vector<const char*> all;
    for (const auto& word : words) all.push_back(word.c_str());
    Outcome outcome{1, {}, {}};
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    if (auto read = line.parse(int(all.size()), all.data()); !read) tell(read.error().text() + "\n");
    else if (auto done = commands.run(); done) outcome.code = *done;
    else print_failure(done.error());
    std::fflush(stderr);
    outcome.out = testing::internal::GetCapturedStdout();
    outcome.err = testing::internal::GetCapturedStderr();
    return outcome;
  }
  static std::string said(const std::vector<std::string>& words) {
    Outcome outcome = run(words);
    return outcome.out + outcome.err;
  }
  std::string place_, first_, second_;
};

TEST_F(ConfigTest, shows_all_files_as_one) {
  EXPECT_EQ(said({"get-contexts", "-o", "name"}), "a\nb\n");
  EXPECT_EQ(said({"get-contexts"}),
            "CURRENT   NAME   CLUSTER   AUTHINFO   NAMESPACE\n*         a      ca        ua         \n          b      cb        "
            "ub         shop\n");
  EXPECT_EQ(said({"current-context"}), "a\n");
  EXPECT_EQ(said({"get-clusters"}), "NAME\nca\ncb\n");
  EXPECT_EQ(said({"get-users"}), "NAME\nua\n");
  EXPECT_EQ(said({"get-contexts", "b", "c", "--no-headers"}), "      b     cb    ub    shop\nerror: context c not found\n");
  EXPECT_EQ(said({"get-contexts", "-o", "junk"}),
            "error: --output junk is not available in kubectl config get-contexts; resetting to default output format\n");
}

TEST_F(ConfigTest, view_hides_secrets_and_sorts) {
  std::string shown = said({"view"});
  EXPECT_EQ(shown.find("secret"), shown.npos) << shown;
  EXPECT_EQ(shown.find("Y2E="), shown.npos) << shown;
  EXPECT_TRUE(shown.starts_with("apiVersion: v1\nclusters:\n- cluster:\n    certificate-authority-data: DATA+OMITTED\n"))
      << shown;
  EXPECT_NE(shown.find("    token: REDACTED\n"), shown.npos) << shown;
  EXPECT_NE(said({"view", "--raw"}).find("token: secret"), std::string::npos);
  EXPECT_EQ(said({"view", "-o", "jsonpath={.contexts[*].name}"}), "a b");
  std::string minified = said({"view", "--minify", "--context", "b", "--raw"});
  EXPECT_EQ(minified, "error: cannot locate user ub\n");
  EXPECT_EQ(said({"view", "--minify", "-o", "jsonpath={.clusters[*].name} {.contexts[*].name} {.users[*].name}"}), "ca a ua");
  EXPECT_EQ(run({"view", "--merge=false"}).code, 1);
}

TEST_F(ConfigTest, flatten_takes_files_in) {
  write("ca.crt", "CA");
  use(write("with-files", "clusters: [{name: c, cluster: {server: 'https://x', certificate-authority: ca.crt}}]\n"));
  EXPECT_NE(said({"view", "--flatten"}).find("certificate-authority-data: Q0E=\n"), std::string::npos);
  EXPECT_NE(said({"view"}).find("certificate-authority: ca.crt\n"), std::string::npos) << "paths are shown as they are written";
  fs::remove(place_ + "/ca.crt");
  EXPECT_EQ(run({"view", "--flatten"}).code, 1);
}

TEST_F(ConfigTest, changes_an_entry_in_its_file_and_keeps_the_rest) {
  EXPECT_EQ(said({"set-context", "b", "--namespace=store"}), "Context \"b\" modified.\n");
  EXPECT_EQ(read(first_), kFirst) << "the other file is as it was";
  EXPECT_EQ(get_string(get_array(parsed(second_), "contexts").at(0), "context.namespace"), "store");
  EXPECT_EQ(said({"set-cluster", "ca", "--server=https://new:1"}), "Cluster \"ca\" set.\n");
  json::value first = parsed(first_);
  EXPECT_EQ(get_string(get_array(first, "clusters").at(0), "cluster.server"), "https://new:1");
  EXPECT_EQ(get_int(get_array(first, "clusters").at(0), "cluster.novelty"), 7) << "unknown fields stay";
  EXPECT_TRUE(get_bool(first, "unknown.kept"));
  EXPECT_EQ(said({"set-context", "new", "--cluster", "ca", "--user", "ua"}), "Context \"new\" created.\n");
  EXPECT_EQ(get_array(parsed(first_), "contexts").size(), 2u) << "new entries go to the first file";
  EXPECT_EQ(said({"set-context", "--current", "--namespace", "x"}), "Context \"a\" modified.\n");
  EXPECT_EQ(said({"set-context", "a", "--current"}), "error: you cannot specify both a context name and --current\n");
}

TEST_F(ConfigTest, switches_and_renames_contexts) {
  EXPECT_EQ(said({"use-context", "b"}), "Switched to context \"b\".\n");
  EXPECT_EQ(said({"current-context"}), "b\n");
  EXPECT_EQ(said({"use-context", "z"}), "error: no context exists with the name: \"z\"; there are: a, b\n");
  EXPECT_EQ(said({"use-context"}), "error: Unexpected args: []\nSee 'coraclectl config use-context --help'.\n");
  EXPECT_EQ(said({"rename-context", "b", "c"}), "Context \"b\" renamed to \"c\".\n");
  EXPECT_EQ(said({"current-context"}), "c\n");
  EXPECT_EQ(said({"rename-context", "c", "a"}),
            "error: cannot rename the context \"c\", the context \"a\" already exists in " + first_ + "\n");
  EXPECT_EQ(said({"rename-context", "b", "d"}), "error: cannot rename the context \"b\", it's not in " + first_ + "\n");
}

TEST_F(ConfigTest, deletes_entries) {
  EXPECT_EQ(said({"delete-context", "a"}),
            "deleted context a from " + first_ +
                "\nwarning: this removed your active context, use \"kubectl config use-context\" to select a different one\n");
  EXPECT_EQ(said({"delete-cluster", "cb"}), "deleted cluster cb from " + first_ + "\n");
  EXPECT_TRUE(get_array(parsed(second_), "clusters").empty());
  EXPECT_EQ(said({"delete-user", "nobody"}), "error: cannot delete user nobody, not in " + first_ + "\n");
}

// As kubectl has it: a script may name a context that it does not know to be there, or none.
TEST_F(ConfigTest, deleting_nothing_shows_the_help) {
  const std::string before = read(first_) + read(second_);
  for (const char* command : {"delete-context", "delete-cluster"})
    for (const auto& words : std::vector<std::vector<std::string>>{{command}, {command, "a", "b"}}) {
      Outcome outcome = run(words);
      EXPECT_EQ(outcome.code, 0) << command;
      EXPECT_NE(outcome.out.find("coraclectl config " + std::string(command)), std::string::npos) << outcome.out;
      EXPECT_EQ(outcome.err, "");
    }
  EXPECT_EQ(run({"delete-user"}).code, 1);
  EXPECT_EQ(read(first_) + read(second_), before);
}

TEST_F(ConfigTest, sets_and_unsets_properties) {
  EXPECT_EQ(said({"set", "clusters.10.0.0.1.server", "https://10.0.0.1"}), "Property \"clusters.10.0.0.1.server\" set.\n");
  EXPECT_EQ(get_string(get_array(parsed(first_), "clusters").at(1), "name"), "10.0.0.1") << "a name may have dots";
  EXPECT_EQ(said({"set", "users.ua.client-key-data", "key", "--set-raw-bytes"}), "Property \"users.ua.client-key-data\" set.\n");
  EXPECT_EQ(get_string(get_array(parsed(first_), "users").at(0), "user.client-key-data"), "a2V5");
  EXPECT_EQ(said({"set", "users.ua.act-as", "jane"}), "Property \"users.ua.act-as\" set.\n");
  EXPECT_EQ(get_string(get_array(parsed(first_), "users").at(0), "user.as"), "jane");
  EXPECT_EQ(said({"set", "clusters.ca.insecure-skip-tls-verify", "true"}),
            "Property \"clusters.ca.insecure-skip-tls-verify\" set.\n");
  EXPECT_TRUE(get_bool(get_array(parsed(first_), "clusters").at(0), "cluster.insecure-skip-tls-verify"));
  EXPECT_EQ(said({"unset", "users.ua.token"}), "Property \"users.ua.token\" unset.\n");
  EXPECT_EQ(get_string(get_array(parsed(first_), "users").at(0), "user.token"), "");
  EXPECT_EQ(said({"unset", "current-context"}), "Property \"current-context\" unset.\n");
  EXPECT_EQ(said({"current-context"}), "error: current-context is not set\n");
  EXPECT_EQ(said({"unset", "contexts"}), "Property \"contexts\" unset.\n");
  EXPECT_EQ(said({"get-contexts", "-o", "name"}), "a\n") << "the second file's, which the first one's hid";
  for (const auto& words : std::vector<std::vector<std::string>>{{"set", "clusters.ca.bogus", "x"},
                                                                 {"set", "bogus", "x"},
                                                                 {"set", "clusters.ca.insecure-skip-tls-verify", "perhaps"},
                                                                 {"set", "users.ua.client-key-data", "*"},
                                                                 {"set", "users.ua.exec.command", "x"},
                                                                 {"set", "clusters.ca.server", ""},
                                                                 {"set", "clusters.ca.server"},
                                                                 {"unset", "users.none.token"}})
    EXPECT_EQ(run(words).code, 1) << words[1];
}

TEST_F(ConfigTest, sets_credentials_one_way_to_sign_in) {
  EXPECT_EQ(said({"set-credentials", "ua", "--token=t"}), "User \"ua\" set.\n");
  EXPECT_EQ(to_text(*find(get_array(parsed(first_), "users").at(0), "user")), R"({"token":"t"})");
  EXPECT_EQ(said({"set-credentials", "ua", "--username=u", "--password=p"}), "User \"ua\" set.\n");
  EXPECT_EQ(to_sorted_text(*find(get_array(parsed(first_), "users").at(0), "user")), R"({"password":"p","username":"u"})");
  EXPECT_EQ(said({"set-credentials", "ua", "--username=u", "--token=p"}),
            "error: you cannot specify more than one authentication method at the same time: --token, --username/--password\n");
  EXPECT_EQ(run({"set-credentials", "x", "--exec-command=p", "--exec-api-version=client.authentication.k8s.io/v1",
                 "--exec-arg=a,b", "--exec-env=K=V", "--exec-env=L=W"})
                .code,
            0);
  EXPECT_EQ(run({"set-credentials", "x", "--exec-env=K-", "--exec-env=L=Z"}).code, 0);
  EXPECT_EQ(
      to_sorted_text(*find(get_array(parsed(first_), "users").at(1), "user.exec")),
      R"({"apiVersion":"client.authentication.k8s.io/v1","args":["a","b"],"command":"p","env":[{"name":"L","value":"Z"}]})");
  EXPECT_EQ(run({"set-credentials", "o", "--auth-provider=oidc", "--auth-provider-arg=a=1,b=2"}).code, 0);
  EXPECT_EQ(run({"set-credentials", "o", "--auth-provider-arg=a-"}).code, 0);
  EXPECT_EQ(to_text(*find(get_array(parsed(first_), "users").at(2), "user.auth-provider")),
            R"({"config":{"b":"2"},"name":"oidc"})");
}

TEST_F(ConfigTest, names_files_or_takes_them_in) {
  std::string authority = write("ca.crt", "CA");
  EXPECT_EQ(run({"set-cluster", "ca", "--certificate-authority=" + authority}).code, 0);
  EXPECT_EQ(get_string(get_array(parsed(first_), "clusters").at(0), "cluster.certificate-authority"), "ca.crt")
      << "beside the kubeconfig: relative to it";
  EXPECT_EQ(run({"set-cluster", "ca", "--certificate-authority=" + authority, "--embed-certs"}).code, 0);
  EXPECT_EQ(to_text(*find(get_array(parsed(first_), "clusters").at(0), "cluster.certificate-authority-data")), "\"Q0E=\"");
  EXPECT_EQ(said({"set-cluster", "ca", "--embed-certs"}), "error: you must specify a --certificate-authority to embed\n");
  EXPECT_EQ(said({"set-cluster", "ca", "--certificate-authority=x", "--insecure-skip-tls-verify"}),
            "error: you cannot specify a certificate authority and insecure mode at the same time\n");
  EXPECT_EQ(run({"set-cluster", "ca", "--embed-certs", "--certificate-authority=/no/file"}).code, 1);
}

TEST_F(ConfigTest, replaces_files_as_a_whole_and_keeps_their_modes) {
  fs::permissions(first_, fs::perms(0640));
  fs::create_symlink(first_, place_ + "/link");
  use(place_ + "/link");
  EXPECT_EQ(run({"use-context", "a"}).code, 0);
  EXPECT_EQ(read(first_), kFirst) << "what does not change is not written";
  EXPECT_EQ(run({"set-context", "a", "--namespace=x"}).code, 0);
  EXPECT_TRUE(fs::is_symlink(place_ + "/link"));
  EXPECT_EQ(fs::status(first_).permissions(), fs::perms(0640));
  EXPECT_EQ(get_string(get_array(parsed(first_), "contexts").at(0), "context.namespace"), "x");
  EXPECT_FALSE(fs::exists(place_ + "/link.lock"));
}

TEST_F(ConfigTest, makes_a_file_that_is_not_there) {
  use(place_ + "/sub/new");
  EXPECT_EQ(run({"set-cluster", "c", "--server=https://x"}).code, 0);
  EXPECT_EQ(fs::status(place_ + "/sub/new").permissions(), fs::perms(0600));
  EXPECT_EQ(get_string(parsed(place_ + "/sub/new"), "kind"), "Config");
  ::unsetenv("KUBECONFIG");
  if (::access(kMachineKubeconfig, R_OK) != 0) {
    EXPECT_EQ(run({"set-cluster", "c", "--server=https://x"}).code, 0);
    EXPECT_TRUE(fs::exists(place_ + "/home/.kube/config"));
  }
}

TEST_F(ConfigTest, waits_for_nobody_who_changes_them) {
  write("first.lock", "");
  Outcome refused = run({"use-context", "b"});
  EXPECT_EQ(refused.code, 1);
  EXPECT_NE(refused.err.find("first.lock: file exists"), std::string::npos) << refused.err;
  EXPECT_TRUE(fs::exists(place_ + "/first.lock")) << "another program's lock stays";
  EXPECT_EQ(run({"current-context"}).code, 0) << "readers need none";
}

TEST_F(ConfigTest, says_which_file_is_wrong) {
  use(write("bad", "clusters: [a]\n"));
  EXPECT_EQ(said({"use-context", "b"}),
            "error: error loading config file \"" + place_ + "/bad\": clusters[0]: must be an object with name and cluster\n");
  EXPECT_FALSE(fs::exists(place_ + "/bad.lock"));
}

TEST(ConfigView, shows_a_plugin_with_what_it_means) {
  json::value config = *parse_json(
      R"({"users":[{"name":"u","user":{"exec":{"apiVersion":"v","command":"p"},"token":""}}],"contexts":[{"name":"c","context":{}}]})");
  EXPECT_EQ(
      to_text(ordered_kubeconfig(config)),
      R"({"kind":"Config","apiVersion":"v1","clusters":null,"users":[{"name":"u","user":{"exec":{"command":"p","args":null,)"
      R"("env":null,"apiVersion":"v","provideClusterInfo":false}}}],)"
      R"("contexts":[{"name":"c","context":{"cluster":"","user":""}}],"current-context":""})");
}

}  // namespace
}  // namespace coracle::ctl
