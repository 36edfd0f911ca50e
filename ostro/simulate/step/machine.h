// Machine: the cores of one machine, which the hosts on it share: each piece of work uses one core at most,
// and when there are more pieces than cores all of them are equally slow. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <list>
#include <utility>

#include "ostro/simulate/step/event_queue.h"

namespace ostro::simulate {

class Machine {
 public:
  // `queue` must outlive it.
  Machine(EventQueue& queue, double cores) : queue_(queue), cores_(cores) {}

  // Runs `done` when so many seconds of a core are done.
  void work(double seconds, EventQueue::Action done) {
    if (seconds <= 0) return queue_.after(0, std::move(done));
    settle();
    pieces_.push_back({seconds, std::move(done)});
    plan();
  }

 private:
  struct Piece {
    double left;
    EventQueue::Action done;
  };

  double rate() const { return std::min(1.0, cores_ / static_cast<double>(pieces_.size())); }

  // Counts what was done since the last change.
  void settle() {
    const double done = pieces_.empty() ? 0 : (queue_.now() - since_) * rate();
    for (Piece& piece : pieces_) piece.left -= done;
    since_ = queue_.now();
  }

  // The next change, if no work comes before: the end of the shortest piece, and of those as long.
  void plan() {
    if (pieces_.empty()) return;
    double least = pieces_.front().left;
    for (const Piece& piece : pieces_) least = std::min(least, piece.left);
    queue_.after(std::max(0.0, least / rate()), [this, version = ++version_, least] {
      if (version != version_) return;
      settle();
      std::list<Piece> ended;
      for (auto piece = pieces_.begin(); piece != pieces_.end();) {
        const auto here = piece++;
        if (here->left <= kNothing * (1 + least)) ended.splice(ended.end(), pieces_, here);
      }
      plan();
      for (Piece& piece : ended) piece.done();
    });
  }

  static constexpr double kNothing = 1e-9;  // of a piece: what rounding leaves of it

  EventQueue& queue_;
  double cores_;
  std::list<Piece> pieces_;
  double since_ = 0;
  int64_t version_ = 0;
};

}  // namespace ostro::simulate
