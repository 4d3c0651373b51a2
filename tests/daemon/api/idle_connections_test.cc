// SPDX-License-Identifier: Apache-2.0
// Idle connections: which one is closed first when the server is full, and which ones have waited too long.
#include "daemon/api/idle_connections.h"

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <vector>

namespace coracle::api {
namespace {

struct IdleConnectionsTest : testing::Test {
  std::shared_ptr<SSL_CTX> context{SSL_CTX_new(TLS_server_method()), SSL_CTX_free};
  IdleConnections idle;

  static SteadyTime at(int seconds) { return SteadyTime{} + std::chrono::seconds(seconds); }
  void add(uint64_t token, int since, int until, bool is_greeted = true, size_t lingers = 0) {
    auto connection = std::make_shared<ClientConnection>(Fd(), context);
    connection->token = token;
    connection->greeted = is_greeted;
    connection->lingers = lingers;
    connection->idle_since = at(since);
    connection->idle_until = at(until);
    idle.add(std::move(connection));
  }
};

TEST_F(IdleConnectionsTest, give_up_what_is_wanted_least) {
  add(1, 10, 100);
  add(2, 5, 100);
  add(3, 20, 100, false);
  add(4, 1, 100, true, 1000);
  EXPECT_EQ(idle.size(), 4u);
  std::vector<uint64_t> order;
  while (auto connection = idle.take_least_wanted()) order.push_back(connection->token);
  EXPECT_EQ(order, (std::vector<uint64_t>{4, 3, 2, 1})) << "a final response, no handshake yet, then the longest idle";
  EXPECT_TRUE(idle.empty());
}

TEST_F(IdleConnectionsTest, end_at_their_time) {
  EXPECT_EQ(idle.first_end(), SteadyTime::max());
  add(1, 0, 30);
  add(2, 0, 10);
  add(3, 0, 20);
  EXPECT_EQ(idle.first_end(), at(10));
  EXPECT_FALSE(idle.take_overdue(at(9)));
  EXPECT_EQ(idle.take_overdue(at(20))->token, 2u);
  EXPECT_EQ(idle.take_overdue(at(20))->token, 3u);
  EXPECT_FALSE(idle.take_overdue(at(20)));
  EXPECT_EQ(idle.first_end(), at(30));
}

TEST_F(IdleConnectionsTest, are_taken_once) {
  add(7, 0, 10);
  EXPECT_FALSE(idle.take(8));
  ClientConnectionPtr taken = idle.take(7);
  ASSERT_TRUE(taken);
  EXPECT_EQ(taken->token, 7u);
  EXPECT_FALSE(idle.take(7));
  EXPECT_FALSE(idle.take_least_wanted());
  EXPECT_FALSE(idle.take_overdue(at(100)));
}

}  // namespace
}  // namespace coracle::api
