// Manifests: what is in them only when it is wanted. tests/e2e/kubernetes_test.py validates
// them.
#include "ostro/cluster/kubernetes/manifests.h"

#include <doctest/doctest.h>

namespace ostro::cluster {
namespace {

TEST_CASE("the secret is in one file, and what is not asked for in none") {
  KubernetesJob job{.name = "ostro-nano",
                    .image = "i",
                    .config = "a: \"b\"\nc: 1\n",
                    .secret = "s3cret",
                    .metrics_token = "t0ken",
                    .claim = "c",
                    .mount = "/runs",
                    .folder = "/runs/project"};
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
  CHECK(all[3].text.find("- \"--replaced\"\n") != std::string::npos);
  CHECK(all[3].text.find("- \"0.0.0.0\"\n") != std::string::npos);
  job.ipv6 = true;
  CHECK(kubernetes_manifests(job)[3].text.find("- \"::\"\n") != std::string::npos);
  const std::string& workers = all[4].text;
  CHECK(workers.find(" workingDir: \"/runs/project\"\n") != std::string::npos);
  for (const char* line :
       {"\n  completions: 4\n", "\n  maxFailedIndexes: 1\n", "\n      terminationGracePeriodSeconds: 600\n"})
    CHECK_MESSAGE(workers.find(line) != std::string::npos, workers);
  job.gpus = "2", job.name_space = "research";
  CHECK(kubernetes_manifests(job)[4].text.find("nvidia.com/gpu: \"2\"\n") != std::string::npos);
  CHECK(kubernetes_manifests(job)[4].text.find("\n  namespace: \"research\"\n") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
