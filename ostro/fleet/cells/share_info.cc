#include "ostro/fleet/cells/share_info.h"

#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "ostro/fleet/workers/messages.h"

namespace ostro::fleet {

Status share_info(runtime::Collectives& c, checkpoint::Info& info) {
  std::vector<int64_t> everyone(static_cast<size_t>(c.size()));
  std::iota(everyone.begin(), everyone.end(), 0);
  std::string* const texts[] = {&info.numerics_version, &info.config, &info.chain_head, &info.measured};
  using Sizes = std::array<int64_t, 6>;
  Bytes mine, body;
  append_value(mine, Sizes{info.step, info.kind == checkpoint::Kind::kPermanent ? 1 : 0,
                           static_cast<int64_t>(texts[0]->size()), static_cast<int64_t>(texts[1]->size()),
                           static_cast<int64_t>(texts[2]->size()), static_cast<int64_t>(texts[3]->size())});
  ASSIGN_OR_RETURN(const std::vector<Bytes> heads,
                   exchange(c, everyone, mine, std::vector<size_t>(everyone.size(), mine.size())));
  const auto sizes = Reader(heads[0]).value<Sizes>();
  if (c.rank() == 0)
    for (const std::string* text : texts) append(body, std::as_bytes(std::span(*text)));
  std::vector<size_t> expected(everyone.size(), 0);
  expected[0] = static_cast<size_t>(sizes[2] + sizes[3] + sizes[4] + sizes[5]);
  ASSIGN_OR_RETURN(const std::vector<Bytes> bodies, exchange(c, everyone, body, expected));
  Reader reader(bodies[0]);
  info.step = sizes[0];
  info.kind = sizes[1] != 0 ? checkpoint::Kind::kPermanent : checkpoint::Kind::kTemporary;
  for (size_t i = 0; i < 4; ++i) {
    texts[i]->resize(static_cast<size_t>(sizes[i + 2]));
    reader.read(std::as_writable_bytes(std::span(*texts[i])));
  }
  return Status();
}

}  // namespace ostro::fleet
