// run_parts: runs a partitioned program on whole values: scatters the inputs, runs each worker's program in a
// thread of its own, joins the outputs. This is the left side of `interp(partition(P)) == interp(P)`.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/spmd/partition.h"

namespace ostro::spmd {

// Whole values and parts are on the host in all functions.

// Returns a copy of the part of a whole value that worker `rank` holds.
runtime::Buffer shard(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const runtime::Buffer& whole);

// The offset of worker `rank`'s part in the whole value, in bytes, if the part is contiguous there.
std::optional<int64_t> part_offset(const ir::Mesh& mesh, int64_t rank, const Layout& layout,
                                   const ir::Shape& whole);

// Copies worker `rank`'s part to its place in the whole value.
void place(const ir::Mesh& mesh, int64_t rank, const Layout& layout, const runtime::Buffer& part,
           runtime::Buffer& whole);

// Returns the whole value from every worker's part, by rank. An error when workers that should hold the same
// elements hold different bits.
Result<runtime::Buffer> join(const ir::Mesh& mesh, const Layout& layout, const ir::Shape& whole,
                             const std::vector<runtime::Buffer>& parts);

// Starts one thread per worker with its Collectives and waits for all (dist::run_workers).
using RunWorkers = std::function<Status(const std::function<Status(runtime::Collectives&)>&)>;

// Runs the programs with `engine`, which must be thread-safe, from whole inputs to whole results. Errors:
// those of the engine, of the collectives and of join().
Result<std::vector<runtime::Buffer>> run_parts(runtime::Engine& engine, const Partition& partition,
                                               const std::vector<runtime::Buffer>& inputs,
                                               const RunWorkers& run_workers);

}  // namespace ostro::spmd
