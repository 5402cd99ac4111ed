// SPDX-License-Identifier: Apache-2.0
#include "core/pci.hpp"

#include <gtest/gtest.h>

namespace gpuhealth {
namespace {

TEST(PciAddress, TheKernelsFormIsReadAndWrittenBack) {
  const auto a = parse_pci_address("0000:03:00.0");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->domain, 0u);
  EXPECT_EQ(a->bus, 3);
  EXPECT_EQ(a->device, 0);
  EXPECT_EQ(a->function, 0);
  EXPECT_EQ(to_string(*a), "0000:03:00.0");
}

TEST(PciAddress, WideDomainsOfVmdAndHyperVSurvive) {
  const auto a = parse_pci_address("10000:e1:1f.7");
  ASSERT_TRUE(a);
  EXPECT_EQ(to_string(*a), "10000:e1:1f.7");
}

TEST(PciAddress, TheShortFormThatPeopleTypeMeansDomainZero) {
  const auto a = parse_pci_address("0b:00.1");
  ASSERT_TRUE(a);
  EXPECT_EQ(to_string(*a), "0000:0b:00.1");
}

TEST(PciAddress, AnythingElseIsRefused) {
  for (const char* text : {"", "card0", "0000:03:00", "0000:03:00.8", "0000:03:20.0", "0000:100:00.0", "0000:03:00.0 ",
                           "0000:03:00.0\n", "g000:03:00.0", "0000:03:00.", ":03:00.0", "0000:03::00.0"}) {
    EXPECT_FALSE(parse_pci_address(text)) << '"' << text << '"';
  }
}

}  // namespace
}  // namespace gpuhealth
