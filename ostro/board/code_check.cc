#include "ostro/board/code_check.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "ostro/audit/sample/draw.h"
#include "ostro/base/sha256.h"

namespace ostro::board {
namespace {

struct Place {
  int64_t row = 0, position = 0;
};

// Target number `target` of all, in the order of the windows.
Place place_of(const Windows& windows, int64_t target) {
  Place out;
  while (target >= windows.counts[static_cast<size_t>(out.row)])
    target -= windows.counts[static_cast<size_t>(out.row++)];
  out.position = target;
  return out;
}

Result<std::vector<Place>> drawn_places(const Windows& windows, const std::string& kind,
                                        const std::string& challenge, int64_t count) {
  const int64_t all = windows.all_targets();
  std::vector<Place> out;
  if (count >= all) {
    for (int64_t i = 0; i < all; ++i) out.push_back(place_of(windows, i));
    return out;
  }
  ASSIGN_OR_RETURN(const std::vector<int64_t> drawn,
                   audit::drawn_steps(sha256_hex("ostro board " + kind), challenge, 0, all - 1, count));
  for (const int64_t target : drawn) out.push_back(place_of(windows, target));
  return out;
}

// A row of a window in which everything behind `position` was drawn anew: from the challenge alone, so that
// it tells nothing of the text, and no program could know it beforehand.
struct Row {
  std::vector<int32_t> tokens, targets;
};
Row cut_row(const Windows& windows, const Place& place, const CodeOptions& options) {
  const auto length = static_cast<size_t>(windows.length), first = static_cast<size_t>(place.row) * length;
  Row out;
  out.tokens.assign(windows.tokens.begin() + static_cast<int64_t>(first),
                    windows.tokens.begin() + static_cast<int64_t>(first + length));
  out.targets.assign(windows.targets.begin() + static_cast<int64_t>(first),
                     windows.targets.begin() + static_cast<int64_t>(first + length));
  constexpr size_t kBytes = 8, kNumbers = 4;  // of a number; numbers of a digest
  Sha256Digest digest{};
  auto block = std::numeric_limits<size_t>::max();  // that `digest` is of
  const auto drawn = [&](size_t i) {
    if (block != i / kNumbers)
      digest = sha256(fmt::format("ostro board other\n{}\n{}\n{}\n{}\n", options.challenge, place.row,
                                  place.position, block = i / kNumbers));
    uint64_t number = 0;
    for (size_t k = 0; k < kBytes; ++k) number = number << 8 | digest[i % kNumbers * kBytes + k];
    return static_cast<int32_t>(number % static_cast<uint64_t>(options.vocab));
  };
  const size_t behind = static_cast<size_t>(place.position) + 1;
  for (size_t i = behind; i < length; ++i) out.tokens[i] = drawn(i);
  for (size_t i = behind; i < length; ++i) out.targets[i] = drawn(i + length);
  return out;
}

bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

std::string place_text(const Place& place) {
  return fmt::format("window {}, position {}", place.row, place.position);
}

// So many rows are asked for in one call, and at most so many positions, if a row has no more.
constexpr int64_t kRowsAtATime = 4096, kPositionsAtATime = int64_t{1} << 22;

// Runs a scorer on rows that are handed in one by one, in as few calls as memory allows.
class Rows {
 public:
  Rows(const Scorer& scorer, int64_t length) : scorer_(scorer), length_(length) {}

  void add(const Row& row) {
    tokens_.insert(tokens_.end(), row.tokens.begin(), row.tokens.end());
    targets_.insert(targets_.end(), row.targets.begin(), row.targets.end());
  }
  int64_t count() const { return std::ssize(tokens_) / length_; }
  bool is_full() const { return count() >= kRowsAtATime || std::ssize(tokens_) >= kPositionsAtATime; }
  // The losses of all rows since the last call.
  Result<std::vector<float>> take() {
    ASSIGN_OR_RETURN(std::vector<float> losses, scorer_(tokens_, targets_));
    tokens_.clear(), targets_.clear();
    return losses;
  }

 private:
  const Scorer& scorer_;
  int64_t length_;
  std::vector<int32_t> tokens_, targets_;
};

// The places whose later tokens are changed: no loss up to there may be another one.
Status check_cuts(const Scorer& scorer, const Windows& windows, const CodeOptions& options,
                  const std::vector<float>& losses, CodeCheck& out) {
  ASSIGN_OR_RETURN(const std::vector<Place> places,
                   drawn_places(windows, "cuts", options.challenge, options.cuts));
  Rows rows(scorer, windows.length);
  for (size_t begin = 0; begin < places.size();) {
    size_t end = begin;
    for (; end < places.size() && !rows.is_full(); ++end) rows.add(cut_row(windows, places[end], options));
    ASSIGN_OR_RETURN(const std::vector<float> found, rows.take());
    for (size_t k = begin; k < end; ++k) {
      const Place& place = places[k];
      for (int64_t i = 0; i <= place.position; ++i) {
        const float whole = losses[static_cast<size_t>(place.row * windows.length + i)],
                    cut = found[(k - begin) * static_cast<size_t>(windows.length) + static_cast<size_t>(i)];
        if (same_bits(whole, cut)) continue;
        out.refusal = Refusal{
            Rule::kLooksAhead,
            fmt::format(
                "{}: with other tokens behind position {} of the window the loss is {} in place of {}",
                place_text({place.row, i}), place.position, cut, whole)};
        return {};
      }
    }
    out.cuts = static_cast<int64_t>(end);
    begin = end;
  }
  return {};
}

// The losses of all targets at a place, each in a row of its own: nothing else in the row tells which of them
// is the text's.
Result<std::vector<float>> losses_of_all(const Scorer& scorer, const Windows& windows, const Place& place,
                                         const CodeOptions& options) {
  const int64_t vocab = options.vocab;
  Row row = cut_row(windows, place, options);
  Rows rows(scorer, windows.length);
  std::vector<float> out;
  for (int64_t target = 0; target < vocab; ++target) {
    row.targets[static_cast<size_t>(place.position)] = static_cast<int32_t>(target);
    rows.add(row);
    if (!rows.is_full() && target + 1 < vocab) continue;
    ASSIGN_OR_RETURN(const std::vector<float> found, rows.take());
    for (size_t at = static_cast<size_t>(place.position); at < found.size();
         at += static_cast<size_t>(windows.length))
      out.push_back(found[at]);
  }
  return out;
}

Status check_sums(const Scorer& scorer, const Windows& windows, const CodeOptions& options,
                  const std::vector<float>& losses, CodeCheck& out) {
  ASSIGN_OR_RETURN(const std::vector<Place> places,
                   drawn_places(windows, "sums", options.challenge, options.sums));
  for (const Place& place : places) {
    ASSIGN_OR_RETURN(const std::vector<float> all, losses_of_all(scorer, windows, place, options));
    const auto at = static_cast<size_t>(place.row * windows.length + place.position);
    const float whole = losses[at], alone = all[static_cast<size_t>(windows.targets[at])];
    if (!same_bits(whole, alone)) {
      out.refusal = Refusal{
          Rule::kNotACode,
          fmt::format(
              "{}: the loss of the target {} is {} in its text and {} where all targets are asked for",
              place_text(place), windows.targets[at], whole, alone)};
      return {};
    }
    double sum = 0, entropy = 0;
    for (const float loss : all) {
      const double p = std::exp(-static_cast<double>(loss));
      sum += p;
      if (p > 0) entropy += p * std::max(0.0, static_cast<double>(loss));  // 0 for a loss of infinity
    }
    const double allowed = allowed_difference(options.vocab, entropy);
    ++out.sums;
    out.least_sum = std::min(out.least_sum, sum), out.most_sum = std::max(out.most_sum, sum);
    out.allowed = std::max(out.allowed, allowed);
    if (std::abs(sum - 1) <= allowed) continue;  // false for a sum that is no number
    out.refusal = Refusal{
        Rule::kNotACode, fmt::format("{}: exp(-loss) over all {} targets sums to {:.9g}, and rounding in f32 "
                                     "allows a difference of {:.3g} from 1",
                                     place_text(place), options.vocab, sum, allowed)};
    return {};
  }
  return {};
}

}  // namespace

double allowed_difference(int64_t vocab, double entropy) {
  constexpr double kUnit = 0x1p-24;    // the most by which rounding to f32 changes a number, relatively
  constexpr double kLargestLse = 128;  // of the logarithm of the sum of exponentials
  constexpr double kLanes = 64;        // of a striped sum (numerics.md N4)
  constexpr double kTree = 6;
  const double v = static_cast<double>(vocab);
  return kUnit *
         (kLargestLse + v / kLanes + kTree + 2 * std::log(v) + 2 * std::min(entropy, 2 * std::log(v)) + 4);
}

Result<CodeCheck> check_code(const Scorer& scorer, const Windows& windows, const CodeOptions& options) {
  OSTRO_CHECK(options.vocab >= 2, "a vocabulary of {} tokens", options.vocab);
  CodeCheck out;
  out.targets = windows.all_targets();
  ASSIGN_OR_RETURN(const std::vector<float> losses, scorer(windows.tokens, windows.targets));
  // No probability of a code is above 1, and no sum of a code is above 1 by more than this.
  const double below = allowed_difference(options.vocab, std::numeric_limits<double>::infinity());
  for (int64_t row = 0; row < windows.rows(); ++row)
    for (int64_t i = 0; i < windows.counts[static_cast<size_t>(row)]; ++i) {
      const float loss = losses[static_cast<size_t>(row * windows.length + i)];
      out.loss += static_cast<double>(loss);
      if (!std::isfinite(loss)) {
        out.refusal =
            Refusal{Rule::kNotFinite, fmt::format("{}: the loss is {}", place_text({row, i}), loss)};
        return out;
      }
      if (static_cast<double>(loss) < -below) {
        out.refusal =
            Refusal{Rule::kNotACode,
                    fmt::format("{}: the loss is {}, so that exp(-loss) of this target alone is above 1, and "
                                "rounding in f32 allows a loss of {:.3g} at least",
                                place_text({row, i}), loss, -below)};
        return out;
      }
    }
  RETURN_IF_ERROR(check_cuts(scorer, windows, options, losses, out));
  if (!out.refusal) RETURN_IF_ERROR(check_sums(scorer, windows, options, losses, out));
  return out;
}

}  // namespace ostro::board
