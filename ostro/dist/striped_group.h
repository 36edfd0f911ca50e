// make_striped_group: a group in which long messages to some workers go over several connections at once,
// each a piece of the message. One connection does not fill a link that is long, or that loses packets.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "ostro/dist/group.h"

namespace ostro::dist {

// Messages of at least so many bytes are cut.
inline constexpr size_t kStripedBytes = size_t{64} << 10;

// `groups`: at least one, of the same workers with the same ranks; all workers of the group call it with as
// many. `striped`: by rank, whether messages with this worker are cut; if A says so of B, B must say so of A.
// Everything else goes over the first group. Threads: as of Group. Errors: those of the groups; after one,
// all of them are aborted.
std::unique_ptr<Group> make_striped_group(std::vector<std::unique_ptr<Group>> groups,
                                          std::vector<bool> striped, size_t least = kStripedBytes);

}  // namespace ostro::dist
