// SPDX-License-Identifier: Apache-2.0
// The least that a TLS server can do for a request: a thread per connection reads up to the end of a head, and writes the same
// bytes each time. The daemon's rate is compared with it.
//   bare_tls CERTIFICATE KEY CA ANSWER   listens on a port of 127.0.0.1, prints it and its process' id, and runs until killed
// Clients may present a certificate of CA. ANSWER is a file with the whole response, head and body.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>

namespace {

[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

void serve(SSL_CTX* context, int socket, std::string_view answer) {
  SSL* ssl = SSL_new(context);
  SSL_set_fd(ssl, socket);
  if (SSL_accept(ssl) == 1) {
    std::array<char, 16384> bytes;
    size_t used = 0;
    for (;;) {
      int count = SSL_read(ssl, bytes.data() + used, int(bytes.size() - used));
      if (count <= 0) break;
      used += size_t(count);
      if (!std::string_view(bytes.data(), used).ends_with("\r\n\r\n")) continue;
      used = 0;
      if (SSL_write(ssl, answer.data(), int(answer.size())) <= 0) break;
    }
  }
  SSL_free(ssl);
  ::close(socket);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return std::fprintf(stderr, "bare_tls CERTIFICATE KEY CA ANSWER\n"), 2;
  std::signal(SIGPIPE, SIG_IGN);
  std::ifstream file(argv[4], std::ios::binary);
  std::stringstream read;
  read << file.rdbuf();
  const std::string answer = read.str();
  if (answer.empty()) die(argv[4]);
  SSL_CTX* context = SSL_CTX_new(TLS_server_method());
  bool ready = SSL_CTX_use_certificate_chain_file(context, argv[1]) == 1 &&
               SSL_CTX_use_PrivateKey_file(context, argv[2], SSL_FILETYPE_PEM) == 1 &&
               SSL_CTX_load_verify_locations(context, argv[3], nullptr) == 1;
  if (!ready) return std::fprintf(stderr, "bare_tls: the certificate, the key or the CA cannot be read\n"), 1;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_num_tickets(context, 0);

  int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof at;
  if (::bind(listener, reinterpret_cast<sockaddr*>(&at), sizeof at) < 0 || ::listen(listener, 128) < 0 ||
      ::getsockname(listener, reinterpret_cast<sockaddr*>(&at), &size) < 0)
    die("listen");
  std::printf("%d %d\n", ntohs(at.sin_port), int(::getpid()));
  std::fflush(stdout);
  for (;;) {
    int socket = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) die("accept");
    int on = 1;
    (void)::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    std::thread(serve, context, socket, std::string_view(answer)).detach();
  }
}
