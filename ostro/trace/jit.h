// jit: traces a function of trees once per signature, compiles it with the default engine, and runs it many
// times.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ostro/trace/frame.h"
#include "ostro/trace/tree.h"

namespace ostro {

struct JitOptions {
  std::string name = "jit";
  // Indices of arguments whose buffers may be overwritten; the caller must move in the only handle.
  std::vector<int> donate;
  numerics::LeafTable leaves;  // part of the meaning (numerics.md N8)
  std::string remat = "none";  // as runtime::CompileOptions::remat
};

namespace jit_internal {
// Compiles or runs on the default engine; an engine's error becomes a TraceError.
std::shared_ptr<runtime::Executable> compile(const ir::Program& program,
                                             const runtime::CompileOptions& options);
std::vector<Array> run(runtime::Executable& executable, std::vector<runtime::Buffer> inputs);
}  // namespace jit_internal

// A compiled function of trees. Copies share the cache. A call on concrete arrays compiles the function (once
// per signature, tree_signature()) and runs it. A call inside a trace traces the function into the current
// program. Errors throw TraceError. A Jit and its copies must not be called from several threads at once.
template <typename F>
class Jit {
 public:
  Jit(F f, JitOptions options)
      : f_(std::move(f)), options_(std::move(options)), cache_(std::make_shared<Cache>()) {}

  template <typename... Args>
  auto operator()(Args... args) const {
    using R = std::invoke_result_t<const F&, const Args&...>;
    if (Frame::current() != nullptr) return R(f_(args...));
    std::string key = std::to_string(jit_internal::engine_serial());
    ((key += " & " + tree_signature(args)), ...);
    auto found = cache_->entries.find(key);
    if (found == cache_->entries.end()) {
      std::optional<R> like;
      const ir::Program p = trace(&like, args...);
      runtime::CompileOptions compile_options;
      compile_options.remat = options_.remat;
      compile_options.donate = donated_inputs(args...);
      // The entry is added last, so that a trace or compilation that throws leaves no entry in the cache.
      found = cache_->entries
                  .emplace(key, Entry{jit_internal::compile(p, compile_options),
                                      std::make_shared<R>(*std::move(like))})
                  .first;
    }
    const Entry& entry = found->second;
    std::vector<runtime::Buffer> inputs;
    (for_each_leaf(args,
                   [&](const std::string&, Array& a) {
                     inputs.push_back(a.buffer());
                     a = Array();  // lets go of the handle, so that a donated buffer can be reused
                   }),
     ...);
    return tree_with_leaves(*std::static_pointer_cast<R>(entry.like),
                            jit_internal::run(*entry.executable, std::move(inputs)));
  }

  // The program that a call with these arguments runs.
  template <typename... Args>
  ir::Program program(const Args&... args) const {
    std::optional<std::invoke_result_t<const F&, const Args&...>> like;
    return trace(&like, args...);
  }

 private:
  struct Entry {
    std::shared_ptr<runtime::Executable> executable;
    std::shared_ptr<void> like;
  };
  struct Cache {
    std::map<std::string, Entry> entries;
  };

  template <typename R, typename... Args>
  ir::Program trace(std::optional<R>* like, const Args&... args) const {
    Frame frame;
    std::vector<std::string> names;
    int number = 0;
    auto enter = [&](const auto& tree) {
      const std::string prefix = std::to_string(number++);
      return tree_map(tree, [&](const std::string& path, const Array& a) {
        names.push_back(tree_internal::join_path(prefix, path));
        return frame.add_param(a.shape(), a.use_dtype());
      });
    };
    std::tuple<Args...> params{enter(args)...};
    *like = std::apply(f_, params);
    frame.set_results(tree_leaves(**like));
    frame.refuse_captures(options_.name);
    ir::Program p;
    p.name = options_.name;
    p.leaves = options_.leaves;
    p.body = std::move(frame.block());
    p.param_names = std::move(names);
    return p;
  }

  template <typename... Args>
  std::vector<int64_t> donated_inputs(const Args&... args) const {
    std::vector<int64_t> out;
    int64_t at = 0;
    int number = 0;
    auto visit = [&](const auto& tree) {
      bool donate = false;
      for (int d : options_.donate) donate |= d == number;
      for_each_leaf(tree, [&](const std::string&, const Array&) {
        if (donate) out.push_back(at);
        ++at;
      });
      ++number;
    };
    (visit(args), ...);
    return out;
  }

  F f_;
  JitOptions options_;
  std::shared_ptr<Cache> cache_;
};

// Returns the compiled form of f, a function of trees that returns a tree. Nothing is traced before the first
// call.
template <typename F>
Jit<F> jit(F f, JitOptions options = {}) {
  return Jit<F>(std::move(f), std::move(options));
}

}  // namespace ostro
