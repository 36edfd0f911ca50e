// OSTRO_AFFINITY=cores as a run meets it: the thread that runs a program is bound while it does, and free
// again behind it.
#include "ostro/machine/affinity.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>

#include "ostro/base/machine.h"
#include "ostro/cpu/engine/engine.h"
#include "ostro/ir/program/builder.h"

namespace ostro::cpu {
namespace {

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  REQUIRE(sched_getaffinity(0, sizeof set, &set) == 0);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

// A group of one, which looks at the CPUs of the thread that exchanges: the one that runs the program.
class LookingAround final : public runtime::Collectives {
 public:
  std::vector<int> seen;

  int64_t rank() const override { return 0; }
  int64_t size() const override { return 1; }
  std::vector<int64_t> peers(std::string_view) const override { return {0}; }
  Status exchange(std::span<const int64_t>, std::span<const std::span<const std::byte>> send,
                  std::span<const std::span<std::byte>> receive) override {
    seen = cpus_of_this_thread();
    std::memcpy(receive[0].data(), send[0].data(), send[0].size());
    return Status();
  }
  int64_t bytes_sent() const override { return 0; }
};

TEST_CASE("affinity: the thread that runs a program is bound to the first core while it does") {
  ir::Program program;
  program.name = "gather";
  const ir::ValueId x = program.body.add_param({ir::DType::f32, {{"n", 4}}});
  program.body.results = {ir::Builder(program.body)
                              .add(ir::OpKind::all_gather, {x},
                                   {{"axis", std::string("n")},
                                    {"mesh_axis", std::string("data")},
                                    {"bounds", std::vector<int64_t>{0, 4}},
                                    {"size", int64_t{4}}})};
  const std::vector<int> before = cpus_of_this_thread();
  for (const char* word : {"cores", "none"}) {
    CAPTURE(word);
    REQUIRE(setenv("OSTRO_AFFINITY", word, 1) == 0);
    const auto engine = make_cpu_engine({.isa = {}, .threads = 1, .generated_code = false});
    REQUIRE(unsetenv("OSTRO_AFFINITY") == 0);
    REQUIRE(engine.ok());
    const auto executable = (*engine)->compile(program);
    REQUIRE(executable.ok());
    CHECK(cpus_of_this_thread() == before);
    LookingAround group;
    const auto out =
        (*executable)->run({runtime::Buffer::zeros(program.body.shape(x))}, {.collectives = &group});
    REQUIRE_MESSAGE(out.ok(), out.error().message());
    CHECK(group.seen == (word[0] == 'c' ? std::vector<int>{cpus_of_cores()[0]} : before));
    CHECK(cpus_of_this_thread() == before);
  }
}

TEST_CASE("affinity: a core is for one thread at a time") {
  const std::vector<int> before = cpus_of_this_thread(), core{cpus_of_cores().back()};
  machine::CallerCpu caller{.cpu = core[0]};
  {
    const machine::BoundThread first(caller);
    CHECK(cpus_of_this_thread() == core);
    {
      const machine::BoundThread second(caller);
    }
    CHECK(cpus_of_this_thread() == core);  // the second neither bound nor freed anything
  }
  CHECK(cpus_of_this_thread() == before);
  const machine::BoundThread next(caller);
  CHECK(cpus_of_this_thread() == core);
}

}  // namespace
}  // namespace ostro::cpu
