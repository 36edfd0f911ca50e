// Frame: one program (or region) under construction on this thread. Frames nest. When an inner frame uses a
// value of an outer frame, the value is captured: it becomes a parameter of the inner frame.
//
// An error throws TraceError.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <source_location>
#include <string>
#include <vector>

#include "ostro/ir/program/builder.h"
#include "ostro/trace/array.h"

namespace ostro {

// Owns its block. Belongs to the thread that made it; frames of a thread must be destroyed in reverse order.
class Frame {
 public:
  Frame();   // becomes the innermost frame of this thread
  ~Frame();  // restores the one before
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  static Frame* current();  // nullptr outside any trace

  // Appends a parameter to the block, tagged if `use_dtype` is given.
  Array add_param(const Shape& shape, std::optional<DType> use_dtype = std::nullopt);
  // The id that the array has in this frame. A concrete array (at most 1 MiB) becomes a constant, a tagged
  // parameter gets a `use`, a value of an outer frame is captured.
  ir::ValueId read(const Array& array);
  // As read(), but a tagged parameter gets no `use`: scan passes stacked parameters on to its body unchanged.
  ir::ValueId read_raw(const Array& array);
  // Appends an op and returns its results; TraceError when its shape rule refuses the operands.
  std::vector<Array> emit(ir::OpKind kind, const std::vector<Array>& operands, ir::Attrs attrs,
                          std::vector<ir::Block> regions, const std::source_location& location);
  // Arrays of outer frames used here, in order of first use; they are the last parameters of the block.
  const std::vector<Array>& captures() const { return captures_; }
  // TraceError when there are captures: a separate program cannot use values of an enclosing trace.
  void refuse_captures(const std::string& name) const;
  ir::Block& block() { return block_; }
  ir::Builder& builder() { return builder_; }
  uint64_t serial() const { return serial_; }
  // Sets the results of the block, which are read as by read().
  void set_results(const std::vector<Array>& results);
  // Labels the op that produced the value, for remat policies. Does nothing when another frame produced it.
  void label(const Array& array, const std::string& name);
  // The array of a value of this frame's block.
  Array wrap(ir::ValueId id) { return Array(this, id, block_.shape(id)); }

 private:
  // The reason why the array has no value here; empty when it has one.
  std::string unreadable(const Array& array) const;

  Frame* outer_;
  uint64_t serial_;
  ir::Block block_;
  ir::Builder builder_;
  std::vector<Array> captures_;
  // (frame, value) of a capture; (0, address) of a concrete array.
  using Known = std::pair<uint64_t, intptr_t>;
  std::map<Known, ir::ValueId> known_;                          // captures and constants
  std::map<std::pair<ir::ValueId, DType>, ir::ValueId> used_;   // tagged parameter -> its `use`
  std::vector<std::shared_ptr<const Array::Node>> keep_alive_;  // constants
};

// While it lives, every op emitted has one more segment in its scope mark: Scope s("attn").
class Scope {
 public:
  explicit Scope(const std::string& segment);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  Frame* frame_;
  std::string before_;
};

// Returns a call site as text: "llama.cc:91".
std::string place(const std::source_location& location);
// Throws TraceError("message (file:line)").
[[noreturn]] void trace_fail(const std::string& message, const std::source_location& location);

// Applies an op: appends it to the current frame, or, outside any trace, runs it at once on the default
// engine.
std::vector<Array> apply_n(ir::OpKind kind, const std::vector<Array>& operands, ir::Attrs attrs,
                           std::vector<ir::Block> regions, const std::source_location& location);
inline Array apply(ir::OpKind kind, const std::vector<Array>& operands, ir::Attrs attrs,
                   const std::source_location& location) {
  return apply_n(kind, operands, std::move(attrs), {}, location)[0];
}

// Traces f into a separate program with parameters of the given shapes. Concrete arrays that f uses become
// constants; a value of another trace is an error.
ir::Program trace_program(const std::string& name, const std::vector<Shape>& params,
                          const std::function<std::vector<Array>(const std::vector<Array>&)>& f);

}  // namespace ostro
