#include "ostro/fleet/processes/settle.h"

#include <fmt/format.h>

#include <utility>

#include "ostro/base/check.h"
#include "ostro/base/profile.h"
#include "ostro/base/watch/fault_point.h"
#include "ostro/fleet/exchange/gather_all.h"

namespace ostro::fleet {
namespace {

using runtime::Buffer;

Brought brought_by(const WorkerState& carried) {
  Brought b;
  if (carried.epoch == 0) return b;
  b.epoch = carried.epoch;
  const Worker& w = *carried.worker;
  b.size = w.plan().mesh().size(), b.rank = w.rank(), b.mirror_of = w.plan().mirror_of(w.rank()).value_or(-1);
  b.step = w.step_number();
  b.can_finish = w.can_finish() ? 1 : 0;
  b.measured = train::as_list(w.last_result().measured);
  return b;
}

// All workers measure the same, so every message has `measures` numbers. A worker that has done no step has
// fewer, and no worker uses them.
Result<std::vector<Brought>> tell_all(runtime::Collectives& c, const Brought& mine, size_t measures) {
  OSTRO_CHECK(mine.measured.size() <= measures, "{} measures of a step, not {}", mine.measured.size(),
              measures);
  Bytes message;
  append_value(message, static_cast<const BroughtState&>(mine));
  for (size_t i = 0; i < measures; ++i)
    append_value(message, i < mine.measured.size() ? mine.measured[i] : 0.0);
  ASSIGN_OR_RETURN(const std::vector<Bytes> messages, gather_all(c, message));
  std::vector<Brought> all(messages.size());
  for (size_t w = 0; w < all.size(); ++w) {
    Reader reader(messages[w]);
    static_cast<BroughtState&>(all[w]) = reader.value<BroughtState>();
    all[w].measured.resize(measures);
    for (double& number : all[w].measured) number = reader.value<double>();
  }
  return all;
}

// Moves the cells, of one array after another.
class Mover {
 public:
  Mover(const WorkerPlan& plan, runtime::Collectives& c, std::vector<Brought> brought, Recovery recovery,
        StateLayout before)
      : plan_(plan),
        c_(c),
        brought_(std::move(brought)),
        recovery_(std::move(recovery)),
        before_(std::move(before)) {}

  // What is lost; "": everything is there.
  std::string missing() const {
    for (size_t k = 0; k < plan_.arrays.size(); ++k)
      for (const OldCells& cells : old_cells(k, brought_, recovery_, before_))
        if (cells.holders.empty() && !is_empty(cells.box))
          return fmt::format("cells of {}, whose owner and copy are both gone", plan_.arrays.paths[k]);
    return "";
  }

  Status move(Cells& own, Cells& mirror, Cells& new_own, Cells& new_mirror) {
    size_t copies = 0;
    for (size_t k = 0; k < plan_.arrays.size(); ++k) {
      Buffer mine, copy, to_own, to_copy;
      if (!own.params.empty()) {
        ASSIGN_OR_RETURN(mine, train::array_of(own, k).to_host());
      }
      if (!mirror.params.empty() && before_.owned_once[k]) {
        ASSIGN_OR_RETURN(copy, train::array_of(mirror, copies++).to_host());
      }
      RETURN_IF_ERROR(move_one(k, mine, copy, to_own, to_copy));
      train::list_of(new_own, k, plan_.n).push_back(std::move(to_own));
      if (gets_copy(k)) train::list_of(new_mirror, k, plan_.n).push_back(std::move(to_copy));
    }
    return Status();
  }

 private:
  bool gets_copy(size_t k) const { return plan_.mirror_of(c_.rank()) && plan_.state.owned_once[k]; }

  std::vector<Piece> pieces(size_t k, int64_t to, const std::vector<OldCells>& cells) const {
    return pieces_for(k, to, plan_.mirror_of(to), cells, plan_.state);
  }

  static size_t bytes(const Piece& piece, int64_t element) {
    return static_cast<size_t>(element_count(piece.region) * element);
  }

  Status move_one(size_t k, const Buffer& mine, const Buffer& copy, Buffer& to_own, Buffer& to_copy) {
    const int64_t self = c_.rank(), element = ir::dtype_size(plan_.shape(k).dtype);
    to_own = Buffer::empty(plan_.owned_shape(k, self));
    if (gets_copy(k)) to_copy = Buffer::empty(plan_.owned_shape(k, *plan_.mirror_of(self)));
    const auto workers = static_cast<size_t>(c_.size());
    const std::vector<OldCells> cells = old_cells(k, brought_, recovery_, before_);
    std::vector<Bytes> out(workers), in(workers);
    for (int64_t to = 0; to < c_.size(); ++to) {
      for (const Piece& piece : pieces(k, to, cells)) {
        if (piece.from != self) continue;
        Bytes& message = out[static_cast<size_t>(to)];
        const size_t at = message.size();
        message.resize(at + bytes(piece, element));
        copy_region(piece.region, before_.box(k, piece.from_rank),
                    (piece.from_copy ? copy : mine).bytes().data(), piece.region, message.data() + at,
                    element);
      }
    }
    const std::vector<Piece> wanted = pieces(k, self, cells);
    for (const Piece& piece : wanted) {
      Bytes& message = in[static_cast<size_t>(piece.from)];
      message.resize(message.size() + bytes(piece, element));
    }
    std::vector<int64_t> peers;
    std::vector<std::span<const std::byte>> send;
    std::vector<std::span<std::byte>> receive;
    for (size_t w = 0; w < workers; ++w) {
      if (out[w].empty() && in[w].empty()) continue;
      peers.push_back(static_cast<int64_t>(w));
      send.emplace_back(out[w]);
      receive.emplace_back(in[w]);
    }
    RETURN_IF_ERROR(c_.exchange(peers, send, receive));
    std::vector<size_t> read(workers);
    for (const Piece& piece : wanted) {
      const Bytes& message = in[static_cast<size_t>(piece.from)];
      size_t& at = read[static_cast<size_t>(piece.from)];
      const Region target = plan_.state.box(k, piece.to_copy ? *plan_.mirror_of(self) : self);
      copy_region(piece.region, piece.region, message.data() + at, target,
                  (piece.to_copy ? to_copy : to_own).mutable_bytes().data(), element);
      at += bytes(piece, element);
    }
    return Status();
  }

  const WorkerPlan& plan_;
  runtime::Collectives& c_;
  const std::vector<Brought> brought_;
  const Recovery recovery_;
  const StateLayout before_;
};

}  // namespace

Result<Settled> settle(const WorkerPlan& plan, runtime::Collectives& c, const WorkerState& carried,
                       const LayoutOf& layout_of, Worker& worker) {
  phase("settle state");
  Brought mine = brought_by(carried);
  mine.leaf_seconds = worker.usual_leaf_seconds();
  ASSIGN_OR_RETURN(std::vector<Brought> brought,
                   tell_all(c, mine, train::as_list(plan.update.measures).size()));
  Recovery recovery = plan_recovery(brought);
  Settled out;
  for (const Brought& b : brought) out.leaf_seconds.push_back(b.leaf_seconds);
  if (recovery.epoch == 0) return out;
  if (plan.options.check.on()) leave_out_copies(brought, recovery);
  const auto self = static_cast<size_t>(c.rank());
  const bool brings = recovery.brings[self];
  ASSIGN_OR_RETURN(StateLayout before, layout_of(recovery.size));
  out.step = recovery.step;
  const std::vector<double> measured = recovery.measured;
  const bool behind = recovery.behind[self];
  Mover mover(plan, c, std::move(brought), std::move(recovery), std::move(before));
  out.lost = mover.missing();
  if (!out.lost.empty()) return out;
  out.has_state = true;
  Cells own, mirror, new_own, new_mirror;
  train::StepResult last;
  if (brings) {
    if (behind)
      RETURN_IF_ERROR(carried.worker->finish_with(train::read_fields(plan.update.measures, measured)));
    last = carried.worker->last_result();
    own = carried.worker->own(), mirror = carried.worker->mirror();
  }
  fault_point("transfer", out.step, c.rank());
  RETURN_IF_ERROR(mover.move(own, mirror, new_own, new_mirror));
  // Only now may a worker give up the cells that it had.
  RETURN_IF_ERROR(barrier(c));
  worker.adopt_cells(std::move(new_own), std::move(new_mirror), out.step, std::move(last));
  return out;
}

}  // namespace ostro::fleet
