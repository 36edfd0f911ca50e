// Attention, cross-entropy and the ops on whole arrays against values worked out by hand.
#include <doctest/doctest.h>

#include "ostro/interp/engine/eval_for_test.h"
#include "ostro/numerics/fingerprint.h"
#include "ostro/numerics/functions.h"

namespace ostro::interp {
namespace {

ir::Attrs attention_attrs(bool causal) {
  return {{"query", std::string("pos")},
          {"key", std::string("key_pos")},
          {"head_dim", std::string("head_dim")},
          {"scale", 0.5},
          {"causal", int64_t{causal ? 1 : 0}}};
}

TEST_CASE("attention: causal rows, equal scores, heads that share keys") {
  // Two heads of one group, two positions, head_dim 2. Keys are zero, so all scores are 0.
  const Buffer q = f32({{"pos", 2}, {"group", 2}, {"head_dim", 2}}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Buffer k = f32({{"key_pos", 2}, {"head_dim", 2}}, {0, 0, 0, 0});
  const Buffer v = f32({{"key_pos", 2}, {"head_dim", 2}}, {1, 3, 5, -7});
  const auto out = eval_n(OpKind::attention, {q, k, v, origin(0)}, attention_attrs(true));
  CHECK(same<float>(out[0], {1, 3, 1, 3, 3, -2, 3, -2}));
  CHECK(same<float>(out[1], {0, 0, 0, 0}));
  CHECK(same<float>(out[2], {1, 1, 0.5f, 0.5f}));
  // One position later the first row sees both keys.
  CHECK(same<float>(eval(OpKind::attention, {q, k, v, origin(1)}, attention_attrs(true)),
                    {3, -2, 3, -2, 3, -2, 3, -2}));
  // Backward: do is 1 for the first element. Row 0: p = 1, ds = 0. Row 1: p = 1/2, dp = v0 = {1, 5}, delta =
  // 3, ds = {-1, 1}; dv0 gets 1 + 1/2 from each of two heads; dk = 0.5 * sum over heads of ds * q.
  const Buffer d_o = f32(q.shape().axes, {1, 0, 1, 0, 1, 0, 1, 0});
  const auto grads = eval_n(OpKind::attention_grad, {q, k, v, out[0], out[1], out[2], d_o, origin(0)},
                            attention_attrs(true));
  CHECK(same<float>(grads[0], {0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(same<float>(grads[1], {-6, -7, 6, 7}));
  CHECK(same<float>(grads[2], {3, 0, 1, 0}));
  // As a partial of a tree over workers, dk is not scaled yet.
  ir::Attrs partial = attention_attrs(true);
  partial.set("partial", int64_t{1});
  const auto parts =
      eval_n(OpKind::attention_grad, {q, k, v, out[0], out[1], out[2], d_o, origin(0)}, partial);
  CHECK(same<float>(parts[1], {-12, -14, 12, 14}));
  CHECK(same<float>(parts[2], {3, 0, 1, 0}));
}

TEST_CASE("attention on integers: exact where slices are, and a scale is that of a query's own keys") {
  // Numbers that are whole scales: as with floats.
  const Buffer q = f32({{"pos", 2}, {"group", 2}, {"head_dim", 2}}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Buffer k = f32({{"key_pos", 2}, {"head_dim", 2}}, {0, 0, 0, 0});
  const Buffer v = f32({{"key_pos", 2}, {"head_dim", 2}}, {1, 3, 5, -7});
  ir::Attrs attrs = attention_attrs(true);
  attrs.set("int8_slices", int64_t{2});
  const auto out = eval_n(OpKind::attention, {q, k, v, origin(0)}, attrs);
  CHECK(same<float>(out[0], {1, 3, 1, 3, 3, -2, 3, -2}));
  const Buffer d_o = f32(q.shape().axes, {1, 0, 1, 0, 1, 0, 1, 0});
  const auto grads = eval_n(OpKind::attention_grad, {q, k, v, out[0], out[1], out[2], d_o, origin(0)}, attrs);
  CHECK(same<float>(grads[0], {0, 0, 0, 0, 0, 0, 0, 0}));
  CHECK(same<float>(grads[1], {-6, -7, 6, 7}));
  CHECK(same<float>(grads[2], {3, 0, 1, 0}));

  // v = 65 + 1/256: the scale is 1, h = 65 and g = rint(1/2) = 0. A row of one number alone; its neighbour's
  // size changes nothing of it.
  for (const float other : {0.0f, 1000.0f}) {
    const Buffer one = f32({{"pos", 1}, {"head_dim", 1}}, {1});
    const Buffer keys = f32({{"key_pos", 2}, {"head_dim", 1}}, {0, 0});
    const Buffer values = f32({{"key_pos", 2}, {"head_dim", 1}}, {65.00390625f, other});
    CHECK(same<float>(eval(OpKind::attention, {one, keys, values, origin(0)}, attrs), {65}));
    CHECK(same<float>(eval(OpKind::attention, {one, keys, values, origin(0)}, attention_attrs(true)),
                      {65.00390625f}));
  }
  // The score of 1.5 * 1.5: s = 1/64, h = 96, g = 0, so it is exact; of 1.01 h = 65, g = -46 (rint(-0.36 *
  // 128)): 4225 / 4096 - 2 * 65 * 46 / 128 / 4096.
  const Buffer two = f32({{"pos", 1}, {"head_dim", 1}}, {1.01f});
  const Buffer key = f32({{"key_pos", 1}, {"head_dim", 1}}, {1.01f});
  CHECK(eval_n(OpKind::attention, {two, key, key, origin(0)}, attrs)[1].as<float>()[0] ==
        (4225.0f - 46.71875f) / 4096.0f);
  ir::Attrs wrong = attrs;
  wrong.set("int8_slices", int64_t{3});
  const auto refused = try_eval(OpKind::attention, {two, key, key, origin(0)}, wrong);
  REQUIRE(!refused.ok());
  CHECK(refused.error().message().find("int8_slices 3; use 0 for products of floats or 2") !=
        std::string::npos);
}

TEST_CASE("attention: a row without keys gives +0, bf16 and masks by segment, limit, window, sink") {
  const Buffer q = bf16({{"pos", 2}, {"head_dim", 1}}, {1, 1});
  const Buffer k = bf16({{"key_pos", 3}, {"head_dim", 1}}, {0, 0, 0});
  const Buffer v = bf16({{"key_pos", 3}, {"head_dim", 1}}, {-2, 4, 6});
  auto run = [&](const char* name, int64_t value, std::vector<Buffer> extra) {
    ir::Attrs attrs = attention_attrs(false);
    attrs.set(name, value);
    std::vector<Buffer> in{q, k, v, origin(0)};
    in.insert(in.end(), extra.begin(), extra.end());
    return eval_n(OpKind::attention, in, attrs);
  };
  const auto limited = run("key_limit", 1, {i32({}, {0})});
  CHECK(same<uint16_t>(limited[0], {0, 0}));
  CHECK(same<float>(limited[2], {0, 0}));
  CHECK(same<uint16_t>(run("key_limit", 1, {i32({}, {1})})[0], {0xc000, 0xc000}));  // -2
  CHECK(same<uint16_t>(run("segments", 1, {i32({{"pos", 2}}, {1, 2}), i32({{"key_pos", 3}}, {1, 2, 2})})[0],
                       {0xc000, 0x40a0}));  // -2, 5
  const Buffer seen = boolean({{"pos", 2}, {"key_pos", 3}}, {true, false, false, false, true, true});
  CHECK(same<uint16_t>(run("visible", 1, {seen})[0], {0xc000, 0x40a0}));  // -2, 5
  CHECK(same<uint16_t>(run("window", 1, {})[0], {0x402b, 0x40a0}));       // 8/3 rounded, 5
  CHECK(same<float>(run("sink", 1, {f32({}, {0})})[2], {0.25f, 0.25f}));
}

TEST_CASE("attention's gradients are cut by the leaves of the query axis alone") {
  // One key: p is 1, so dv is the sum of do over the four query heads that share it.
  auto grad = [](const char* shared, bool sink, const std::vector<float>& d_o, const std::string& leaves) {
    const std::vector<ir::Axis> q_axes{{shared, 4}, {"pos", 1}, {"head_dim", 1}};
    const std::vector<ir::Axis> k_axes =
        sink ? std::vector<ir::Axis>{{shared, 4}, {"key_pos", 1}, {"head_dim", 1}}
             : std::vector<ir::Axis>{{"key_pos", 1}, {"head_dim", 1}};
    const std::vector<float> zeros(4, 0.0f);
    const Buffer q = f32(q_axes, zeros);
    const Buffer k = f32(k_axes, std::vector<float>(sink ? 4 : 1, 0.0f));
    const Buffer v = f32(k_axes, std::vector<float>(sink ? 4 : 1, 2.0f));
    ir::Attrs attrs = attention_attrs(true);
    std::vector<Buffer> in{q, k, v, origin(0)};
    if (sink) {
      attrs.set("sink", int64_t{1});
      in.push_back(f32({}, {0}));
    }
    const auto out = eval_n(OpKind::attention, in, attrs);
    in.insert(in.begin() + 3, {out[0], out[1], out[2], f32(q_axes, d_o)});
    return eval_n(OpKind::attention_grad, in, attrs, {{{leaves, 4}}}).at(sink ? 3 : 2);
  };
  // One chain loses each 1 beside 2^24; a tree over four leaves would keep two of them.
  CHECK(same<float>(grad("group", false, {0x1p24f, 1, 1, 1}, "group"), {0x1p24f}));
  // With a sink of logit 0 beside it p is 1/2 and o is 1: the sink's gradient is the sum of -do / 2.
  CHECK(same<float>(grad("batch", true, {0x1p25f, 2, 2, 2}, "batch"), {-0x1p24f}));
}

TEST_CASE("cross-entropy of equal logits") {
  const Buffer logits = f32({{"pos", 2}, {"vocab", 4}}, {3, 3, 3, 3, 3, 3, 3, 3});
  const Buffer target = i32({{"pos", 2}}, {1, 9});
  const auto out =
      eval_n(OpKind::cross_entropy, {logits, target, origin(0)}, {{"axis", std::string("vocab")}});
  const float lse = 3 + numerics::log_f32(4);
  CHECK(same<float>(out[0], {lse - 3, lse}));
  CHECK(same<float>(out[2], {0.25f, 0.25f}));
  CHECK(same<float>(out[3], {lse, lse}));
  const Buffer w = f32({{"pos", 2}}, {2, 1});
  CHECK(same<float>(eval(OpKind::cross_entropy_grad, {logits, target, out[1], out[2], out[3], w, origin(0)},
                         {{"axis", std::string("vocab")}}),
                    {0.5f, -1.5f, 0.5f, 0.5f, 0.25f, 0.25f, 0.25f, 0.25f}));
  const auto z = eval_n(OpKind::cross_entropy, {logits, target, origin(0)},
                        {{"axis", std::string("vocab")}, {"z", 0.5}});
  CHECK(list<float>(z[0])[0] == (lse - 3) + (0.5f * lse) * lse);
}

TEST_CASE("the sum of exponentials for the maximum of all workers, leaf by leaf") {
  const ir::Attrs attrs{{"axis", std::string("vocab")}};
  // E(-1e4, 0) is +0; the maximum of the second row is at another worker.
  const Buffer logits = f32({{"pos", 2}, {"vocab", 3}}, {0, -1e4f, 0, 1, 1, -0.5f});
  const Buffer m = f32({{"pos", 2}}, {0, 1e4f});
  CHECK(same<float>(eval(OpKind::cross_entropy_sum, {logits, m}, attrs), {2, 0}));
  // Two leaves, of 8 and of 2: the order of N4 within each, then one addition.
  const std::vector<float> row{0, -1, -2, -3, -4, -5, -6, -7, -8, -9};
  const Buffer ten = f32({{"pos", 1}, {"vocab", 10}}, row), top = f32({{"pos", 1}}, {1});
  const auto e = [&](size_t i) { return numerics::exp2_block(row[i], 1, numerics::kLog2e); };
  const float first = ((e(0) + 0) + (e(4) + 0)) + ((e(2) + 0) + (e(6) + 0)),
              second = ((e(1) + 0) + (e(5) + 0)) + ((e(3) + 0) + (e(7) + 0));
  CHECK(same<float>(eval_n(OpKind::cross_entropy_sum, {ten, top}, attrs, {{{"vocab", 2}}})[0],
                    {(first + second) + (e(8) + e(9))}));
}

TEST_CASE("boxes, fingerprints, constants, random numbers") {
  const Buffer x = f32({{"layers", 2}, {"embed", 3}}, {1, 2, 3, 4, 5, 6});
  CHECK(same<double>(
      eval(OpKind::box_sumsq, {x}, {{"axes", Strings{"layers", "embed"}}, {"cells", Ints{2, 2}}}),
      {5, 9, 41, 36}));
  CHECK(same<double>(eval(OpKind::box_sumsq, {x}, {{"axes", Strings{}}, {"cells", Ints{}}}), {91}));
  // A part of a larger array is told how long its boxes are; some may be empty.
  CHECK(same<double>(
      eval(OpKind::box_sumsq, {x}, {{"axes", Strings{"embed"}}, {"cells", Ints{3}}, {"lengths", Ints{2}}}),
      {46, 45, 0}));
  const auto whole = numerics::fingerprint_array(2, 3, 4, x.bytes());
  auto lanes = [&](const Buffer& b, int64_t row) {
    return list<int64_t>(
        eval(OpKind::fingerprint, {b, origin(row), origin(0)}, {{"global_sizes", Ints{2, 3}}}));
  };
  CHECK(lanes(x, 0)[0] == static_cast<int64_t>(whole.lane[0]));
  const auto top = lanes(f32({{"layers", 1}, {"embed", 3}}, {1, 2, 3}), 0);
  const auto bottom = lanes(f32({{"layers", 1}, {"embed", 3}}, {4, 5, 6}), 1);
  CHECK(static_cast<uint64_t>(top[1]) + static_cast<uint64_t>(bottom[1]) == whole.lane[1]);
  const Buffer key = make<uint32_t>(ir::DType::u32, {{"word", 2}}, {0, 7});
  const ir::Attrs all{
      {"kind", std::string("normal")}, {"axes", Strings{"n"}}, {"sizes", Ints{4}}, {"global_sizes", Ints{4}}};
  const ir::Attrs half{
      {"kind", std::string("normal")}, {"axes", Strings{"n"}}, {"sizes", Ints{2}}, {"global_sizes", Ints{4}}};
  const auto four = list<float>(eval(OpKind::random, {key, origin(0)}, all));
  CHECK(list<float>(eval(OpKind::random, {key, origin(2)}, half)) == std::vector<float>{four[2], four[3]});
  CHECK(list<uint32_t>(eval(OpKind::fold_in, {key, i32({}, {1})})) != list<uint32_t>(key));
  CHECK(same<int32_t>(eval(OpKind::iota, {origin(5)}, {{"axis", std::string("n")}, {"size", int64_t{2}}}),
                      {5, 6}));
  CHECK(same<uint16_t>(eval(OpKind::constant, {},
                            {{"dtype", std::string("bf16")},
                             {"axes", Strings{"n"}},
                             {"sizes", Ints{2}},
                             {"data", std::string("803f0040")}}),
                       {0x3f80, 0x4000}));
  CHECK(same<float>(
      eval(OpKind::constant, {},
           {{"dtype", std::string("f32")}, {"axes", Strings{"n"}}, {"sizes", Ints{2}}, {"value", 0.5}}),
      {0.5f, 0.5f}));
}

}  // namespace
}  // namespace ostro::interp
