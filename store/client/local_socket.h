// SPDX-License-Identifier: Apache-2.0
// The local socket of the API, by which this machine's root speaks HTTP with the daemon without TLS: a handshake costs more than
// most commands. The daemon makes it in its run directory and names it in the kubeconfig that it writes:
//   contexts[].context.extensions: [{name: coracle.io/socket, extension: {path: /run/coracle/api.sock}}]
// Beside it stands a file, api.sock.identity, with the server, its CA and the client's certificate of that kubeconfig. Where they
// differ, the socket is not used: so a kubeconfig whose context was given another user or cluster, or that another machine made,
// never leads to this machine's daemon or to its administrator.
#pragma once

#include <string>
#include <string_view>

namespace coracle {

constexpr std::string_view kLocalSocketExtension = "coracle.io/socket";

inline std::string local_socket_identity_path(const std::string& socket) { return socket + ".identity"; }

// The content of that file. `server`: the URL, as in the kubeconfig; PEM texts.
inline std::string local_socket_identity(std::string_view server, std::string_view ca, std::string_view client_certificate) {
  std::string text;
  for (std::string_view each : {server, ca, client_certificate}) text.append(each).append("\n");
  return text;
}

}  // namespace coracle
