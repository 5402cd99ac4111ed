// SPDX-License-Identifier: Apache-2.0
// The XML files are the contract: the running server must be exactly that, and docs/dbus.md must say all of it.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <tuple>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "core/error.hpp"
#include "dbus/names.hpp"
#include "tests/dbus/fixtures.hpp"
#include "tests/dbus/harness.hpp"
#include "tests/paths.hpp"
#include "tests/support/private_bus.hpp"

namespace gpuhealth::dbus {
namespace {

using boost::property_tree::ptree;

std::string attribute(const ptree& node, const char* name) {
  return node.get<std::string>(std::string("<xmlattr>.") + name, "");
}

std::string read_file(const std::string& path) {
  std::ifstream in(path);
  EXPECT_TRUE(in) << path;
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

// One line for each member with all its arguments and annotations, in order of name.
std::set<std::string> members(const ptree& interface) {
  std::set<std::string> lines;
  for (const auto& [kind, node] : interface) {
    if (kind != "method" && kind != "signal" && kind != "property") continue;
    std::string line = kind + " " + attribute(node, "name") + " " + attribute(node, "type") + attribute(node, "access");
    std::set<std::string> annotations;
    for (const auto& [child, detail] : node) {
      if (child == "arg")
        line += " (" + attribute(detail, "direction") + " " + attribute(detail, "type") + " " +
                attribute(detail, "name") + ")";
      if (child == "annotation") annotations.insert(attribute(detail, "name") + "=" + attribute(detail, "value"));
    }
    for (const auto& a : annotations) line += " " + a;
    lines.insert(line);
  }
  return lines;
}

ptree parse(const std::string& xml) {
  std::istringstream in(xml);
  ptree tree;
  boost::property_tree::read_xml(in, tree);
  return tree;
}

// Null where there is none.
const ptree* find_interface(const ptree& tree, const std::string& name) {
  for (const auto& [kind, node] : tree.get_child("node")) {
    if (kind == "interface" && attribute(node, "name") == name) return &node;
  }
  return nullptr;
}

std::string contract_path(const std::string& interface) {
  return std::string(GPUHEALTH_SOURCE_DIR) + "/dbus/" + interface + ".xml";
}

struct Object {
  const char* interface;
  const char* path;
  std::size_t fewest = 14;  // members: the comparison compares something
};

class Contract : public ::testing::TestWithParam<Object> {};

TEST_P(Contract, TheRunningServerIsWhatTheXmlSays) {
  const test::PrivateBus bus;
  test::Host host(bus.address());
  host.on_loop([](Server& s) {
    s.set_device(test::card());
    s.set_condition(test::overheating());
    s.set_action(test::power_cap());
    s.set_job(test::running());
  });
  host.start();
  test::Listener listener(bus.address());
  listener.wait_for_name();
  const ptree contract = parse(read_file(contract_path(GetParam().interface)));
  const ptree running = parse(listener.introspect(GetParam().path));
  const ptree* wanted = find_interface(contract, GetParam().interface);
  const ptree* found = find_interface(running, GetParam().interface);
  ASSERT_NE(wanted, nullptr);
  ASSERT_NE(found, nullptr);
  const auto lines = members(*wanted);
  EXPECT_GE(lines.size(), GetParam().fewest);
  EXPECT_EQ(members(*found), lines);
  // No interface of ours beside it.
  for (const auto& [kind, node] : running.get_child("node")) {
    const std::string name = kind == "interface" ? attribute(node, "name") : "";
    EXPECT_TRUE(!name.starts_with("org.gpuhealth1.") || name == GetParam().interface) << name;
  }
}

TEST_P(Contract, EachMemberHasAComment) {
  const std::string xml = read_file(contract_path(GetParam().interface));
  std::istringstream lines(xml);
  std::string before;
  for (std::string line; std::getline(lines, line); before = line) {
    const bool member =
        line.starts_with("    <method ") || line.starts_with("    <signal ") || line.starts_with("    <property ");
    EXPECT_TRUE(!member || before.ends_with("-->")) << line;
  }
}

// docs/dbus.md has a section "## INTERFACE" with a table row a member: | `Name` | `signature` | …
std::set<std::string> documented(const std::string& interface) {
  std::istringstream lines(read_file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/dbus.md"));
  std::set<std::string> rows;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("## ")) inside = line == "## " + interface;
    if (!inside || !line.starts_with("| `")) continue;
    const auto end = line.find('|', line.find('|', 1) + 1);
    rows.insert(line.substr(0, end));
  }
  return rows;
}

TEST_P(Contract, TheSystemBusLetsEverybodyCallIt) {
  const auto policy = read_file(std::string(GPUHEALTH_SOURCE_DIR) + "/dbus/org.gpuhealth1.conf");
  const std::string interface = GetParam().interface;
  EXPECT_NE(policy.find("<allow send_destination=\"org.gpuhealth1\" send_interface=\"" + interface + "\"/>"),
            std::string::npos);
}

TEST_P(Contract, EachMemberIsInTheDocumentation) {
  const ptree contract = parse(read_file(contract_path(GetParam().interface)));
  std::set<std::string> wanted;
  for (const auto& [kind, node] : *find_interface(contract, GetParam().interface)) {
    if (kind == "property") wanted.insert("| `" + attribute(node, "name") + "` | `" + attribute(node, "type") + "` ");
    if (kind != "method" && kind != "signal") continue;
    std::string in;
    std::string out;
    for (const auto& [child, arg] : node) {
      if (child != "arg") continue;
      auto& list = attribute(arg, "direction") == "out" ? out : in;
      list += (list.empty() ? "" : ", ") + attribute(arg, "type") + " " + attribute(arg, "name");
    }
    wanted.insert("| `" + attribute(node, "name") + "` | `(" + in + ")" + (out.empty() ? "" : " → " + out) + "` ");
  }
  EXPECT_EQ(documented(GetParam().interface), wanted);
}

INSTANTIATE_TEST_SUITE_P(
    Of, Contract,
    ::testing::Values(Object{kManagerInterface, "/org/gpuhealth1"}, Object{kDeviceInterface, test::kCardPath},
                      Object{kConditionInterface, test::kHotPath}, Object{kKernelInterface, kKernelPath},
                      Object{kActionInterface, test::kCapPath}, Object{kCanaryInterface, kCanaryPath, 2},
                      Object{kJobInterface, test::kRunPath, 12}),
    [](const auto& object) {
      const std::string name = object.param.interface;
      return name.substr(name.rfind('.') + 1);
    });

TEST(ContractTree, DevicesAndConditionsAreFoundByWalking) {
  const test::PrivateBus bus;
  test::Host host(bus.address());
  host.on_loop([](Server& s) {
    s.set_device(test::card());
    s.set_condition(test::overheating());
    s.set_action(test::power_cap());
  });
  host.start();
  test::Listener listener(bus.address());
  listener.wait_for_name();
  EXPECT_NE(listener.introspect("/org/gpuhealth1").find("<node name=\"device\""), std::string::npos);
  EXPECT_NE(listener.introspect("/org/gpuhealth1/device").find("uid_2d49afc8b43a8a6d30"), std::string::npos);
  EXPECT_NE(listener.introspect("/org/gpuhealth1/condition").find("overheating_2duid"), std::string::npos);
  EXPECT_NE(listener.introspect("/org/gpuhealth1/action").find("_3000003_2dpower_2dcap"), std::string::npos);
}

TEST(Documentation, NamesEachError) {
  const std::string text = read_file(std::string(GPUHEALTH_SOURCE_DIR) + "/docs/dbus.md");
  for (const auto code : {ErrorCode::NotFound, ErrorCode::Unreadable, ErrorCode::InvalidInput, ErrorCode::NotPermitted,
                          ErrorCode::Unavailable, ErrorCode::Exhausted, ErrorCode::Internal})
    EXPECT_NE(text.find(std::string("`") + error_name(code) + "`"), std::string::npos) << error_name(code);
}

}  // namespace
}  // namespace gpuhealth::dbus
