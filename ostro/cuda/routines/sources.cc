#include "ostro/cuda/routines/routines.h"

namespace ostro::cuda {
namespace {

constexpr const char* kSources = "routines/sources.cu";

}  // namespace

Status run_iota(const StepCall& call) {
  const int64_t n = call.out[0].count();
  return call.launch(kSources, "iota", n, args::IotaArgs{call.out[0].at.at, n, scalar_of(call.in[0])});
}

Status run_fold_in(const StepCall& call) {
  return call.launch(kSources, "fold_in", 1,
                     args::FoldInArgs{call.in[0].at.at, call.out[0].at.at, scalar_of(call.in[1])});
}

Status run_random(const StepCall& call) {
  const std::string& kind = call.attrs().str("kind");
  args::RandomArgs a = {};
  if (kind == "bits")
    a.draw = args::DRAW_BITS;
  else if (kind == "uniform")
    a.draw = args::DRAW_UNIFORM;
  else if (kind == "normal")
    a.draw = args::DRAW_NORMAL;
  else if (kind == "trunc_normal")
    a.draw = args::DRAW_TRUNC_NORMAL;
  else
    return invalid_argument(
        fmt::format("random: kind \"{}\"; use bits, uniform, normal or trunc_normal", kind));
  a.key = call.in[0].at.at;
  a.to = call.out[0].at.at;
  a.count = call.out[0].count();
  const std::vector<ir::Axis>& axes = call.out[0].shape().axes;
  const std::vector<int64_t>& sizes = call.attrs().ints("global_sizes");
  a.axes.rank = static_cast<int64_t>(axes.size());
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0; stride *= sizes[i]) {
    a.axes.size[i] = axes[i].size;
    a.axes.stride[i] = stride;
    a.origin[i] = scalar_of(call.in[i + 1]);
  }
  return call.launch(kSources, "draw_random", a.count, a);
}

}  // namespace ostro::cuda
