// Negative controls: device text that is wrong on purpose gives other bits or an error on the emulated
// device.
#include <doctest/doctest.h>

#include "ostro/cuda/engine/cuda_engine.h"
#include "ostro/gpu/emulated/emulated_device.h"
#include "ostro/interp/engine/engine.h"
#include "tests/engine/paged_cases.h"
#include "tests/engine/programs.h"

namespace ostro {
namespace {

using runtime::Buffer;

struct Control {
  const char* fault;
  gpu::EmulationOptions::Change change;
  const char* program;  // the beginning of the names of programs that must find it
};

const Control kControls[] = {
    {"an fma where the clause has two roundings",
     {"f * (2.0f * most) + -most", "FMA32(f, 2.0f * most, -most)"},
     "random"},
    {"a reduction in another order of shuffles",
     {"for (int d = 8; d >= 1; d /= 2) v = v + from", "for (int d = 1; d <= 8; d *= 2) v = v + from"},
     "sum f32 [embed] striped f32"},
    {"exp of the compiler's library",
     {"FN float exp32(float x) {",
      "FN float exp32(float x) { return __builtin_expf(x); }\nFN float own_exp32(float x) {"},
     "exp f32"},
    {"groups of 16 products", {"if (++x.n < 32) return;", "if (++x.n < 16) return;"}, "dots bf16"},
    {"a short last group left out",
     {"if (!narrow || x.n == 0) return x.c;", "if (!narrow || x.n < 9) return x.c;"},
     "dots bf16"},
    {"groups of 16 products in a tile of regular operands",
     {"(s + 1) % 32 == 0", "(s + 1) % 16 == 0"},
     "regular dots bf16"},
    {"a row of a tile that is another's",
     {"const i64 line = first + unit_line(u);", "const i64 line = first + (unit_line(u) ^ 8);"},
     "regular dots f32"},
    {"operands that are cut to the bits of tf32",
     {"c[i][j] = FMA32(tile_a[x], tile_b[y], c[i][j]);",
      "c[i][j] = FMA32(f32_of(bits32(tile_a[x]) & 0xffffe000u), f32_of(bits32(tile_b[y]) & 0xffffe000u), "
      "c[i][j]);"},
     "regular dots f32"},
    {"a tile that begins at the last piece",
     {"tile_a[x], tile_b[y], c[i][j]", "tile_a[x], tile_b[y], 0.0f"},
     "regular dots f32"},
    {"a missing barrier", {"stripes[THREAD] = x;\n  BARRIER();", "stripes[THREAD] = x;"}, "cross_entropy"},
    {"a barrier that not all threads reach",
     {"stripes[THREAD] = x;\n  BARRIER();", "stripes[THREAD] = x;\n  if (THREAD < 40) BARRIER();"},
     "cross_entropy"},
    {"shared memory that is read before it is written", {"lanes[THREAD] = x;", ""}, "cross_entropy"},
    {"sources of a scatter from the last to the first",
     {"for (i64 r = 0; r < a.sources; ++r) {", "for (i64 r = a.sources - 1; r >= 0; --r) {"},
     "scatter_add"},
    {"squares in the middle of two sums that are rounded as if the sum were even",
     {"if (!is_odd(odd_before * per_unit)) odd = odd + 2 * rest;", ""},
     "box_sumsq of large"},
    {"parts of a box's lane that are added in units of the sum before",
     {"if (units + more >= (i64)1 << 53) break;", ""},
     "box_sumsq of large"},
    {"a sum that begins while its elements are written",
     {"BARRIER();\n  }\n  if (THREAD >= sums)", "}\n  if (THREAD >= sums)"},
     "serial sums of long"},
    {"an element of a row that a thread reads twice",
     {"at = (s0 + e) * 64 + THREAD", "at = (s0 + e / 2) * 64 + THREAD"},
     "rows of many"},
    {"elements behind the last one that are written", {"if (at >= left) break;", ""}, "exp f32"},
    {"sources of a row from the last to the first",
     {"found[before + count_bits(", "found[count - 1 - before - count_bits("},
     "scatter_add"},
    {"a word that is two threads'",
     {"parts[warp * 2 + THREAD]", "parts[warp / 2 * 4 + THREAD]"},
     "fingerprint behind"},
    {"a byte after the result",
     {"AT(u32, a.to)[i] = inside ? AT(const u32, a.table)[from] : 0u;",
      "AT(u32, a.to)[i] = inside ? AT(const u32, a.table)[from] : 0u, AT(u32, a.to)[a.count * a.width] = "
      "1u;"},
     "gather"},
    {"a sum of integers that goes on over a scale",
     {"i32 sum = 0;\n    if (words", "static i32 sum = 0;\n    if (words"},
     "integers f32 [5,"},
    {"a sum of integers of a tile that goes on over a scale",
     {"sum[i][j][r] = 0;\n", ""},
     "integers f32 [33,"},
    {"places of a warp's product that are another instruction's",
     {"left[i][1] = at[8 * TILE_STRIDE], left[i][2] = at[4]",
      "left[i][2] = at[8 * TILE_STRIDE], left[i][1] = at[4]"},
     "integers f32 [33,"},
    {"a piece of k in shared memory that is read while it is written",
     {"tile_b + half * TILE * TILE_STRIDE);\n    BARRIER();", "tile_b + half * TILE * TILE_STRIDE);"},
     "integers f32 [33,"},
    {"a product of a warp that one thread does not reach",
     {"if (!has_outputs || k", "if (!has_outputs || lane == 5 || k"},
     "integers f32 [33,"},
    {"a sum of integers of whole words that goes on over a scale",
     {"sum[i][j][r] = 0;\n", ""},
     "integers f32 [40,"},
    {"words of a product that are not where their row has them",
     {"x_word = lane / 16 ^ lane / 2 % 4", "x_word = lane / 16 ^ lane / 4 % 4"},
     "integers f32 [40,"},
    {"a piece of k in shared memory that is read before all of it is there",
     {"COPIES_WAIT(STAGES - 2);\n    BARRIER();", "COPIES_WAIT(STAGES - 2);"},
     "integers f32 [40,"},
    {"a product of words that one thread does not reach",
     {"for (int i = 0; i < 4; ++i) {\n        u32 of_a",
      "for (int i = lane == 5; i < 4; ++i) {\n        u32 of_a"},
     "integers f32 [40,"},
    {"a piece of k that is read before it is waited for",
     {"COPIES_WAIT(STAGES - 2);", ""},
     "integers f32 [40,"},
    {"a piece of a warpgroup that is read before it is there",
     {"MBARRIER_WAIT(stages.full + stage, piece / STAGES & 1);", ""},
     "integers f32 [130,136"},
    {"a piece of a warpgroup that is overwritten before it was used",
     {"if (piece >= STAGES) MBARRIER_WAIT(", "if (piece < 0) MBARRIER_WAIT("},
     "integers f32 [130,136"},
    {"a warp that does not say that it used a piece",
     {"if (lane == 0) MBARRIER_ARRIVE", "if (lane == 0 && THREAD != 160) MBARRIER_ARRIVE"},
     "integers f32 [130,136"},
    {"products of a warpgroup that are read before they are there",
     {"    PRODUCTS_WAIT(sum);\n", ""},
     "integers f32 [130,136"},
    {"a sum of a warpgroup that goes on over a scale", {"of_block = 0;\n#", "\n#"}, "integers f32 [130,136"},
    {"scales of a warpgroup's rows that are another's",
     {"r / 2 % 2 == 0 ? upper : lower", "upper"},
     "integers f32 [130,136"},
    {"dither by thread", {"r.draw + (u64)line_at(a.k_draw, k + i)", "(u64)THREAD"}, "integers f32"},
    {"dither that begins anew in each part of an array",
     {"r.draw += (u64)", "0, (void)(u64)"},
     "integers f32"},
    {"numbers rounded away from even", {"t + 0x1.8p23f", "FLOOR32(t + 0.5f) + 0x1.8p23f"}, "integers bf16"},
    {"127 scales that are cut off", {"> 0x007e0000u", "> 0x007fffffu"}, "integers f32"},
    {"weights of a tile that are multiplied with another row's numbers",
     {"first = word / 4 * 16 + word % 4 * 2", "first = word / 4 * 16 + word % 4 * 2 % 6"},
     "attention by tiles f32 of integers, whole"},
    {"a tile of keys that is read before it is there",
     {"COPIES_WAIT(1);\n    BARRIER();\n    float s[", "BARRIER();\n    float s["},
     "attention by tiles f32 of integers, whole"},
    {"a turned tile that is read before all threads have copied",
     {"COPIES_WAIT(1);\n    BARRIER();\n    add_turned", "COPIES_WAIT(1);\n    add_turned"},
     "attention by tiles f32 of integers, wide"},
    {"a sum of exponentials that begins before all are there",
     {"s[n][r] = seen ? p * value_scales[column] : 0.0f;\n    }\n    BARRIER();",
      "s[n][r] = seen ? p * value_scales[column] : 0.0f;\n    }"},
     "attention by tiles f32 of integers, whole"},
    {"a largest weight of two of a row's four threads",
     {"for (int d = 1; d <= 2; d *= 2) {\n    const u32", "for (int d = 1; d <= 1; d *= 2) {\n    const u32"},
     "attention by tiles f32 of integers, whole"},
    {"blocks of queries that begin at row 0",
     {"if (a.origin.at != 0) place = ", "if (a.origin.at != 0 && false) place = "},
     "attention by tiles f32 of integers, whole"},
    {"dk of queries that are do",
     {"turned_block(of_k ? a.sliced_q : a.sliced_do,", "turned_block(of_k ? a.sliced_do : a.sliced_do,"},
     "attention by tiles f32 of integers, whole"},
    {"low slices in units of another size",
     {"left * 0x1p-7f", "left * 0x1p-6f"},
     "attention by tiles f32 of integers"},
    {"slices of weights that are read before all are there",
     {"low[THREAD] = s.low;\n  BARRIER();", "low[THREAD] = s.low;"},
     "attention by tiles bf16 of integers"},
    {"blocks of queries that are counted from the first row",
     {"((origin + first) % PIECE + PIECE) % PIECE", "first % PIECE"},
     "attention by tiles f32 of integers"},
    {"a chain of attention from the last to the first",
     {"for (int k = 0; k < steps; k += 4) four_steps", "for (int k = steps - 4; k >= 0; k -= 4) four_steps"},
     "attention by tiles f32 causal"},
    {"a group of attention that is added product by product",
     {"c[i][j] = c[i][j] + (even[i][j] + odd[i][j]);\n  }",
      "c[i][j] = (c[i][j] + even[i][j]) + odd[i][j];\n  }"},
     "attention by tiles bf16 causal"},
    {"a sum of exponentials that does not wait for its first part",
     {"for (int n = 1; n < PARTS; ++n) {\n      BARRIER();", "for (int n = 1; n < PARTS; ++n) {"},
     "attention by tiles f32 causal"},
    {"rows that are multiplied while they come",
     {"rows_in<D, WIDE, T, narrow>(piece, from, first + k);\n    BARRIER();",
      "rows_in<D, WIDE, T, narrow>(piece, from, first + k);"},
     "attention by tiles f32 causal"},
    {"a key too many", {"i64 open = p + 1;", "i64 open = p + 2;"}, "attention by tiles f32 causal"},
    {"probabilities of which some are not rounded",
     {"if (narrow) p[e * R] = round_bf16(p[e * R]);", ""},
     "attention by tiles bf16 causal"},
    {"groups of queries by row, not by position",
     {"const i64 start = narrow ? -(origin % 32) : 0;", "const i64 start = 0;"},
     "attention by tiles bf16 window"},
    {"integers that are turned before they are there",
     {"at_most_4(end - piece - w * 4));\n    BARRIER();", "at_most_4(end - piece - w * 4));"},
     "integers f32 [33,"},
    {"neighbours that share the draws of the next four",
     {"(u32)(number >> 2)", "(u32)(number >> 2) + 1"},
     "integers bf16 [130,"},
    {"integers in whole words that are turned before they are there",
     {"words[v][1]}};\n  }\n  BARRIER();", "words[v][1]}};\n  }"},
     "integers bf16 [72,"},
    {"a block whose largest is that of a part", {"d <= 16; d *= 2", "d <= 8; d *= 2"}, "integers f32 [72,"},
};

// Whether one of the programs gives other bits than the interpreter's, or an error, with this change of the
// device text.
bool found(const gpu::EmulationOptions& options, const std::string& named, int64_t& changes) {
  auto device = gpu::emulated_device(options);
  REQUIRE_MESSAGE(device.ok(), device.error().message());
  const auto engine = cuda::make_device_engine(**device);
  bool any = false, ran = false;
  for (const auto& [name, program, finite_only] : testing::op_programs()) {
    if (!name.starts_with(named)) continue;
    ran = true;
    const std::vector<Buffer> inputs = testing::make_inputs(program, 1, false);
    auto reference = interp::make_interpreter()->compile(program);
    REQUIRE(reference.ok());
    const auto expected = (*reference)->run(inputs);
    auto executable = engine->compile(program, {});
    REQUIRE_MESSAGE(executable.ok(), executable.error().message());
    const auto got = (*executable)->run(inputs);
    // A change that the compiler refuses shows nothing.
    if (!got.ok())
      CHECK_MESSAGE(got.error().message().find("device text") == std::string::npos, got.error().message());
    any = any || !got.ok() ||
          !testing::difference(*expected, runtime::all_to(*got, runtime::host_memory()).value()).empty();
    if (any) break;
  }
  CHECK_MESSAGE(ran, "no program is called ", named);
  changes = gpu::changes_made(**device);
  return any;
}

TEST_CASE("control: faults of device text are found") {
  for (const Control& control : kControls) {
    CAPTURE(std::string(control.fault));
    int64_t changes = 0;
    CHECK(found({.changes = {control.change}}, control.program, changes));
    CHECK(changes > 0);
  }
}

TEST_CASE("control: faults of pages are found") {
  const Control controls[] = {
      {"the first page of each row", {"a.table_row + page * a.table_entry", "a.table_row"}, ""},
      {"keys behind the row's position", {"left < PIECE ? left : PIECE", "PIECE"}, ""},
      {"values that the window hides",
       {"j >= keys.first ? load_float(a.values.at, a.type, v_at + j * a.values.slot) : 0.0f",
        "load_float(a.values.at, a.type, v_at + j * a.values.slot)"},
       ""},
      {"a slot that is another's", {"place % PIECE * a.slot_stride", "place % 64 * a.slot_stride"}, ""},
      {"weights that are cut by themselves",
       {"seen ? p * v_cut.scale : 0.0f, high", "seen ? p : 0.0f, high"},
       "integers"},
  };
  for (const Control& control : controls) {
    CAPTURE(std::string(control.fault));
    const bool integers = control.program[0] != 0;
    const ir::Program program = testing::small_cache({.window = 100, .integers = integers});
    // The rows are at slots 69 of page 1 and 20 of page 2; slots 1 to 5 of page 0 lie before the first row's
    // window.
    const std::vector<Buffer> inputs =
        testing::cache_inputs({197, 276}, {0, 1, 2, 0}, {197, 20}, {1, 2, 3, 4, 5});
    const auto expected = (*interp::make_interpreter()->compile(program))->run(inputs);
    REQUIRE(expected.ok());
    for (const bool faulty : {false, true}) {
      gpu::EmulationOptions options;
      if (faulty) options.changes = {control.change};
      auto device = gpu::emulated_device(options);
      REQUIRE(device.ok());
      auto executable = cuda::make_device_engine(**device)->compile(program, {});
      REQUIRE_MESSAGE(executable.ok(), executable.error().message());
      const auto got = (*executable)->run(inputs);
      REQUIRE_MESSAGE(got.ok(), got.error().message());
      CHECK(testing::difference(*expected, runtime::all_to(*got, runtime::host_memory()).value()).empty() ==
            !faulty);
      CHECK((gpu::changes_made(**device) > 0) == faulty);
    }
  }
}

}  // namespace
}  // namespace ostro
