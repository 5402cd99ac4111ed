// SPDX-License-Identifier: Apache-2.0
// A Debian machine in a folder, whose grub-mkconfig really runs the scripts of its etc/grub.d, and system calls that
// fail when they are told to.
#pragma once

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "grub/operations.hpp"
#include "grub/qualification.hpp"
#include "made_tree.hpp"

namespace gpuhealth::grub::test {

inline const std::string kOld = "6.1.0-55-amd64";
inline const std::string kNew = "6.1.0-56-amd64";

// Fails the call with this number (from 1) with `error`; 0: none. Counts on.
class FailingSystem : public System {
 public:
  int fail_at = 0;
  int error = EIO;
  int calls = 0;
  bool dead = false;  // as after a power cut: from the failing call on every call fails

  Result<Fd> create(const Tree& t, const std::string& p, mode_t m) override {
    if (auto f = next(p); !f) return tl::unexpected<Error>(f.error());
    return System::create(t, p, m);
  }
  Result<Fd> open_to_write(const Tree& t, const std::string& p) override {
    if (auto f = next(p); !f) return tl::unexpected<Error>(f.error());
    return System::open_to_write(t, p);
  }
  Result<void> write_all(const Fd& fd, std::string_view b) override {
    if (auto f = next("write"); !f) {
      (void)System::write_all(fd, b.substr(0, b.size() / 2));  // a part of it gets there
      return f;
    }
    return System::write_all(fd, b);
  }
  Result<void> chmod(const Fd& fd, mode_t m) override {
    auto f = next("chmod");
    return f ? System::chmod(fd, m) : f;
  }
  Result<void> sync_file(const Fd& fd) override {
    (void)fd;
    return next("sync");  // counted, not done: hundreds of real ones would take minutes
  }
  Result<void> sync_folder(const Tree& /*tree*/, const std::string& p) override { return next(p); }
  Result<void> sync_file_system(const Tree& /*tree*/, const std::string& p) override { return next(p); }
  Result<void> rename(const Tree& t, const std::string& a, const std::string& b) override {
    auto f = next(b);
    return f ? System::rename(t, a, b) : f;
  }
  Result<void> remove(const Tree& t, const std::string& p) override {
    auto f = next(p);
    return f ? System::remove(t, p) : f;
  }
  Result<void> make_folder(const Tree& t, const std::string& p, mode_t m) override {
    auto f = next(p);
    return f ? System::make_folder(t, p, m) : f;
  }

 private:
  Result<void> next(const std::string& what) {
    ++calls;
    if (fail_at != 0 && (calls == fail_at || (dead && calls > fail_at)))
      return fail_errno("call " + std::to_string(calls) + " (" + what + ")", error);
    return {};
  }
};

class DebianMachine {
 public:
  explicit DebianMachine(std::vector<std::string> kernels = {kNew, kOld});

  void install(const std::string& kernel);  // its files; update_grub() puts it into the menu
  Result<void> update_grub(const std::string& to = "/boot/grub/grub.cfg");
  Result<Outcome> perform(Operation operation, const std::string& release = {}, const std::string& expires = {});
  Surroundings surroundings();

  // Every file and its content, but for the ledger; for "as it was, byte for byte".
  [[nodiscard]] std::map<std::string, std::string> files() const;
  // What GRUB would start now.
  [[nodiscard]] std::string boots() const;
  [[nodiscard]] std::string from_then_on() const;
  // GRUB starts once: a one-shot is used up.
  void boot_once();

  MadeTree made;
  FailingSystem system;
  bool one_shot_works = true;
  bool tool_fails = false;
};

}  // namespace gpuhealth::grub::test
