// GlooWire: messages between pairs of processes over Gloo's TCP transport, without Gloo's types: only
// gloo_wire.cc, gloo_pairs and gloo_loop include its headers. gloo_group.cc defines the meaning of the
// messages.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/dist/peer_socket.h"

namespace ostro::dist {

// Gloo matches a message with its receiver by a 64-bit number, the slot. Its own collectives use small
// numbers in the highest byte, we use these.
enum class SlotKind : uint64_t { kFrame = 0x40, kBody = 0x41, kWatch = 0x42, kProbe = 0x44 };
constexpr uint64_t slot_of(SlotKind kind, uint64_t number) {
  return static_cast<uint64_t>(kind) << 56 | number;
}

// A body's slot carries its size, so that a message never meets a receiver of another size: Gloo would end
// the process over a message that is longer than expected. 16 bits are left for the message's number; they
// distinguish the messages of a pair that are in flight at the same time.
constexpr uint64_t kMaxBody = (uint64_t{1} << 40) - 1;
constexpr uint64_t body_slot(uint64_t number, uint64_t size) {
  return slot_of(SlotKind::kBody, (number & 0xffff) << 40 | size);
}

// One message to `peer`, or one from it, or both; an empty span is no message. Both sides know the sizes.
struct Transfer {
  int64_t peer = 0;
  uint64_t slot = 0;
  std::span<const std::byte> send;
  std::span<std::byte> receive;
};

// Transfers that have been started.
class Flight {
 public:
  virtual ~Flight() = default;
};

// How long nothing may move in a wait; none: as long as the connection lasts. Asked a few times a second, by
// a thread of the wire. May be empty: no limit.
using WireLimit = std::function<std::optional<std::chrono::milliseconds>()>;

// The connections of one process. One thread calls all functions, except abort().
class GlooWire {
 public:
  // Takes over the connections to all other processes: sockets[r] leads to rank r, and sockets[rank] is not
  // used. Error: kIo when Gloo cannot use one of them.
  static Result<std::unique_ptr<GlooWire>> make(int64_t rank, std::vector<PeerSocket> sockets,
                                                WireLimit limit);
  virtual ~GlooWire() = default;

  // Starts all transfers and returns at once; several flights may be open at a time. The transfers' memory
  // belongs to the flight until land() or close() has returned. The first `heads` transfers are those that
  // land() checks.
  virtual std::shared_ptr<Flight> start(std::span<const Transfer> transfers, size_t heads = 0) = 0;
  // Waits until all transfers of a flight are done. When the first `heads` of them have arrived, `check` is
  // called; its error ends the others. An error also when a peer is gone (whether or not it takes part), when
  // abort() was called, or, if `limited`, when nothing has moved for the limit. After an error the
  // connections are closed, because the messages of all flights may be cut off anywhere.
  virtual Status land(Flight& flight, bool limited, const std::function<Status()>& check = {}) = 0;
  // Moves the last messages, for so long at most: a peer that is gone ends only the transfers with it. Then
  // closes.
  virtual void move_last(std::span<const Transfer> transfers, std::chrono::milliseconds time) = 0;
  // Ends all waits, present and future. Any thread; returns at once; the first reason wins.
  virtual void abort(const std::string& reason) = 0;
  // Closes all connections; the peers see it within milliseconds. Bytes that they have not read may be lost.
  virtual void close() = 0;
};

}  // namespace ostro::dist
