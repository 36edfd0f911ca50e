// Faults that batching could have, planted into a decoder's rows: the comparison of workloads finds each.
#include <algorithm>
#include <cmath>
#include <string>

#include "ostro/serve/model/adapter_rows.h"
#include "ostro/trace/ops.h"
#include "together.h"

namespace ostro::workloads {
namespace {

using serve::Alone;
using serve::Kept;

const Weights& dense() {
  static const Weights weights(kinds()[0], Numbers::kF32, 0);
  return weights;
}

// Requests of which each has a row in most steps.
std::vector<Arrival> arrivals(int count, int prompt) {
  std::mt19937 draw(5);
  std::vector<Arrival> out;
  for (int i = 0; i < count; ++i) {
    Json ids = Json::array();
    for (int position = 0; position < prompt; ++position) ids.push_back(draw() % 256);
    out.push_back({{{"prompt", ids},
                    {"max_tokens", 6},
                    {"seed", 7 + i},
                    {"temperature", 1.2},
                    {"logprobs", 1},
                    {"return_token_ids", true}}});
  }
  return out;
}

int wrong(Together& together, const std::vector<Arrival>& asked) {
  Alone alone(dense().served({}));
  int out = 0;
  const std::vector<Json> made = together.answers(asked);
  for (size_t i = 0; i < made.size(); ++i) out += made[i] != alone.choices(asked[i].ask.dump());
  return out;
}

const Setting kSetting = {.limits = {kContext, 8, 64}};

TEST_CASE("without a fault the comparison finds nothing") {
  Together together(dense().served(kSetting), 0.05);
  CHECK(wrong(together, arrivals(6, 140)) == 0);
}

TEST_CASE("a page that is kept of another beginning is found") {
  Setting one = kSetting;
  one.limits.sequences = 1;
  Together together(serve::with_kept(dense().served(one), Kept::kOfTextBefore), 0.05);
  const std::vector<Arrival> asked = arrivals(2, 140);
  CHECK(wrong(together, {asked[0]}) == 0);  // nothing is kept yet
  CHECK(wrong(together, {asked[1]}) == 1);  // it got a page of the first
}

// Attention whose keys two threads share: each takes every second one, and their sums are put together. The
// numbers are the same but for rounding, which is the fault.
Arrays split_attention(const Arrays& qkv, const models::LayerFunctions::Paged& cache) {
  constexpr int64_t kThreads = 2;
  const PageAxes axes{.row = "pos"};
  const Array keys = paged_write(cache.keys, index(qkv[1], "batch", 0), cache.place, axes),
              values = paged_write(cache.values, index(qkv[2], "batch", 0), cache.place, axes),
              q = index(qkv[0], "batch", 0), table = maximum(cache.table, 0);
  const auto rows_of = [&](const Array& pool) {
    return merge_axes(gather(pool, "page", table), {"entry", "slot"}, "key");
  };
  const Array scores = dot(q, rows_of(keys), "head_dim") * (1 / std::sqrt(q.size("head_dim")));
  const int64_t count = scores.size("key");
  const Array seen = iota({"key", count}) <= cache.position, of_row = rows_of(values);
  std::vector<Array> most, sums, products;
  for (int64_t part = 0; part < kThreads; ++part) {
    const auto mine = [&](const Array& x) { return slice(x, "key", part, count / kThreads, kThreads); };
    const Array visible = mine(seen), score = select(visible, mine(scores), -1e30);
    most.push_back(max(score, {"key"}));
    const Array e = select(visible, exp(score - most.back()), 0.0);
    sums.push_back(sum(e, {"key"}));
    products.push_back(dot(e, mine(of_row), "key"));
  }
  const Array top = maximum(most[0], most[1]), first = exp(most[0] - top), second = exp(most[1] - top);
  const Array all = maximum(sums[0] * first + sums[1] * second, 1e-30);
  const Array y =
      transpose((products[0] * first + products[1] * second) / all, {"pos", "kv_heads", "group", "head_dim"});
  return {split_axis(y, "pos", {{"batch", 1}, {"pos", y.size("pos")}}), keys, values};
}

TEST_CASE("keys that are split over threads are found, although the numbers are almost the same") {
  const auto plant = [](models::LayerFunctions& f) {
    f.attend_pages = [](int64_t, const Arrays&, const Arrays& qkv, const models::LayerFunctions::Paged& c) {
      return split_attention(qkv, c);
    };
  };
  Together together(dense().served(kSetting, plant), 0.05);
  std::vector<Arrival> asked = arrivals(4, 40);
  for (Arrival& one : asked) one.ask["echo"] = true, one.ask["max_tokens"] = 0;
  CHECK(wrong(together, asked) > 0);
  Alone alone(dense().served({}));
  const Json split = together.answers({asked[0]})[0][0]["logprobs"]["token_logprobs"],
             whole = alone.choices(asked[0].ask.dump())[0]["logprobs"]["token_logprobs"];
  REQUIRE(split.size() == 40);
  for (size_t i = 1; i < split.size(); ++i)
    CHECK(std::abs(split[i].get<double>() - whole[i].get<double>()) < 1e-3);
}

TEST_CASE("seeds that depend on the slot are found") {
  Together together(dense().served(kSetting), 0.05,
                    [](serve::Ask& ask, size_t place) { ask.seed = *ask.seed + place % 8; });
  CHECK(wrong(together, arrivals(6, 20)) == 5);  // all but that of slot 0
}

class NeighboursRow final : public serve::ForwardingRunner {
 public:
  using ForwardingRunner::ForwardingRunner;
  Result<runtime::Buffer> step(std::span<const infer::RowChunk> chunks) override {
    ASSIGN_OR_RETURN(runtime::Buffer rows, ForwardingRunner::step(chunks));
    if (!rows.valid() || rows.shape().axes[0].size < 2) return rows;
    const auto vocab = static_cast<int64_t>(rows.shape().axes[1].size);
    const std::span<float> all = rows.mutable_as<float>();
    std::swap_ranges(all.begin(), all.begin() + vocab, all.begin() + vocab);
    return rows;
  }
};

TEST_CASE("rows with the adapter of another request are found") {
  const Weights one(kinds()[0], Numbers::kF32, 1), other(kinds()[0], Numbers::kF32, 2);
  std::vector<Arrival> asked = arrivals(6, 20);
  for (size_t i = 0; i < asked.size(); ++i) asked[i].adapter = static_cast<int>(i % 3);
  const auto wrong_of = [&](std::vector<serve::ServedModel> models) {
    Alone alone[] = {Alone(dense().served({})), Alone(one.served({})), Alone(other.served({}))};
    Together together(std::move(models), 0.05);
    const std::vector<Json> made = together.answers(asked);
    int out = 0;
    for (size_t i = 0; i < made.size(); ++i) out += made[i] != alone[i % 3].choices(asked[i].ask.dump());
    return out;
  };
  CHECK(wrong_of(Weights::served_together({&one, &other}, kSetting)) == 0);
  std::vector<serve::ServedModel> models = Weights::served_together({&one, &other}, kSetting);
  models[1].runner = std::make_unique<serve::AdapterRows>(models[1].rows, 1, "");
  CHECK(wrong_of(std::move(models)) == 2);
}

TEST_CASE("what is kept of an owner's text is given to the same adapter alone") {
  const Weights one(kinds()[0], Numbers::kF32, 1), other(kinds()[0], Numbers::kF32, 2);
  Setting setting = kSetting;
  setting.limits.rows = 128;
  std::vector<serve::ServedModel> models = Weights::served_together({&one, &other}, setting);
  const std::vector<int32_t> text(130, 7);
  for (size_t first = 0; first < models.size(); ++first) {
    const std::string owner = std::to_string(first);
    infer::RowRunner& runner = *models[first].runner;
    const int64_t sequence = runner.open().value();
    CHECK(runner.reuse(sequence, text, owner) == 0);
    for (const size_t at : {size_t{0}, size_t{65}}) {
      const infer::RowChunk chunk{sequence, std::span(text).subspan(at, 65)};
      CHECK(runner.step({&chunk, 1}).ok());
    }
    runner.close(sequence);
    for (size_t next = 0; next < models.size(); ++next) {
      const int64_t again = models[next].runner->open().value();
      CHECK(models[next].runner->reuse(again, text, owner) == (next == first ? 128 : 0));
      models[next].runner->close(again);
    }
  }
}

TEST_CASE("logits of a neighbour's row are found") {
  serve::ServedModel model = dense().served(kSetting);
  model.runner = std::make_unique<NeighboursRow>(std::move(model.runner));
  Together together(std::move(model), 0.05);
  CHECK(wrong(together, arrivals(6, 20)) > 0);
}

}  // namespace
}  // namespace ostro::workloads
