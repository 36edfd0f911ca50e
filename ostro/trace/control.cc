#include "ostro/trace/control.h"

#include <fmt/format.h>

#include <algorithm>

#include "ostro/trace/error.h"
#include "ostro/trace/frame.h"

namespace ostro {
namespace {

using ir::OpKind;

struct Region {
  ir::Block block;
  Arrays captures;
};

// Traces f into a block. Its first parameters have the shapes of `args`; the captures follow.
Region trace_region(const Arrays& args, const std::function<Arrays(const Arrays&)>& f,
                    const std::vector<Shape>* shapes = nullptr) {
  Frame frame;
  Arrays params;
  for (size_t i = 0; i < args.size(); ++i)
    params.push_back(
        frame.add_param(shapes != nullptr ? (*shapes)[i] : args[i].shape(), args[i].use_dtype()));
  Region r;
  frame.set_results(f(params));
  r.captures = frame.captures();
  r.block = std::move(frame.block());
  return r;
}

bool same_value(const Array& a, const Array& b) {
  return a.node()->frame_serial == b.node()->frame_serial && a.node()->id == b.node()->id;
}

// Gives all branches the same list of captures (they have no other parameters) and returns it. Each value is
// in it once, so that its cotangent is one contribution. The order is that of first use, earlier branches
// first.
Arrays share_captures(const std::vector<Region*>& branches) {
  Arrays all;
  for (const Region* r : branches)
    for (const Array& a : r->captures)
      if (std::none_of(all.begin(), all.end(), [&](const Array& b) { return same_value(a, b); }))
        all.push_back(a);
  for (Region* r : branches) {
    const std::vector<ir::ValueId> mine = std::move(r->block.params);
    r->block.params.clear();
    for (const Array& a : all) {
      const auto at = std::find_if(r->captures.begin(), r->captures.end(),
                                   [&](const Array& b) { return same_value(a, b); });
      r->block.params.push_back(at != r->captures.end() ? mine[static_cast<size_t>(at - r->captures.begin())]
                                                        : r->block.add_value(a.shape()));
    }
  }
  return all;
}

// Control flow that is called outside a trace is traced into a small program, which then runs.
Arrays run_eagerly(const std::string& name, const Arrays& args,
                   const std::function<Arrays(const Arrays&)>& f) {
  std::vector<Shape> shapes;
  std::vector<runtime::Buffer> inputs;
  for (const Array& a : args) {
    shapes.push_back(a.shape());
    inputs.push_back(a.buffer());
  }
  const ir::Program p = trace_program(name, shapes, [&](const Arrays& params) {
    Arrays tagged;
    for (size_t i = 0; i < params.size(); ++i) tagged.push_back(params[i].tagged(args[i].use_dtype()));
    return f(tagged);
  });
  auto executable = default_engine().compile(p);
  if (!executable.ok()) throw TraceError(executable.error().message());
  auto results = (*executable)->run(std::move(inputs));
  if (results.ok()) results = runtime::all_to(std::move(*results), runtime::host_memory());
  if (!results.ok()) throw TraceError(results.error().message());
  Arrays out;
  for (runtime::Buffer& b : *results) out.emplace_back(std::move(b));
  return out;
}

}  // namespace

int64_t scan_length(const Arrays& xs, const std::string& axis, Loc loc) {
  if (xs.empty()) trace_fail(fmt::format("scan: no arrays to go along \"{}\"", axis), loc);
  return xs[0].size(axis, loc);
}

// Outside a trace the whole loop becomes one small program. Inside, the body is traced once, on parameters
// with the shapes of the carries and of one slice of every xs; the values of outer frames that it captures
// become the loop's constants.
std::pair<Arrays, Arrays> scan_arrays(
    const std::string& axis, const Arrays& init, const Arrays& xs, int64_t length,
    const std::function<std::pair<Arrays, Arrays>(const Arrays&, const Arrays&)>& body, bool reverse,
    Loc loc) {
  const auto n_init = static_cast<int64_t>(init.size());
  if (Frame::current() == nullptr) {
    Arrays args = init;
    args.insert(args.end(), xs.begin(), xs.end());
    const Arrays out = run_eagerly("scan", args, [&](const Arrays& a) {
      auto [c, y] = scan_arrays(axis, Arrays(a.begin(), a.begin() + n_init),
                                Arrays(a.begin() + n_init, a.end()), length, body, reverse, loc);
      c.insert(c.end(), y.begin(), y.end());
      return c;
    });
    return {Arrays(out.begin(), out.begin() + n_init), Arrays(out.begin() + n_init, out.end())};
  }
  Arrays args;
  std::vector<Shape> shapes;
  for (const Array& a : init) {
    args.push_back(a);
    shapes.push_back(a.use_dtype() ? a.shape().with_dtype(*a.use_dtype()) : a.shape());
  }
  for (const Array& a : xs) {
    if (a.shape().axes.empty() || a.shape().axes[0].name != axis || a.shape().axes[0].size != length)
      trace_fail(fmt::format("scan: {} is scanned over \"{}\" of {}: that axis must be its first",
                             a.shape().str(), axis, length),
                 loc);
    args.push_back(a);
    shapes.push_back(a.shape().without(axis));
  }
  // Carries are read (a tagged parameter as a carry would change type from one iteration to the next).
  Arrays operands_init;
  for (const Array& a : init)
    operands_init.push_back(a.use_dtype() ? Frame::current()->wrap(Frame::current()->read(a)) : a);
  for (int64_t i = 0; i < n_init; ++i) args[static_cast<size_t>(i)] = operands_init[static_cast<size_t>(i)];
  Region r = trace_region(
      args,
      [&](const Arrays& p) {
        auto [c, y] = body(Arrays(p.begin(), p.begin() + n_init), Arrays(p.begin() + n_init, p.end()));
        if (c.size() != init.size())
          trace_fail(fmt::format("scan: the body returns {} carries, {} went in", c.size(), init.size()),
                     loc);
        for (size_t i = 0; i < c.size(); ++i)
          if (c[i].shape() != p[i].shape())
            trace_fail(fmt::format("scan: carry {} goes in as {} and comes out as {}; cast or broadcast it",
                                   i, p[i].shape().str(), c[i].shape().str()),
                       loc);
        c.insert(c.end(), y.begin(), y.end());
        return c;
      },
      &shapes);
  // scan wants its constants first: move the captures in front.
  std::vector<ir::ValueId> params(r.block.params.begin() + static_cast<int64_t>(args.size()),
                                  r.block.params.end());
  params.insert(params.end(), r.block.params.begin(),
                r.block.params.begin() + static_cast<int64_t>(args.size()));
  r.block.params = std::move(params);
  Arrays operands = r.captures;
  operands.insert(operands.end(), operands_init.begin(), operands_init.end());
  operands.insert(operands.end(), xs.begin(), xs.end());
  const Arrays out = apply_n(OpKind::scan, operands,
                             {{"axis", axis},
                              {"length", length},
                              {"consts", static_cast<int64_t>(r.captures.size())},
                              {"carries", n_init},
                              {"reverse", int64_t{reverse}}},
                             {std::move(r.block)}, loc);
  return {Arrays(out.begin(), out.begin() + n_init), Arrays(out.begin() + n_init, out.end())};
}

// The branches have no arguments: all their inputs are captures, which become the parameters of both.
Arrays cond_arrays(const Array& pred, const std::function<Arrays()>& then,
                   const std::function<Arrays()>& otherwise, Loc loc) {
  if (Frame::current() == nullptr)
    return run_eagerly("cond", {pred},
                       [&](const Arrays& p) { return cond_arrays(p[0], then, otherwise, loc); });
  Region a = trace_region({}, [&](const Arrays&) { return then(); });
  Region b = trace_region({}, [&](const Arrays&) { return otherwise(); });
  Arrays operands{pred};
  // Tagged parameters are passed raw; the `use` stands inside the branch.
  for (const Array& c : share_captures({&a, &b})) operands.push_back(c.tagged(std::nullopt));
  return apply_n(OpKind::cond, operands, {}, {std::move(a.block), std::move(b.block)}, loc);
}

// The op has three regions: f itself, which runs when nothing is differentiated; forward, which returns f's
// results and then the residuals; backward. None may capture values: a captured value would get no cotangent.
Arrays custom_vjp_arrays(const std::function<Arrays(const Arrays&)>& f,
                         const std::function<std::pair<Arrays, Arrays>(const Arrays&)>& forward,
                         const std::function<Arrays(const Arrays&, const Arrays&)>& backward,
                         const Arrays& args, Loc loc) {
  if (Frame::current() == nullptr)
    return run_eagerly("custom", args,
                       [&](const Arrays& a) { return custom_vjp_arrays(f, forward, backward, a, loc); });
  Arrays plain;
  for (const Array& a : args)
    plain.push_back(a.use_dtype() ? Frame::current()->wrap(Frame::current()->read(a)) : a);
  Region primal = trace_region(plain, f);
  size_t n_results = 0;
  Region fwd = trace_region(plain, [&](const Arrays& a) {
    auto [results, residuals] = forward(a);
    n_results = results.size();
    results.insert(results.end(), residuals.begin(), residuals.end());
    return results;
  });
  if (!primal.captures.empty() || !fwd.captures.empty())
    trace_fail("custom_vjp: pass every traced value as an argument", loc);
  const auto out_shape = [&](size_t i) { return fwd.block.shape(fwd.block.results[i]); };
  const size_t n_all = fwd.block.results.size();
  std::vector<Shape> bwd_shapes;
  for (size_t i = n_results; i < n_all; ++i) bwd_shapes.push_back(out_shape(i));
  for (size_t i = 0; i < n_results; ++i) bwd_shapes.push_back(out_shape(i));
  Region bwd = trace_region(
      Arrays(n_all),
      [&](const Arrays& p) {
        const auto residuals = static_cast<int64_t>(n_all - n_results);
        return backward(Arrays(p.begin(), p.begin() + residuals), Arrays(p.begin() + residuals, p.end()));
      },
      &bwd_shapes);
  if (!bwd.captures.empty())
    trace_fail("custom_vjp: backward may use its residuals and cotangents only", loc);
  if (bwd.block.results.size() != args.size())
    trace_fail(fmt::format("custom_vjp: backward returns {} cotangents for {} arguments",
                           bwd.block.results.size(), args.size()),
               loc);
  return apply_n(OpKind::custom, plain, {},
                 {std::move(primal.block), std::move(fwd.block), std::move(bwd.block)}, loc);
}

}  // namespace ostro
