// A state that no worker holds whole: made, saved and read by several workers, with the bytes of one.
#include <doctest/doctest.h>

#include "ostro/checkpoint/catalog.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/fleet/cells/init_cells.h"
#include "ostro/fleet/cells/restore_cells.h"
#include "ostro/fleet/cells/saves_for_test.h"
#include "ostro/io/files/faulty_file_system.h"

namespace ostro::fleet {
namespace {

// What each worker says of a checkpoint; all must say the same. `states` gets their cells.
Result<train::CellsRead> restore_all(const CellSetup& s, io::FileSystem& fs, int64_t step,
                                     std::vector<train::State>& states) {
  const auto workers = static_cast<size_t>(s.plan.mesh().size());
  std::vector<Result<train::CellsRead>> all(workers, train::CellsRead());
  states.assign(workers, train::State());
  const std::string path = std::string(kSaves) + "/" + checkpoint::step_directory(step);
  const Status done = dist::run_workers(s.plan.mesh(), [&](runtime::Collectives& c) -> Status {
    const auto rank = static_cast<size_t>(c.rank());
    all[rank] = restore_cells(s.plan, c, fs, path, /*prints=*/true, states[rank]);
    return Status();
  });
  CHECK_MESSAGE(done.ok(), (done.ok() ? "" : done.error().message()));
  for (const auto& one : all) {
    REQUIRE(one.ok() == all[0].ok());
    if (!one.ok()) continue;
    CHECK(one->unfit == all[0]->unfit);
    CHECK(one->prints == all[0]->prints);
  }
  return all[0];
}

TEST_CASE("every worker makes its own cells of the initial state, with the bits of the whole") {
  const auto compiled = cpu::make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
  REQUIRE(compiled.ok());
  for (const MeshCase& mesh : mesh_cases())
    for (const bool fast : {false, true}) {
      const auto s = setup_of(mesh);
      if (fast) s->plan.engine = compiled->get();
      const train::State whole = train::initial_state(s->programs, *s->engine, 3).value();
      const train::State other = train::initial_state(s->programs, *s->engine, 4).value();
      for (int64_t rank = 0; rank < s->plan.mesh().size(); ++rank) {
        const auto mine = initial_cells(s->plan, rank, 3, nullptr);
        REQUIRE_MESSAGE(mine.ok(), (mine.ok() ? "" : mine.error().message()));
        CHECK_MESSAGE(same_state(*mine, cells_of_rank(s->plan, rank, whole)), mesh.name, ", worker ", rank);
        CHECK_FALSE(same_state(*mine, cells_of_rank(s->plan, rank, other)));
      }
    }
}

TEST_CASE("a checkpoint that several workers write has the files of one, byte for byte") {
  for (const MeshCase& mesh : mesh_cases()) {
    const auto s = setup_of(mesh);
    io::MemoryFileSystem alone, together;
    for (const int64_t step : {2, 4}) {
      const train::State whole = numbered_state(s->plan, step);
      save_alone(alone, *s, whole);
      const auto saved = save_together(*s, whole, [&](int64_t) -> io::FileSystem& { return together; });
      REQUIRE_MESSAGE(saved.ok(), mesh.name, (saved.ok() ? "" : saved.error().message()));
    }
    CHECK_MESSAGE(files_of(alone) == files_of(together), mesh.name);
    // Everything was durable before the directory got its name.
    together.crash(0);
    CHECK(files_of(alone) == files_of(together));
    // The files do depend on the state.
    save_alone(alone, *s, numbered_state(s->plan, 5));
    CHECK(files_of(alone) != files_of(together));
  }
}

TEST_CASE("any number of workers reads what any number has written, and knows the fingerprints") {
  const std::vector<MeshCase> meshes = mesh_cases();
  for (size_t i = 0; i < meshes.size(); ++i) {
    const auto writers = setup_of(meshes[i]);
    io::MemoryFileSystem fs;
    const train::State whole = numbered_state(writers->plan, 6);
    REQUIRE(save_together(*writers, whole, [&](int64_t) -> io::FileSystem& { return fs; }).ok());
    for (const MeshCase& mesh : meshes) {
      if (mesh.leaves != meshes[i].leaves) continue;
      const auto readers = setup_of(mesh);
      std::vector<train::State> states;
      const auto read = restore_all(*readers, fs, 6, states);
      REQUIRE_MESSAGE(read.ok(), (read.ok() ? "" : read.error().message()));
      CHECK(read->unfit == "");
      for (size_t rank = 0; rank < states.size(); ++rank)
        CHECK(same_state(states[rank], cells_of_rank(readers->plan, static_cast<int64_t>(rank), whole)));
      for (size_t k = 0; k < readers->plan.n; ++k) {
        const ir::Shape& shape = readers->plan.shape(k);
        const auto print = numerics::fingerprint_array(shape.count() / shape.axes.back().size,
                                                       shape.axes.back().size, 4, whole.params[k].bytes());
        const std::array<int64_t, 2> lanes{static_cast<int64_t>(print.lane[0]),
                                           static_cast<int64_t>(print.lane[1])};
        CHECK_MESSAGE(read->prints[k] == lanes, mesh.name, ", ", readers->programs.init.result_names[k]);
      }
    }
  }
}

TEST_CASE("a cell of another worker is found: written twice, left out, or in the wrong place") {
  const auto s = setup_of(mesh_cases()[1]);
  const train::State whole = numbered_state(s->plan, 2);
  io::MemoryFileSystem fs;
  const auto shared = [&](int64_t) -> io::FileSystem& { return fs; };
  const auto twice = save_together(*s, whole, shared, [&](int64_t rank, CellSnapshot& snapshot) {
    if (rank == 1) snapshot.cells.push_back(snapshot.cells[0]), snapshot.cells.back().cell = 0;
  });
  CHECK(twice.error().message().find("was written by worker 0 and by worker 1") != std::string::npos);
  const auto missing = save_together(*s, whole, shared, [&](int64_t rank, CellSnapshot& snapshot) {
    if (rank == 1) snapshot.cells.pop_back();
  });
  CHECK(missing.error().message().find("nobody wrote cell") != std::string::npos);
  CHECK(checkpoint::list_checkpoints(fs, kSaves)->empty());

  REQUIRE(save_together(*s, whole, shared).ok());
  const std::string array = std::string(kSaves) + "/step-00000002/optimizer/second_moment/norm/weight/";
  const std::string other = *fs.read_file(array + "c.0");
  REQUIRE(*fs.read_file(array + "c.3") != other);
  check_ok((*fs.create(array + "c.3"))->append(other));
  std::vector<train::State> states;
  const auto read = restore_all(*s, fs, 2, states);
  REQUIRE(read.ok());
  CHECK_MESSAGE(read->unfit.starts_with("worker 1: " + array.substr(0, array.size() - 1)), read->unfit);
  CHECK(states[0].params.empty());  // no worker takes a part of it
}

TEST_CASE("a full disk at one worker: an error that names it, and the checkpoints before stay") {
  const auto s = setup_of(mesh_cases()[4]);
  for (const int64_t victim : {0, 2})
    for (const int64_t room : {0, 500, 2000}) {
      io::MemoryFileSystem disk;
      std::vector<std::unique_ptr<io::FaultyFileSystem>> views;
      for (int rank = 0; rank < 3; ++rank) views.push_back(std::make_unique<io::FaultyFileSystem>(disk));
      const auto view = [&](int64_t rank) -> io::FileSystem& { return *views[static_cast<size_t>(rank)]; };
      const train::State before = numbered_state(s->plan, 2), after = numbered_state(s->plan, 4);
      REQUIRE(save_together(*s, before, view).ok());
      views[static_cast<size_t>(victim)]->limit_space(room);
      const auto full = save_together(*s, after, view);
      REQUIRE_FALSE(full.ok());
      const std::string text = full.error().message();
      CHECK_MESSAGE(text.find(fmt::format("worker {} cannot write", victim)) != std::string::npos, text);
      CHECK_MESSAGE(text.find("No space left on device") != std::string::npos, text);
      CHECK_MESSAGE(text.find(std::string(kSaves) + "/step-00000004.") != std::string::npos, text);
      CHECK(checkpoint::list_checkpoints(disk, kSaves)->size() == 1);
      std::vector<train::State> states;
      CHECK(restore_all(*s, disk, 2, states)->unfit == "");
      // With room again the next attempt succeeds, and nothing of this one is left.
      views[static_cast<size_t>(victim)]->heal();
      REQUIRE(save_together(*s, after, view).ok());
      io::MemoryFileSystem alone;
      save_alone(alone, *s, before);
      save_alone(alone, *s, after);
      CHECK(files_of(disk) == files_of(alone));
    }
}

TEST_CASE("a checkpoint of another model, and files that not all workers see") {
  const auto s = setup_of(mesh_cases()[1]);
  io::MemoryFileSystem fs, elsewhere;
  save_alone(fs, *s, numbered_state(s->plan, 2));
  save_alone(elsewhere, *s, numbered_state(s->plan, 2));
  const auto other = setup_of(mesh_cases()[1]);
  other->plan.arrays.paths[0] = "model/another";
  std::vector<train::State> states;
  const auto read = restore_all(*other, fs, 2, states);
  REQUIRE_FALSE(read.ok());
  CHECK(read.error().message().find("is it of another config?") != std::string::npos);
  const auto apart = save_together(*s, numbered_state(s->plan, 4), [&](int64_t rank) -> io::FileSystem& {
    return rank == 0 ? fs : elsewhere;
  });
  REQUIRE_FALSE(apart.ok());
  CHECK(apart.error().message().find("every worker must see the same files") != std::string::npos);
}

}  // namespace
}  // namespace ostro::fleet
