// Bins: the numbers of one curve by step, in bounded memory: when there are many, those of neighbouring steps
// share a bin. No errors. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace ostro::page {

// The statistics of the values of neighbouring steps.
struct Bin {
  int64_t first = 0, last = 0;  // steps of its first and last value
  int64_t count = 0;
  double sum = 0, least = 0, most = 0;

  double mean() const { return sum / static_cast<double>(count); }
  double middle() const { return 0.5 * (static_cast<double>(first) + static_cast<double>(last)); }
};

// Up to `limit` values each has a bin of its own. When there are more, the stretch of steps that shares a bin
// doubles until at most `limit` bins are left; so the bins depend on the values alone, and there are never
// fewer than about half of `limit`.
class Bins {
 public:
  explicit Bins(size_t limit) : limit_(limit) {}

  // Adds a value; steps may come in any order. A value that is not finite is only counted.
  void add(int64_t step, double value);

  const std::vector<Bin>& all() const { return bins_; }  // by step; none is empty
  bool empty() const { return bins_.empty(); }
  int64_t width() const { return width_; }  // steps that share a bin
  int64_t values() const { return values_; }
  int64_t not_finite() const { return not_finite_; }
  double sum() const;

  // The value of the first and of the last step, and the least one. They have no meaning before the first
  // add() of a finite value.
  struct Value {
    int64_t step = 0;
    double value = 0;
  };
  Value first() const { return first_; }
  Value last() const { return last_; }
  Value least() const { return least_; }

 private:
  int64_t index_of(int64_t step) const { return (step > 0 ? step - 1 : 0) / width_; }
  void halve();

  size_t limit_;
  int64_t width_ = 1;
  int64_t values_ = 0, not_finite_ = 0;
  Value first_, last_, least_;
  std::vector<Bin> bins_;
};

// The numbers of one name, to be drawn.
struct Curve {
  std::string name;        // as in metrics.jsonl
  const Bins* values;      // must outlive the drawing
  bool dots = false;       // for few values: a dot each
  std::string label = {};  // in a legend; empty: the name
  size_t run = 0;          // of a chart of several runs: which of them, from 0
};

}  // namespace ostro::page
