// Collectives: the interface through which the workers of a mesh exchange bytes. A transport only moves
// bytes. All arithmetic (the fixed trees of numerics.md N8) is done by the engine above it, so no transport
// can change a bit.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ostro/base/error.h"

namespace ostro::runtime {

// One worker's view of the group. Every worker calls the same operations in the same order; calls block until
// the data has arrived. Not thread-safe: one thread per worker.
class Collectives {
 public:
  virtual ~Collectives() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t size() const = 0;
  // The ranks that differ from this one only in their coordinates on the mesh axes, ascending: one axis, or
  // several joined by '*' (ir::Mesh::peers).
  virtual std::vector<int64_t> peers(std::string_view mesh_axes) const = 0;

  // Sends send[i] to peers[i] and fills receive[i] with what peers[i] sent to this worker. Sizes must agree.
  // When peers[i] is this worker, send[i] is copied to receive[i]. An error when a peer is gone.
  virtual Status exchange(std::span<const int64_t> peers, std::span<const std::span<const std::byte>> send,
                          std::span<const std::span<std::byte>> receive) = 0;

  // Starts an exchange and returns a ticket for wait(). Until wait() returns, with an error or without, all
  // its memory belongs to the exchange. Every worker starts its exchanges in the same order, that of the
  // program; several may be on their way. A transport that cannot work in the background does the whole
  // exchange here.
  virtual Result<int64_t> start(std::span<const int64_t> peers,
                                std::span<const std::span<const std::byte>> send,
                                std::span<const std::span<std::byte>> receive) {
    RETURN_IF_ERROR(exchange(peers, send, receive));
    return 0;
  }
  // Waits until the exchange has done what exchange() says. Once for each ticket.
  virtual Status wait(int64_t /*ticket*/) { return Status(); }

  // Ends every exchange of the group, present and future, also of other workers, with an error that carries
  // `reason`: for a worker that will not send what others wait for. Returns at once; the first reason wins. A
  // transport without connections does nothing.
  virtual void abort(const std::string& /*reason*/) {}

  // Bytes this worker has sent to others so far.
  virtual int64_t bytes_sent() const = 0;
};

}  // namespace ostro::runtime
