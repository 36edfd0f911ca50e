#include "ostro/ir/text/sub_program.h"

#include <algorithm>

#include "ostro/ir/text/canonical_order.h"

namespace ostro::ir {

Program sub_program(const Program& program, const std::string& name, const std::vector<ValueId>& params,
                    const std::vector<ValueId>& results) {
  Program out{name, program.leaves, program.body, {}, {}};
  // An op that makes several values may still be needed for the others.
  for (Op& op : out.body.ops)
    for (ValueId& v : op.results)
      if (std::find(params.begin(), params.end(), v) != params.end())
        v = out.body.add_value(Shape(out.body.shape(v)));
  out.body.params = params;
  out.body.results = results;
  canonical_order(out.body);
  return out;
}

}  // namespace ostro::ir
