// FewKernel: one instruction set's functions for products of few rows, which read B once, where it lies in
// memory. few_rows.cc does everything else.
#pragma once

#include <cstdint>

namespace ostro::kernels {

inline constexpr int kFewGroup = 32;  // steps of the contraction in a group of N7
inline constexpr int kFewSteps =
    8;  // the least that `across` makes together: so many streams memory gives well
inline constexpr int kFewRows = 64;   // the most rows of A
inline constexpr int kFewLine = 64;   // bytes of a cache line
inline constexpr int kFewUnit = 32;   // the most that FewKernel::unit may be
inline constexpr int kFewPanels = 4;  // side by side: so a Zen 3 reads faster than one by one

// How A lies for a kernel, after which its steps of bf16 are groups, the last one with zeros at its end.
enum class FewLeft : uint8_t {
  kSteps,   // f32 [step][rows]
  kChains,  // words of two bf16 [step / 2][rows]: the pairs of VDPBF16PS, of each group 8 of the even chain
            // and 8 of the odd one
  kGroups,  // bf16 [group][rows][kFewGroup]
};

// Sums of `rows` rows and of whole units of columns, continued by a block of the contraction.
struct FewSums {
  const void* x;   // A, as FewKernel::left or panel_left says
  int rows;        // 1 to kFewRows
  float* c;        // [rows][stride]; the columns of a unit lie in the kernel's order (FewKernel::column_of)
  int64_t stride;  // floats
  float* chains = nullptr;  // bf16, `across`: the even chains of a row, then its odd ones: [rows][2][stride]
};

// B with contiguous columns: w[k] is row k of the block, from the first column on.
struct FewAcross {
  const void* const* w;
  const void* const* ahead;  // rows of a later block, in the form of w; they are prefetched
  bool near;                 // into the first cache, else into the second one
  int steps;                 // rows of the block: for f32 1 to kFewSteps, for bf16 kFewSteps or kFewGroup
  int begin;        // bf16: which step of a group the first is; FewSums::x is that of the whole group
  int64_t columns;  // a multiple of the unit
};

// B with a contiguous contraction: w[j] is column j of one unit, from the first step on. A chunk is one line
// of each column.
struct FewAlong {
  const void* const* w;
  const void* const* ahead;  // columns that are read later, in the form of w; their beginning is prefetched
  int64_t chunks;
  int steps;  // of a chunk: 16 for f32 (1 to 16 where there is one chunk), kFewGroup for bf16
};

// B in panels: each has one unit of columns, step after step, so that it is read in one piece.
struct FewPanels {
  const void* const* w;  // the first step of each panel; their sums are neighbours in FewSums::c
  int panels;            // 1 to kFewPanels: read side by side
  int64_t steps;         // of the contraction; for bf16 a multiple of kFewGroup
};

struct FewKernel {
  int unit;  // columns that are made together
  // Products of more rows are faster with B packed; at most kFewRows. Of a B in panels: panel_rows.
  int rows, panel_rows;
  FewLeft left, panel_left;  // for `across` and `along`; for `panels`
  // The column at each position of a unit in FewSums::c, for `across` and for `panels`; nullptr: they lie in
  // order.
  const uint8_t *column_of, *panel_column_of;
  void (*across)(const FewAcross&, const FewSums&);
  void (*along)(const FewAlong&, const FewSums&);
  void (*panels)(const FewPanels&, const FewSums&);
};

const FewKernel& few_f32_generic();
const FewKernel& few_bf16_generic();
const FewKernel& few_f32_avx2();
const FewKernel& few_bf16_avx2();
const FewKernel& few_f32_avx512();
const FewKernel& few_bf16_avx512();
const FewKernel& few_bf16_avx512bf16();
const FewKernel& few_bf16_amx();

}  // namespace ostro::kernels
