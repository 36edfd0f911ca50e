// Pump: threads that carry bytes between connections with TLS and sockets within this process, which others
// read and write as if they were the connections.
//
// Ends are carried over as well: when the other worker has closed or is lost, the socket within the process
// ends, after all bytes that came before; when that is closed, the connection is.
#pragma once

#include <memory>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/dist/peer_socket.h"

namespace ostro::dist {

class Pump {
 public:
  // Takes over those connections that have a session, and leaves in the place of each a socket within the
  // process, without a session, which does not block. Error: kIo when the system has no descriptor left.
  static Result<std::unique_ptr<Pump>> start(std::vector<PeerSocket>& connections);
  // Sends what was written to the sockets as far as the connections take it without waiting, and closes the
  // connections.
  ~Pump();

 private:
  class Carrier;
  Pump();
  std::vector<std::unique_ptr<Carrier>> carriers_;
};

}  // namespace ostro::dist
