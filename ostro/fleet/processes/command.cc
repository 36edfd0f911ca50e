#include "ostro/fleet/processes/command.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <vector>

namespace ostro::fleet {
namespace {

std::vector<int64_t> all_but(const runtime::Collectives& c, int64_t rank) {
  std::vector<int64_t> out;
  for (int64_t r = 0; r < c.size(); ++r)
    if (r != rank) out.push_back(r);
  return out;
}

// From the leader to all others.
Status tell_others(dist::Group& group, std::span<const std::byte> bytes) {
  const std::vector<int64_t> others = all_but(group, 0);
  return group.exchange(others, std::vector<std::span<const std::byte>>(others.size(), bytes),
                        std::vector<std::span<std::byte>>(others.size()));
}

}  // namespace

Status send_command(dist::Group& group, const Command& command) {
  return tell_others(group, std::as_bytes(std::span(&command, 1)));
}

Status send_shares(dist::Group& group, const std::vector<int64_t>& counts) {
  Command command{Command::Kind::kShares};
  command.count = static_cast<int64_t>(counts.size());
  RETURN_IF_ERROR(send_command(group, command));
  return tell_others(group, std::as_bytes(std::span(counts)));
}

Result<LeafShares> receive_shares(dist::Group& group, const Command& command, int64_t places) {
  if (command.count != places)
    return corrupt(fmt::format("the leader shares leaves out to {} workers, and {} run different leaves",
                               command.count, places));
  std::vector<int64_t> counts(static_cast<size_t>(places));
  RETURN_IF_ERROR(group.exchange(std::vector<int64_t>{0}, std::vector<std::span<const std::byte>>(1),
                                 std::vector{std::as_writable_bytes(std::span(counts))}));
  if (std::any_of(counts.begin(), counts.end(), [](int64_t count) { return count < 0; }))
    return corrupt("the leader gives a worker fewer than no leaves");
  return LeafShares(counts);
}

Result<Command> next_command(dist::Group& group) {
  Command command;
  group.wait_for_ever(true);
  const Status received = group.exchange(std::vector<int64_t>{0}, std::vector<std::span<const std::byte>>(1),
                                         std::vector{std::as_writable_bytes(std::span(&command, 1))});
  group.wait_for_ever(false);
  RETURN_IF_ERROR(received);
  if (command.kind < Command::Kind::kStep || command.kind > Command::Kind::kShares)
    return corrupt(fmt::format("the leader sent command {}, which this build does not know",
                               static_cast<int64_t>(command.kind)));
  return command;
}

}  // namespace ostro::fleet
