// AdapterOfRow: which adapter each row has, where a program has those of several side by side
// (kAdaptersAxis in linear.h). While one lives, every Linear with such factors reads it.
#pragma once

#include "ostro/trace/ops.h"

namespace ostro::nn {

// Used while tracing, in one thread; they nest like the scopes in which they stand.
class AdapterOfRow {
 public:
  // i32; its axes are some of the axes of rows (of all that a Linear reads but its `in`), in their order.
  // Negative: the row has none, and is what it is without adapters. An empty array: no row has one.
  explicit AdapterOfRow(Array adapter);
  ~AdapterOfRow();
  AdapterOfRow(const AdapterOfRow&) = delete;
  AdapterOfRow& operator=(const AdapterOfRow&) = delete;

  // Throws TraceError where none lives.
  static const Array& current(Loc loc = Loc::current());

 private:
  Array adapter_;
  const AdapterOfRow* outer_;
};

}  // namespace ostro::nn
