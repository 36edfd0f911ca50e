// Messages between pairs of processes over Gloo's TCP transport, without Gloo's types: only gloo_wire.cc
// includes its headers. What the messages mean is gloo_group.cc's business.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/key_value.h"
#include "ostro/dist/meet.h"

namespace ostro::dist {

// Gloo matches a message with its receiver by a 64-bit number, the slot. Its own collectives use small
// numbers in the highest byte, we use these.
enum class SlotKind : uint64_t { kFrame = 0x40, kBody = 0x41, kWatch = 0x42, kProof = 0x43, kProbe = 0x44 };
constexpr uint64_t slot_of(SlotKind kind, uint64_t number) {
  return static_cast<uint64_t>(kind) << 56 | number;
}

// One message to `peer`, or one from it, or both; an empty span is no message. Both sides know the sizes.
struct Transfer {
  int64_t peer = 0;
  uint64_t slot = 0;
  std::span<const std::byte> send;
  std::span<std::byte> receive;
};

// The connections of one process. One thread calls all functions, except abort().
class GlooWire {
 public:
  // Connects `size` processes that come with the same prefix, until the deadline. `epoch` is for
  // fault_point().
  static Result<std::unique_ptr<GlooWire>> connect(int64_t rank, int64_t size, KeyValue& store,
                                                   const std::string& prefix, int64_t epoch,
                                                   const std::string& bind, Deadline deadline);
  virtual ~GlooWire() = default;

  // Starts all transfers and waits until each is done. An error when a peer is gone (whether or not it takes
  // part), the deadline has passed or abort() was called. Then the messages may be cut off anywhere: only
  // close() makes sense afterwards. No memory of the transfers is touched after the return.
  virtual Status move(std::span<const Transfer> transfers, Deadline deadline) = 0;
  // As move(), for the last words: a peer that is gone ends only the transfers with it.
  virtual void move_last(std::span<const Transfer> transfers, Deadline deadline) = 0;
  // Ends move(), present and future. Any thread; returns at once; the first reason wins.
  virtual void abort(const std::string& reason) = 0;
  // Closes all connections; the peers see it within milliseconds. What they have not read may be lost.
  virtual void close() = 0;
};

}  // namespace ostro::dist
