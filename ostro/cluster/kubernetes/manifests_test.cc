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

TEST_CASE("slices have a Job each, on the nodes of their label; without a claim each pod has a volume") {
  KubernetesJob job{.name = "ostro-nano", .image = "i", .config = "a: 1\n", .secret = "s3cret"};
  job.mount = job.folder = "/work";
  job.credentials = "s3";
  job.workers = 5, job.min_workers = 3;
  job.slices = {{"west", 4}, {"1", 1}};
  job.slice_label = "topology.kubernetes.io/zone";
  const auto all = kubernetes_manifests(job);
  REQUIRE(all.size() == 6);
  CHECK(all[4].file == "ostro-nano-workers-0.yaml");
  for (size_t slice = 0; slice < 2; ++slice) {
    const std::string& text = all[4 + slice].text;
    const std::string name = slice == 0 ? "west" : "1", workers = slice == 0 ? "4" : "1";
    for (const std::string& part :
         {"\n  name: \"ostro-nano-workers-" + std::to_string(slice) + "\"\n",
          "- \"--slice\"\n            - \"" + name + "\"\n",
          "\n        topology.kubernetes.io/zone: \"" + name + "\"\n", "\n  completions: " + workers + "\n",
          std::string("\n  maxFailedIndexes: 1\n"), std::string(" emptyDir: {}\n"),
          std::string("name: \"s3\"\n")})
      CHECK_MESSAGE(text.find(part) != std::string::npos, part << " in " << text);
  }
  CHECK(all[3].text.find("nodeSelector") == std::string::npos);
  // However places are lost without a Job that fails, min_workers of them remain.
  job.slices = {{"a", 8}, {"b", 8}, {"c", 5}};
  job.workers = 21;
  for (job.min_workers = 1; job.min_workers <= job.workers; ++job.min_workers) {
    int64_t lost = 0;
    const auto jobs = kubernetes_manifests(job);
    for (size_t slice = 0; slice < 3; ++slice) {
      const std::string key = "\n  maxFailedIndexes: ", &text = jobs[4 + slice].text;
      const int64_t most = std::stoll(text.substr(text.find(key) + key.size()));
      CHECK(most >= 0);
      CHECK(most <= job.slices[slice].workers);
      lost += most;
    }
    CHECK(lost == job.workers - job.min_workers);
  }
  job.workers = 5, job.min_workers = 3;
  job.slices = {{"west", 4}, {"1", 1}};
  job.slice_label = "On";
  CHECK(kubernetes_manifests(job)[4].text.find("\n        \"On\": \"west\"\n") != std::string::npos);
  CHECK(all[3].text.find("envFrom") != std::string::npos);
}

}  // namespace
}  // namespace ostro::cluster
