// make_checked_group: a group in which every message is followed by its fingerprint (numerics.md, N14), which
// the receiver compares with that of the bytes that arrived.
//
// TCP's own checksum has 16 bits, and ends at the network card; this one covers the memory of both machines,
// from exchange() of the sender to exchange() of the receiver. It protects against faults, not against an
// adversary.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "ostro/dist/group.h"

namespace ostro::dist {

// Told that a message is not what its sender sent, before the group is aborted: from then on other workers
// see no more than lost connections. `sizes`: its size differs, and not its bytes. Returns whether that is a
// fault that may pass; sizes that differ again and again are those of workers that do different things.
using MessageDiffers = std::function<bool(const std::string& why, bool sizes)>;

// All workers of the group call it, or none. Each message takes 16 bytes more. Threads: as of Group. Errors
// of exchange() and wait(): kIo when bytes differ, with both workers, and kIo or kInvalidArgument when sizes
// do, as `differs` says (empty: kIo); then the group is aborted, because the other workers may wait for this
// one.
std::unique_ptr<Group> make_checked_group(std::unique_ptr<Group> group, MessageDiffers differs = {});

}  // namespace ostro::dist
