// immintrin.h: AVX-512 and AMX for machines without them. The instructions up to AVX2 are the compiler's,
// those above are plain functions that compute what the manual says (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2). Kernels compiled with this folder first on the include path run on
// any x86-64-v3 machine, slowly, and give the bits that the processors give but for the payloads of NaNs.
//
// Only what the kernels use is here: anything else is an undeclared name, and another way to use it stops the
// program (require). So does what a processor would trap on: vectors that are not aligned where they have to
// be, tiles that the configuration does not fit.
//
// It does not show what a compiler makes of the same sources with AVX-512 (its vectorised loops, the order of
// memory accesses around tile instructions), a missing fence after streaming stores, a processor that decides
// otherwise at 2^-126 (the start-up check of bf16 products does), or how fast anything is.
#pragma once

// The headers that the compiler's own <immintrin.h> includes up to AVX2; both names, as gcc and clang guard
// theirs.
#define _IMMINTRIN_H_INCLUDED
#define __IMMINTRIN_H
#include <x86gprintrin.h>
//
#include <mmintrin.h>
#include <xmmintrin.h>
//
#include <emmintrin.h>
#include <pmmintrin.h>
#include <smmintrin.h>
#include <tmmintrin.h>
//
#include <avxintrin.h>
//
#include <avx2intrin.h>
#include <f16cintrin.h>
#include <fmaintrin.h>

#include "emulated/tiles.h"
