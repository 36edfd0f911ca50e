// LeafChunks: the pieces in which workers send parameters and gradients between slices while they compute
// leaves (fleet/workers/slice_overlap.h), in the order in which they do, with the place of each in the
// computing of a leaf. A value.
#pragma once

#include <cstdint>
#include <vector>

#include "ostro/fleet/plan/worker_plan.h"

namespace ostro::simulate {

struct LeafChunk {
  double at = 0;     // the share of a leaf that is computed when it reads the chunk, or has made it
  double share = 0;  // of the bytes of all chunks
};

struct LeafChunks {
  std::vector<LeafChunk> read;               // parameters, in the order in which a leaf reads them
  std::vector<LeafChunk> made;               // gradients, in the order in which a leaf makes them
  int64_t read_pieces = 0, made_pieces = 0;  // arrays, or layers of them: each is a message of its own
};

// Those of a plan that overlaps (WorkerPlan::overlaps). The time of an op is taken to be as its arithmetic
// (ir::op_cost) in the leaf program before it is compiled. An engine that tells no watch has all parameters
// before its leaves, and sends all gradients after them.
LeafChunks leaf_chunks(const fleet::WorkerPlan& plan);

// The same bytes in at most `most` chunks of about equal size: neighbours are taken together. A chunk of
// parameters is read when its first part is, one of gradients is made when its last part is.
LeafChunks joined_chunks(const LeafChunks& chunks, int64_t most);

}  // namespace ostro::simulate
