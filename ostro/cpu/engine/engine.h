// The compiled Engine: Program -> passes -> Plan -> generated C, GEMM, attention and built-in routines. Its
// results have the same bits as the interpreter's (docs/spec/numerics.md), on every instruction set and with
// any number of threads.
//
// The Engine is thread-safe and may be destroyed before its Executables; an Executable owns its arena and
// runs on one thread at a time. Executables of one Engine share its thread pool and take turns on it.
#pragma once

#include <memory>
#include <string>

#include "ostro/runtime/engine.h"

namespace ostro::cpu {

struct CpuOptions {
  std::string isa;  // as isa.h names them; empty: OSTRO_ISA, else the best one
  int threads = 0;  // 0: OSTRO_THREADS, else the number of cores
  std::string
      cache_dir;  // of generated code; empty: OSTRO_CACHE_DIR, else $XDG_CACHE_HOME/ostro or ~/.cache/ostro
  // C compiler; empty: OSTRO_CC, else cc, gcc or clang on PATH, else that of the Python package ziglang when
  // it is installed beside the package ostro, which this program is part of.
  std::string cc;
  std::string cc_opt;              // optimisation flag; empty: OSTRO_CC_OPT, else -O3
  bool generated_code = true;      // false: built-in loops alone, as with the generic ISA
  bool compiler_required = false;  // a compiler that fails is an error, not a warning: tests of its code
  bool fuse = true;                // false: one generated kernel per op
  std::string dialect = "gnu";     // of generated code (compile/text/dialect.h); "plain" for tests
  int64_t head_tile = 0;           // tokens of a tile of head and cross-entropy; 0: chosen, -1: all of a leaf
};

// Error: an ISA that is unknown or not available, or a bad thread count. A C compiler that is missing or
// fails, now or later, is not an error: this is logged once, and built-in loops run instead (but see
// compiler_required).
Result<std::unique_ptr<runtime::Engine>> make_cpu_engine(const CpuOptions& options = {});

}  // namespace ostro::cpu
