// AttentionAxes, Places: what the axes of attention's operands mean, and where the operands lie.
//
// Internal to cuda/attention. Borrows the StepCall. Errors: those of tables on the device.
#pragma once

#include <string>
#include <vector>

#include "ostro/cuda/steps/step_call.h"

namespace ostro::cuda {

inline constexpr int64_t kLeastQueries = 16;  // of a tile: fewer leave most of it empty
// Of tiles of at least 32, of which a launch has 65,535.
inline constexpr int64_t kMostPositions = 65535 * 32;

// What the axes of the operands mean. An axis of a mask is a batch axis, wherever it stands.
struct AttentionAxes {
  std::vector<ir::Axis> batch, kv, group, heads;
  std::string query, key, head_dim;

  AttentionAxes(const StepCall& call, size_t first_mask) {
    const ir::Shape &q = call.in[0].shape(), &k = call.in[1].shape();
    query = call.attrs().str("query");
    key = call.attrs().str("key");
    head_dim = q.axes.back().name;
    const size_t masks = call.in.size() - (call.attrs().i64("sink", 0) != 0 ? 1 : 0);
    bool before = true;
    for (const ir::Axis& a : q.axes) {
      if (a.name == query) {
        before = false;
      } else if (a.name == head_dim) {
        continue;
      } else if (!k.has(a.name)) {
        group.push_back(a);
      } else {
        bool masked = false;
        for (size_t i = first_mask; i < masks; ++i) masked = masked || call.in[i].shape().has(a.name);
        (before || masked ? batch : kv).push_back(a);
      }
    }
    heads = kv;
    heads.insert(heads.end(), group.begin(), group.end());
  }
};

// Places operands; their tables are numbered in the order of the calls.
class Places {
 public:
  Places(const StepCall& call, const AttentionAxes& axes) : call_(call), axes_(axes) {}

  // `row` and `column`: the axes that `pos` and `dim` step along.
  Result<args::AttentionPlace> of(const DeviceArray& a, const std::string& row, const std::string& column) {
    args::AttentionPlace p = {};
    p.at = a.at.at;
    p.type = type_number(a.dtype());
    p.pos = stride_along(a, row);
    p.dim = stride_along(a, column);
    ASSIGN_OR_RETURN(p.batch,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.batch, *a.view); }));
    ASSIGN_OR_RETURN(p.head,
                     call_.table(next_++, [&] { return compile::offsets_over(axes_.heads, *a.view); }));
    return p;
  }
  size_t next() { return next_++; }

 private:
  const StepCall& call_;
  const AttentionAxes& axes_;
  size_t next_ = 0;
};

}  // namespace ostro::cuda
