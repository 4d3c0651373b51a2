// SPDX-License-Identifier: Apache-2.0
// The server of rolling.sh: answers every HTTP request with one line, and shuts down gracefully on SIGTERM: accepted connections,
// and those in the backlog, are answered first. Static, for an image of its own.
//   graceful_server PORT TEXT
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

volatile sig_atomic_t ending = 0;
void note_end(int) { ending = 1; }

// One short request and one response; the client closes the connection, or it is closed after twenty seconds without data: a
// client on a busy machine may be late.
void answer(int connection, const std::string& text) {
  timeval timeout{20, 0};
  setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout);
  std::string head;
  char buffer[2048];
  while (head.find("\r\n\r\n") == head.npos && head.size() < 8192) {
    ssize_t got = read(connection, buffer, sizeof buffer);
    if (got <= 0) break;
    head.append(buffer, size_t(got));
  }
  std::string reply =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: " + std::to_string(text.size()) + "\r\n\r\n" + text;
  (void)!write(connection, reply.data(), reply.size());
  shutdown(connection, SHUT_WR);
  while (read(connection, buffer, sizeof buffer) > 0) {
  }
  close(connection);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: graceful_server PORT TEXT\n"), 2;
  struct sigaction action {};
  action.sa_handler = note_end;
  sigaction(SIGTERM, &action, nullptr);
  sigset_t term, none;
  sigemptyset(&none);
  sigemptyset(&term);
  sigaddset(&term, SIGTERM);
  sigprocmask(SIG_BLOCK, &term, nullptr);  // only unblocked while waiting
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(uint16_t(atoi(argv[1])));
  if (bind(listener, reinterpret_cast<sockaddr*>(&where), sizeof where) || listen(listener, 1024)) return perror("listen"), 1;
  const std::string text = std::string(argv[2]) + "\n";
  for (;;) {
    int connection = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (connection >= 0) {
      answer(connection, text);
      continue;
    }
    if (ending) return 0;  // nothing is pending
    pollfd wait{listener, POLLIN, 0};
    ppoll(&wait, 1, nullptr, &none);
  }
}
