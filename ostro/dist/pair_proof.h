// prove_pairs: every pair of workers proves to each other that both know the secret of the job before it
// exchanges anything else, because any process that reaches the port of a worker can connect to it.
//
// Later messages are neither encrypted nor authenticated.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/gloo_wire.h"

namespace ostro::dist {

// Returns ok when every peer has proved that it knows the secret and every peer accepted all proofs. All
// `size` workers call it. `prefix` is the name of the group: a proof is not valid in another group. Errors:
// kIo, with the ranks, when a peer has another secret; those of the wire.
Status prove_pairs(GlooWire& wire, int64_t rank, int64_t size, const std::string& secret,
                   const std::string& prefix, Deadline deadline);

}  // namespace ostro::dist
