// An <immintrin.h> for machines without AVX-512 and AMX: the instructions up to AVX2 are the compiler's,
// those above are plain functions with what the manual says they compute (Intel 64 and IA-32 Architectures
// Software Developer's Manual, volume 2). Kernels compiled with this folder first on the include path run
// anywhere and give the bits that the processors give, slowly.
//
// Only what the kernels use is here: anything else is an undeclared name. What a processor would trap on
// stops the program (require): addresses that are not aligned, tiles without a configuration.
#pragma once

// What the compiler's own <immintrin.h> includes up to AVX2; both names, as gcc and clang guard theirs.
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
