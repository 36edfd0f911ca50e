// Cross-entropy and its gradient, alone and behind a head, of random sizes give the interpreter's bits on
// every instruction set.
#include <doctest/doctest.h>

#include "each_isa.h"
#include "ostro/base/test_size.h"
#include "ostro/ir/program/builder.h"
#include "ostro/ir/text/text.h"
#include "tests/fuzz/rng.h"

namespace ostro {
namespace {

using fuzz::Rng;
using ir::Attrs;
using ir::Axis;
using ir::DType;
using ir::OpKind;
using ir::ValueId;

// Up to 300 tokens and a vocabulary up to 3000, but no more than `logits` of them (a head's product counts as
// an eighth of its size).
testing::ProgramWithInputs random_loss(Rng& rng, int64_t logits_at_most) {
  const bool head = rng.chance(0.5);
  const DType d = rng.chance(0.5) ? DType::f32 : DType::bf16;
  int64_t examples = rng.between(1, 4), tokens = rng.chance(0.1) ? 1 : rng.between(1, 300 / examples);
  int64_t vocabulary = rng.chance(0.1) ? 1 : rng.chance(0.4) ? rng.between(2, 64) : rng.between(65, 3000);
  const Axis embed{"embed", rng.between(1, 40)};
  const int64_t weight_of_one = head ? 1 + embed.size / 8 : 1;
  while (examples * tokens * vocabulary * weight_of_one > logits_at_most) {
    int64_t& x = rng.chance(0.5) ? tokens : vocabulary;
    x = rng.between((x + 1) / 2, x);
  }
  const Axis batch{"batch", examples}, pos{"pos", tokens}, vocab{"vocab", vocabulary};

  testing::ProgramWithInputs c("loss");
  ir::Builder b(c.program.body);
  const double z = rng.pick(std::vector<double>{0, 1e-4, 0.25});
  const Attrs attrs{{"axis", vocab.name}, {"z", z}};
  Attrs typed = attrs;
  typed.set("dtype", ir::dtype_name(d));
  const ValueId targets =
      c.param({DType::i32, {batch, pos}}, [&](int64_t) { return rng.between(-1, vocabulary - 1); });
  const ValueId weight = c.param({DType::f32, {batch, pos}}), zero = b.i64_scalar(0);
  const bool tied = rng.chance(0.5);
  ValueId x = 0, w = 0, logits = 0;
  if (head) {
    x = c.param({d, {batch, pos, embed}});
    w = c.param({d, tied ? std::vector<Axis>{vocab, embed} : std::vector<Axis>{embed, vocab}});
    logits = b.dot(x, w, {embed.name});
  } else {
    logits = c.param({DType::f32, {batch, pos, vocab}});
  }
  c.program.body.results = b.add_n(OpKind::cross_entropy, {logits, targets, zero}, attrs);
  const std::vector<ValueId> f = c.program.body.results;
  const ValueId g =
      b.add(OpKind::cross_entropy_grad, {logits, targets, f[1], f[2], f[3], weight, zero}, typed);
  if (head) {
    c.program.body.results.push_back(b.dot(g, w, {vocab.name}));
    c.program.body.results.push_back(b.dot(x, g, {batch.name, pos.name}));
  } else {
    c.program.body.results.push_back(g);
  }
  if (rng.chance(0.4)) c.program.leaves.axes.emplace_back(vocab.name, rng.between(2, 7));
  return c;
}

void check_losses(uint64_t seed, int cases, int64_t logits) {
  testing::EachIsa whole({.threads = 3, .head_tile = -1}), tiles({.threads = 2, .head_tile = 32});
  Rng rng(seed);
  for (int i = 0; i < cases; ++i) {
    const testing::ProgramWithInputs c = random_loss(rng, logits);
    testing::EachIsa& engines = rng.chance(0.5) ? whole : tiles;
    const std::string d = engines.difference(c.program, c.inputs(seed + static_cast<uint64_t>(i)));
    CHECK_MESSAGE(d.empty(), "case ", i, " of seed ", seed, ": ", d, "\n", ir::print(c.program));
  }
  for (const testing::EachIsa* engines : {&whole, &tiles})
    CHECK(engines->telling() * 10 >= engines->results() * 8);
}

TEST_CASE("cross-entropy of random sizes gives the interpreter's bits") { check_losses(1, 40, 20'000); }

TEST_CASE("slow: cross-entropy of random sizes gives the interpreter's bits, in many more cases") {
  check_losses(sized<uint64_t>(test_seed(), 2, 2), sized(80, 80, 3000), 300'000);
}

}  // namespace
}  // namespace ostro
