#include "ostro/infer/weights/cut_weights.h"

#include "ostro/base/check.h"
#include "ostro/infer/traced.h"
#include "ostro/infer/weights/readers.h"
#include "ostro/trace/ops.h"

namespace ostro::infer {
std::vector<size_t> take_cut_weights(ir::Program& p, const std::vector<size_t>& inputs,
                                     const std::vector<ir::Shape>& given) {
  ir::Block& body = p.body;
  std::vector<size_t> out;
  for (const size_t k : inputs) {
    std::vector<size_t> chain = readers_of(body, body.params[k]);  // `use`, if there is one, and `quantize`
    if (chain.empty()) {
      body.values[static_cast<size_t>(body.params[k])] = given[k];
      continue;
    }
    std::vector<size_t> last = chain;
    if (is_plain_use(body, body.ops[chain[0]])) {
      last = readers_of(body, body.ops[chain[0]].results[0]);
      chain.insert(chain.end(), last.begin(), last.end());
    }
    OSTRO_CHECK(last.size() == 1 && chain.size() <= 2 && body.ops[last[0]].kind == ir::OpKind::quantize &&
                    body.ops[last[0]].operands.size() == 1,
                "input {} of {}, a weight of which integers were cut, is read otherwise, too", k, p.name);
    const std::vector<ir::ValueId> cut = body.ops[last[0]].results;
    body.params[k] = cut[0];
    body.params.push_back(cut[1]);
    out.push_back(k);
    for (size_t i = chain.size(); i-- > 0;) body.ops.erase(body.ops.begin() + static_cast<int64_t>(chain[i]));
  }
  return out;
}

Result<std::unique_ptr<runtime::Executable>> cut_program(runtime::Engine& engine, const ir::Shape& weight,
                                                         const std::vector<std::string>& over,
                                                         int64_t block) {
  ASSIGN_OR_RETURN(const ir::Program p, traced("cut", {weight}, {}, [&](const Arrays& in) {
                     const Quantized cut = quantize(in[0], over, block);
                     return Arrays{cut.q, cut.scales};
                   }));
  return engine.compile(p, {});
}

}  // namespace ostro::infer
