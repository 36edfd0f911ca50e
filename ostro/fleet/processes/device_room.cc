#include "ostro/fleet/processes/device_room.h"

#include <fmt/format.h>

#include "ostro/train/step/remat_table.h"

namespace ostro::fleet {
namespace {

std::string megabytes(int64_t bytes) { return fmt::format("{:.1f} MB", static_cast<double>(bytes) / 1e6); }

}  // namespace

Result<int64_t> device_need(Worker& worker, int64_t leaves) {
  ASSIGN_OR_RETURN(runtime::Executable* const leaf, worker.leaf_program());
  ASSIGN_OR_RETURN(runtime::Executable* const update, worker.apply_program());
  return train::peak_bytes(worker.load(leaves), leaf->info().arena_bytes, update->info().arena_bytes);
}

Status check_device_room(int64_t need, int64_t sharers, const runtime::Memory& memory) {
  if (&memory == &runtime::host_memory()) return Status();
  const AvailableMemory room = memory.available();
  if (room.bytes == 0 || need <= room.bytes / sharers) return Status();
  const std::string takes =
      sharers == 1
          ? fmt::format("this worker takes {} in a step", megabytes(need))
          : fmt::format("each of the {} workers that share it takes {} in a step", sharers, megabytes(need));
  return device_error(fmt::format(
      "a step does not fit into the memory of {}: {}, and {} can be had ({}). Workers take less with "
      "model.gradient_checkpointing: true and with trainer.mesh.exchange: layer (the same hash), fewer of "
      "them share a GPU with --devices, and some may be on cpu",
      memory.name(), takes, megabytes(room.bytes), room.source));
}

}  // namespace ostro::fleet
