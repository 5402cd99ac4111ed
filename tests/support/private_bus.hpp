// SPDX-License-Identifier: Apache-2.0
// A dbus-daemon of a test's own, on a socket in a temporary directory. It dies with the test.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <utility>

#include "core/fd.hpp"

namespace gpuhealth::test {

class PrivateBus {
 public:
  // `extra` goes into the configuration: limits, policies.
  explicit PrivateBus(const std::string& extra = "") {
    std::string name = (std::filesystem::temp_directory_path() / "gpuhealth-bus-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make a directory like " + name);
    directory_ = name;
    std::filesystem::permissions(directory_,
                                 std::filesystem::perms(0755));  // other users of a policy test reach the socket
    std::ofstream(directory_ / "bus.conf")
        << "<!DOCTYPE busconfig PUBLIC \"-//freedesktop//DTD D-BUS Bus Configuration 1.0//EN\" "
           "\"http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd\">\n<busconfig><type>custom</type><listen>"
        << wish() << "</listen><auth>EXTERNAL</auth><policy context=\"default\"><allow user=\"*\"/><allow own=\"*\"/>"
        << "<allow send_destination=\"*\" eavesdrop=\"true\"/><allow eavesdrop=\"true\"/></policy>" << extra
        << "</busconfig>\n";
    try {
      start();
    } catch (...) {
      remove();
      throw;
    }
  }
  ~PrivateBus() { remove(); }
  PrivateBus(const PrivateBus&) = delete;
  PrivateBus& operator=(const PrivateBus&) = delete;

  // The same before and after a restart.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const std::filesystem::path& directory() const { return directory_; }

  // Returns when the bus listens: it prints its address then.
  void start() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    Fd read_end(ends[0]);
    Fd write_end(ends[1]);
    // Its complaint that it cannot raise its fd limit is not the test's.
    const Fd log(open((directory_ / "bus.log").c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    const std::string config = "--config-file=" + (directory_ / "bus.conf").string();
    const pid_t parent = getpid();
    child_ = fork();
    if (child_ < 0) throw std::runtime_error("fork");
    if (child_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      if (dup2(log.get(), STDERR_FILENO) < 0 || dup2(write_end.get(), STDOUT_FILENO) < 0) _exit(1);
      execlp("dbus-daemon", "dbus-daemon", config.c_str(), "--nofork", "--nopidfile", "--nosyslog", "--print-address=1",
             static_cast<char*>(nullptr));
      _exit(127);
    }
    write_end.reset();
    std::string line;
    char c = 0;
    while (line.size() < 4096 && read(read_end.get(), &c, 1) == 1 && c != '\n') line += c;
    if (c != '\n') throw std::runtime_error("dbus-daemon did not start (is the package dbus installed?)");
    address_ = wish();  // what it prints has its guid, which changes with a restart
  }

  void stop() {
    if (child_ <= 0) return;
    const pid_t child = std::exchange(child_, -1);
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::error_code ignored;
    std::filesystem::remove(directory_ / "socket", ignored);
  }

  // A bus that is there and reads nothing.
  void pause() const {
    kill(child_, SIGSTOP);
    waitpid(child_, nullptr, WUNTRACED);
  }
  void resume() const { kill(child_, SIGCONT); }

 private:
  void remove() {
    stop();
    std::error_code ignored;
    std::filesystem::remove_all(directory_, ignored);
  }
  [[nodiscard]] std::string wish() const { return "unix:path=" + (directory_ / "socket").string(); }

  std::filesystem::path directory_;
  std::string address_;
  pid_t child_ = -1;
};

}  // namespace gpuhealth::test
