// Whoever reaches the port of a worker can connect to it. So every pair of workers proves to each other that
// both know the secret of the job before it exchanges anything else. What follows is neither encrypted nor
// authenticated.
#pragma once

#include <string>

#include "ostro/base/error.h"
#include "ostro/dist/gloo_wire.h"

namespace ostro::dist {

// Ok when every peer has proved that it knows the secret and every peer was content with all proofs. `prefix`
// is the name of the group: a proof is worth nothing in another group.
Status prove_pairs(GlooWire& wire, int64_t rank, int64_t size, const std::string& secret,
                   const std::string& prefix, Deadline deadline);

}  // namespace ostro::dist
