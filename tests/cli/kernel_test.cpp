// SPDX-License-Identifier: Apache-2.0
// gpuhealthctl kernel on a made-up machine: what its JSON holds, and that docs/json.md names each key.
#include "cli/kernel.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>

#include "cli/pending_update.hpp"
#include "tests/paths.hpp"
#include "tests/support/temp_dir.hpp"

namespace gpuhealth::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class KernelCommand : public testing::Test {
 protected:
  void SetUp() override {
    put("etc/os-release", "ID=ubuntu\nVERSION_ID=26.04\n");
    put("boot/vmlinuz-7.0.0-28-generic", "x");
    put("boot/vmlinuz-7.0.0-14-generic", "x");
    put("var/lib/dpkg/status",
        "Package: linux-image-7.0.0-28-generic\nStatus: install ok installed\nSource: linux-signed\nVersion: "
        "7.0.0-28.28\n\n"
        "Package: linux-image-7.0.0-14-generic\nStatus: install ok installed\nSource: linux-signed\nVersion: "
        "7.0.0-14.14\n");
    put("proc/sys/kernel/osrelease", "7.0.0-14-generic\n");
    put("boot/grub/grub.cfg",
        "set default=0\nset timeout=1\nmenuentry New --id new { linux /boot/vmlinuz-7.0.0-28-generic root=x }\n"
        "menuentry Old --id old { linux /boot/vmlinuz-7.0.0-14-generic root=x }\n");
    const auto looked = look_at_kernels(view, dir.string(), std::string(GPUHEALTH_SOURCE_DIR) + "/etc/advisories.d");
    ASSERT_TRUE(looked) << looked.error().text;
  }
  void put(const std::string& path, const std::string& text) {
    fs::create_directories((dir.path() / path).parent_path());
    std::ofstream(dir.path() / path) << text;
  }
  gpuhealth::test::TempDir dir;
  KernelView view;
};

TEST_F(KernelCommand, ListHasTheContractsKeys) {
  const Json json = json_kernel_list(view);
  EXPECT_EQ(json["loader"], "grub");
  EXPECT_EQ(json["entries"][0]["id"], "new");
  EXPECT_EQ(json["entries"][0]["path"], "new");
  EXPECT_EQ(json["entries"][0]["release"], "7.0.0-28-generic");
  EXPECT_EQ(json["entries"][0]["kind"], "linux");
  EXPECT_EQ(json["entries"][0]["default"], true);
  EXPECT_EQ(json["entries"][1]["default"], false);
  EXPECT_EQ(json["default"]["path"], "new");
  EXPECT_THAT(json["default"]["reason"].get<std::string>(), HasSubstr("names '0'"));
  EXPECT_EQ(json["next"]["path"], "new");
  EXPECT_EQ(json["kernels"][0]["release"], "7.0.0-28-generic");
  EXPECT_EQ(json["kernels"][0]["package"]["version"], "7.0.0-28.28");
}

TEST_F(KernelCommand, AWaitingKernelWithAnAdvisoryIsNotSafe) {
  const SafeToUpdate answer = safe_to_update(view, "");
  EXPECT_EQ(answer.candidate, "7.0.0-28-generic");
  EXPECT_EQ(answer.answer, "no");
  EXPECT_THAT(answer.reason, HasSubstr("take a second for every 2 MiB"));
  EXPECT_EQ(safe_to_update(view, "7.0.0-31-generic").answer, "unknown");
  EXPECT_THAT(next_boot_line(view), HasSubstr("7.0.0-28-generic boots next: the configuration names '0'"));
}

TEST_F(KernelCommand, WhatTheStatusKnowsOfVerdicts) {
  put("var/lib/gpuhealthd/qualification.json",
      R"({"kernels": {"7.0.0-28-generic": {"state": "rejected", "reason": "triad takes 2.00x of its usual time"},
                      "7.0.0-14-generic": {"state": "blessed", "reason": "", "gpus": ["uid-1"]}}})");
  KernelView fresh;
  ASSERT_TRUE(look_at_kernels(fresh, dir.string(), std::string(GPUHEALTH_SOURCE_DIR) + "/etc/advisories.d"));
  const Terminal terminal;
  const auto page = render(render_kernel_status(fresh, terminal), terminal);
  EXPECT_THAT(page, HasSubstr("7.0.0-28-generic is rejected: triad takes 2.00x of its usual time"));
  EXPECT_THAT(page, HasSubstr("7.0.0-14-generic runs, and is blessed"));
  EXPECT_EQ(json_kernel_status(fresh)["verdicts"].size(), 2U);
}

TEST(PendingUpdate, IsReadFromWhatAptWouldDo) {
  const auto found = kernel_in_apt_plan(
      "Reading package lists...\n"
      "Inst linux-image-6.1.0-57-amd64 (6.1.155-1 Debian:12/oldstable [amd64])\n"
      "Inst linux-image-6.1.0-58-amd64 (6.1.158-1 Debian-Security:12/oldstable-security [amd64]) []\n"
      "Inst linux-image-amd64 [6.1.153-1] (6.1.158-1 Debian-Security:12/oldstable-security [amd64])\n"
      "Conf linux-image-6.1.0-58-amd64 (6.1.158-1 Debian-Security:12/oldstable-security [amd64])\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->release, "6.1.0-58-amd64");
  EXPECT_EQ(found->package.name, "linux-image-6.1.0-58-amd64");
  EXPECT_EQ(found->package.version, "6.1.158-1");
  EXPECT_EQ(
      kernel_in_apt_plan("Inst linux-image-unsigned-7.0.0-30-generic (7.0.0-30.30 Ubuntu:26.04 [amd64])\n")->release,
      "7.0.0-30-generic");
  for (const char* text :
       {"", "Inst linux-image-amd64 (6.1.158-1 x [amd64])\n", "Inst linux-image-6.1.0-58-amd64\n", "Inst linux-image-"})
    EXPECT_FALSE(kernel_in_apt_plan(text)) << text;
}

TEST_F(KernelCommand, APinWhoseTimeIsOverSaysSo) {
  const auto status = [&](const std::string& expires) {
    put("var/lib/gpuhealthd/kernel.json", R"({"pinned": "7.0.0-14-generic", "expires": ")" + expires + "\"}");
    KernelView fresh;
    EXPECT_TRUE(look_at_kernels(fresh, dir.string(), std::string(GPUHEALTH_SOURCE_DIR) + "/etc/advisories.d"));
    const Terminal terminal;
    return std::pair(render(render_kernel_status(fresh, terminal), terminal), json_kernel_list(fresh)["choices"]);
  };
  const auto [over, over_json] = status("2020-01-01");
  EXPECT_THAT(over, HasSubstr("The time of the pin is over"));
  EXPECT_EQ(over_json["expired"], true);
  const auto [lasts, lasts_json] = status("2999-01-01");
  EXPECT_THAT(lasts, testing::Not(HasSubstr("is over")));
  EXPECT_THAT(lasts, HasSubstr("until 2999-01-01"));
  EXPECT_EQ(lasts_json["expired"], false);
}

void collect(const Json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured()) collect(value, keys);
  }
}

TEST_F(KernelCommand, EveryKeyIsInTheManual) {
  std::ifstream file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/json.md");
  std::stringstream text;
  text << file.rdbuf();
  grub::Plan plan;
  LedgerEntry entry;
  entry.prior["/boot/grub/grub.cfg"] = {};
  std::set<std::string> keys;
  for (const Json& json : {json_kernel_list(view), json_kernel_status(view), json_kernel_advisories(view),
                           json_kernel_plan(view, plan, "pin"), json_safe_to_update(safe_to_update(view, "")),
                           json_kernel_log({&entry, 1})})
    collect(json, keys);
  EXPECT_GT(keys.size(), 50U);
  for (const std::string& key : keys) EXPECT_THAT(text.str(), HasSubstr("\"" + key + "\"")) << key;
}

TEST_F(KernelCommand, PagesShowTheAdvisoryBeforeItBoots) {
  const Terminal plain;
  EXPECT_THAT(render(render_kernel_status(view, plain), plain), HasSubstr("7.0.0-28-generic (boots next)"));
  EXPECT_THAT(render(render_kernel_list(view, plain), plain), HasSubstr("7.0.0-14-generic"));
  EXPECT_THAT(render(render_kernel_advisories(view, plain), plain), HasSubstr("--disable-mmap"));
}

}  // namespace
}  // namespace gpuhealth::cli
