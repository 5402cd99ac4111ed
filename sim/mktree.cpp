// SPDX-License-Identifier: Apache-2.0
// gpuhealth-mktree: writes the /sys and /proc of a synthetic machine below a folder.
#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "sim/machine.hpp"
#include "sim/tree.hpp"

namespace {

using gpuhealth::sim::Card;

struct Options {
  std::string dir;
  std::string preset = "demo";
  unsigned cards = 1;
  unsigned animate_s = 0;
  unsigned seed = 1;
  bool json = false;
};

void print_cards(const Options& options, const std::vector<Card>& cards) {
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const Card& card : cards)
      list.push_back({{"pci", gpuhealth::to_string(card.place.gpu)}, {"model", card.model.name}});
    std::puts(nlohmann::json{{"root", options.dir}, {"cards", list}}.dump().c_str());
    return;
  }
  for (const Card& card : cards)
    std::puts(fmt::format("{} {}", gpuhealth::to_string(card.place.gpu), card.model.name).c_str());
}

gpuhealth::Result<void> animate(const Options& options, const std::vector<Card>& cards) {
  for (unsigned second = 1; second <= options.animate_s; ++second) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    for (const Card& card : cards) {
      const Card now = gpuhealth::sim::with_noise(card, options.seed, second);
      if (auto written = gpuhealth::sim::update_card(options.dir, now); !written) return written;
    }
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes the /sys and /proc of a synthetic machine with AMD GPUs below a folder.");
  app.add_option("DIR", options.dir, "the folder; DIR/sys and DIR/proc are replaced")->required();
  app.add_option("--preset", options.preset, "demo: one good, one overheating, one with a narrow link; healthy")
      ->check(CLI::IsMember({"demo", "healthy"}))
      ->capture_default_str();
  app.add_option("--cards", options.cards, "number of cards of the healthy preset")
      ->check(CLI::Range(0, 64))
      ->capture_default_str();
  app.add_option("--animate", options.animate_s, "for so many seconds, give the sensors small noise once a second");
  app.add_option("--seed", options.seed, "of the noise")->capture_default_str();
  app.add_flag("--json", options.json, "print the cards as JSON");
  CLI11_PARSE(app, argc, argv);

  const std::vector<Card> cards =
      options.preset == "demo" ? gpuhealth::sim::demo_machine() : gpuhealth::sim::healthy_machine(options.cards);
  auto result = gpuhealth::sim::write_machine(options.dir, cards);
  if (result) {
    print_cards(options, cards);
    std::fflush(stdout);
    result = animate(options, cards);
  }
  if (!result) {
    std::fputs(fmt::format("gpuhealth-mktree: {}\n", result.error().text).c_str(), stderr);
    return 1;
  }
  return 0;
}
