// CellMessages, CellsOnTheirWay, cells_together: messages of cells between workers, without copies where a
// cell's bytes lie together in its array. Errors: those of the collectives. Not thread-safe.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "ostro/runtime/collectives.h"
#include "ostro/spmd/run_parts.h"

namespace ostro::fleet {

// Messages between this worker and others; those of a pair meet in the order in which both add them.
struct CellMessages {
  std::vector<int64_t> peers;
  std::vector<std::span<const std::byte>> send;
  std::vector<std::span<std::byte>> receive;

  void add(int64_t peer, std::span<const std::byte> out, std::span<std::byte> in) {
    peers.push_back(peer);
    send.push_back(out);
    receive.push_back(in);
  }
  Status run(runtime::Collectives& c) { return c.exchange(peers, send, receive); }
};

// Messages that may be on their way while other work is done. Until they have landed, their memory must stay.
class CellsOnTheirWay : public CellMessages {
 public:
  CellsOnTheirWay() = default;
  CellsOnTheirWay(const CellsOnTheirWay&) = delete;
  CellsOnTheirWay& operator=(const CellsOnTheirWay&) = delete;
  // Waits for them, so that nothing writes into memory that is freed.
  ~CellsOnTheirWay() { (void)land(); }

  // `in_background`: false: does all of the exchange. `c` must outlive this object.
  Status start(runtime::Collectives& c, bool in_background) {
    if (!in_background) return run(c);
    ASSIGN_OR_RETURN(ticket_, c.start(peers, send, receive));
    group_ = &c;
    return Status();
  }
  // Returns when all has arrived and was sent. Later calls do nothing.
  Status land() {
    runtime::Collectives* const group = std::exchange(group_, nullptr);
    return group != nullptr ? group->wait(ticket_) : Status();
  }

 private:
  runtime::Collectives* group_ = nullptr;  // while they are on their way
  int64_t ticket_ = 0;
};

// The bytes that worker `rank` holds of x, if they lie together.
inline std::optional<std::span<const std::byte>> cells_together(const ir::Mesh& mesh, int64_t rank,
                                                                const spmd::Layout& layout,
                                                                const runtime::Buffer& x) {
  const auto offset = spmd::part_offset(mesh, rank, layout, x.shape());
  if (!offset) return std::nullopt;
  return x.bytes().subspan(static_cast<size_t>(*offset),
                           static_cast<size_t>(spmd::local_shape(mesh, rank, layout, x.shape()).bytes()));
}

}  // namespace ostro::fleet
