// SPDX-License-Identifier: Apache-2.0
// Broken policy files and what is said of them, word for word.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace gpuhealth::policy {
namespace {

std::string said(const std::string& text) {
  std::string out;
  for (const auto& m : parse_policy("p.yaml", text).mistakes)
    out += (out.empty() ? "" : "\n") + yaml::line_of("p.yaml", m);
  return out;
}

const std::string kHead = "apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\n";
const std::string kRule = "rules:\n  - name: r\n    when: {condition: overheating}\n    do: [notify]\n";

// Lines 4 to 7 are a sound rule; `more` begins at line 8.
std::string sound(const std::string& more) {
  return kHead + kRule + more;
}
// `when` is line 6.
std::string with_when(const std::string& when) {
  return kHead + "rules:\n  - name: r\n    when: " + when + "\n    do: [notify]\n";
}
// `actions` is line 7.
std::string with_do(const std::string& actions) {
  return kHead + "rules:\n  - name: r\n    when: {condition: overheating}\n    do: " + actions + "\n";
}

struct Broken {
  std::string text;
  std::string says;
};

const std::vector<Broken>& table() {
  static const std::vector<Broken> rows = {
      // The file as a whole.
      {"", "p.yaml: is empty; a policy begins with \"apiVersion: gpuhealth/v1\""},
      {"[1, 2]", "p.yaml:1:1: a policy must hold keys; a list stands there; such as \"apiVersion: …\""},
      {"a: [1", "p.yaml:1:1: is not YAML: end of sequence flow not found"},
      {kHead + kRule + "---\na: 1\n", "p.yaml:8:1: holds more than one document; keep one"},
      {kHead, "p.yaml:1:1: a policy lacks its key \"rules\""},
      {kHead + "rules: []\n", "p.yaml:4:8: rules: the list is empty"},
      {kHead + "rules: {name: r}\n",
       "p.yaml:4:8: rules: keys stand there, which is no list; put each entry behind a \"-\""},
      {"apiVersion: gpuhealth/v2\nkind: Policy\nmetadata: {name: p}\n" + kRule,
       "p.yaml:1:13: apiVersion: \"gpuhealth/v2\" is not known; this program reads gpuhealth/v1"},
      {"apiVersion: gpuhealth/v1\nkind: Polcy\nmetadata: {name: p}\n" + kRule,
       "p.yaml:2:7: kind: \"Polcy\" is not known; this program reads Policy"},
      {sound("rulez: 1\n"), "p.yaml:8:1: a policy has no key \"rulez\"; did you mean \"rules\"?"},
      {sound("kind: Policy\n"), "p.yaml:8:1: \"kind\" stands twice; the first is at line 2"},
      {sound("mode: enforced\n"), "p.yaml:8:7: mode: there is no \"enforced\"; did you mean \"enforce\"?"},
      {sound("mode: !!str enforce\n"), "p.yaml:8:7: a tag says what kind of value this is; write the value alone"},
      {sound("[a]: 1\n"), "p.yaml:8:1: a key must be a word; a list stands there"},
      // Anchors.
      {sound("targets: &a {host: *a}\n"), "p.yaml:8:20: an alias refers to what it stands in"},
      {sound("mode: *nothing\n"), "p.yaml:8:7: is not YAML: the referenced anchor is not defined"},
      // Metadata.
      {"apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {}\n" + kRule,
       "p.yaml:3:11: metadata lacks its key \"name\""},
      {"apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: a b}\n" + kRule,
       "p.yaml:3:18: name: \"a b\" is no name; letters, digits, . _ and -, at most 64"},
      {"apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p, serial: 1.5}\n" + kRule,
       "p.yaml:3:29: serial: \"1.5\" is no whole number"},
      {"apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p, expires: 2027-02-30}\n" + kRule,
       "p.yaml:3:30: expires: \"2027-02-30\" is no day; write 2027-03-31"},
      // Targets and limits.
      {sound("targets: {vendor: amdd}\n"), "p.yaml:8:19: vendor: there is no \"amdd\"; did you mean \"amd\"?"},
      {sound("targets: {vram: {at_least: 16}}\n"), "p.yaml:8:28: at_least: \"16\" lacks its unit; write 16GiB"},
      {sound("targets: {vram: {at_least: 16GB}}\n"), "p.yaml:8:28: at_least: \"16GB\" has another unit; write 16GiB"},
      {sound("targets: {labels: [a]}\n"), "p.yaml:8:19: labels must hold keys and values; such as \"role: inference\""},
      {sound("limits: {actions: {count: 0, within: 24h}}\n"), "p.yaml:8:27: count: \"0\" must be 1 to 1000"},
      {kHead + "limits: {breaker: {count: 1, within: 1h}}\nrules:\n  - name: r\n    when: {condition: overheating}\n   "
               " do: [drain, "
               "{power-cap: {percent: 80}}]\n",
       "p.yaml:4:9: breaker allows 1, and rule r has 2 actions that change something: it would never act"},
      {sound("targets: {vram: {at_least: 1e999GiB}}\n"),
       "p.yaml:8:28: at_least: \"1e999GiB\" is no number; write 16GiB"},
      {sound("limits: {breaker: {count: 3}}\n"), "p.yaml:8:19: breaker lacks its key \"within\""},
      // A rule.
      {kHead + "rules:\n  - when: {condition: overheating}\n    do: [notify]\n",
       "p.yaml:5:5: a rule lacks its key \"name\""},
      {kHead + "rules:\n  - name: r\n",
       "p.yaml:5:5: a rule lacks its key \"when\"\np.yaml:5:5: a rule lacks its key \"do\""},
      {sound("  - name: r\n    when: {condition: smu-dead}\n    do: [notify]\n"),
       "p.yaml:8:5: there are two rules \"r\"; the first is at line 5"},
      {sound("    for: 90\n"), "p.yaml:8:10: for: \"90\" lacks its unit; write 90s or 90m"},
      {sound("    for: soon\n"), "p.yaml:8:10: for: \"soon\" is no time; write 90s, 5m, 24h or 7d"},
      {sound("    cooldown: 5 minutes\n"),
       "p.yaml:8:15: cooldown: \"5 minutes\" has no unit of time; known are ms, s, m, h, d and w"},
      {sound("    cooldwon: 5m\n"), "p.yaml:8:5: a rule has no key \"cooldwon\"; did you mean \"cooldown\"?"},
      {sound("    clear_for: -5m\n"), "p.yaml:8:16: clear_for: \"-5m\" must be 0s to 3660d"},
      {sound("    budget: 3\n"), "p.yaml:8:13: budget must hold keys; \"3\" stands there; such as \"count: …\""},
      {sound("    budget: {count: 2, within: 0s}\n"), "p.yaml:8:32: within: \"0s\" must be more than 0s"},
      {sound("    unless: {busy: yes}\n"), "p.yaml:8:20: busy: \"yes\" is neither true nor false"},
      {sound("    unless: {window: 8-18}\n"),
       "p.yaml:8:22: window: \"8-18\" is no window; write 22:00-06:00 or Mon-Fri 08:00-18:00"},
      {sound("    revert_when: {reading: {name: temperature.edge, below: 60 C}}\n"),
       "p.yaml:8:18: rule r has revert_when, and does nothing that can be undone"},
      // When.
      {with_when("overheating"),
       "p.yaml:6:11: when must hold keys; \"overheating\" stands there; such as \"condition: …\""},
      {with_when("{condition: overheatng}"),
       "p.yaml:6:23: condition: there is no \"overheatng\"; did you mean \"overheating\"?"},
      {with_when("{condition: overheating, advisory: any}"),
       "p.yaml:6:11: when holds 2 things; join them with \"all:\" or \"any:\" and a list"},
      {with_when("{condition: {type: overheating, severity: bad}}"),
       "p.yaml:6:53: severity: there is no \"bad\"; known are info, warning, critical"},
      {with_when("{condition: {type: overheating, cause: thermel}}"),
       "p.yaml:6:50: cause: there is no \"thermel\"; did you mean \"thermal\"?"},
      {with_when("{all: {condition: overheating}}"),
       "p.yaml:6:17: all: keys stand there, which is no list; put each entry behind a \"-\""},
      {with_when("{nto: {condition: overheating}}"), "p.yaml:6:12: when has no key \"nto\"; did you mean \"not\"?"},
      {with_when("{reading: {name: temperature.junktion, above: 90 C}}"),
       "p.yaml:6:28: reading: there is no \"temperature.junktion\"; did you mean \"temperature.junction\"?"},
      {with_when("{reading: {name: temperature.junction, above: 90}}"),
       "p.yaml:6:57: above: \"90\" lacks its unit; write 90 C"},
      {with_when("{reading: {name: power.input, above: 90 C}}"),
       "p.yaml:6:48: above: \"90 C\" has another unit; write 90 W"},
      {with_when("{reading: {name: vram.bad_pages, above: 3 pages}}"),
       "p.yaml:6:51: above: \"3 pages\" is a count and has no unit"},
      {with_when("{reading: {name: power.input}}"),
       "p.yaml:6:21: a reading needs a bound; known are above, below, at_least, at_most"},
      {with_when("{reading: {name: power.input, above: 90 W, clear: 95 W}}"),
       "p.yaml:6:21: clear: 95 W must be below 90 W"},
      {with_when("{reading: {name: power.input, above: 90 W, below: 80 W}}"),
       "p.yaml:6:21: no value is above 90 W and below 80 W"},
      {with_when("{canary: {name: traid}}"), "p.yaml:6:27: canary: there is no \"traid\"; did you mean \"triad\"?"},
      {with_when("{canary: {name: triad, finding: stal}}"),
       "p.yaml:6:43: finding: there is no \"stal\"; did you mean \"stall\"?"},
      {with_when("{canary: {name: triad, slower_than: 1.5}}"),
       "p.yaml:6:47: slower_than: \"1.5\" is no number of times; write 1.5x"},
      {with_when("{event: {type: gpu.reset.faild, within: 1h}}"),
       "p.yaml:6:26: event: there is no \"gpu.reset.faild\"; did you mean \"gpu.reset.failed\"?"},
      {with_when("{event: {type: gpu.reset.failed}}"), "p.yaml:6:19: event lacks its key \"within\""},
      {with_when("{event: {type: gpu.reset.failed, condition: overheating, within: 1h}}"),
       "p.yaml:6:55: condition: goes with condition.confirmed, condition.cleared and condition.acknowledged only"},
      {with_when("{event: {type: gpu.reset.failed, within: 1h, after: q}}"),
       "p.yaml:6:63: after: there is no \"q\"; did you mean \"r\"?"},
      {with_when("{event: {type: gpu.reset.failed, within: 1h, after: r}}"),
       "p.yaml:6:63: after: \"r\" is the rule that it stands in"},
      {with_when("{not: {not: {not: {not: {not: {not: {not: {not: {not: {condition: smu-dead}}}}}}}}}}"),
       "p.yaml:6:65: all, any and not are nested more than 8 deep"},
      // Do.
      {with_do("notify"), "p.yaml:7:9: do: \"notify\" is no list; put each entry behind a \"-\""},
      {with_do("[powercap]"), "p.yaml:7:10: do: there is no \"powercap\"; did you mean \"power-cap\"?"},
      {with_do("[power-cap]"), "p.yaml:7:10: power-cap takes one of watts and percent"},
      {with_do("[{power-cap: {wats: 250}}]"),
       "p.yaml:7:11: power-cap takes one of watts and percent\np.yaml:7:23: power-cap has no key \"wats\"; did you "
       "mean \"watts\"?"},
      {with_do("[{power-cap: {watts: 250 C}}]"), "p.yaml:7:30: watts: \"250 C\" is no number of W"},
      {with_do("[{power-cap: {percent: 130}}]"), "p.yaml:7:32: percent: \"130\" must be 10 to 100"},
      {with_do("[{performance-level: {level: hihg}}]"),
       "p.yaml:7:38: level: there is no \"hihg\"; did you mean \"high\"?"},
      {with_do("[performance-level]"), "p.yaml:7:10: performance-level lacks its key \"level\""},
      {with_do("[{pcie-speed: {generation: 2}}]"),
       "p.yaml:7:11: pcie-speed: generation 2 is below the floor, 3; state a lower floor if you mean it"},
      {with_do("[{notify: {text: \"{devise} is hot\"}}]"),
       "p.yaml:7:26: text: nothing is known as \"{devise}\"; did you mean {device}?"},
      {with_do("[{notify: {via: mail}}]"), "p.yaml:7:11: notify by mail or webhook lacks \"to\""},
      {with_do("[{notify: {via: webhook, to: \"http://x.org\"}}]"),
       "p.yaml:7:11: notify: a webhook's \"to\" must begin with https://"},
      {with_do("[{run-hook: {program: ../../bin/sh}}]"),
       "p.yaml:7:31: program: \"../../bin/sh\" is no word of letters, digits, . _ - + ~ and :"},
      {with_do("[{run-hook: {program: x, deadline: 30}}]"),
       "p.yaml:7:44: deadline: \"30\" lacks its unit; write 30s or 30m"},
      {with_do("[drain, drain]"), "p.yaml:7:17: do: drain stands twice"},
      {with_do("[{kernel-hold: {on: true}}]"), "p.yaml:7:24: kernel-hold takes no parameters"},
      {with_do("[{notify: {}, drain: {}}]"),
       "p.yaml:7:10: an action has one name; 2 keys stand there; indent the parameters below the name, or put each "
       "action behind its own \"-\""},
      {with_do("[{reboot: {window: 02:00-05:00}}]"), "p.yaml:5:5: rule r reboots and lacks its key \"budget\""},
      {with_do("[reboot]\n    budget: {count: 1, within: 7d}"),
       "p.yaml:5:5: rule r reboots and lacks the parameter \"window\""},
  };
  return rows;
}

TEST(PolicyMistakes, EachIsSaidWithItsPlaceTheWordAndTheNearestOne) {
  ASSERT_GE(table().size(), 40U);
  for (const auto& row : table()) EXPECT_EQ(said(row.text), row.says) << row.text;
}

TEST(PolicyMistakes, TheRuleThatTheTableIsMadeFromIsSound) {
  EXPECT_EQ(said(sound("")), "");
  EXPECT_TRUE(parse_policy("p.yaml", sound("")).policy.has_value());
}

TEST(PolicyMistakes, AllOfAFileAreSaidAtOnceInTheOrderOfItsLines) {
  EXPECT_EQ(said("apiVersion: gpuhealth/v1\nkind: Policy\nmetadata: {name: p}\nmod: shadow\nrules:\n"
                 "  - name: r\n    when: {condition: overheeting}\n    for: 5\n    do: [notfy]\n"),
            "p.yaml:4:1: a policy has no key \"mod\"; did you mean \"mode\"?\n"
            "p.yaml:7:23: condition: there is no \"overheeting\"; did you mean \"overheating\"?\n"
            "p.yaml:8:10: for: \"5\" lacks its unit; write 5s or 5m\n"
            "p.yaml:9:10: do: there is no \"notfy\"; did you mean \"notify\"?");
}

TEST(PolicyMistakes, AreAtMostAHundredOfAFile) {
  std::string text = kHead + "rules:\n";
  for (int i = 0; i < 300; ++i) text += "  - nme: r\n";
  const auto mistakes = parse_policy("p.yaml", text).mistakes;
  ASSERT_EQ(mistakes.size(), 101U);
  EXPECT_EQ(mistakes.back().text, "more mistakes follow");
}

TEST(PolicyLimits, AFileOfTooManyRulesOrBytesIsRefused) {
  std::string text = kHead + "rules:\n";
  for (int i = 0; i < 1001; ++i)
    text += "- {name: r" + std::to_string(i) + ", when: {condition: smu-dead}, do: [notify]}\n";
  EXPECT_EQ(said(text), "p.yaml:5:1: rules: 1001 entries are more than the 1000 that there may be");
  EXPECT_EQ(said(std::string((256U << 10U) + 1, '#')), "p.yaml: is larger than 256 KiB");
}

TEST(PolicyLimits, AliasesThatMultiplyAreStopped) {
  std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    const std::string below = "*a" + std::to_string(i - 1);
    text += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) text += below + ", ";
    text += "x]\n";
  }
  EXPECT_NE(said(text).find("holds too many values; no such file does"), std::string::npos) << said(text);
}

TEST(PolicyLimits, DeepNestingIsStopped) {
  EXPECT_NE(said(std::string(200, '[')).find("is nested too deep"), std::string::npos);
  EXPECT_NE(said(std::string(100'000, '[')), "");
  EXPECT_NE(said(std::string(20'000, '{')), "");
}

TEST(PolicyLimits, ControlCharactersDoNotReachATerminal) {
  const auto text = said(sound("\"a\\e[31m\": 1\n"));
  EXPECT_EQ(
      text,
      "p.yaml:8:1: a policy has no key \"a?[31m\"; known are apiVersion, kind, metadata, targets, mode, limits, rules");
}

}  // namespace
}  // namespace gpuhealth::policy
