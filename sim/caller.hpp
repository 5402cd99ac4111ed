// SPDX-License-Identifier: Apache-2.0
// A thread that waits in an ioctl which the simulator answers: its memory, its pages, its time. Only for threads of the
// same process namespace.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace gpuhealth::sim {

class Caller {
 public:
  explicit Caller(pid_t tid) : tid_(tid) {}

  [[nodiscard]] bool read(std::uint64_t address, void* to, std::size_t bytes) const;
  [[nodiscard]] bool write(std::uint64_t address, const void* from, std::size_t bytes) const;
  // What its descriptor is: "/dev/dri/renderD128".
  [[nodiscard]] std::string path_of(int fd) const;

  // What a range of its memory is mapped to.
  struct Mapping {
    bool whole = false;  // no hole
    bool writable = false;
    bool shared = false;
    bool file = false;
  };
  [[nodiscard]] Mapping mapping(std::uint64_t address, std::uint64_t bytes) const;

  // /proc/PID/pagemap, one entry a page; empty when it cannot be read.
  [[nodiscard]] std::vector<std::uint64_t> pages(std::uint64_t address, std::uint64_t bytes) const;
  // Has the kernel take a write fault on each of these pages. What they hold stays.
  [[nodiscard]] bool fault_in(const std::vector<std::uint64_t>& page_addresses) const;

  enum class Spin : std::uint8_t {
    Done,         // it has returned from its ioctl with the error
    NotPossible,  // it still waits: it is traced by another, or this is no x86-64
    Gone,
  };
  // The thread itself, not we, works in the kernel for so long: system calls of its own (getrandom) are put into it in
  // the place of the ioctl, which then returns -1 with `error`. A signal ends it early.
  [[nodiscard]] Spin spin(double seconds, int error) const;

 private:
  pid_t tid_;
};

}  // namespace gpuhealth::sim
