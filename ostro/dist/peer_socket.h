// PeerSocket: a connection to another worker, and the TLS that is spoken on it.
#pragma once

#include <memory>

#include "ostro/dist/socket.h"
#include "ostro/tls/session.h"

namespace ostro::dist {

struct PeerSocket {
  Socket socket;
  std::unique_ptr<tls::Session> session;  // over `socket`; null: bytes are sent as they are

  bool open() const { return socket.open(); }
};

}  // namespace ostro::dist
