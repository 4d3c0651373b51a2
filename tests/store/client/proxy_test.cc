// SPDX-License-Identifier: Apache-2.0
// Which proxy a server is reached through.
#include "store/client/proxy.h"

#include <gtest/gtest.h>

namespace coracle {
namespace {

TEST(Proxy, is_that_of_the_servers_scheme) {
  ProxyEnvironment environment{"http://secure:1", "plain:2", ""};
  EXPECT_EQ(proxy_for("https://k8s.example:6443/path", environment), "http://secure:1");
  EXPECT_EQ(proxy_for("http://k8s.example", environment), "http://plain:2");
  EXPECT_EQ(proxy_for("https://k8s.example", {}), "");
}

TEST(Proxy, is_none_for_this_machine) {
  ProxyEnvironment environment{"http://p:1", "http://p:1", ""};
  for (const char* server : {"https://localhost:6443", "https://127.0.0.1:6443", "http://127.8.9.1", "https://[::1]:6443"})
    EXPECT_EQ(proxy_for(server, environment), "") << server;
}

TEST(Proxy, is_none_for_what_NO_PROXY_names) {
  struct Row {
    const char *no_proxy, *server;
    bool proxied;
  };
  for (const Row& row : {
           Row{"*", "https://a.example", false},
           Row{"a.example", "https://a.example:6443", false},
           Row{"a.example", "https://b.a.example", false},
           Row{"a.example", "https://ba.example", true},
           Row{".a.example", "https://a.example", true},
           Row{"*.a.example", "https://b.a.example", false},
           Row{"A.Example", "https://a.example", false},
           Row{"a.example:443", "https://a.example", false},
           Row{"a.example:443", "https://a.example:6443", true},
           Row{"x, 10.0.0.0/8", "https://10.1.2.3:6443", false},
           Row{"10.0.0.0/8", "https://11.1.2.3:6443", true},
           Row{"10.0.0.1", "https://10.0.0.1:6443", false},
           Row{"fd00::/8", "https://[fd00::1]:6443", false},
           Row{"fd00::/8", "https://10.0.0.1", true},
           Row{"", "https://10.0.0.1", true},
       }) {
    std::string proxy = proxy_for(row.server, {"http://p:1", "", row.no_proxy});
    EXPECT_EQ(!proxy.empty(), row.proxied) << row.no_proxy << " " << row.server;
  }
}

TEST(Proxy, has_a_scheme_that_can_be_used) {
  for (const char* url : {"http://p:1", "https://user:word@p", "socks5://p:1080"}) EXPECT_TRUE(check_proxy_url(url)) << url;
  for (const char* url : {"p:1", "ftp://p", "http://", ""}) EXPECT_FALSE(check_proxy_url(url)) << url;
}

}  // namespace
}  // namespace coracle
