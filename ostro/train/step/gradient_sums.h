// GradientAdder, SubtreeSums: add up the gradients of leaves in the order of the tree over leaves
// (numerics.md, N8). Errors: those of the engine. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ostro/runtime/engine.h"
#include "ostro/train/programs/leaf_plan.h"

namespace ostro::train {

// Adds two lists of f32 arrays, and rounds one. There is a program for each list of shapes, compiled when it
// is first used.
class GradientAdder {
 public:
  using Buffers = std::vector<runtime::Buffer>;

  // `engine` must outlive it. `is_phase`: false: its sums are made while another program runs, and are no
  // phase of the step in a profile.
  explicit GradientAdder(runtime::Engine& engine, bool is_phase = true)
      : engine_(engine), is_phase_(is_phase) {}
  // Returns a[i] + b[i] for each i.
  Result<Buffers> add(Buffers a, Buffers b);
  // Returns the f32 values of a[i] rounded to bf16 (numerics.md, N1).
  Result<Buffers> round(Buffers a);
  // Compiles the program of add() for these shapes before it is used, and with `rounds` that of round().
  Status compile(const std::vector<ir::Shape>& shapes, bool rounds);

 private:
  using Programs = std::map<std::string, std::unique_ptr<runtime::Executable>>;  // by shapes
  Result<runtime::Executable*> program(Programs& programs, const std::vector<ir::Shape>& shapes,
                                       ir::Program (*make)(const std::vector<ir::Shape>&));

  runtime::Engine& engine_;
  const bool is_phase_;
  Programs adds_, rounds_;
};

// Joins sums over subtrees of leaves that come in ascending order. Two sums are added as soon as their
// subtrees are the children of one node of the tree. So sums() has one sum for each of the largest subtrees
// that are complete.
class SubtreeSums {
 public:
  using Buffers = GradientAdder::Buffers;

  // For the tree over `leaves` leaves. `adder` must outlive it. `groups`: numerics.slice_partials: the sums
  // of the nodes of is_rounded() are rounded.
  SubtreeSums(int64_t leaves, int64_t groups, GradientAdder& adder)
      : leaves_(leaves), groups_(groups), adder_(adder) {}
  // Takes the sum over the leaves of `node`, which come after all leaves that were pushed before. A sum that
  // was rounded already stays as it is.
  Status push(Subtree node, Buffers sum);
  const std::vector<std::pair<Subtree, Buffers>>& sums() const { return sums_; }
  std::vector<std::pair<Subtree, Buffers>> take() { return std::exchange(sums_, {}); }
  void clear() { sums_.clear(); }
  // Returns the sum over all leaves, each of which must have been pushed. Call it once.
  Buffers root();

 private:
  int64_t leaves_, groups_;
  GradientAdder& adder_;
  std::vector<std::pair<Subtree, Buffers>> sums_;
};

}  // namespace ostro::train
