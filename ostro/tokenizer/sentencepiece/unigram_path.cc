#include "ostro/tokenizer/sentencepiece/unigram_path.h"

#include <algorithm>
#include <limits>
#include <set>

#include "ostro/tokenizer/unicode/utf8.h"

namespace ostro::tokenizer {
namespace {

constexpr double kNever = -std::numeric_limits<double>::infinity();
// after this many bytes, a position where all paths meet is searched for
constexpr size_t kLongStretch = size_t{1} << 18;

}  // namespace

// Compares the path through `start` plus a token from there to `end` with the best path to `end` so far.
void UnigramPath::offer(const UnigramTokens& tokens, size_t start, size_t end, double score, uint32_t id) {
  if (nodes_.size() <= end - base_) nodes_.resize(std::max(end - base_ + 1, 2 * nodes_.size()));
  Node& target = nodes_[end - base_];
  double sum = score + nodes_[start - base_].score;
  if (tokens.single_precision) sum = static_cast<float>(sum);
  if (target.length != 0 && !(sum > target.score)) {
    target.second = std::max(target.second, sum);
    return;
  }
  target = {sum, target.length != 0 ? target.score : kNever, static_cast<uint32_t>(end - start), id};
  reach_ = std::max(reach_, end);
}

// Offers every token that begins at `start`. If none of them is the single character there, the unknown token
// is offered for it, so that every position can be reached.
void UnigramPath::extend(const UnigramTokens& tokens, std::string_view text, size_t start) {
  const size_t next = start + read_code_point(text.data() + start).length;
  bool has_character = false;
  uint32_t node = ByteTrie::kRoot;
  for (size_t end = start; end < text.size();) {
    node = tokens.trie.step(node, text[end]);
    if (node == ByteTrie::kNone) break;
    ++end;
    const uint32_t id = tokens.trie.value(node);
    if (id == ByteTrie::kNone) continue;
    offer(tokens, start, end, tokens.scores[id], id);
    has_character |= end == next;
  }
  if (!has_character) offer(tokens, start, next, tokens.unknown_score, tokens.unknown);
}

// The last position that every path to `start` or beyond passes. Begins with the ends of all such paths, and
// steps the furthest one back by its last token until one position is left.
size_t UnigramPath::meeting_place(size_t start) const {
  std::set<size_t> places = {start};
  for (size_t end = start + 1; end <= reach_; ++end) {
    if (nodes_[end - base_].length != 0) places.insert(end);
  }
  while (places.size() > 1) {
    const auto last = std::prev(places.end());
    const size_t before = *last - nodes_[*last - base_].length;
    places.erase(last);
    places.insert(before);
  }
  return *places.begin();
}

// Passes the best path up to `end` to the sink and restarts there.
void UnigramPath::give_out(size_t end, UnigramSink& sink) {
  ends_.clear();
  for (size_t at = end; at > base_; at -= nodes_[at - base_].length) ends_.push_back(at);
  for (size_t i = ends_.size(); i-- > 0;) {
    const Node& node = nodes_[ends_[i] - base_];
    margin_ = std::min(margin_, node.score - node.second);
    sink.take(ends_[i] - node.length, ends_[i], node.id);
  }
  const size_t moved = end - base_, used = reach_ - base_ + 1;
  std::copy(nodes_.begin() + static_cast<std::ptrdiff_t>(moved),
            nodes_.begin() + static_cast<std::ptrdiff_t>(used), nodes_.begin());
  for (size_t i = used - moved; i < used; ++i) nodes_[i].length = 0;
  base_ = end;
}

// Viterbi from left to right. `reach_` is the furthest end of a path: where it equals the current position,
// all paths meet, and the best path up to there is final. A text without such positions (a long run of one
// letter) is searched for a meeting place after kLongStretch bytes; when there is none, after twice the
// stretch.
UnigramPath::End UnigramPath::run(const UnigramTokens& tokens, std::string_view text, UnigramSink& sink,
                                  double begin) {
  base_ = reach_ = 0;
  if (nodes_.empty()) nodes_.resize(256, Node{});
  nodes_[0] = {begin, kNever, 0, 0};
  margin_ = -kNever;
  size_t stretch = kLongStretch;
  for (size_t start = 0; start < text.size(); start += read_code_point(text.data() + start).length) {
    if (start == reach_) {
      if (start > base_) give_out(start, sink);
      stretch = kLongStretch;
    } else if (start - base_ > stretch) {
      const size_t place = meeting_place(start);
      if (place > base_) give_out(place, sink);
      stretch = std::max(kLongStretch, 2 * (start - base_));
    }
    extend(tokens, text, start);
  }
  if (!text.empty()) give_out(text.size(), sink);
  return {nodes_[0].score, margin_};
}

}  // namespace ostro::tokenizer
