// SPDX-License-Identifier: Apache-2.0
// /etc/default/grub as sh reads it, and grubenv as grub-editenv writes it.
#include "grub/settings.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "grub/grubenv.hpp"
#include "made_tree.hpp"

namespace gpuhealth::grub {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Settings read(const std::string& text) {
  Settings settings;
  read_settings(settings, "grub", text);
  return settings;
}

TEST(Settings, QuotesVariablesAndContinuedLines) {
  const auto s = read(
      "A=1 # why\nB='two words'\nC=\"$A-${A}\\\"x\\$y\"\nexport D=plain\nE=one\\ word\nF=\"a "
      "\\\nb\"\nG=${NOPE:-else}\nH=x'y'\"z\"\n"
      "I=\nJ=a;K=b\n");
  EXPECT_EQ(s.value("A"), "1");
  EXPECT_EQ(s.value("B"), "two words");
  EXPECT_EQ(s.value("C"), "1-1\"x$y");
  EXPECT_EQ(s.value("D"), "plain");
  EXPECT_EQ(s.value("E"), "one word");
  EXPECT_EQ(s.value("F"), "a b");
  EXPECT_EQ(s.value("G"), "else");
  EXPECT_EQ(s.value("H"), "xyz");
  EXPECT_EQ(s.find("I")->value, "");
  EXPECT_EQ(s.value("K"), "b");
}

TEST(Settings, ALaterFileWins) {
  test::MadeTree made;
  made.file("/boot/grub/grub.cfg", "")
      .file("/etc/default/grub", "GRUB_DEFAULT=saved\nGRUB_CMDLINE_LINUX_DEFAULT=quiet\n");
  made.file("/etc/default/grub.d/50-cloud.cfg",
            "GRUB_DEFAULT=0\nGRUB_CMDLINE_LINUX_DEFAULT=\"$GRUB_CMDLINE_LINUX_DEFAULT x\"\n");
  made.file("/etc/default/grub.d/README", "GRUB_DEFAULT=5\n");
  const auto settings = made.boot().settings;
  EXPECT_EQ(settings.value("GRUB_DEFAULT"), "0");
  EXPECT_EQ(settings.find("GRUB_DEFAULT")->file, "/etc/default/grub.d/50-cloud.cfg");
  EXPECT_EQ(settings.value("GRUB_CMDLINE_LINUX_DEFAULT"), "quiet x");
}

TEST(Settings, WhatACommandOrConditionDecidesIsNotKnown) {
  const auto s = read("A=`date`\nB=$(date)\nC=1\nif [ -f /x ]; then\n  C=2\nfi\n[ -f /y ] && D=3\nE=\"$A\"\nF=4\n");
  for (const char* name : {"A", "B", "C", "D", "E"}) {
    ASSERT_NE(s.find(name), nullptr) << name;
    EXPECT_FALSE(s.find(name)->value) << name;
  }
  EXPECT_EQ(s.value("F"), "4");
}

TEST(Settings, AnUnquotedArrowIsARedirection) {
  const auto s = read("GRUB_DEFAULT=1>2\n");
  EXPECT_EQ(s.value("GRUB_DEFAULT"), "1");
  EXPECT_THAT(s.warnings, ElementsAre(HasSubstr("redirection")));
  EXPECT_EQ(read("GRUB_DEFAULT='1>2'\n").value("GRUB_DEFAULT"), "1>2");
}

TEST(Settings, ASpaceMakesACommandAndSetsNothing) {
  const auto s = read("GRUB_DEFAULT = 2\nGRUB_TIMEOUT=5 GRUB_X\nGRUB_A+=x\n");
  EXPECT_EQ(s.find("GRUB_DEFAULT"), nullptr);
  EXPECT_EQ(s.find("GRUB_TIMEOUT"), nullptr);
  EXPECT_EQ(s.find("GRUB_A"), nullptr);
  EXPECT_EQ(s.warnings.size(), 2U);
}

TEST(GrubEnv, ValuesWithEscapes) {
  const auto env = parse_grubenv(test::grubenv("a=b\\\\c\nempty=\nlong=x\\\ny\n"));
  EXPECT_TRUE(env.damage.empty());
  EXPECT_EQ(env.values.at("a"), "b\\c");
  EXPECT_EQ(env.values.at("empty"), "");
  EXPECT_EQ(env.values.at("long"), "x\ny");
}

TEST(GrubEnv, AChangeKeepsTheLengthAndAllElse) {
  const std::string before = test::grubenv("saved_entry=a>b\nkernelopts=root=x\n");
  const auto added = with_value(before, "next_entry", "c");
  ASSERT_TRUE(added);
  EXPECT_EQ(*added, test::grubenv("saved_entry=a>b\nkernelopts=root=x\nnext_entry=c\n"));
  EXPECT_EQ(*with_value(*added, "saved_entry", "d"), test::grubenv("saved_entry=d\nkernelopts=root=x\nnext_entry=c\n"));
  EXPECT_EQ(*with_value(*added, "next_entry", std::nullopt), before);
  EXPECT_EQ(*with_value(before, "absent", std::nullopt), before);
}

TEST(GrubEnv, NoRoomIsAnErrorNotACut) {
  const auto full = with_value(test::grubenv("a=b\n"), "x", std::string(990, 'y'));
  ASSERT_TRUE(full);
  EXPECT_EQ(full->size(), 1024U);
  const auto over = with_value(test::grubenv("a=b\n"), "x", std::string(1010, 'y'));
  ASSERT_FALSE(over);
  EXPECT_EQ(over.error().code, ErrorCode::Exhausted);
}

TEST(GrubEnv, ADamagedBlockIsNotWritten) {
  for (const std::string& bytes :
       {std::string(), std::string(1024, '\0'), test::grubenv("a=b\n").substr(0, 1000), test::grubenv("a=b\n") + "#",
        "# GRUB Environment Block\na" + std::string(998, '#')}) {
    EXPECT_FALSE(with_value(bytes, "x", "y")) << bytes.size();
    EXPECT_FALSE(parse_grubenv(bytes).damage.empty()) << bytes.size();
  }
}

}  // namespace
}  // namespace gpuhealth::grub
