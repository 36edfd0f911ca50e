#include "ostro/fleet/check/part_votes.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

namespace ostro::fleet {
namespace {

using numerics::Fingerprint;
using Ranks = std::set<int64_t>;

std::string text_of(const Ranks& ranks) {
  std::string text;
  for (const int64_t rank : ranks) text += fmt::format("{}{}", text.empty() ? "" : " and ", rank);
  return text;
}

// What the votes say without those of `named`. The value of one worker that is left is the right one.
struct Verdict {
  std::optional<Fingerprint> right;  // nothing: none decides
  Ranks differ;
};
Verdict verdict_of(const std::vector<Vote>& votes, const Ranks& named) {
  std::vector<Vote> heard;
  std::copy_if(votes.begin(), votes.end(), std::back_inserter(heard),
               [&](const Vote& v) { return !named.contains(v.rank); });
  const Judgement judged = judge(heard);
  Verdict out;
  if (heard.empty() || !judged.decided) return out;
  out.differ = {judged.differ.begin(), judged.differ.end()};
  for (const Vote& v : heard)
    if (!out.differ.contains(v.rank)) out.right = v.print;
  for (const Vote& v : votes)
    if (v.print != *out.right) out.differ.insert(v.rank);
  return out;
}

// Judges what is read of a part, of which `right` is what the state has.
class Reads {
 public:
  Reads(const PartVotes& part, const Fingerprint& right) : part_(part), right_(right) {}

  bool agree() const {
    return std::all_of(part_.read.begin(), part_.read.end(),
                       [&](const PartRead& r) { return r.print == right_; });
  }
  // The workers at fault; none: nothing says who it is.
  Ranks at_fault() const {
    Ranks out;
    for (const PartRead& read : part_.read)
      if (read.print != right_)
        if (const std::optional<int64_t> rank = at_fault(read)) out.insert(*rank);
    return out;
  }
  std::string text() const {
    std::vector<Vote> votes;
    for (const PartRead& read : part_.read) votes.push_back({read.rank, read.print});
    return votes_text(votes);
  }

 private:
  std::optional<int64_t> at_fault(const PartRead& wrong) const {
    if (wrong.from == wrong.rank) return wrong.rank;
    if (given_by(wrong.from) != right_) return std::nullopt;  // it was given what is wrong
    const auto got = [&](const Fingerprint& print) {
      return std::count_if(part_.read.begin(), part_.read.end(), [&](const PartRead& r) {
        return r.from == wrong.from && r.rank != r.from && r.print == print;
      });
    };
    if (got(wrong.print) > 1) return wrong.from;
    // It alone was given the part: what it was given may have been wrong, too.
    return got(right_) > 0 ? std::optional(wrong.rank) : std::nullopt;
  }

  // An owner gives what it keeps, another one what it has read.
  Fingerprint given_by(int64_t rank) const {
    const auto read =
        std::find_if(part_.read.begin(), part_.read.end(), [&](const PartRead& r) { return r.rank == rank; });
    if (read != part_.read.end() && read->from != rank) return read->print;
    const auto kept =
        std::find_if(part_.kept.begin(), part_.kept.end(), [&](const Vote& v) { return v.rank == rank; });
    return kept != part_.kept.end() ? kept->print : right_;
  }

  const PartVotes& part_;
  const Fingerprint& right_;
};

void add_text(Disagreement& found, const std::string& what, const PartVotes& part, const std::string& votes) {
  found.text += fmt::format("{}step {}: {}: cells of {} have the fingerprint {}",
                            found.text.empty() ? "" : "; ", found.step, what, part.name, votes);
}

void judge_reads(const PartVotes& part, const Fingerprint& right, Disagreement& found) {
  const Reads reads(part, right);
  if (reads.agree()) return;
  const Ranks at_fault = reads.at_fault();
  found.differ.insert(found.differ.end(), at_fault.begin(), at_fault.end());
  add_text(found,
           at_fault.empty()
               ? "workers compute with different parameters, and nothing says who changed them"
               : fmt::format("worker {} has changed parameters that it reads or hands on", text_of(at_fault)),
           part, reads.text());
}

}  // namespace

Disagreement judge_parts(int64_t step, const std::vector<PartVotes>& parts) {
  Ranks named;
  for (const PartVotes& part : parts) named.merge(verdict_of(part.kept, {}).differ);
  Disagreement found{.step = step};
  for (const PartVotes& part : parts) {
    Verdict verdict = verdict_of(part.kept, {});
    if (!verdict.right) verdict = verdict_of(part.kept, named);
    if (!verdict.right) found.state_lost = true;
    found.differ.insert(found.differ.end(), verdict.differ.begin(), verdict.differ.end());
    if (!verdict.right || !verdict.differ.empty())
      add_text(found,
               verdict.right ? fmt::format("worker {} has what the others have not", text_of(verdict.differ))
                             : std::string("copies differ, and no majority says which is right"),
               part, votes_text(part.kept));
    if (verdict.right) judge_reads(part, *verdict.right, found);
  }
  // Without a majority on some cells all workers give up the state, also those that a majority named.
  if (found.state_lost) found.differ.clear();
  std::sort(found.differ.begin(), found.differ.end());
  found.differ.erase(std::unique(found.differ.begin(), found.differ.end()), found.differ.end());
  return found;
}

}  // namespace ostro::fleet
