// A checkpoint that was not complete when a worker was lost: the others finish it.
#include <doctest/doctest.h>

#include "ostro/fleet/cells/saves_for_test.h"

namespace ostro::fleet {
namespace {

// What every worker of a mesh has of a state.
std::vector<CellSnapshot> snapshots_of(const CellSetup& s, const train::State& whole) {
  std::vector<CellSnapshot> out(static_cast<size_t>(s.plan.mesh().size()));
  const Status done = dist::run_workers(s.plan.mesh(), [&](runtime::Collectives& c) -> Status {
    ASSIGN_OR_RETURN(out[static_cast<size_t>(c.rank())],
                     snapshot_cells(s.plan, c, cells_of_rank(s.plan, c.rank(), whole),
                                    mirror_of_rank(s.plan, c.rank(), whole), train::cell_boxes(s.config),
                                    info_of_step(whole.step)));
    return Status();
  });
  REQUIRE_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message()));
  return out;
}

// The workers that are left, in another order, and one that has just come.
Saved finish_by(const std::vector<const CellSnapshot*>& left, io::FileSystem& fs) {
  const ir::Mesh mesh{{{"data", static_cast<int64_t>(left.size()) + 1}}};
  return write_together(
      mesh, [&](int64_t) -> io::FileSystem& { return fs; },
      [&](runtime::Collectives& c) {
        const auto rank = static_cast<size_t>(c.rank());
        return deal_again(c, 8, rank < left.size() ? left[rank] : nullptr);
      });
}

TEST_CASE("when a worker is lost, the others write its cells from copies: the same files") {
  for (const MeshCase& mesh : mesh_cases()) {
    const auto s = setup_of(mesh);
    const int64_t workers = s->plan.mesh().size();
    if (workers == 1) continue;
    const train::State whole = numbered_state(s->plan, 8);
    io::MemoryFileSystem alone;
    save_alone(alone, *s, whole);
    const std::vector<CellSnapshot> have = snapshots_of(*s, whole);
    for (int64_t victim = 0; victim < workers; ++victim) {
      std::vector<const CellSnapshot*> left;
      for (int64_t i = workers - 1; i >= 0; --i)
        if (i != victim) left.push_back(&have[static_cast<size_t>(i)]);
      io::MemoryFileSystem fs;
      // What the interrupted attempt left is removed.
      check_ok(fs.make_dirs(checkpoint::temporary_directory(fs, kSaves, 8, "old")));
      const Saved saved = finish_by(left, fs);
      REQUIRE_MESSAGE(saved.ok(), mesh.name, ": ", (saved.ok() ? "" : saved.error().message()));
      CHECK_MESSAGE(files_of(fs) == files_of(alone), mesh.name, ", without worker ", victim);
    }
  }
}

TEST_CASE("cells of which there is no copy are lost, and so is the checkpoint") {
  for (const int64_t replicas : {0, 1}) {
    const auto s = setup_of(mesh_cases()[1], replicas);
    const std::vector<CellSnapshot> have = snapshots_of(*s, numbered_state(s->plan, 8));
    io::MemoryFileSystem fs;
    const Saved saved = finish_by({&have[1]}, fs);
    CHECK(saved.ok() == (replicas == 1));
    if (!saved.ok()) CHECK(saved.error().code() == ErrorCode::kNotFound);
  }
  // An owner and the one that keeps its copies.
  const auto three = setup_of(mesh_cases()[4]);
  const std::vector<CellSnapshot> have = snapshots_of(*three, numbered_state(three->plan, 8));
  io::MemoryFileSystem fs;
  const Saved saved = finish_by({&have[2]}, fs);
  REQUIRE_FALSE(saved.ok());
  CHECK(saved.error().message().find("cells are at no other worker") != std::string::npos);
}

TEST_CASE("a save that does not come to its end gives its snapshot back") {
  const auto s = setup_of(mesh_cases()[1]);
  std::vector<CellSnapshot> have = snapshots_of(*s, numbered_state(s->plan, 8));
  const size_t cells = have[1].cells.size();
  io::MemoryFileSystem fs;
  dist::MemoryKeyValue store;
  check_ok(store.set("save/1/begun", "!the leader is gone"));
  check_ok(store.set("save/1/done", "!"));
  UnfinishedSave unfinished;
  const SharedSave place{&fs, kSaves, &store, "save/1", 1, 2};
  CHECK(join_save(place, std::move(have[1]), &unfinished)().ok());
  REQUIRE(unfinished.snapshot != nullptr);
  CHECK(unfinished.snapshot->cells.size() == cells);
  CHECK(unfinished.snapshot->info == info_of_step(8));
}

}  // namespace
}  // namespace ostro::fleet
