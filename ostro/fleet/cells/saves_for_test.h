// save_together, save_alone: write the checkpoint of a state with several workers, or with one, in tests.
#pragma once

#include <map>
#include <optional>

#include "ostro/checkpoint/catalog.h"
#include "ostro/dist/key_value_for_test.h"
#include "ostro/dist/loop_collectives.h"
#include "ostro/fleet/cells/cells_for_test.h"
#include "ostro/fleet/cells/save_cells.h"
#include "ostro/io/files/memory_file_system.h"
#include "ostro/train/step/snapshot.h"

namespace ostro::fleet {

inline constexpr const char* kSaves = "run/checkpoints";

inline checkpoint::Info info_of_step(int64_t step) {
  return {.step = step,
          .kind = checkpoint::Kind::kPermanent,
          .numerics_version = "1",
          .config = "c\n",
          .chain_head = "head",
          .measured = "1 2 3"};
}

// Every file below the root with its bytes.
inline std::map<std::string, std::string> files_of(io::FileSystem& fs) {
  std::map<std::string, std::string> out;
  const std::vector<std::string> paths = *fs.glob(std::string(kSaves) + "/**");
  for (const std::string& path : paths) out[path] = *fs.read_file(path);
  return out;
}

// Writes the checkpoint of a whole state as a run with one worker does.
inline void save_alone(io::FileSystem& fs, const CellSetup& s, const train::State& whole) {
  const auto tensors = snapshot(whole, s.plan.arrays, train::cell_boxes(s.config));
  REQUIRE(tensors.ok());
  const auto saved = checkpoint::save(fs, kSaves, info_of_step(whole.step), *tensors);
  REQUIRE_MESSAGE(saved.ok(), (saved.ok() ? "" : saved.error().message()));
}

// Each worker has a view of its own of the same files.
using FilesOf = std::function<io::FileSystem&(int64_t rank)>;
using Saved = Result<std::optional<checkpoint::Saved>>;

// The workers of a mesh, each a thread, write one checkpoint together. `snapshot_of` is called by each worker
// and returns what it writes. Returns what the leader, rank 0, gets from its save, or the error of a worker.
inline Saved write_together(const ir::Mesh& mesh, const FilesOf& fs,
                            const std::function<Result<CellSnapshot>(runtime::Collectives&)>& snapshot_of) {
  dist::MemoryKeyValue store;
  Saved saved = std::optional<checkpoint::Saved>();
  const Status done = dist::run_workers(mesh, [&](runtime::Collectives& c) -> Status {
    ASSIGN_OR_RETURN(CellSnapshot snapshot, snapshot_of(c));
    const SharedSave place{&fs(c.rank()), kSaves, &store, "save/1", c.rank(), c.size()};
    if (c.rank() == 0) {
      saved = lead_save(place, std::move(snapshot))();
      return Status();
    }
    RETURN_IF_ERROR(join_save(place, std::move(snapshot))());
    return Status();
  });
  if (!done.ok()) return done.error();
  return saved;
}

// The same for the cells of a whole state. `plant`, if given, changes what a worker writes, to plant a fault.
inline Saved save_together(const CellSetup& s, const train::State& whole, const FilesOf& fs,
                           const std::function<void(int64_t rank, CellSnapshot&)>& plant = {}) {
  return write_together(s.plan.mesh(), fs, [&](runtime::Collectives& c) -> Result<CellSnapshot> {
    const checkpoint::Info info = c.rank() == 0 ? info_of_step(whole.step) : checkpoint::Info();
    ASSIGN_OR_RETURN(CellSnapshot snapshot, snapshot_cells(s.plan, c, cells_of_rank(s.plan, c.rank(), whole),
                                                           mirror_of_rank(s.plan, c.rank(), whole),
                                                           train::cell_boxes(s.config), info));
    if (plant) plant(c.rank(), snapshot);
    return snapshot;
  });
}

}  // namespace ostro::fleet
