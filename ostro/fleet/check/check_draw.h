// CheckDraw: what is computed twice in a step (trainer.cross_check), and by which workers. All workers draw
// the same, because a draw depends on the seed, the step, the place in the step and the machines of the
// workers alone. Values and pure functions; no errors.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace ostro::fleet {

struct CheckDraw {
  double rate = 0;   // the share of leaves, and of arrays of the state, that are checked; 0: none
  int64_t seed = 0;  // trainer.seed
  // A number of the machine of each worker that shares the leaves, by place; empty: each has one of its own.
  std::vector<int64_t> machines = {};

  bool on() const { return rate > 0; }
  // Whether this leaf of the step (numbered from 1, as in the chain) is computed twice.
  bool leaf(int64_t step, int64_t leaf) const;
  // Whether the copies of array `k` of the state are compared after the step.
  bool array(int64_t step, int64_t k) const;
};

// A number of the host of each of these workers; `hosts`: of all, by rank; empty: they are not known.
std::vector<int64_t> machines_of(const std::vector<std::string>& hosts, const std::vector<int64_t>& workers);

// The places, among `workers` that share the leaves, that compute a drawn leaf. second: the one that computes
// it again; another than its owner, where there is another, on another machine, where there is one. deciders:
// those that compute it once more when the two differ: a third one, on a third machine where there is one;
// where there are only two workers, both; where there is one, that one.
struct Checkers {
  int64_t second = 0;
  std::vector<int64_t> deciders;
};
Checkers checkers_of(const CheckDraw& draw, int64_t step, int64_t leaf, int64_t owner, int64_t workers);

}  // namespace ostro::fleet
