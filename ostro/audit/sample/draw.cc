#include "ostro/audit/sample/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ostro/base/sha256.h"

namespace ostro::audit {
namespace {

// The number that place `i` of the sequence has: the first 8 bytes of its hash, the most significant first.
uint64_t number_at(std::string_view head, std::string_view challenge, int64_t i) {
  const Sha256Digest digest = sha256(fmt::format("ostro challenge 1\n{}\n{}\n{}\n", head, challenge, i));
  uint64_t number = 0;
  for (size_t k = 0; k < 8; ++k) number = number << 8 | digest[k];
  return number;
}

}  // namespace

// Numbers from the last multiple of the number of steps on are passed over, and so are steps that were drawn
// before: every set of `count` steps is equally likely.
Result<std::vector<int64_t>> drawn_steps(std::string_view head, std::string_view challenge, int64_t first,
                                         int64_t last, int64_t count) {
  const int64_t steps = last - first + 1;
  if (count < 1 || count > steps)
    return invalid_argument(fmt::format("--sample {}: use 1 to {}, the number of steps in the chain", count,
                                        std::max<int64_t>(steps, 0)));
  if (challenge.empty() || std::any_of(challenge.begin(), challenge.end(), [](char c) {
        return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
      }))
    return invalid_argument(
        "--challenge: use a text in one line that the maker of the run could not know "
        "when the run hash was published");
  const auto n = static_cast<uint64_t>(steps);
  // 2^64 - 2^64 mod n; 0 stands for 2^64, from which on there are no numbers.
  const uint64_t end = 0 - (0 - n) % n;
  std::set<int64_t> drawn;
  for (int64_t i = 0; static_cast<int64_t>(drawn.size()) < count; ++i) {
    const uint64_t number = number_at(head, challenge, i);
    if (end == 0 || number < end) drawn.insert(first + static_cast<int64_t>(number % n));
  }
  return std::vector<int64_t>(drawn.begin(), drawn.end());
}

double chance_to_find(int64_t steps, int64_t false_steps, int64_t drawn) {
  double missed = 1;
  for (int64_t i = 0; i < drawn && missed > 0; ++i)
    missed *= std::max(0.0, static_cast<double>(steps - false_steps - i) / static_cast<double>(steps - i));
  return 1 - missed;
}

int64_t false_steps_of(int64_t steps, int64_t thousandths) {
  return std::max<int64_t>(1, (steps * thousandths + 999) / 1000);
}

}  // namespace ostro::audit
