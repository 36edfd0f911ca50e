// find_slices: which machines are in one slice, by the rates of the links between them
// (trainer.mesh.slices: auto). Pure functions of values.
//
// Rates are sorted. Where one is at least kApart times the next slower one, it may be the least rate inside
// slices. Of such places the slowest counts that leaves machines which are not connected any more: links
// inside slices are as fast as that or faster, those between slices are slower. Where there is none, all
// machines are in one slice. Links inside machines count only where those between machines do not tell.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ostro::fleet {

inline constexpr double kApart = 4;  // links inside slices are so many times faster
// Workers of one machine count as having a link of so many bytes a second at most: machines whose network has
// a quarter of that are no slices of their own, however fast the links inside them are.
inline constexpr double kMostInMachine = 2e8;
inline constexpr std::string_view kMeasuredPrefix = "measured-";  // of names that no launcher has given

// Bytes a second between two machines, or (a == b) between two workers of one machine.
struct LinkRate {
  size_t a = 0, b = 0;
  double rate = 0;
};

struct FoundSlices {
  std::vector<std::string> names;  // of the slice of each machine
  // A faster link is inside a slice: a quarter of the slowest link that holds a slice together. 0: not known,
  // because there was one machine.
  double limit = 0;
};

// The limit that follows from rates: of all pairs of some machines, and inside machines.
double slice_limit(size_t machines, std::vector<LinkRate> rates);

// `known`: by machine, the name of its slice; "": it has none yet. A machine without a name is in the slice
// to which it has the fastest link, if that is above the limit.
std::vector<std::string> join_slices(std::vector<std::string> known, std::vector<LinkRate> rates,
                                     double limit);

// The same, and others that have such links with each other make a slice with a new name: `prefix` and a
// number from 1 on. `limit`: that of an earlier call, which later machines are compared with; 0: it follows
// from `rates`.
FoundSlices find_slices(std::vector<std::string> known, const std::vector<LinkRate>& rates, double limit,
                        const std::string& prefix);

}  // namespace ostro::fleet
