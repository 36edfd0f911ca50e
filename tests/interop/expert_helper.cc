// Prints, as numerics_clauses does (ostro/numerics/tools), inputs and results of the interpreter for N20's
// products of experts, for scripts/check_numerics_clauses.py. Takes a seed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "ostro/interp/engine/eval_for_test.h"
#include "ostro/numerics/fp_env.h"
#include "ostro/numerics/threefry.h"

namespace ostro::interp {
namespace {

// Rows (token, slot) of kOut numbers, of which each chose an expert; tokens have kIn numbers, too. Indices of
// experts begin at kFirst. The array of rows is part of one with the sizes kWhole, from kOrigins on.
constexpr int64_t kTokens = 45, kSlots = 2, kIn = 3, kOut = 2, kExperts = 3, kBlock = 8, kFirst = 1;
const Ints kWhole = {200, 3, 5}, kOrigins = {130, 1, 2};

std::vector<float> numbers(numerics::Key key, int64_t n) {
  std::vector<float> out;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<uint64_t>(i);
    const auto exponent = static_cast<int>(numerics::random_bits(numerics::fold_in(key, 1u), at) % 9) - 4;
    out.push_back(std::ldexp(numerics::random_normal(key, at), exponent));
  }
  return out;
}

std::vector<uint64_t> patterns(const std::vector<float>& x) {
  std::vector<uint64_t> out;
  for (const float v : x) out.push_back(std::isnan(v) ? 0x7fc00000u : std::bit_cast<uint32_t>(v));
  return out;
}

void append(std::vector<uint64_t>& to, const std::vector<uint64_t>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

void print(const char* clause, const std::vector<uint64_t>& in, const std::vector<uint64_t>& in2,
           const Buffer& out, bool last) {
  fmt::print("\"{}\": {{\"in\": [{}], \"in2\": [{}], \"out\": [{}]}}{}\n", clause, fmt::join(in, ", "),
             fmt::join(in2, ", "), fmt::join(patterns(list<float>(out)), ", "), last ? "" : ",");
}

void print_experts(uint64_t seed) {
  const numerics::Key key = numerics::fold_in(numerics::key_from_seed(seed), "experts");
  const std::vector<float> a = numbers(numerics::fold_in(key, "a"), kTokens * kIn);
  std::vector<float> b = numbers(numerics::fold_in(key, "b"), kTokens * kSlots * kOut);
  b[40] = INFINITY;  // of token 10, slot 0, column 0
  b[41] = 0x1p-130f;
  // Most rows go to the expert kFirst, so that it has several blocks; the last of the table has none.
  std::vector<int32_t> chosen;
  for (int64_t i = 0; i < kTokens * kSlots; ++i) {
    const int32_t of[] = {0, kFirst, kFirst, kFirst, kFirst + 1, kFirst + kExperts};
    chosen.push_back(
        of[numerics::random_bits(numerics::fold_in(key, "chosen"), static_cast<uint64_t>(i)) % 6]);
  }
  chosen[20] = kFirst + 1;  // sees the infinity
  const Buffer expert = i32({{"token", kTokens}, {"slot", kSlots}}, chosen);
  const std::vector<uint64_t> of_rows(chosen.begin(), chosen.end());

  std::vector<uint64_t> in = patterns(a);
  append(in, patterns(b));
  std::vector<uint64_t> in2 = {kTokens, kSlots, kIn, kOut, kExperts, kBlock, kFirst, key.word0, key.word1};
  for (const Ints& list : {kWhole, kOrigins}) in2.insert(in2.end(), list.begin(), list.end());
  append(in2, of_rows);
  ir::Attrs attrs{{"axis", std::string("experts")}, {"size", kExperts}, {"block", kBlock}};
  attrs.set("global_sizes", kWhole);
  std::vector<Buffer> operands = {
      f32({{"token", kTokens}, {"in", kIn}}, a),
      f32({{"token", kTokens}, {"slot", kSlots}, {"out", kOut}}, b), expert, origin(kFirst),
      make(ir::DType::u32, {{"word", 2}}, std::vector<uint32_t>{key.word0, key.word1})};
  for (const int64_t from : kOrigins) operands.push_back(origin(from));
  print("expert_sums", in, in2, eval(OpKind::expert_outer_int8, operands, attrs), false);

  // Rows of kTokens numbers times the matrix of the expert that a row chose.
  const std::vector<float> x = numbers(numerics::fold_in(key, "x"), kTokens * kIn),
                           w = numbers(numerics::fold_in(key, "w"), kExperts * kTokens * kOut);
  std::vector<int32_t> of_few(chosen.begin(), chosen.begin() + kIn * kSlots);
  in = patterns(x);
  append(in, patterns(w));
  in2 = {kIn, kSlots, kTokens, kOut, kExperts, kBlock, kFirst};
  append(in2, {of_few.begin(), of_few.end()});
  ir::Attrs cut{{"over", Strings{"in"}},
                {"block", kBlock},
                {"groups", std::string("groups")},
                {"rounding", std::string("nearest")}};
  const auto rows = eval_n(OpKind::quantize, {f32({{"token", kIn}, {"in", kTokens}}, x)}, cut);
  const auto matrices =
      eval_n(OpKind::quantize, {f32({{"experts", kExperts}, {"in", kTokens}, {"out", kOut}}, w)}, cut);
  ir::Attrs product{{"axis", std::string("experts")},
                    {"over", Strings{"in"}},
                    {"block", kBlock},
                    {"groups", std::string("groups")},
                    {"dtype", std::string("f32")}};
  print("expert_products", in, in2,
        eval(OpKind::expert_dot_int8,
             {rows[0], rows[1], matrices[0], matrices[1], i32({{"token", kIn}, {"slot", kSlots}}, of_few),
              origin(kFirst)},
             product),
        true);
}

}  // namespace
}  // namespace ostro::interp

int main(int argc, char** argv) {
  const ostro::numerics::HostArithmetic guard;
  fmt::print("{{\n");
  ostro::interp::print_experts(argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 0);
  fmt::print("}}\n");
  return 0;
}
