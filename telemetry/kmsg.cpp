// SPDX-License-Identifier: Apache-2.0
#include "telemetry/kmsg.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <system_error>
#include <vector>

#include "core/exit_codes.hpp"
#include "core/fd.hpp"
#include "telemetry/sysfs.hpp"

namespace gpuhealth::telemetry {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kRecordBytes = 16384;      // a record of /dev/kmsg has at most 8 KiB (CONSOLE_EXT_LOG_MAX)
constexpr std::size_t kMostPending = 1U << 16U;  // a line without an end is cut here
constexpr int kRecordsAFrame = 4096;             // then what was found is told, however many more there are
constexpr std::uint64_t kTellEvery = 2000;       // records without an event, after which the place is told all the same
constexpr int kTickMs = 1000;                    // while something may end by time
constexpr int kFileMs = 200;                     // a file that stands in for /dev/kmsg is looked at again

std::int64_t uptime_us() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}

// "6,1234,5678901,-;text": its number. Nothing for the " KEY=value" lines of a record.
std::optional<std::uint64_t> sequence_of(std::string_view line) {
  const auto first = line.find(',');
  if (first == std::string_view::npos || first == 0 || first > 10 || line.front() < '0' || line.front() > '9')
    return std::nullopt;
  std::uint64_t value = 0;
  const auto* const begin = line.data() + first + 1;
  const auto [end, error] = std::from_chars(begin, line.data() + line.size(), value);
  if (error != std::errc{} || end == line.data() + line.size() || *end != ',') return std::nullopt;
  return value;
}

bool is_gpu_class(const std::string& text) {
  return text.starts_with("0x03") || text.starts_with("0x12");
}

}  // namespace

KmsgFollower::KmsgFollower(klog::Facts facts, std::optional<std::uint64_t> after)
    : classifier_(std::move(facts)), after_(after) {
  if (after) {
    sequence_ = told_sequence_ = *after;
    seen_ = true;
  }
}

void KmsgFollower::record(std::string_view line) {
  const auto sequence = sequence_of(line);
  if (!sequence) return;
  const bool old = after_ && *sequence <= *after_;
  if (!old) {
    if (seen_ && *sequence > sequence_ + 1) lost_ += *sequence - sequence_ - 1;
    sequence_ = *sequence;
    seen_ = true;
  }
  if (!classifier_.learn(line) || old) return;
  classifier_.feed(line, *sequence + 1);
  waits_ = true;
}

void KmsgFollower::take(std::string_view bytes) {
  pending_ += bytes;
  std::size_t begin = 0;
  for (auto end = pending_.find('\n'); end != std::string::npos; end = pending_.find('\n', begin)) {
    record(std::string_view(pending_).substr(begin, end - begin));
    begin = end + 1;
  }
  pending_.erase(0, begin);
  if (pending_.size() > kMostPending) pending_.clear();
}

void KmsgFollower::advance(std::int64_t now_us) {
  classifier_.advance({klog::Stamp::Kind::Uptime, now_us});
}

std::optional<KlogFrame> KmsgFollower::news(std::int64_t now_us) {
  KlogFrame frame;
  for (auto& event : classifier_.take_news()) {
    std::int64_t printed = now_us;
    std::from_chars(event.time.data(), event.time.data() + event.time.size(), printed);
    KlogFrame::Item item;
    item.age_us = printed < now_us ? static_cast<std::uint64_t>(now_us - printed) : 0;
    if (event.device) item.gpu = classifier_.facts().gpu_of(*event.device);
    item.event = std::move(event);
    frame.items.push_back(std::move(item));
  }
  waits_ = classifier_.waits();
  if (frame.items.empty() && lost_ == 0 && sequence_ - told_sequence_ < kTellEvery) return std::nullopt;
  frame.sequence = told_sequence_ = sequence_;
  frame.lost = std::exchange(lost_, 0);
  return frame;
}

klog::Facts facts_of_machine(const std::string& sysroot) {
  klog::Facts facts;
  std::error_code error;
  const fs::path folder = sysroot + "/sys/bus/pci/devices";
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    std::size_t length = 0;
    const auto address = klog::address_at(entry.path().filename().string(), length);
    if (!address || !is_gpu_class(read_text_or_empty((entry.path() / "class").string()))) continue;
    facts.add_gpu(*address);
    // Every PCI device in its path is a port above it: /sys/devices/pci0000:00/0000:00:03.1/0000:0a:00.0/…
    const auto real = fs::canonical(entry.path(), error);
    if (error) continue;
    for (const auto& part : real.parent_path()) {
      if (const auto port = klog::address_at(part.string(), length); port && length == part.string().size())
        facts.add_gpu_port(*port, *address);
    }
  }
  if (!error) facts.know_all_ports();
  return facts;
}

int follow_kmsg(const std::string& sysroot, std::optional<std::uint64_t> after, int in, int out) {
  const auto path = sysroot + "/dev/kmsg";
  // For reading and writing where it is a pipe: one that nobody writes to has no end then.
  struct stat about{};
  const bool pipe = ::stat(path.c_str(), &about) == 0 && S_ISFIFO(about.st_mode);
  const Fd log(::open(path.c_str(), (pipe ? O_RDWR : O_RDONLY) | O_NONBLOCK | O_CLOEXEC));
  if (!log) {
    std::fprintf(stderr, "gpuhealth-reader: cannot open %s: %s\n", path.c_str(),
                 std::generic_category().message(errno).c_str());
    return static_cast<int>(ExitCode::Unavailable);
  }
  const bool file = ::fstat(log.get(), &about) == 0 && S_ISREG(about.st_mode);
  KmsgFollower follower(facts_of_machine(sysroot), after);
  std::array<char, kRecordBytes> buffer{};
  std::vector<std::uint8_t> bytes;
  for (;;) {
    bool more = true;
    bool at_end = file;  // /dev/null in its place is readable for ever and has nothing
    for (int n = 0; n < kRecordsAFrame; ++n) {
      const auto got = ::read(log.get(), buffer.data(), buffer.size());
      // EPIPE: the ring has wrapped over the record that was next; the one after says how many are gone.
      if (got < 0 && (errno == EINTR || errno == EPIPE || errno == EINVAL)) continue;
      if (got <= 0) {
        if (got < 0 && errno != EAGAIN) return static_cast<int>(ExitCode::Failed);
        more = false;
        at_end = at_end || got == 0;
        break;
      }
      follower.take({buffer.data(), static_cast<std::size_t>(got)});
    }
    const auto now = uptime_us();
    if (!more) follower.advance(now);
    if (const auto frame = follower.news(now)) {
      bytes.clear();
      append_frame(bytes, *frame);
      if (!write_frames(out, bytes)) return 0;
    }
    std::array<pollfd, 2> wait = {{{in, POLLIN, 0}, {at_end ? -1 : log.get(), POLLIN, 0}}};
    const int limit = more ? 0 : at_end ? kFileMs : follower.waits() ? kTickMs : -1;
    if (::poll(wait.data(), wait.size(), limit) > 0 && wait[0].revents != 0) {
      std::array<char, 64> ignored{};
      if (::read(in, ignored.data(), ignored.size()) == 0) return 0;  // gpuhealthd has gone
    }
  }
}

}  // namespace gpuhealth::telemetry
