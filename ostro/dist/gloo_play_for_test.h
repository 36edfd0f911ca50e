// play, run_gloo_workers: groups of workers that are threads of this process, connected by Gloo, for tests.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ostro/dist/gloo_group.h"
#include "ostro/dist/group_cases_for_test.h"
#include "ostro/dist/key_value_for_test.h"

namespace ostro::dist {

inline ir::Mesh line(int64_t workers) { return {{{"x", workers}}}; }

// Every rank a thread, with what it makes of its group, or of the error of connecting.
using Play = std::function<void(int64_t rank, Result<std::unique_ptr<Group>> group)>;
inline void play(const ir::Mesh& mesh, const Play& part,
                 const std::function<GlooOptions(int64_t rank)>& options = {}, KeyValue* other = nullptr) {
  MemoryKeyValue here;
  KeyValue& store = other != nullptr ? *other : here;
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < mesh.size(); ++rank)
    threads.emplace_back([&, rank] {
      part(rank, connect_gloo(mesh, rank, store, "test/", options ? options(rank) : GlooOptions{}));
    });
  for (std::thread& t : threads) t.join();
}

// By rank, what came of a group of so many workers: "connected", or "works" where `work` was done, too; else
// the error.
inline std::vector<std::string> outcomes(int64_t workers,
                                         const std::function<GlooOptions(int64_t rank)>& options,
                                         const std::function<Status(Group&)>& work = {},
                                         KeyValue* store = nullptr) {
  std::vector<std::string> out(static_cast<size_t>(workers));
  play(
      line(workers),
      [&](int64_t rank, Result<std::unique_ptr<Group>> group) {
        Status status = group.ok() ? Status() : Status(group.error());
        if (status.ok() && work) status = work(**group);
        out[static_cast<size_t>(rank)] = !status.ok() ? status.error().message()
                                         : work       ? "works"
                                                      : "connected";
      },
      options, store);
  return out;
}

// As run_workers: the first failure is the result and ends all. Connecting may take long on a busy machine,
// which is no failure of the work.
inline Status run_gloo_workers(const ir::Mesh& mesh, const Work& work, GlooOptions options = {}) {
  options.connect_timeout = std::chrono::minutes(2);
  std::mutex mutex;
  Status first;
  play(
      mesh,
      [&](int64_t, Result<std::unique_ptr<Group>> group) {
        const Status status = group.ok() ? work(**group) : Status(group.error());
        if (status.ok()) return;
        {
          const std::lock_guard lock(mutex);
          if (first.ok()) first = status;
        }
        if (group.ok()) (*group)->abort(status.error().message());
      },
      [&](int64_t) { return options; });
  return first;
}

}  // namespace ostro::dist
