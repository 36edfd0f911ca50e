#include "ostro/nn/adapter_of_row.h"

#include <utility>

#include "ostro/trace/frame.h"

namespace ostro::nn {
namespace {

thread_local const AdapterOfRow* innermost = nullptr;

}  // namespace

AdapterOfRow::AdapterOfRow(Array adapter) : adapter_(std::move(adapter)), outer_(innermost) {
  innermost = this;
}

AdapterOfRow::~AdapterOfRow() { innermost = outer_; }

const Array& AdapterOfRow::current(Loc loc) {
  if (innermost == nullptr)
    trace_fail("a model with several adapters: nothing says which one each row has (AdapterOfRow)", loc);
  return innermost->adapter_;
}

}  // namespace ostro::nn
