// SPDX-License-Identifier: Apache-2.0
// Advisories: the shipped ones against kernels whose state is known from the threads, and mistakes in files.
#include "grub/advisories.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/paths.hpp"

namespace gpuhealth::grub {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const AdvisorySet& shipped() {
  static const AdvisorySet set = load_advisories(std::string(GPUHEALTH_SOURCE_DIR) + "/etc/advisories.d");
  return set;
}

Kernel kernel(const std::string& release, const std::string& package = {}, const std::string& version = {},
              const std::string& source = {}, const std::string& build = {}) {
  Kernel out;
  out.release = release;
  out.build = build;
  if (!package.empty()) out.package = Package{package, version, source, release, true};
  return out;
}

Tri applies(const std::string& id, const Kernel& kernel, const std::string& distribution, const std::string& version_id,
            std::vector<std::string> gfx = {"gfx1100"}) {
  AdvisoryQuestion question;
  question.kernel = identify(kernel, distribution, version_id);
  question.gfx = std::move(gfx);
  for (const auto& found : match(shipped().advisories, question))
    if (found.advisory->id == id) return found.applies;
  return Tri::No;
}

const std::string kStall = "amdgpu-hmm-retry-stall-7.0.12";

TEST(Advisories, TheShippedOnesAreWhole) {
  EXPECT_THAT(shipped().mistakes, IsEmpty());
  EXPECT_EQ(shipped().advisories.size(), 40U);  // 17 confirmed and 23 of several reporters
}

TEST(Advisories, TheStallOnUbuntu) {
  const auto ga = [](const std::string& release, const std::string& version) {
    return applies(kStall, kernel(release, "linux-image-" + release, version, "linux"), "ubuntu", "26.04");
  };
  EXPECT_EQ(ga("7.0.0-14-generic", "7.0.0-14.14"), Tri::No);
  EXPECT_EQ(ga("7.0.0-26-generic", "7.0.0-26.26"), Tri::No);
  EXPECT_EQ(ga("7.0.0-28-generic", "7.0.0-28.28"), Tri::Yes);
  EXPECT_EQ(ga("7.0.0-29-generic", "7.0.0-29.29"), Tri::Yes);
  EXPECT_EQ(ga("7.0.0-30-generic", "7.0.0-30.30"), Tri::No);
  EXPECT_EQ(ga("6.17.0-35-generic", "6.17.0-35.35"), Tri::No);
}

TEST(Advisories, TheStallOnUbuntusHardwareStack) {
  const auto hwe = [](const std::string& release, const std::string& version) {
    return applies(kStall, kernel(release, "linux-image-" + release, version, "linux-signed-hwe-7.0"), "ubuntu",
                   "24.04");
  };
  EXPECT_EQ(hwe("7.0.0-28-generic", "7.0.0-28.28~24.04.1"), Tri::Yes);
  EXPECT_EQ(hwe("7.0.0-29-generic", "7.0.0-29.29~24.04.1"), Tri::Yes);
  EXPECT_EQ(hwe("7.0.0-30-generic", "7.0.0-30.30~24.04.1"), Tri::No);  // below 7.0.0-30.30, and fixed
  EXPECT_EQ(hwe("6.8.0-136-generic", "6.8.0-136.136"), Tri::No);
}

TEST(Advisories, UnameAloneIsEnoughWhenTheUploadDoesNotMatter) {
  EXPECT_EQ(applies(kStall, kernel("7.0.0-28-generic"), "ubuntu", "26.04"), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.0-30-generic"), "ubuntu", "26.04"), Tri::No);
  // The build tells the rest.
  const auto hwe = kernel("7.0.0-30-generic", "", "", "", "#30~24.04.1-Ubuntu SMP PREEMPT_DYNAMIC");
  EXPECT_EQ(identify(hwe, "ubuntu", "24.04").version, "7.0.0-30.30~24.04.1");
  EXPECT_EQ(identify(hwe, "ubuntu", "24.04").stream, "linux-hwe");
  EXPECT_EQ(applies(kStall, hwe, "ubuntu", "24.04"), Tri::No);
}

TEST(Advisories, TheStallElsewhere) {
  EXPECT_EQ(applies(kStall, kernel("7.0.11-200.fc44.x86_64"), "fedora", "44"), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-200.fc44.x86_64"), "fedora", "44"), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-201.fc44.x86_64"), "fedora", "44"), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.13-200.fc44.x86_64"), "fedora", "44"), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.11-arch1-1"), "arch", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-arch1-1"), "arch", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.13-arch1-1"), "arch", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-zen1-1-zen"), "arch", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("6.18.35-1-lts"), "arch", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.11-1-cachyos"), "cachyos", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-1-cachyos"), "cachyos", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.1.0-1-cachyos"), "cachyos", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.1.1-1-cachyos"), "cachyos", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("6.18.33-1-cachyos-lts"), "cachyos", ""), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-x64v3-xanmod1"), "debian", "12"), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.10-x64v3-xanmod1"), "debian", "12"), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.14-4-pve"), "debian", "13"), Tri::No);
  EXPECT_EQ(applies(kStall, kernel("7.0.12_1"), "void", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.12-1-default"), "opensuse-tumbleweed", ""), Tri::Yes);
  EXPECT_EQ(applies(kStall, kernel("7.0.12"), "nixos", ""), Tri::Yes);
}

TEST(Advisories, AnUpstreamRangeNeverMeetsAFrozenBase) {
  // 7.0.0 of Ubuntu's oem line sorts below 7.0.12 and says nothing.
  EXPECT_EQ(identify(kernel("7.0.0-1018-oem"), "ubuntu", "24.04").upstream, "");
  EXPECT_EQ(identify(kernel("5.14.0-427.13.1.el9_4.x86_64"), "rhel", "9.4").upstream, "");
  EXPECT_EQ(identify(kernel("6.4.0-150600.21-default"), "opensuse-leap", "15.6").upstream, "");
  EXPECT_EQ(applies("amdgpu-vram-alloc-6.10", kernel("6.17.0-35-generic"), "ubuntu", "24.04"), Tri::No);
}

TEST(Advisories, DebiansVersionTellsItsBaseAndItsAbiDoesNot) {
  const auto debian = identify(kernel("6.1.0-50-amd64", "linux-image-6.1.0-50-amd64", "6.1.170-3"), "debian", "12");
  EXPECT_EQ(debian.upstream, "6.1.170");
  EXPECT_EQ(identify(kernel("6.12.74+deb13+1-amd64"), "debian", "13").upstream, "6.12.74");
  const auto backport =
      kernel("6.12.12+bpo-amd64", "", "", "", "#1 SMP PREEMPT_DYNAMIC Debian 6.12.12-1~bpo12+1 (2026-01-01)");
  EXPECT_EQ(identify(backport, "debian", "12").version, "6.12.12-1~bpo12+1");
  EXPECT_EQ(applies("amdkfd-gfx8-queue-validation-6.12", backport, "debian", "12", {"gfx803"}), Tri::Yes);
}

TEST(Advisories, ThePartThatIsFixedByAPackageReleaseIsSeen) {
  // CachyOS fixed the shutdown hang in 7.1.2-2, not in 7.1.2-1.
  EXPECT_EQ(applies("amdgpu-shutdown-hang-7.1", kernel("7.1.2-1-cachyos"), "cachyos", ""), Tri::Yes);
  EXPECT_EQ(applies("amdgpu-shutdown-hang-7.1", kernel("7.1.2-2-cachyos"), "cachyos", ""), Tri::No);
}

TEST(Advisories, AGpuThatIsNotNamedIsNotConcerned) {
  const auto evict = [](std::vector<std::string> gfx) {
    return applies("amdkfd-mes-evict-suspends-all-6.18", kernel("6.18.3"), "nixos", "", std::move(gfx));
  };
  EXPECT_EQ(evict({"gfx1100"}), Tri::Yes);
  EXPECT_EQ(evict({"gfx1030"}), Tri::No);
  EXPECT_EQ(evict({}), Tri::Unknown);
}

TEST(Advisories, AModuleThatDoesNotBuildNeedsModuleAndKernel) {
  AdvisoryQuestion question;
  question.kernel =
      identify(kernel("7.0.0-22-generic", "linux-image-7.0.0-22-generic", "7.0.0-22.22", "linux"), "ubuntu", "26.04");
  question.gfx = {"gfx1100"};
  const auto ids = [&] {
    std::vector<std::string> out;
    for (const auto& found : match(shipped().advisories, question))
      if (found.applies == Tri::Yes) out.push_back(found.advisory->id);
    return out;
  };
  EXPECT_THAT(ids(), testing::Not(Contains("dkms-7.0-ubuntu-26.04")));
  question.module_version = "6.16.13";
  EXPECT_THAT(ids(), Contains("dkms-7.0-ubuntu-26.04"));
}

TEST(AdvisoryFile, NamesThePlaceOfEachMistake) {
  AdvisorySet set;
  read_advisories(set, "a.yaml",
                  "schema: 1\nadvisories:\n  - id: x\n    title: t\n    severity: awful\n    confidence: confirmed\n"
                  "    vendor: amd\n    symptom: s\n    colour: red\n    links: [l]\n"
                  "    affected:\n      - {first_bad: '1'}\n");
  EXPECT_THAT(set.advisories, IsEmpty());
  EXPECT_THAT(set.mistakes, Contains("a.yaml:9:5: an advisory has no key colour"));
  EXPECT_THAT(set.mistakes, Contains(HasSubstr("severity must be one of critical, high, medium, low")));
  EXPECT_THAT(set.mistakes, Contains(HasSubstr("a.yaml:12:9: a range of kernels needs distribution")));
}

TEST(AdvisoryFile, RefusesAliasesOtherVersionsAndRepeatedIds) {
  AdvisorySet set;
  read_advisories(set, "b", "schema: 2\n");
  read_advisories(set, "c", "a: &x [*x]\n");
  read_advisories(set, "d", std::string(2000, '['));
  EXPECT_GE(set.mistakes.size(), 3U);
  AdvisorySet twice = load_advisories(std::string(GPUHEALTH_SOURCE_DIR) + "/etc/advisories.d");
  const std::string one =
      "schema: 1\nadvisories:\n  - {id: dkms-6.8.0-44, title: t, severity: low, confidence: several, vendor: amd, "
      "symptom: s, links: [l], affected: [{distribution: upstream, series: '1'}]}\n";
  read_advisories(twice, "e", one);
  EXPECT_THAT(twice.mistakes, Contains(HasSubstr("is there twice")));
}

}  // namespace
}  // namespace gpuhealth::grub
