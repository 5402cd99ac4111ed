// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>

#include "klog_support.hpp"
#include "telemetry/klog/line.hpp"

namespace gpuhealth::klog {
namespace {

using test::Said;
using test::said_of;

constexpr std::string_view kMessage = "amdgpu 0000:03:00.0: amdgpu: GPU reset(2) failed";
const Said kFound = {"1 gpu.reset.failed critical 0000:03:00.0 x1"};

TEST(KlogLine, EveryPrefixLeavesTheSameMessage) {
  for (const std::string_view prefix : {
           "",
           "   ",
           "[   12.345678] ",   // dmesg
           "[127033.279654] ",  //
           "[   36.764462][  T291] ",
           "[   36.764462][   C3] ",       // with printk's caller
           "[Sat Jan  7 14:25:56 2023] ",  // dmesg -T
           "[sam. janv.  7 14:25:56 2023] ",
           "[Сб янв  7 14:25:56 2023] ",
           "[土  1月  7 14:25:56 2023] ",
           "<3>[   12.345678] ",
           "<3>",                                               // dmesg -r
           "kern  :err   : [   12.345678] ",                    // dmesg -x
           "kern  :err   : 2024-10-07T10:17:15,145363-04:00 ",  // dmesg -x --time-format iso
           "2024-10-07T10:17:15,145363-04:00 ",                 //
           "3,1234,5678901,-;",                                 // /dev/kmsg
           "3,1234,5678901,-,caller=T291;",                     //
           "Jan 06 14:37:38 host kernel: ",                     // journalctl, syslog
           "Jan  6 14:37:38 host kernel: ",                     //
           "Jan 06 14:37:38.123456 host kernel: ",              // short-precise
           "janv. 06 14:37:38 host kernel: ",
           "11월 30 14:37:38 host kernel: ",
           "1月 06 14:37:38 host kernel: ",
           "6. Jan 14:37:38 host kernel: ",
           "Янв 06 14:37:38 host kernel: ",
           "2024-06-06T10:27:06+0800 host kernel: ",          // short-iso
           "2024-06-06T10:27:06.055474+08:00 host kernel: ",  // short-iso-precise
           "2024-06-06T10:27:06.055474+08:00 kernel: ",       // the host cut out
           "2024-06-06 10:27:06 host kernel: ",               //
           "Fri 2023-01-06 14:37:38 CET host kernel: ",       // short-full
           "1673012258.123456 host kernel: ",                 // short-unix
           "[ 1234.567890] host kernel: ",                    // short-monotonic
           "Jan 06 14:37:38 host kernel: [   12.345678] ",    // rsyslog with printk's time
           "kernel: [ 2478.486780] ",
           "kernel: ",
           "           kernel: ",
           "[  +0.000123] ",
           "[Jan 6 14:37] ",
           "[  123.456789 <    0.000012>] ",
           "[Sat Jan  7 14:25:56 2023 <    0.000012>] ",
           "16:32:32 ",                               // a time alone
           "Jan 06 14:37:38 ",                        // the host cut out
           "  356.920249] ",                          // a cut time
           "\x1b[32m[   12.345678] \x1b[0m\x1b[33m",  // colours
       }) {
    EXPECT_EQ(said_of(std::string(prefix) + std::string(kMessage)), kFound) << prefix;
    EXPECT_EQ(said_of(std::string(prefix) + std::string(kMessage) + "\r\n"), kFound) << prefix << " with CRLF";
  }
}

TEST(KlogLine, WordsOfAnotherProgramAreNotTheKernels) {
  for (const std::string_view prefix : {
           "Jan 06 14:37:38 host ollama[123]: ",
           "Jan 06 14:37:38 host sudo[99]:  user : COMMAND=/usr/bin/grep kernel: ",
           "2024-06-06T10:27:06+08:00 host python3[7]: ",
           "Jan 06 14:37:38 host gpu-watch: ",
           "user  :notice: [   12.345678] ",
           "daemon:info  : 2024-10-07T10:17:15,145363-04:00 ",
           "30,1234,5678901,-;",  // facility 3: systemd through /dev/kmsg
           "12,1234,5678901,-;",  // facility 1: echo text >/dev/kmsg
           "<12>[   12.345678] ",
           "[   12.345678] systemd[1]: ",
           "[    0.000000] Command line: BOOT_IMAGE=/vmlinuz ",
           "[    0.014670] Kernel command line: quiet ",
       })
    EXPECT_EQ(said_of(std::string(prefix) + std::string(kMessage)), Said{}) << prefix;
}

TEST(KlogLine, ATimeOfDayThatGoesBackHasPassedMidnight) {
  const auto before = parse_line("Jan 06 23:59:59 host kernel: a").stamp;
  const auto after = parse_line("Jan 07 00:00:01 host kernel: a").stamp;
  EXPECT_EQ(microseconds_between(before, after), 2'000'000);
  EXPECT_EQ(microseconds_between(parse_line("[    1.5] a").stamp, parse_line("[    4.75] a").stamp), 3'250'000);
  EXPECT_FALSE(microseconds_between(before, parse_line("[    4.75] a").stamp));
}

TEST(KlogLine, TheMessagesOwnBracketsStay) {
  EXPECT_EQ(parse_line("[  4778.915423] [drm] Skip").message, "[drm] Skip");
  EXPECT_EQ(parse_line("[gfxhub0] no-retry page fault").message, "[gfxhub0] no-retry page fault");
  EXPECT_EQ(parse_line("[Hardware Error]: x").message, "[Hardware Error]: x");
}

TEST(KlogLine, TheTimeIsGivenAsItIsWritten) {
  EXPECT_EQ(parse_line("[  649.968210] a").time, "649.968210");
  EXPECT_EQ(parse_line("janv. 06 14:37:38 host kernel: a").time, "janv. 06 14:37:38");
  EXPECT_EQ(parse_line("2024-06-06T10:27:06.055474+08:00 kernel: a").time, "2024-06-06T10:27:06.055474+08:00");
  EXPECT_EQ(parse_line("6,1234,5678901,-;a").time, "5678901");
}

TEST(KlogLine, KmsgEscapesAreResolved) {
  EXPECT_EQ(strip_escapes("a\\x09b\\x1b[31mc"), "a\tbc");
  EXPECT_EQ(strip_escapes("a\\xzz"), "a\\xzz");
  EXPECT_EQ(said_of("3,1,5,-;amdgpu 0000:03:00.0: amdgpu: \\x1b[31mGPU reset(2) failed"), kFound);
}

}  // namespace
}  // namespace gpuhealth::klog
