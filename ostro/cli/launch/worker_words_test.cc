#include "ostro/cli/launch/worker_words.h"

#include <doctest/doctest.h>

namespace ostro::cli {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("workers get what is not the launcher's own") {
  CHECK(worker_words({"local", "--workers", "4", "--config", "c.yaml", "--amend"}, {"--workers"}) ==
        Words{"--config", "c.yaml", "--amend"});
  CHECK(worker_words({"ray", "--wait=0", "--config=c.yaml", "--a.b", "x"}, {"--wait", "--a"}) ==
        Words{"--config=c.yaml", "--a.b", "x"});
  // The value of an override may look like an option.
  CHECK(worker_words({"local", "--a.b", "--workers", "--workers", "2"}, {"--workers"}) ==
        Words{"--a.b", "--workers"});
  // A flag takes no next word.
  CHECK(
      worker_words({"slurm", "--requeue=true", "--config", "c", "--dry_run", "--amend", "--a.b", "--requeue"},
                   {"--nodes"},
                   {"--requeue", "--dry_run"}) == Words{"--config", "c", "--amend", "--a.b", "--requeue"});
}

TEST_CASE("the configuration's file is found among other words, and replaced") {
  CHECK(with_config({"--a.b", "--config", "--config=c.yaml", "x"}, "d") ==
        Words{"--a.b", "--config", "--config=d", "x"});
  CHECK(with_config({"--a.b=1", "--config", "c.yaml", "--amend"}, "d") ==
        Words{"--a.b=1", "--config", "d", "--amend"});
  CHECK(with_config({"--a.b", "--config", "x"}, "d") == Words{"--a.b", "--config", "x"});
  CHECK(with_config({"--config"}, "d") == Words{"--config"});
}

TEST_CASE("numbers of workers that a mesh has no place for") {
  const train::TrainConfig config;
  CHECK(check_workers(1, 3, config).ok());
  CHECK(!check_workers(0, 3, config).ok());
  CHECK(!check_workers(4, 3, config).ok());
  CHECK(!check_workers(1, 2000, config).ok());
  train::TrainConfig two;
  two.trainer.sharding.mesh.axes = {{"data", -1}, {"model", 2}};
  CHECK(check_workers(2, 4, two).ok());
  const Status odd = check_workers(2, 3, two);
  REQUIRE(!odd.ok());
  CHECK(odd.error().message().find("--max_workers 3: trainer.mesh.axes") != std::string::npos);
  CHECK(check_worker_count(4, "hosts.txt", two).ok());
  CHECK(check_worker_count(3, "hosts.txt", two)
            .error()
            .message()
            .find("the 3 workers of hosts.txt: trainer.mesh") == 0);
  CHECK(check_worker_count(1200, "--nodes 4:600 --workers_per_node 2", two).error().message() ==
        "--nodes 4:600 --workers_per_node 2: 1200 workers; 1024 at most in one run");
  CHECK(train::idle_mesh_axes(two, 4).size() == 1);
  two.trainer.sharding.tensor_parallel_axes = {"mlp"};
  CHECK(train::idle_mesh_axes(two, 4).empty());
  const Status uncut = check_workers(2, 4, two);
  REQUIRE(!uncut.ok());
  CHECK(uncut.error().message().find("numerics.leaves.mlp: mlp is cut into 1 leaf, which the 2 workers of "
                                     "the mesh axis model cannot share; set numerics.leaves.mlp to 2") !=
        std::string::npos);
  two.numerics.leaves = {{"mlp", 3}};  // one worker takes two of them
  CHECK(check_workers(2, 4, two).ok());
  // A number that the axis does not have is not advised.
  two.trainer.sharding.mesh.axes = {{"data", -1}, {"model", 4}};
  two.trainer.sharding.tensor_parallel_axes = {"kv_heads"};
  two.numerics.leaves = {{"kv_heads", 2}};
  const Status few = check_workers(4, 4, two);
  REQUIRE(!few.ok());
  CHECK(few.error().message().find("the model has only 2 of them: let model be at most 2 workers") !=
        std::string::npos);
}

}  // namespace
}  // namespace ostro::cli
