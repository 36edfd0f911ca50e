// append, Reader, exchange: messages between workers: bytes put together from values, and read in the same
// order. Errors: those of the collectives. Not thread-safe.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ostro/runtime/buffer.h"
#include "ostro/runtime/collectives.h"

namespace ostro::fleet {

using Bytes = std::vector<std::byte>;

void append(Bytes& to, std::span<const std::byte> bytes);

template <typename T>
void append_value(Bytes& to, const T& value) {
  append(to, std::as_bytes(std::span(&value, 1)));
}

// Reads what append() wrote, in the same order. `bytes` must outlive it. Reading beyond its end ends the
// program.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : bytes_(bytes) {}
  void read(std::span<std::byte> out);
  template <typename T>
  T value() {
    T v;
    read(std::as_writable_bytes(std::span(&v, 1)));
    return v;
  }

 private:
  std::span<const std::byte> bytes_;
  size_t at_ = 0;
};

// Sends messages[i] to peers[i] and receives expected[i] bytes from it.
Result<std::vector<Bytes>> exchange(runtime::Collectives& c, const std::vector<int64_t>& peers,
                                    const std::vector<Bytes>& messages, const std::vector<size_t>& expected);
// As above, with the same message for all peers.
Result<std::vector<Bytes>> exchange(runtime::Collectives& c, const std::vector<int64_t>& peers,
                                    const Bytes& message, const std::vector<size_t>& expected);

// Sends one message to `to` while one comes from `from`; the two may be the same worker, or this one.
Status send_and_receive(runtime::Collectives& c, int64_t to, std::span<const std::byte> send, int64_t from,
                        std::span<std::byte> receive);

}  // namespace ostro::fleet
