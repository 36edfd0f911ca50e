#include "ostro/cuda/admission/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <vector>

#include "ostro/base/parallel.h"
#include "ostro/numerics/fp_env.h"

namespace ostro::cuda {
namespace {

constexpr int64_t kPart = int64_t{1} << 16;  // results that a thread compares at a time

bool is_nan(uint32_t bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

// Adds to `out` what differs among the results of one launch, of which the first is number `before`.
Status add_differences(const BitsCheck& check, const args::BitsArgs& a, const std::vector<uint32_t>& got,
                       int64_t before, int threads, BitsCompared& out) {
  std::mutex mutex;
  int64_t lowest = a.count;
  RETURN_IF_ERROR(parallel_for((a.count + kPart - 1) / kPart, threads, [&](int64_t part) {
    const numerics::HostArithmetic environment;
    int64_t differ = 0, first = a.count;
    for (int64_t i = part * kPart; i < std::min<int64_t>(a.count, (part + 1) * kPart); ++i) {
      const uint32_t device = got[static_cast<size_t>(i)], host = check.host(a, i);
      if (device == host || (is_nan(device) && is_nan(host))) continue;
      if (differ++ == 0) first = i;
    }
    const std::lock_guard lock(mutex);
    out.differ += differ;
    lowest = std::min(lowest, first);
    return Status();
  }));
  if (lowest == a.count || !out.first.empty()) return Status();
  const numerics::HostArithmetic environment;
  out.first = fmt::format("case {}: {:#010x}, not {:#010x}", before + lowest,
                          got[static_cast<size_t>(lowest)], check.host(a, lowest));
  return Status();
}

}  // namespace

Result<BitsCompared> compare_results(gpu::Device& device, const BitsCheck& check, args::BitsArgs a,
                                     int64_t all, int threads, int64_t batch) {
  BitsCompared out{.name = check.name, .cases = all};
  std::vector<uint32_t> got(static_cast<size_t>(std::min(all, batch)));
  ASSIGN_OR_RETURN(const auto block, device.memory().allocate(static_cast<int64_t>(4 * got.size())));
  a.to = device.address(*block).at;
  for (int64_t at = 0; at < all; at += batch) {
    a.first = static_cast<uint64_t>(at / check.of_operands) * a.step;
    a.count = std::min(batch, all - at);
    const gpu::LaunchShape shape{.x = (a.count + check.of_block - 1) / check.of_block,
                                 .threads = check.threads};
    RETURN_IF_ERROR(
        device.launch(check.kernel, shape, std::as_bytes(std::span(&a, 1)), "the check of " + check.name));
    const auto results = std::span(got).first(static_cast<size_t>(a.count));
    RETURN_IF_ERROR(device.memory().read(*block, 0, std::as_writable_bytes(results)));
    RETURN_IF_ERROR(add_differences(check, a, got, at, threads, out));
  }
  return out;
}

}  // namespace ostro::cuda
