// Engine: compiles a Program to an Executable that runs it. Only the interface is here; interp/, cpu/ and
// cuda/ implement it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "ostro/base/error.h"
#include "ostro/ir/program/program.h"
#include "ostro/runtime/buffer.h"
#include "ostro/runtime/collectives.h"
#include "ostro/runtime/inspector.h"
#include "ostro/runtime/run_watch.h"

namespace ostro::runtime {

struct RunContext {
  Collectives* collectives = nullptr;  // needed by programs with collective ops only; not owned
  // Told of the run's progress; not owned. Only for an engine that says so (EngineInfo::tells_watch): others
  // read inputs when the run begins, and tell nothing.
  RunWatch* watch = nullptr;
};

struct CompileOptions {
  // Indices of donated inputs: the executable may write results into their buffers. It does so only when the
  // caller moved in the only handle of the block (Buffer::unique): never while a view of it, or what it is a
  // view of, is held by another handle. Never changes a bit.
  std::vector<int64_t> donate;
  // Rematerialisation: which values of a loop's forward pass the backward pass computes again instead of
  // reading them from memory. "keep": none. "none": only those that are cheaper to compute than to store
  // (elementwise ops, sums of rows). "all": all but the loop's carries. "save:a,b": all but the carries and
  // the values labelled a or b. Never changes a bit.
  std::string remat = "none";
};

// The memory and work that a compiled program needs; --dry_run prints it.
struct ExecutableInfo {
  int64_t arena_bytes = 0;  // temporaries, planned by lifetime, and operands that are kept packed
  int64_t input_bytes = 0;
  int64_t output_bytes = 0;
  // On a device alone, as its memory takes them (Memory::taken). kept_bytes: constants, index tables and
  // working memory of ops, which stay from the first run on. fresh_bytes: results that overwrite no input.
  int64_t kept_bytes = 0;
  int64_t fresh_bytes = 0;
  double flops = 0;          // of one run
  int64_t kernels = 0;       // generated kernels; 0 for an interpreter
  int64_t fallback_ops = 0;  // ops run by built-in loops instead of generated or tuned kernels
};

// One compiled program. run() may be called many times, from one thread at a time.
class Executable {
 public:
  virtual ~Executable() = default;
  // Takes inputs in the order of the program's parameters, with their exact shapes, and returns its results
  // in order, in the engine's memory. Inputs that are in another memory are copied to the engine's at every
  // run, so move an input that is used often there once (Buffer::to). Errors: inputs of other shapes; those
  // of the memory, of collectives and of the device.
  virtual Result<std::vector<Buffer>> run(std::vector<Buffer> inputs, const RunContext& context = {}) = 0;
  virtual ExecutableInfo info() const = 0;
  // Frees the memory that is kept from one run to the next; the next run takes it again.
  virtual void release() {}
};

struct EngineInfo {
  std::string name;
  // False for an engine that is written to be read, not to be fast (the interpreter): then its speed says
  // nothing about the machine.
  bool is_fast = true;
  // True for an engine whose runs tell RunContext::watch what they read and make.
  bool tells_watch = false;
};

// Thread-safe.
class Engine {
 public:
  virtual ~Engine() = default;
  virtual const EngineInfo& info() const = 0;
  // p: a matrix of this dtype that lies in panels, [columns / p, contraction, p], is read fastest by a
  // product of few rows, and no slower by others. 0: no such order is better than row-major.
  virtual int64_t panel_columns(ir::DType) const { return 0; }
  // The memory in which its results are.
  virtual Memory& memory() { return host_memory(); }
  // Shows the engine's plans; null when the engine has none to show.
  virtual Inspector* inspector() { return nullptr; }
  virtual Result<std::unique_ptr<Executable>> compile(const ir::Program& program,
                                                      const CompileOptions& options = {}) = 0;
  // Returns what info() of the compiled program would return, without fallback_ops. An engine may compute it
  // without compiling.
  virtual Result<ExecutableInfo> estimate(const ir::Program& program, const CompileOptions& options = {}) {
    ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable, compile(program, options));
    return executable->info();
  }
};

}  // namespace ostro::runtime
