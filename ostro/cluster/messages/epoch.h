// Hello, Epoch: what a worker sends when it joins a job, and its place among the workers of an epoch.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace ostro::cluster {

// The description that a worker sends of itself when it joins.
struct Hello {
  std::string job;
  // Values that must be equal in all workers (a program's hash, a world size): each a name and a value.
  std::vector<std::pair<std::string, std::string>> equal;
  std::string host;  // for messages
  int64_t pid = 0;   // for messages
  // The epoch that it is in, with its rank and size, if it returns after its connection was lost; 0: it is
  // new.
  int64_t epoch = 0, rank = -1, size = 0;
  std::string slice = {};  // the name of its slice, a group of workers with fast links; "": it has none
  // Where slices are found by measuring: a text that workers have in common whose links leave no machine. A
  // worker without a slice gets that of an earlier one on its machine.
  std::string machine = {};
  // The rates that its last epoch had (SliceRates), for a coordinator that does not know them.
  int64_t slice_limit = 0, fastest_link = 0;
};

// Where slices are found by measuring: what workers that come later are compared with, in bytes a second; 0:
// nothing is known (fleet/slices/slice_search.h).
struct SliceRates {
  int64_t limit = 0, fastest = 0;
};

// What the workers of an epoch have found by measuring.
struct FoundNames {
  std::vector<std::string> names;  // of their slices, by rank
  bool ends = false;               // the epoch is to end: its ranks are to be in another order
  bool anew = false;               // names that were found before do not count any more
  SliceRates rates = {};
  std::string text;  // for people; "": nothing was measured
};

// A set of workers that work together, as one of them sees it. It is never changed: when a worker is lost,
// the epoch ends, and another with a higher number begins.
struct Epoch {
  int64_t number = 0;  // 0: none yet
  // Of this worker: by order of joining, and those of one slice side by side; the oldest has rank 0. -1: it
  // leaves.
  int64_t rank = 0;
  int64_t size = 0;
  bool planned = false;                    // another epoch continues until this one takes over
  std::vector<std::string> hosts, slices;  // of each worker
  // Of each worker: it has no slice yet, but is to be measured; `slices` has what is likely.
  std::vector<bool> guessed;
  SliceRates rates;
};

}  // namespace ostro::cluster
