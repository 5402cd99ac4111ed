// SPDX-License-Identifier: Apache-2.0
// Our comparison against the tools themselves, on pairs made of real versions and on made-up ones.
#include "grub/version.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/support/temp_dir.hpp"

namespace gpuhealth::grub {
namespace {

const std::vector<std::string> kReal = {"7.0.0-30.30",
                                        "7.0.0-30.30~24.04.1",
                                        "7.0.0-28.28",
                                        "7.0.0-30.30~",
                                        "7.0.12.arch1-1",
                                        "7.0.12-1",
                                        "7.0.13-200.fc44",
                                        "7.0.0-0.rc6.49.fc43",
                                        "6.12.12-1~bpo12+1",
                                        "6.12.117+deb12",
                                        "6.12.117",
                                        "6.1.0-9",
                                        "6.1.0-50",
                                        "1:6.16.13",
                                        "5.3.18-150300.59.43.1",
                                        "7.0.12_1",
                                        "7.1.2-2",
                                        "6.18.33-1.1",
                                        "7.1.0~rc6-1",
                                        "7.1.0-rc6",
                                        "7.1.3-ogc3.4.fc44",
                                        "6.4.0-150600.21",
                                        "5.14.0-427.13.1.el9",
                                        "7.0.12.zen1-1",
                                        "2:1.0~~a-1",
                                        "1.0^git1-1",
                                        "1.0~rc1",
                                        "1.0",
                                        "1.0.1",
                                        "1.0a",
                                        "1.0.a",
                                        "001",
                                        "1",
                                        "1-1-1",
                                        "6.1.170-3"};

std::vector<std::pair<std::string, std::string>> pairs(const std::string& alphabet) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& a : kReal)
    for (const auto& b : kReal) out.emplace_back(a, b);
  std::mt19937 random(20261130);  // NOLINT: the same pairs at each run
  const auto text = [&] {
    std::string s(1, static_cast<char>('0' + random() % 10));  // dpkg: a version begins with a digit
    for (std::size_t n = random() % 12; n > 0; --n) s += alphabet[random() % alphabet.size()];
    return s;
  };
  while (out.size() < 6000) {
    const std::string a = text();
    std::string b = text();
    if (random() % 3 == 0) b = a.substr(0, random() % a.size() + 1) + b.substr(random() % b.size());
    out.emplace_back(a, b);
  }
  return out;
}

std::vector<int> answers(const std::string& command) {
  std::vector<int> out;
  std::FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  int value = 0;
  while (std::fscanf(pipe, "%d", &value) == 1) out.push_back(value);
  pclose(pipe);
  return out;
}

void check(const std::string& language, const std::string& program, const std::string& alphabet,
           int (*ours)(std::string_view, std::string_view)) {
  const gpuhealth::test::TempDir dir;
  const auto tested = pairs(alphabet);
  {
    std::ofstream list(dir.path() / "pairs");
    for (const auto& [a, b] : tested) list << a << ' ' << b << '\n';
    std::ofstream script(dir.path() / "ask");
    script << program;
  }
  const auto said = answers(language + " " + (dir.path() / "ask").string() + " < " + (dir.path() / "pairs").string() +
                            " 2>/dev/null");
  ASSERT_EQ(said.size(), tested.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    const int got = ours(tested[i].first, tested[i].second);
    EXPECT_EQ(got < 0 ? -1 : got > 0 ? 1 : 0, said[i]) << tested[i].first << " against " << tested[i].second;
  }
}

bool there(const char* program) {
  return std::system((std::string("command -v ") + program + " >/dev/null 2>&1").c_str()) == 0;
}

TEST(VersionOrder, IsDpkgs) {
  ASSERT_TRUE(there("dpkg"));
  // dpkg's own library for all; dpkg itself, a process a question, for every fiftieth. (All six thousand were once
  // asked of dpkg itself: no difference.)
  const std::string library = R"(use Dpkg::Version; my $n = 0; while (<>) { my ($a, $b) = split;
    my ($x, $y) = map { Dpkg::Version->new($_, check => 0) } $a, $b;
    my $said = version_compare_parts_of($x, $y);
    if ($n++ % 50 == 0) {
      my @ask = ('dpkg', '--force-bad-version', '--compare-versions');
      my $dpkg = system(@ask, $a, 'lt', $b) == 0 ? -1 : system(@ask, $a, 'gt', $b) == 0 ? 1 : 0;
      $said = 99 if $dpkg != $said;
    }
    print "$said\n"; }
    sub version_compare_parts_of { my ($x, $y) = @_; return $x <=> $y; })";
  check("perl", library, "0123456789.+~ab", compare_dpkg);
}

TEST(VersionOrder, IsRpms) {
  ASSERT_TRUE(there("rpm")) << "install rpm";
  // One rpm for all: its Lua has rpm.vercmp, which compares epoch, version and release, and refuses some texts.
  const gpuhealth::test::TempDir dir;
  const auto tested = pairs("0123456789.+~^-_abZ");
  {
    std::ofstream script(dir.path() / "ask.lua");  // what it prints as a macro would be cut
    script << "local out = io.open('" << (dir.path() / "said").string() << "', 'w')\n";
    for (const auto& [a, b] : tested)
      script << "do local ok, v = pcall(rpm.vercmp, '" << a << "', '" << b
             << "'); out:write(ok and v or 9, '\\n') end\n";
    script << "out:close()\n";
  }
  const auto said = answers("rpm --eval '%{lua: dofile(\"" + (dir.path() / "ask.lua").string() +
                            "\")}' >/dev/null 2>&1; cat " + (dir.path() / "said").string());
  ASSERT_EQ(said.size(), tested.size());
  int asked = 0;
  for (std::size_t i = 0; i < said.size(); ++i) {
    if (said[i] == 9) continue;
    ++asked;
    EXPECT_EQ(compare_rpm(tested[i].first, tested[i].second), said[i])
        << tested[i].first << " against " << tested[i].second;
  }
  EXPECT_GT(asked, 4000);
}

TEST(VersionOrder, IsPacmans) {
  check("python3", R"(import ctypes, sys
alpm = ctypes.CDLL('libalpm.so.13')
for line in sys.stdin:
    a, b = line.split()
    print(alpm.alpm_pkg_vercmp(a.encode(), b.encode()))
)",
        "0123456789.+_-:ab", compare_pacman);
}

TEST(VersionOrder, UbuntusBackportSortsBelowTheReleaseItIsOf) {
  EXPECT_LT(compare_dpkg("7.0.0-30.30~24.04.1", "7.0.0-30.30"), 0);
  EXPECT_GT(compare_dpkg("7.0.0-30.30~24.04.1", "7.0.0-30.30~"), 0);
  EXPECT_GT(compare_dpkg("1:6.0", "7.0"), 0);
}

TEST(VersionOrder, UpstreamCandidatesComeBeforeTheirRelease) {
  EXPECT_LT(compare_upstream("7.1-rc5", "7.1-rc6"), 0);
  EXPECT_LT(compare_upstream("7.1-rc6", "7.1.0"), 0);
  EXPECT_LT(compare_upstream("7.1.0-rc6", "7.1.0"), 0);
  EXPECT_EQ(compare_upstream("7.1", "7.1.0"), 0);
  EXPECT_GT(compare_upstream("7.0.12-arch1-1", "7.0.11"), 0);
  EXPECT_EQ(compare_upstream("7.0.12-arch1-1", "7.0.12"), 0);
  EXPECT_LT(compare_upstream("6.9.12", "6.10"), 0);
}

TEST(VersionOrder, SystemdsMenu) {
  EXPECT_GT(compare_systemd("5.6.6-300.fc32.x86_64", "0-rescue"), 0);
  EXPECT_GT(compare_systemd("6.10.0", "6.9.0"), 0);
  EXPECT_LT(compare_systemd("6.10.0~rc1", "6.10.0"), 0);
  EXPECT_LT(compare_systemd("6.10", "6.10.1"), 0);
  EXPECT_EQ(compare_systemd("123.45", "123_45") < 0, compare_systemd("123_45", "123.45") > 0);
}

}  // namespace
}  // namespace gpuhealth::grub
