// Drawn requests to a model whose rows follow from tokens by a formula: many, since its steps cost nothing.
#include <functional>

#include "ostro/serve/drawn_requests_for_test.h"

namespace ostro::serve {
namespace {

// `spoil` may change the runner of those that run together.
int wrong_by_formula(std::mt19937& draw, int count, infer::RowLimits limits,
                     const std::function<ServedModel(ServedModel)>& spoil = {}, Counts* counts = nullptr) {
  ServedModel model = test_model(limits.positions, limits.sequences, limits.rows, limits.pages);
  Served together(spoil ? spoil(std::move(model)) : std::move(model), 200);
  Alone alone(test_model(limits.positions, 1, 64));
  const auto asks =
      drawn_asks(draw, count, together.model.tokens(), static_cast<uint32_t>(limits.positions / 64));
  const int wrong = wrong_together(draw, asks, together, alone);
  if (counts != nullptr) {
    const Counts now = together.metrics->counts();
    counts->reused_tokens += now.reused_tokens;
    counts->preempted += now.preempted;
  }
  return wrong;
}

TEST_CASE("drawn requests get together what each gets alone, to the bits of its log-probabilities") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()));
  for (int i = 0; i < sized(30, 300, 3000); ++i) {
    const infer::RowLimits limits{64, 1 + static_cast<int64_t>(draw() % 9), int64_t{1} << (draw() % 6)};
    CAPTURE(limits.sequences);
    CAPTURE(limits.rows);
    CHECK(wrong_by_formula(draw, 1 + static_cast<int>(draw() % (i % 10 == 0 ? 48 : 8)), limits) == 0);
  }
}

TEST_CASE("with pages that are kept, too few of them, or none kept, requests get what each gets alone") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 2);
  Counts counts;
  for (int i = 0; i < sized(8, 60, 600); ++i) {
    const infer::RowLimits limits{640, 1 + static_cast<int64_t>(draw() % 6), int64_t{16} << (draw() % 5),
                                  5 + static_cast<int64_t>(draw() % 12)};
    CAPTURE(limits.sequences);
    CAPTURE(limits.pages);
    const Kept kept = i % 4 == 0 ? Kept::kNone : Kept::kOwn;
    const auto keeping = [&](ServedModel m) { return with_kept(std::move(m), kept); };
    CHECK(wrong_by_formula(draw, 2 + static_cast<int>(draw() % 8), limits, keeping, &counts) == 0);
  }
  if (test_size() == TestSize::kSample) return;  // so few may need neither
  CHECK(counts.reused_tokens > 0);
  CHECK(counts.preempted > 0);
}

// Runners with a fault that batching could have.
class NeighboursRow final : public FormulaRunner {
 public:
  using FormulaRunner::FormulaRunner;
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    ASSIGN_OR_RETURN(runtime::Buffer rows, FormulaRunner::step(chunks));
    if (!rows.valid() || rows.shape().axes[0].size < 2) return rows;
    const auto vocab = static_cast<int64_t>(rows.shape().axes[1].size);
    const std::span<float> all = rows.mutable_as<float>();
    std::swap_ranges(all.begin(), all.begin() + vocab, all.begin() + vocab);
    return rows;
  }
};
class OtherBeginning final : public FormulaRunner {
 public:
  using FormulaRunner::FormulaRunner;
  Status copy(int64_t from, int64_t to, int64_t count) override {
    const std::vector<int32_t> other(static_cast<size_t>(count), 3);
    const infer::RowChunk chunk{to, other, 0};
    (void)from;
    return FormulaRunner::step({&chunk, 1}).ok() ? Status() : io_error("no room");
  }
};

TEST_CASE(
    "the controls: a neighbour's row, keys or a page of another prompt, a seed by the place are found") {
  std::mt19937 draw(static_cast<uint32_t>(test_seed()) + 1);
  const infer::RowLimits limits{64, 4, 64};
  const auto with = [&]<typename T>(T*) {
    return [&](ServedModel m) {
      m.runner = std::make_unique<T>(m.tokens(), limits);
      return m;
    };
  };
  CHECK(wrong_by_formula(draw, 12, limits, with(static_cast<NeighboursRow*>(nullptr))) > 0);
  CHECK(wrong_by_formula(draw, 24, limits, with(static_cast<OtherBeginning*>(nullptr))) > 0);
  const auto other_page = [](ServedModel m) { return with_kept(std::move(m), Kept::kOfTextBefore); };
  CHECK(wrong_by_formula(draw, 96, {640, 4, 128, 40}, other_page) > 0);
  // A seed by the place in the batch would be another one for the same request: the answers then differ.
  Served served;
  const std::string fields = R"({"prompt": [5, 6, 7], "max_tokens": 25, "temperature": 1.5, "seed": )";
  CHECK(served.whole(fields + "1}")["choices"][0]["text"] !=
        served.whole(fields + "2}")["choices"][0]["text"]);
}

}  // namespace
}  // namespace ostro::serve
