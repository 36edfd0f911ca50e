// Lists of hosts, and the script for a worker, run by this machine's shell in the place of ssh.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "ostro/base/host_name.h"
#include "ostro/base/text_parts.h"
#include "ostro/cluster/ssh/hosts.h"
#include "ostro/cluster/ssh/remote_command.h"
#include "ostro/cluster/wire/worker_variables.h"

namespace ostro::cluster {
namespace {

std::string error_of(const char* text) {
  const auto hosts = parse_hosts(text, "hosts.txt");
  return hosts.ok() ? "" : hosts.error().message();
}

TEST_CASE("hosts, slots and devices are read, comments and empty lines are passed over") {
  const auto hosts = parse_hosts(
      "# two machines\n\nnode1\nme@node2 slots=2 slice=b # fast\r\nnode3 devices=cuda:0,cpu\n", "h");
  REQUIRE(hosts.ok());
  REQUIRE(hosts->size() == 3);
  CHECK((*hosts)[0].name == "node1");
  CHECK((*hosts)[0].devices == std::vector<std::string>{""});
  CHECK((*hosts)[1].name == "me@node2");
  CHECK((*hosts)[1].devices == std::vector<std::string>{"", ""});
  CHECK((*hosts)[2].devices == std::vector<std::string>{"cuda:0", "cpu"});
  CHECK((*hosts)[1].slice == "b");
  CHECK(parse_hosts("a advertise=[::1]:40000-40003\n", "h").value()[0].advertise == "[::1]:40000-40003");
  CHECK((*hosts)[2].slice.empty());
}

TEST_CASE("what is wrong in a list of hosts is named with its line") {
  CHECK(error_of("# nothing\n") == "hosts.txt: has no host; write one in each line");
  CHECK(error_of("a\na\n") == "hosts.txt:2: a stands in line 1 already; give it slots=N for N workers");
  CHECK(error_of("a slots=0\n") == "hosts.txt:1: slots=0 is not a number from 1 to 1024");
  CHECK(error_of("a slots=99999999999999999999\n") ==
        "hosts.txt:1: slots=99999999999999999999 is not a number from 1 to 1024");
  CHECK(error_of("a devices=cpu,\n") == "hosts.txt:1: devices=cpu, has an empty name");
  CHECK(error_of("a slots=3 devices=cpu,cpu\n") ==
        "hosts.txt:1: slots=3, but 2 devices; name one for each worker");
  CHECK(error_of("-oProxyCommand=x\n") == "hosts.txt:1: -oProxyCommand=x is no host");
  CHECK(
      error_of("a slot=3\n") ==
      "hosts.txt:1: slot=3 is neither slots=N nor devices=LIST, slice=NAME or advertise=HOST; a line is HOST "
      "[slots=N] [devices=LIST] [slice=NAME] [advertise=HOST[:PORTS]]");
  CHECK(error_of("a advertise=b:0\n").find("hosts.txt:1: advertise: b:0: an advertised host is HOST") == 0);
  CHECK(error_of("a slice=\n") == "hosts.txt:1: slice= is no name of 1 to 256 bytes");
}

// A folder with a program that takes the worker's place.
struct Remote {
  explicit Remote(const std::string& program) {
    folder = std::filesystem::temp_directory_path() / "ostro ssh's XXXXXX";
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    std::ofstream(folder + "/worker.sh") << "#!/bin/sh\n" << program;
    std::filesystem::permissions(folder + "/worker.sh", std::filesystem::perms::owner_all);
    worker = {.folder = folder, .program = "./worker.sh", .port = 4711};
  }
  ~Remote() { std::filesystem::remove_all(folder); }

  // The status of the script, whose input is the secret and then what `rest` writes.
  int run(const std::string& rest) const {
    const std::string command =
        fmt::format("cd /; {{ printf '%s' {}; {}; }} | env SSH_CONNECTION='10.0.0.1 5 10.0.0.2 22' sh -c {}",
                    shell_word(input), rest, shell_word(remote_script(worker)));
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Words of a shell that wait until the program has written this file: the connection ends when it has, and
  // not after a time in which a busy machine may not even have started it.
  std::string written(const std::string& name) const {
    return "while [ ! -s " + shell_word(folder + "/" + name) + " ]; do sleep 0.05; done";
  }
  std::string read(const char* name) const {
    std::ifstream in(folder + "/" + name);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  std::string folder, input = "OSTRO_JOB_SECRET=s3cret\n\n";
  RemoteWorker worker;
};

TEST_CASE("a worker has the secret, its words, the addresses of the connection, and its share of the cores") {
  Remote remote(
      "trap '' TERM; printf '%s\\n' \"$@\" > words; echo \"$OSTRO_JOB_SECRET $OSTRO_THREADS $AWS_KEY\" > "
      "settings; exit 3\n");
  remote.worker.words = {"--config", "it's $HOME/a b.yaml"};
  const char* const environment[] = {"HOME=/root",
                                     "AWS_KEY=a b='c'",
                                     "OSTRO_THREADS=5",
                                     "OSTRO_LINES=a\nb",
                                     "OSTRO_ADVERTISE=gate:40000",
                                     "OSTRO_SLICE=west",
                                     "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/task",
                                     "OSTRO_JOB_SECRET=of another job",
                                     nullptr};
  remote.input = worker_variables(environment, "s3cret");
  CHECK(remote.input == "AWS_KEY=a b='c'\nOSTRO_THREADS=5\nOSTRO_JOB_SECRET=s3cret\n\n");
  CHECK(remote.run(remote.written("settings")) == 3);
  CHECK(remote.read("words") ==
        "worker\n--coordinator\n10.0.0.1:4711\n--bind\n10.0.0.2\n--config\nit's $HOME/a b.yaml\n");
  CHECK(remote.read("settings") == "s3cret 5 a b='c'\n");
  remote.input = "OSTRO_JOB_SECRET=s3cret\n\n";
  remote.worker.workers = 100'000;
  remote.worker.address = "192.168.7.7";
  std::filesystem::remove(remote.folder + "/settings");
  CHECK(remote.run(remote.written("settings")) == 3);
  CHECK(remote.read("settings") == "s3cret 1 \n");
  CHECK(remote.read("words").find("192.168.7.7:4711") != std::string::npos);
  remote.worker.address = "fd00::7";
  std::filesystem::remove(remote.folder + "/settings");
  CHECK(remote.run(remote.written("settings")) == 3);
  CHECK(remote.read("words").find("\n[fd00::7]:4711\n") != std::string::npos);
}

TEST_CASE("the list of a copy is touched when a worker starts, and when its launcher says that it runs") {
  Remote remote("trap '' TERM; echo $$ > pid; while [ ! -e over ]; do sleep 0.01; done; exit 3\n");
  remote.worker.touched = "list";
  const std::string list = shell_word(remote.folder + "/list");
  const auto old = [&](const std::string& file) {
    return fmt::format("find {} -mtime +1 > {}", list, shell_word(remote.folder + "/" + file));
  };
  const std::string age = "touch -d 2000-01-01 " + list;
  REQUIRE(std::system(age.c_str()) == 0);
  CHECK(remote.run(fmt::format("{}; {}; {}; {}; echo; while [ -n \"$(find {} -mtime +1)\" ]; do sleep 0.05; "
                               "done; touch {}",
                               remote.written("pid"), old("first"), age, old("aged"), list,
                               shell_word(remote.folder + "/over"))) == 3);
  CHECK(remote.read("first").empty());
  CHECK(!remote.read("aged").empty());
  remote.worker.touched = "none";
  std::filesystem::remove(remote.folder + "/pid");
  CHECK(remote.run(remote.written("pid")) == 3);
  CHECK(!std::filesystem::exists(remote.folder + "/none"));
}

TEST_CASE("a worker that was killed has lost its place; one whose connection ends is asked to end") {
  Remote killed("trap '' TERM; echo $$ > pid; kill -KILL $$\n");
  killed.worker.if_killed = 76;
  CHECK(killed.run(killed.written("pid")) == 76);
  Remote left("trap 'echo asked > told; exit 77' TERM\necho $$ > pid\nwhile :; do sleep 0.05; done\n");
  CHECK(left.run(left.written("pid")) == 77);
  CHECK(left.read("told") == "asked\n");
}

TEST_CASE("which process a worker is follows from what the script says") {
  const Remote remote("trap '' TERM; echo $$ > pid; exit 0\n");
  const std::string command =
      fmt::format("{{ printf '%s' {}; {}; }} | env SSH_CONNECTION='10.0.0.1 5 10.0.0.2 22' sh -c {} 2> {}",
                  shell_word(remote.input), remote.written("pid"), shell_word(remote_script(remote.worker)),
                  shell_word(remote.folder + "/said"));
  REQUIRE(std::system(command.c_str()) == 0);
  RemoteProcesses processes;
  processes.said(3, "Welcome\n" + remote.read("said").substr(0, 9));
  processes.said(3, remote.read("said").substr(9));
  const int64_t pid = std::stoll(remote.read("pid"));
  CHECK(processes.place_of(host_name(), pid) == 3);
  CHECK(!processes.place_of("another", pid));
  CHECK(!processes.place_of(host_name(), pid + 1));
}

TEST_CASE("a stopped worker whose connection ends is killed") {
  Remote stopped("echo $$ > pid; kill -STOP $$\n");
  stopped.worker.if_killed = 76;
  CHECK(stopped.run(stopped.written("pid")) == 76);
}

TEST_CASE("a folder that is not there is an error of the worker") {
  Remote remote("exit 0\n");
  remote.worker.folder += "/none";
  CHECK(remote.run("true") == 1);
}

}  // namespace
}  // namespace ostro::cluster
