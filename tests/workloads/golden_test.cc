// Forty answers whose bytes and bits of log-probabilities never change: the same on every instruction set,
// with one thread and two, streamed and resident, together and alone, built by any compiler.
#include "ostro/base/sha256.h"
#include "ostro/machine/isa.h"
#include "together.h"

namespace ostro::workloads {
namespace {

// A new value needs a reason: another version of docs/spec/numerics.md, or other requests in this file.
constexpr std::string_view kGolden = "413ccb8dadaf0040fabea3bc451f4ab0fb5f6dc86d215054845f251a1cd77039";

// Ten requests to a model; std::mt19937's numbers are the same everywhere.
std::vector<Arrival> golden_arrivals(uint32_t seed) {
  std::mt19937 draw(seed);
  std::vector<std::vector<int32_t>> earlier;
  std::vector<Arrival> out;
  for (int64_t i = 0; i < 10; ++i)
    out.push_back({draw_ask(draw, {.requests = 10, .prompt = i == 0 ? 400 : 60, .answer = 12}, earlier), i});
  return out;
}

struct Golden {
  size_t kind;
  Numbers numbers;
  int adapter;
};
constexpr Golden kModels[] = {
    {0, Numbers::kF32, 1}, {2, Numbers::kBf16, 0}, {3, Numbers::kInt8, 0}, {4, Numbers::kBf16, 0}};

std::string golden_hash(const Setting& setting) {
  Sha256 hash;
  for (const Golden& one : kModels) {
    const Weights weights(kinds()[one.kind], one.numbers, one.adapter);
    Together together(weights.served(setting), 0.05);
    for (const Json& choices : together.answers(golden_arrivals(static_cast<uint32_t>(one.kind) + 1)))
      hash.update(choices.dump() + "\n");
  }
  return to_hex(hash.finish());
}

TEST_CASE("forty answers have the hash in the repository, on every instruction set, in all settings") {
  bool streamed = false;
  for (const machine::Isa isa : machine::available_isas()) {
    const std::string name = machine::isa_name(isa);
    CAPTURE(name);
    CHECK(golden_hash({.isa = name,
                       .threads = streamed ? 2 : 1,
                       .streamed = streamed,
                       .limits = {kContext, 8, streamed ? 16 : 128, 64}}) == kGolden);
    streamed = !streamed;
  }
  CHECK(golden_hash({.threads = 2, .streamed = streamed, .limits = {kContext, 1, 512}}) == kGolden);
}

TEST_CASE("forty answers of the interpreter have the hash in the repository") {
  CHECK(golden_hash({.interpreted = true, .limits = {kContext, 4, 64}}) == kGolden);
}

}  // namespace
}  // namespace ostro::workloads
