// SliceSearch: which links are to be measured next, so that each machine finds its slice, and what the rates
// say (trainer.mesh.slices: auto). A value, without links and clocks.
//
// Of kMostPartners + 1 machines at most all links are measured, but those between two of which it is known.
// Of more machines kMostPartners are measured with each other, if nothing is known of any. Then the others
// come in waves, at most as many as have a slice by then: each machine of a wave is measured with one machine
// of one slice after another, until the link is as fast as those inside slices; machines that are in none are
// measured with each other. So slices grow while they are searched: M machines of S slices take about
// kMostPartners + S log2(M / kMostPartners) rounds in which each machine is in one pair.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "ostro/fleet/slices/found_slices.h"

namespace ostro::fleet {

inline constexpr size_t kMostPartners = 16;  // of a machine that is measured

// The workers of a machine: one, several, or several with one that is new.
enum class Inside { kOne, kSeveral, kNew };

class SliceSearch {
 public:
  using Pairs = std::vector<std::pair<size_t, size_t>>;

  // `known`: by machine, the name of its slice; "": it has none yet. `inside`: by machine. `limit`,
  // `fastest`: those of an earlier search; 0: none. `prefix` begins the names of new slices; no earlier
  // search has had it.
  SliceSearch(std::vector<std::string> known, std::vector<Inside> inside, double limit, double fastest,
              std::string prefix);

  // Links to be measured now, in an order in which all machines can go through their own; (a, a): between two
  // workers of a machine. None: enough is known.
  Pairs next();
  // Their rates, in bytes a second. A rate that is kApart times the fastest so far says that links were taken
  // for those inside slices which are none: then names that no launcher has given are forgotten, and all is
  // searched again. That may be more often, but the fastest rate grows each time.
  void measured(const std::vector<LinkRate>& rates);

  // The slice of each machine. Those that were not measured are in the largest one.
  FoundSlices found() const;
  double fastest() const { return fastest_; }
  bool anew() const { return all_; }  // all names are new, but those that a launcher has given
  const std::vector<LinkRate>& rates() const { return rates_; }

 private:
  bool is_small() const { return names_.size() <= kMostPartners + 1; }
  void forget();
  void next_wave();
  Pairs first_pairs();
  Pairs one_round();

  std::vector<std::string> names_;  // by machine
  std::vector<Inside> inside_;
  double limit_, fastest_;
  const std::string prefix_;
  bool all_ = false;    // limit_ follows, or has followed, from rates_
  bool begins_ = true;  // first_pairs() come next
  bool last_ = false;   // the machines of the wave are measured with each other
  std::vector<size_t> wave_;
  size_t turn_ = 0;
  std::map<size_t, std::set<std::string>> tried_;  // slices, by machine of the wave
  std::vector<LinkRate> rates_;
};

}  // namespace ostro::fleet
