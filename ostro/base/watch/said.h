// keep_said, add_said, take_said: what this process writes to standard error for people, kept until it is
// taken to another place. All functions are thread-safe, and none waits or logs.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ostro {

inline constexpr size_t kMostSaid = size_t{64} << 10;  // bytes that are kept

// From now on the process keeps what it says.
void keep_said();
// These bytes were written to standard error. Of more than kMostSaid bytes the older ones are left out. Costs
// one comparison while nothing is kept.
void add_said(std::string_view bytes);
// The oldest bytes, at most `most` and a line that says how many were left out before them; "": there are
// none.
std::string take_said(size_t most);

}  // namespace ostro
