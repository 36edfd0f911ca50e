// Ops with regions. A region has no values but its parameters; it inherits the Program's leaf table.
#include "ostro/interp/core/elements.h"
#include "ostro/interp/core/families.h"
#include "ostro/interp/core/index_space.h"

namespace ostro::interp {

Result<Buffers> run_scan(const Call& call) {
  const std::string& axis = call.op.attrs.str("axis");
  const int64_t length = call.op.attrs.i64("length");
  const int64_t consts = call.op.attrs.i64("consts"), carries = call.op.attrs.i64("carries");
  const bool reverse = call.op.attrs.i64("reverse", 0) != 0;
  const auto count = static_cast<int64_t>(call.in.size()), out_count = static_cast<int64_t>(call.out.size());

  Buffers results(call.in.begin() + consts, call.in.begin() + consts + carries);
  for (int64_t i = carries; i < out_count; ++i) results.push_back(Buffer::zeros(call.out[i]));
  for (int64_t step = 0; step < length; ++step) {
    const int64_t index = reverse ? length - 1 - step : step;
    Buffers args(call.in.begin(), call.in.begin() + consts);
    args.insert(args.end(), results.begin(), results.begin() + carries);
    for (int64_t i = consts + carries; i < count; ++i)
      args.push_back(pick(call.in[i], call.shape(i).without(axis), part(call.shape(i), axis, index, 1)));
    ASSIGN_OR_RETURN(Buffers out, run_block(call.op.regions[0], std::move(args), call.leaves, call.context));
    for (int64_t i = 0; i < carries; ++i) results[i] = out[i];
    for (int64_t i = carries; i < out_count; ++i)
      place(results[i], out[i], part(call.out[i], axis, index, 1));
  }
  return results;
}

Result<Buffers> run_cond(const Call& call) {
  const bool predicate = call.in[0].item<uint8_t>() != 0;
  return run_block(call.op.regions[predicate ? 0 : 1], Buffers(call.in.begin() + 1, call.in.end()),
                   call.leaves, call.context);
}

Result<Buffers> run_custom(const Call& call) {
  return run_block(call.op.regions[0], call.in, call.leaves, call.context);
}

}  // namespace ostro::interp
