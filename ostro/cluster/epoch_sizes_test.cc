// Which members an epoch takes so that its slices have one size.
#include "ostro/cluster/epoch_sizes.h"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <utility>

namespace ostro::cluster {
namespace {

// Sizes of a mesh whose outermost axis is replica; `required`: also where it costs members.
Sizes sizes_of(int64_t replicas, int64_t multiple, bool required = true) {
  return {1, 100, multiple, replicas, required};
}

// `each`: the members of each slice, who are a, b, ... in this order. Says how many of each are taken, as
// "a3 b3"; "": no such epoch.
std::string taken(const std::vector<int64_t>& each, const Sizes& sizes) {
  std::vector<Candidate> all;
  for (size_t slice = 0; slice < each.size(); ++slice)
    for (int64_t i = 0; i < each[slice]; ++i) all.push_back({static_cast<int64_t>(slice), -1});
  std::vector<int64_t> counts(each.size());
  for (const size_t place : equal_slices(all, sizes)) ++counts[static_cast<size_t>(all[place].slice)];
  std::string text;
  for (size_t slice = 0; slice < counts.size(); ++slice)
    if (counts[slice] > 0)
      text += (text.empty() ? "" : " ") + std::string(1, static_cast<char>('a' + slice)) +
              std::to_string(counts[slice]);
  return text;
}

TEST_CASE("equal slices: the smallest decides, or is left out where more are kept and the mesh allows it") {
  CHECK(taken({4, 3}, sizes_of(2, 2)) == "a3 b3");
  CHECK(taken({255, 256, 256, 256}, {1, 1024, 4, 4, true}) == "a255 b255 c255 d255");
  CHECK(taken({6, 6, 3, 5}, sizes_of(4, 4)) == "a3 b3 c3 d3");
  CHECK(taken({1, 6, 6, 6}, sizes_of(4, 4)) == "b6 c6");
  // Three slices cannot hold as many of four coordinates each; of three they can.
  CHECK(taken({6, 6, 6}, sizes_of(4, 4)) == "a6 b6");
  CHECK(taken({6, 6, 6}, sizes_of(3, 3)) == "a6 b6 c6");
  CHECK(taken({1, 9}, sizes_of(2, 2)) == "b8");
  // Other axes of the mesh lie inside slices.
  CHECK(taken({7, 8}, sizes_of(2, 4)) == "a6 b6");
  CHECK(taken({8, 8, 7}, sizes_of(-1, 4)) == "a8 b8");
  CHECK(taken({8, 7, 7}, sizes_of(-1, 4)) == "a4 b4 c4");
  CHECK(taken({8, 8}, {1, 10, 2, 2, true}) == "a5 b5");
  CHECK(taken({5}, sizes_of(2, 2)) == "a4");
}

TEST_CASE("equal slices: not where the mesh has none, or where they would cost too many") {
  CHECK(taken({4, 3}, sizes_of(0, 1)) == "");
  CHECK(taken({}, sizes_of(2, 2)) == "");
  CHECK(taken({1, 1}, sizes_of(4, 8)) == "");
  // Four of ten are fewer than half; six of ten are not.
  CHECK(taken({2, 2, 2, 2, 2}, sizes_of(2, 2)) == "");
  CHECK(taken({3, 3, 2, 2}, sizes_of(2, 2)) == "a3 b3");
  // Where unequal slices work in two levels, too, they cost no member.
  CHECK(taken({4, 3}, sizes_of(2, 2, false)) == "a3 b3");
  CHECK(taken({5, 3}, sizes_of(2, 2, false)) == "");
}

TEST_CASE("equal slices: of three replicas of four parts any two may be lost, and no part goes with others") {
  const Sizes sizes = sizes_of(3, 3);
  int blind_lost = 0;
  for (int64_t first = 0; first < 12; ++first)
    for (int64_t second = first + 1; second < 12; ++second) {
      std::vector<Candidate> all, blind;
      for (int64_t rank = 0; rank < 12; ++rank) {
        if (rank == first || rank == second) continue;
        all.push_back({rank / 4, cells_of(sizes, rank, 12)});
        blind.push_back({rank / 4, -1});
      }
      const auto held = [&](const std::vector<size_t>& places) {
        std::set<int64_t> cells;
        std::vector<int64_t> counts(3);
        for (const size_t place : places)
          cells.insert(all[place].cells), ++counts[static_cast<size_t>(all[place].slice)];
        CHECK(counts[0] == counts[1]);
        CHECK(counts[1] == counts[2]);
        return cells.size();
      };
      const std::vector<size_t> places = equal_slices(all, sizes);
      CHECK(places.front() == 0);
      CHECK(held(places) == 4);
      blind_lost += held(equal_slices(blind, sizes)) < 4 ? 1 : 0;
    }
  CHECK(blind_lost > 0);  // the control: who does not know of cells leaves out some
}

TEST_CASE("equal slices: who holds nothing is left out first, and cells follow from ranks") {
  // A spare of slice a, whose number is lower than those of others.
  const std::vector<Candidate> all = {{0, 0}, {0, -1}, {0, 1}, {1, 0}, {1, 1}};
  CHECK(equal_slices(all, sizes_of(2, 2)) == std::vector<size_t>{0, 2, 3, 4});
  CHECK(cells_of(sizes_of(2, 2), 5, 8) == 1);
  CHECK(cells_of(sizes_of(-1, 4), 6, 8) == 2);
  CHECK(cells_of(sizes_of(0, 1), 5, 8) == -1);
  CHECK(cells_of(sizes_of(4, 4), 1, 3) == -1);
  CHECK(cells_of(sizes_of(2, 2), 8, 8) == -1);
  CHECK(cells_of(sizes_of(2, 2), -1, 8) == -1);
}

}  // namespace
}  // namespace ostro::cluster
