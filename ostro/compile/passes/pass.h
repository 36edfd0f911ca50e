// PassInfo, run_passes: the passes, which rewrite a Program. None changes a bit of its results (tests check
// interp(pass(P)) == interp(P)). They run in the order of the table in passes.cc; each has its own file.
#pragma once

#include <span>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/engine.h"

namespace ostro::compile {

struct PassInfo {
  const char* name;
  const char* summary;
  void (*run)(ir::Program& program, const runtime::CompileOptions& options);
};

std::span<const PassInfo> pass_list();

// Runs all passes, and the verifier after each of them. An error names the pass.
Result<ir::Program> run_passes(ir::Program program, const runtime::CompileOptions& options);

// The passes.
void inline_custom(ir::Program& program, const runtime::CompileOptions& options);
void remat(ir::Program& program, const runtime::CompileOptions& options);
void simplify(ir::Program& program, const runtime::CompileOptions& options);
void merge_common(ir::Program& program, const runtime::CompileOptions& options);
void fuse_dot_cast(ir::Program& program, const runtime::CompileOptions& options);
void gather_first(ir::Program& program, const runtime::CompileOptions& options);
void gather_ahead(ir::Program& program, const runtime::CompileOptions& options);
void remove_dead(ir::Program& program, const runtime::CompileOptions& options);

}  // namespace ostro::compile
