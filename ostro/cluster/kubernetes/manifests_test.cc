// Manifests: their names, and what is in them only when it is wanted. tests/e2e/kubernetes_test.py validates
// them.
#include "ostro/cluster/kubernetes/manifests.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("names that Kubernetes takes") {
  for (const char* name : {"a", "ostro-nano-2"}) CHECK(check_kubernetes_name("--name", name).ok());
  for (const std::string& name : {std::string(), std::string("Nano"), std::string("a_b"), std::string("-a"),
                                  std::string("a-"), std::string("2a"), std::string(46, 'a')})
    CHECK(!check_kubernetes_name("--name", name).ok());
}

TEST_CASE("the secret is in one file, and what is not asked for in none") {
  KubernetesJob job{.name = "ostro-nano",
                    .image = "i",
                    .config = "a: \"b\"\nc: 1\n",
                    .secret = "s3cret",
                    .metrics_token = "t0ken",
                    .claim = "c",
                    .mount = "/runs"};
  job.workers = 4, job.min_workers = 3;
  const auto all = kubernetes_manifests(job);
  REQUIRE(all.size() == 5);
  for (const Manifest& manifest : all) {
    CHECK((manifest.text.find("s3cret") != std::string::npos) == manifest.is_secret);
    CHECK(manifest.text.find("nvidia") == std::string::npos);
    CHECK(manifest.text.find("namespace") == std::string::npos);
  }
  CHECK(all[1].file == "ostro-nano-config.yaml");
  CHECK(all[1].text.find("  config.yaml: \"a: \\\"b\\\"\\nc: 1\\n\"\n") != std::string::npos);
  const std::string& workers = all[4].text;
  for (const char* line :
       {"\n  completions: 4\n", "\n  maxFailedIndexes: 1\n", "\n      terminationGracePeriodSeconds: 600\n"})
    CHECK_MESSAGE(workers.find(line) != std::string::npos, workers);
  job.gpus = "2", job.name_space = "research";
  CHECK(kubernetes_manifests(job)[4].text.find("nvidia.com/gpu: \"2\"\n") != std::string::npos);
  CHECK(kubernetes_manifests(job)[4].text.find("\n  namespace: \"research\"\n") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
