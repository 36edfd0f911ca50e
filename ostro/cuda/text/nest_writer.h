// NestWriter: writes one nest as a kernel of device text. Internal to cuda/text; write_kernel.h is the
// interface. There are no errors. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "ostro/compile/nest/nest.h"

namespace ostro::cuda {

// The shapes of generated kernels. Bits do not depend on them.
inline constexpr int kFlatThreads = 256;      // the most of a block of a flat nest
inline constexpr int kStagedOutputs = 8;      // sums of a block of a staged nest
inline constexpr int kStagedPiece = 256;      // elements of each sum that lie in shared memory at a time
inline constexpr int kStagedMakers = 256;     // threads that compute elements; a warp before them adds
inline constexpr int64_t kFewestStaged = 64;  // elements of a sum from which on its nest is staged

// Elements that a thread of a flat nest computes: more than one where an element alone would read too little
// to keep memory busy.
int elements_of_thread(const compile::Nest& nest);
// True for a nest of serial sums that are long enough for elements to be computed side by side.
bool is_staged(const compile::Nest& nest, bool fast);

class NestWriter {
 public:
  NestWriter(const compile::Nest& nest, std::string name, bool fast)
      : nest_(nest), name_(std::move(name)), fast_(fast) {}
  std::string write();

 private:
  const compile::NestOp& op(int32_t i) const { return nest_.ops[static_cast<size_t>(i)]; }
  // Words for an operand, an op and a store; code that must come before is appended to `text`.
  std::string literal(int32_t i);
  std::string operand(const compile::NestOperand& x, std::string& text);
  std::string load(size_t access) const;
  void compute(int32_t i, std::string& text);
  std::string store(int32_t i, const std::string& index) const;
  std::string stored_index(int32_t i) const;
  // The indices of the outer loops from the number `row`, and with them the pointer of each access, called
  // `letter` and its number.
  std::string pointers(char letter) const;
  // Moves the pointers s along the loops that are summed over, whose indices are r0, r1, ...: pointers q.
  std::string summed_pointers() const;

  // write_kernel.cc
  std::string flat();
  std::string flat_side_by_side();
  std::string flat_place(bool bounded) const;
  // write_rows.cc
  std::string rows();
  std::string pass_text(size_t number);
  std::vector<size_t> read_in_pass(const compile::NestPass& pass, size_t number) const;
  void reduce(int32_t i, std::string& before, std::string& text, std::string& after);
  // write_serial.cc
  std::string serial();
  std::string staged();

  const compile::Nest& nest_;
  const std::string name_;
  const bool fast_;
  std::map<int32_t, std::string> names_, literals_;  // by op, by literal
  std::map<size_t, std::string> loads_;              // by access
  std::string literal_text_;
  int number_ = 0;
};

// "index * stride", without a product where it is not needed.
std::string times(const std::string& index, int64_t stride);

}  // namespace ostro::cuda
