// DotInt8Kernel: the packers and the tile kernel of one instruction set for products of int8 numbers with
// scales (docs/spec/numerics.md, N20). int8_dot.cc does everything else. Internal to ostro/kernels.
//
// A packed panel holds one block after the other. A block consists of its numbers, then one f32 scale for
// each row of the panel. In panels of A one i32 for each row follows: the sum of the row's numbers times a
// constant of the kernel, which corrects products of instructions that take B as unsigned numbers; 0 where
// there is nothing to correct. Functions use only their arguments, so threads may call them at the same time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ostro/products/tile/gemm_kernel.h"

namespace ostro::kernels {

// One block of `rows` neighbouring rows of an operand: `count` numbers of each.
struct Int8PanelSource {
  const int8_t* q;
  int64_t stride;
  int rows;       // 1 to the panel's full width; the others count as zeros
  int64_t count;  // the numbers from `count` to `steps` count as zeros
  int64_t steps;  // a multiple of k_unit
};

// Neighbouring blocks of a panel of A and of one of B.
struct Int8Tile {
  const std::byte *a, *b;
  const int32_t* steps;  // of each block
  int64_t blocks;
  int rows;    // rows of the result that are wanted, 1 to mr; the other rows of c may be written too
  float* c;    // [mr][nr], aligned for vectors
  bool first;  // true: sums begin with +0; false: with the values in c
};

// The table of one kernel.
struct DotInt8Kernel {
  const char* name;
  int mr, nr;            // rows of a panel of A and of B
  int k_unit;            // blocks are padded to a multiple of this
  int a_bytes, b_bytes;  // of one packed number
  // Packs the numbers of one block; `sums` gets the i32 of each row of A.
  void (*pack_a)(const Int8PanelSource&, void* out, int32_t* sums);
  void (*pack_b)(const Int8PanelSource&, void* out);
  void (*multiply)(const Int8Tile&);
  const GemmKernel& (*store)();  // the kernel of float products, as wide, whose stores are used
  // Around a thread's calls of multiply; nullptr when there is nothing to set up.
  void (*enter)() = nullptr;
  void (*leave)() = nullptr;

  int64_t a_block_bytes(int64_t steps) const { return mr * (steps * a_bytes + 8); }
  int64_t b_block_bytes(int64_t steps) const { return nr * (steps * b_bytes + 4); }
};

const DotInt8Kernel& dot8_generic();
const DotInt8Kernel& dot8_avx2_bytes();  // VPMADDUBSW, VPMADDWD
const DotInt8Kernel& dot8_avx2_words();  // VPMADDWD
const DotInt8Kernel& dot8_vnni256();     // AVX-VNNI
const DotInt8Kernel& dot8_vnni512();     // AVX-512 with VNNI
const DotInt8Kernel& dot8_amx();         // AMX-INT8

}  // namespace ostro::kernels
