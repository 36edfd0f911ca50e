// Signatures: the places of what programs take and give, and what is said of programs of another version.
#include "ostro/train/programs/signature.h"

#include <doctest/doctest.h>

#include "ostro/train/options/llama_for_test.h"
#include "ostro/train/programs/programs.h"
#include "ostro/train/programs/watch.h"

namespace ostro::train {
namespace {

TrainConfig named_config() {
  TrainConfig c = tiny_llama();
  c.chain.leaf_gradients = true;
  c.trainer.watch_norms = {"parameters", "gradients"};
  std::get<optim::AdamOptions>(c.optimizer).groups["head"] = {{"*/head/*"}, 1, {}, 2.0};
  check_ok(c.resolve());
  return c;
}

CanonicalPrograms named_programs() {
  const TrainConfig c = named_config();
  return make_programs(c, c.model_options().functions(7, compute_dtype(c))).value();
}

// Of the programs as a file says them, with `from` replaced by `to` in the whole text.
std::string error_with(const std::string& from, const std::string& to) {
  std::string text = print_programs(named_programs());
  size_t replaced = 0;
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()), ++replaced)
    text.replace(at, from.size(), to);
  REQUIRE(replaced > 0);
  const auto parsed = parse_programs(text);
  return parsed.ok() ? "" : parsed.error().message();
}

TEST_CASE("signatures say where everything is") {
  const CanonicalPrograms p = named_programs();
  const Signatures at = signatures_of(p);
  const size_t n = at.model.paths.size();
  REQUIRE(n > 2);
  CHECK(at.trained() == n);
  CHECK(at.leaf_params.batch.size() == 3);
  CHECK(at.leaf_results.fingerprints.size() == n);
  CHECK(at.update_results.optimizer.size() == 2 * n);
  CHECK(at.update_results.measures.group_norms.size() == 2);  // "head" and "others"
  const auto names = read_fields(at.update_results, p.update.result_names);
  CHECK(names.measures.gradient_norm == "gradient_norm");
  CHECK(names.measures.group_norms[0] == "gradient_norm/head");
  CHECK(names.report.fingerprints[1] == "fingerprint/" + at.model.paths[1]);
  const std::vector<std::string> watched = watch_names(p.update);
  CHECK(names.measures.watched.size() == names.report.watched.size());
  CHECK(watched.front() == names.measures.watched[0]);
  CHECK(watched.back() == names.report.watched.back());
  CHECK(watched.front().find("watch/grad_norm/") == 0);
  // Nothing is left out and nothing is twice.
  CHECK(as_list(names) == p.update.result_names);
  CHECK(as_list(read_fields(at.update_params, p.update.param_names)) == p.update.param_names);
  CHECK(as_list(read_fields(at.leaf_results, p.leaf.result_names)) == p.leaf.result_names);
  CHECK(as_list(read_fields(at.leaf_params, p.leaf.param_names)) == p.leaf.param_names);
}

TEST_CASE("programs that take or give something else are refused by name") {
  CHECK(error_with("\"ok\"", "\"fine\"").find("the program \"update\": result") != std::string::npos);
  CHECK(error_with("\"ok\"", "\"fine\"").find("is \"fine\" bool[], but \"ok\" bool[] is expected") !=
        std::string::npos);
  CHECK(error_with("\"loss_sum\"", "\"sum\"")
            .find("the program \"leaf\": result 0 is \"sum\" f64[], but "
                  "\"loss_sum\" f64[] is expected") != std::string::npos);
  const std::string path = named_programs().init.result_names[0];
  CHECK(error_with("\"gradient/" + path + "\"", "\"gradient/other\"").find("is \"gradient/other\" ") !=
        std::string::npos);
}

TEST_CASE("measures are the same numbers when they come back from buffers") {
  Measured measured;
  measured.loss = 1.5, measured.gradient_norm = 0.1, measured.ok = 1;
  measured.group_norms = {2.25, 1e-300};
  CHECK(as_list(numbers_of(buffers_of(measured)).value()) == as_list(measured));
}

}  // namespace
}  // namespace ostro::train
