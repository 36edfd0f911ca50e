// ostro hash and ostro inspect as a user sees them, on the chain of docs/reference/formats/chain.md.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <string>

namespace {

struct Outcome {
  int code;
  std::string out;
};

// Runs a shell command line with $OSTRO the program and $RUN a directory with the documented chain; gives
// what went to standard output and standard error.
Outcome shell(const std::string& line) {
  const std::string folder = "/tmp/ostro_inspect_test_" + std::to_string(getpid());
  const std::string before = "OSTRO=" OSTRO_BINARY "; RUN=" + folder +
                             "; mkdir -p $RUN; sed -n '/^```jsonl/,/^```$/p' " OSTRO_SOURCE_DIR
                             "/docs/reference/formats/chain.md | grep '^{' > $RUN/chain.jsonl; ";
  FILE* pipe = popen((before + "( " + line + " ) 2>&1; code=$?; rm -rf $RUN; exit $code").c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) out.push_back(static_cast<char>(c));
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

const std::string kHash = "b919d9b3aacf374ecca042a477706b594ef86ec81e740527f9e702cd13909cf2";

TEST_CASE("hash prints the run hash and nothing else") {
  const Outcome whole = shell("$OSTRO hash $RUN");
  CHECK(whole.code == 0);
  CHECK(whole.out == kHash + "\n");
  const Outcome torn = shell("printf '{\"ha' >> $RUN/chain.jsonl; $OSTRO hash $RUN");
  CHECK(torn.code == 0);
  CHECK(holds(torn.out, kHash + "\n"));
  CHECK(holds(torn.out, "warning: "));
}

TEST_CASE("inspect shows a run as text and as JSON") {
  const Outcome text = shell("$OSTRO inspect $RUN");
  CHECK(text.code == 0);
  CHECK(holds(text.out, kHash));
  CHECK(holds(text.out, "4 entries, 2 steps done"));
  const Outcome json = shell("$OSTRO inspect $RUN --json");
  CHECK(json.code == 0);
  CHECK(json.out.find('{') == 0);
  CHECK(holds(json.out, "\"run_hash\": \"" + kHash + "\""));
}

TEST_CASE("damage and wrong places give one line and a code") {
  const Outcome altered = shell("sed -i 's/1024/1025/' $RUN/chain.jsonl; $OSTRO hash $RUN");
  CHECK(altered.code == 1);
  CHECK(altered.out.find("error: ") == 0);
  CHECK(holds(altered.out, "line 2"));
  for (const char* line : {"$OSTRO hash /nowhere", "$OSTRO inspect /nowhere"}) {
    const Outcome none = shell(line);
    CHECK(none.code == 1);
    CHECK(none.out.find("error: ") == 0);
    CHECK(none.out.find('\n') == none.out.size() - 1);
  }
  CHECK(shell("$OSTRO hash").code == 2);
  CHECK(shell("$OSTRO inspect").code == 2);
}

}  // namespace
