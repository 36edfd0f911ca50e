// What moves after a loss, for drawn losses: every element that a worker needs comes once, from one that has
// it.
#include "ostro/fleet/processes/recovery.h"

#include <random>

#include "ostro/fleet/workers/workers_for_test.h"

namespace ostro::fleet {
namespace {

bool inside(const Region& a, const Region& b) { return common(a, b) == a; }

WorkerPlan plan_of(const Setup& s, runtime::Engine& engine, int64_t workers) {
  return make_worker_plan(s.programs, engine, "none", worker_options(s.config, workers).value()).value();
}

// The elements of `want` that the pieces bring, each of which may come once.
int64_t count_brought(const std::vector<Piece>& pieces, bool to_copy, const Region& want) {
  int64_t elements = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].to_copy != to_copy) continue;
    CHECK(inside(pieces[i].region, want));
    elements += element_count(pieces[i].region);
    for (size_t j = i + 1; j < pieces.size(); ++j)
      if (pieces[j].to_copy == to_copy && !want.empty())
        CHECK(is_empty(common(pieces[i].region, pieces[j].region)));
  }
  return elements;
}

TEST_CASE("recovery: what a worker needs comes once, from one that has it; what it has is not sent") {
  std::mt19937 random(7);
  int lost_states = 0, whole_states = 0;
  const auto engine = interp::make_interpreter();
  for (const config::IntMap& axes :
       std::vector<config::IntMap>{{{"data", -1}}, {{"replica", 2}, {"data", -1}}})
    for (int turn = 0; turn < 12; ++turn) {
      train::TrainConfig c = tiny_config(8, {{"embed", 12}});
      c.trainer.sharding.mesh.axes = axes;
      const Setup s = make_setup(std::move(c));
      const WorkerPlan before = plan_of(s, *engine, 6);
      const auto left = static_cast<int64_t>(2 + 2 * (random() % 2));  // of six; one more is new
      std::vector<int64_t> survivors{0, 1, 2, 3, 4, 5};
      std::shuffle(survivors.begin(), survivors.end(), random);
      survivors.resize(static_cast<size_t>(left));
      std::vector<Brought> brought(static_cast<size_t>(left + (axes.size() == 1 ? 1 : 0)));
      for (size_t i = 0; i < survivors.size(); ++i) {
        brought[i].epoch = 1, brought[i].size = 6, brought[i].rank = survivors[i];
        brought[i].mirror_of = before.mirror_of(survivors[i]).value_or(-1);
      }
      const WorkerPlan now = plan_of(s, *engine, static_cast<int64_t>(brought.size()));
      const Recovery recovery = plan_recovery(brought);
      bool whole = true;
      for (size_t k = 0; k < now.arrays.size(); ++k) {
        const std::vector<OldCells> cells = old_cells(k, brought, recovery, before.state);
        int64_t elements = 0;
        for (const OldCells& old : cells) {
          elements += element_count(old.box);
          whole = whole && !old.holders.empty();
        }
        CHECK(elements == now.shape(k).count());
        if (!whole) break;
        for (int64_t to = 0; to < now.mesh().size(); ++to) {
          const std::optional<int64_t> mirrored = now.mirror_of(to);
          const std::vector<Piece> pieces = pieces_for(k, to, mirrored, cells, now.state);
          const bool has_copy = mirrored && now.state.owned_once[k];
          CHECK(count_brought(pieces, false, now.state.box(k, to)) == element_count(now.state.box(k, to)));
          CHECK(count_brought(pieces, true, has_copy ? now.state.box(k, *mirrored) : Region()) ==
                (has_copy ? element_count(now.state.box(k, *mirrored)) : 0));
          for (const Piece& piece : pieces) {
            const Brought& from = brought[static_cast<size_t>(piece.from)];
            CHECK((piece.from_copy ? from.mirror_of : from.rank) == piece.from_rank);
            CHECK(inside(piece.region, before.state.box(k, piece.from_rank)));
            const BroughtState& self = brought[static_cast<size_t>(to)];
            const auto has = [&](int64_t rank) {
              return rank >= 0 && inside(piece.region, before.state.box(k, rank));
            };
            if (self.epoch == 1 && (has(self.rank) || (before.state.owned_once[k] && has(self.mirror_of))))
              CHECK(piece.from == to);
          }
        }
      }
      (whole ? whole_states : lost_states) += 1;
    }
  CHECK(lost_states > 0);
  CHECK(whole_states > 0);
}

}  // namespace
}  // namespace ostro::fleet
