// Exchanges between workers (docs/spec/numerics.md, N8): what a worker sends is copied to the host, the
// transport moves it, and what comes is copied to the device, where a kernel joins it in the order of the
// workers. Dense operands. Results: the op's, then the working memory (compile/plan/exchange_scratch.h).
#include <algorithm>

#include "ostro/base/wait_label.h"
#include "ostro/compile/plan/exchange_parts.h"
#include "ostro/cuda/routines/routines.h"
#include "ostro/ir/rules/collective_parts.h"

namespace ostro::cuda {
namespace {

using compile::Cut, compile::Peers;
using ir::OpKind;

// Bytes from a place on.
struct Range {
  int64_t at = 0, bytes = 0;
  int64_t end() const { return at + bytes; }
};

// What is sent to and comes from each of the peers: ranges of device memory behind `from` and `to`. Nothing
// goes between a worker and itself.
struct Messages {
  gpu::Address from, to;
  std::vector<Range> send, receive;
  explicit Messages(size_t peers) : send(peers), receive(peers) {}
};

// The same bytes in ascending order, each once.
std::vector<Range> merged(std::vector<Range> ranges) {
  std::erase_if(ranges, [](const Range& r) { return r.bytes == 0; });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.at < b.at; });
  std::vector<Range> out;
  for (const Range& r : ranges)
    if (!out.empty() && r.at <= out.back().end())
      out.back().bytes = std::max(out.back().end(), r.end()) - out.back().at;
    else
      out.push_back(r);
  return out;
}

// Where a range lies in the host's memory of an exchange, which has the merged ranges one behind the other.
int64_t place_in(const std::vector<Range>& merged, const Range& range) {
  int64_t at = 0;
  for (const Range& m : merged) {
    if (range.at < m.end()) return at + range.at - m.at;
    at += m.bytes;
  }
  return at;
}

int64_t bytes_of(const std::vector<Range>& ranges) {
  int64_t bytes = 0;
  for (const Range& r : ranges) bytes += r.bytes;
  return bytes;
}

Status move(const StepCall& call, const Peers& peers, const Messages& messages) {
  const std::vector<Range> out = merged(messages.send), in = merged(messages.receive);
  const auto sent = static_cast<size_t>(bytes_of(out)), received = static_cast<size_t>(bytes_of(in));
  if (call.host.size() < sent + received) call.host.resize(sent + received);
  const std::span<std::byte> outgoing = std::span(call.host).first(sent),
                             incoming = std::span(call.host).subspan(sent, received);
  const auto part = [](std::span<std::byte> host, const std::vector<Range>& all, const Range& range) {
    return host.subspan(static_cast<size_t>(place_in(all, range)), static_cast<size_t>(range.bytes));
  };
  for (const Range& r : out)
    RETURN_IF_ERROR(call.device().read(messages.from + r.at, part(outgoing, out, r)));
  std::vector<std::span<const std::byte>> send(peers.ranks.size());
  std::vector<std::span<std::byte>> receive(peers.ranks.size());
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    if (messages.send[p].bytes > 0) send[p] = part(outgoing, out, messages.send[p]);
    if (messages.receive[p].bytes > 0) receive[p] = part(incoming, in, messages.receive[p]);
  }
  {
    const Span span(&wait_label(Wait::kWorkers));
    if (const Status done = call.context.collectives->exchange(peers.ranks, send, receive); !done.ok())
      return done.error().with_context(call.place);
  }
  for (const Range& r : in) RETURN_IF_ERROR(call.device().write(messages.to + r.at, part(incoming, in, r)));
  return Status();
}

Result<Peers> peers_of(const StepCall& call, const char* mesh_axes, size_t workers) {
  return compile::peers_of(call.step.op, call.attrs(), mesh_axes, workers, call.context.collectives);
}

int64_t element_size(const DeviceArray& a) { return ir::dtype_size(a.dtype()); }

// An array of that shape that lies together.
DevicePart dense(const ir::Shape& shape, gpu::Address at) { return {compile::View::whole(0, shape), at}; }

DevicePart part_of(const DeviceArray& x, const std::string& axis, const Cut& cut, size_t number) {
  return cuda::part_of(x, axis, cut.bounds[number], cut.bounds[number + 1] - cut.bounds[number]);
}

// Where the parts of x lie one behind the other: in x, or in `packed`, to which they are copied.
Result<gpu::Address> parts_together(const StepCall& call, const Cut& cut, const DeviceArray& packed) {
  const DeviceArray& x = call.in[0];
  if (cut.together()) return x.at;
  for (size_t p = 0; p + 1 < cut.bounds.size(); ++p) {
    const DevicePart from = part_of(x, call.attrs().str("axis"), cut, p);
    const DevicePart to = dense(from.view.shape, packed.at + cut.start(p) * element_size(x));
    RETURN_IF_ERROR(copy_view(call, from.array(), to.array()));
  }
  return packed.at;
}

// `count` elements of `slices` slices, joined as the op says.
Status join(const StepCall& call, gpu::Address own, gpu::Address received, int64_t place, int64_t slices,
            int64_t count, gpu::Address to) {
  const OpKind kind = call.step.op;
  const int64_t joins = kind == OpKind::all_reduce_max    ? args::JOIN_MAX
                        : kind == OpKind::all_reduce_int  ? args::JOIN_SUM
                        : kind == OpKind::all_reduce_bits ? args::JOIN_BITS
                                                          : args::JOIN_TREE;
  args::JoinArgs a = {own.at, received.at, to.at, joins, type_number(call.in[0].dtype()),
                      count,  slices,      place};
  if (kind == OpKind::all_reduce_bits) {
    a.type = args::TYPE_BOOL;
    a.count *= element_size(call.in[0]);
  }
  return call.launch("routines/exchange.cu", "join_slices", a.count, a);
}

// Sends every worker its part of what lies at x, part behind part, and joins what comes of this worker's.
Status reduce_part(const StepCall& call, const Peers& peers, const Cut& cut, gpu::Address x,
                   gpu::Address to) {
  const int64_t size = element_size(call.in[0]), n = cut.count(peers.me);
  Messages messages(peers.ranks.size());
  messages.from = x;
  messages.to = call.out[1].at;
  int64_t at = 0;
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    if (p == peers.me) continue;
    messages.send[p] = {cut.start(p) * size, cut.count(p) * size};
    messages.receive[p] = {at, n * size};
    at += n * size;
  }
  RETURN_IF_ERROR(move(call, peers, messages));
  return join(call, x + cut.start(peers.me) * size, messages.to, static_cast<int64_t>(peers.me),
              static_cast<int64_t>(peers.ranks.size()), n, to);
}

// Every worker sends `bytes` bytes at `own` to the others; theirs go to the places that `place_of` gives.
template <typename PlaceOf>
Status gather(const StepCall& call, const Peers& peers, gpu::Address own, int64_t bytes, gpu::Address to,
              PlaceOf&& place_of) {
  Messages messages(peers.ranks.size());
  messages.from = own;
  messages.to = to;
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    if (p == peers.me) continue;
    messages.send[p] = {0, bytes};
    messages.receive[p] = place_of(p);
  }
  return move(call, peers, messages);
}

}  // namespace

Status run_all_gather(const StepCall& call) {
  const DeviceArray &x = call.in[0], &out = call.out[0];
  const auto& bounds = call.attrs().ints("bounds");
  const std::string& axis = call.attrs().str("axis");
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", bounds.size() - 1));
  const Cut cut(out.shape(), axis, bounds);
  RETURN_IF_ERROR(compile::check_part(call.step.op, cut, peers.me, x.shape()));
  RETURN_IF_ERROR(copy_view(call, x, part_of(out, axis, cut, peers.me).array()));
  const int64_t size = element_size(out);
  if (cut.together())
    return gather(call, peers, x.at, x.shape().bytes(), out.at,
                  [&](size_t p) { return Range{cut.start(p) * size, cut.count(p) * size}; });
  std::vector<int64_t> at(peers.ranks.size() + 1, 0);  // parts are received together, without this worker's
  for (size_t p = 0; p < peers.ranks.size(); ++p)
    at[p + 1] = at[p] + (p == peers.me ? 0 : cut.count(p) * size);
  RETURN_IF_ERROR(gather(call, peers, x.at, x.shape().bytes(), call.out[1].at,
                         [&](size_t p) { return Range{at[p], at[p + 1] - at[p]}; }));
  for (size_t p = 0; p < peers.ranks.size(); ++p) {
    if (p == peers.me) continue;
    const DevicePart to = part_of(out, axis, cut, p);
    RETURN_IF_ERROR(copy_view(call, dense(to.view.shape, call.out[1].at + at[p]).array(), to.array()));
  }
  return Status();
}

Status run_reduce_scatter(const StepCall& call) {
  const auto& bounds = call.attrs().ints("bounds");
  RETURN_IF_ERROR(compile::check_join(call.step.op, call.in[0].shape()));
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", bounds.size() - 1));
  const Cut cut(call.in[0].shape(), call.attrs().str("axis"), bounds);
  RETURN_IF_ERROR(compile::check_part(call.step.op, cut, peers.me, call.out[0].shape()));
  ASSIGN_OR_RETURN(const gpu::Address x, parts_together(call, cut, call.out[2]));
  return reduce_part(call, peers, cut, x, call.out[0].at);
}

Status run_all_reduce(const StepCall& call) {
  const DeviceArray &x = call.in[0], &out = call.out[0];
  const int64_t workers = call.attrs().i64("workers");
  RETURN_IF_ERROR(compile::check_join(call.step.op, x.shape()));
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axis", static_cast<size_t>(workers)));
  if (ir::reduces_in_parts(x.shape(), workers)) {
    const Cut cut(ir::reduced_parts(x.count(), workers));
    const int64_t size = element_size(x);
    const gpu::Address own = out.at + cut.start(peers.me) * size;
    RETURN_IF_ERROR(reduce_part(call, peers, cut, x.at, own));
    return gather(call, peers, own, cut.count(peers.me) * size, out.at,
                  [&](size_t p) { return Range{cut.start(p) * size, cut.count(p) * size}; });
  }
  const int64_t bytes = x.shape().bytes();
  RETURN_IF_ERROR(gather(call, peers, x.at, bytes, call.out[1].at, [&](size_t p) {
    return Range{static_cast<int64_t>(p < peers.me ? p : p - 1) * bytes, bytes};
  }));
  return join(call, x.at, call.out[1].at, static_cast<int64_t>(peers.me), workers, x.count(), out.at);
}

Status run_exchange_leaves(const StepCall& call) {
  const auto &owners = call.attrs().ints("owners"), &firsts = call.attrs().ints("firsts"),
             &counts = call.attrs().ints("counts");
  const int64_t part = call.attrs().i64("part");
  ASSIGN_OR_RETURN(const Peers peers, peers_of(call, "mesh_axes", owners.size()));
  if (owners[peers.me] != part)
    return invalid_argument(fmt::format("exchange_leaves: part {} of owners [{}] at place {} of {} peers",
                                        part, fmt::join(owners, ", "), peers.me, owners.size()));
  const std::string axis = call.attrs().str("axis", "");
  const Cut cut(call.in[0].shape(), axis,
                axis.empty() ? std::vector<int64_t>() : call.attrs().ints("bounds"));
  ASSIGN_OR_RETURN(const gpu::Address x, parts_together(call, cut, call.out[2]));
  // Peers without a leaf send nothing.
  std::vector<char> has_leaf(owners.size(), 0);
  for (size_t i = 0; i < firsts.size(); ++i) std::fill_n(has_leaf.begin() + firsts[i], counts[i], 1);
  constexpr int64_t kSize = sizeof(float);
  const int64_t n = cut.count(static_cast<size_t>(part));
  Messages messages(owners.size());
  messages.from = x;
  messages.to = call.out[1].at;
  std::vector<int64_t> received(owners.size(), 0);  // where the part of each peer begins
  int64_t at = 0;
  for (size_t p = 0; p < owners.size(); ++p) {
    received[p] = at;
    if (p == peers.me) continue;
    const auto theirs = static_cast<size_t>(owners[p]);
    if (has_leaf[peers.me] != 0) messages.send[p] = {cut.start(theirs) * kSize, cut.count(theirs) * kSize};
    if (has_leaf[p] != 0) messages.receive[p] = {at, n * kSize};
    at += messages.receive[p].bytes;
  }
  RETURN_IF_ERROR(move(call, peers, messages));
  const gpu::Address own = x + cut.start(static_cast<size_t>(part)) * kSize;
  for (size_t i = 0; i < firsts.size(); ++i) {
    const int64_t place = static_cast<int64_t>(peers.me) - firsts[i];
    RETURN_IF_ERROR(join(call, own, messages.to + received[static_cast<size_t>(firsts[i])],
                         place < 0 ? counts[i] : place, counts[i], n,
                         call.out[0].at + static_cast<int64_t>(i) * n * kSize));
  }
  return Status();
}

}  // namespace ostro::cuda
