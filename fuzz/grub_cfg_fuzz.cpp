// SPDX-License-Identifier: Apache-2.0
// Any bytes as a grub.cfg, run with a grubenv; what is chosen is an entry of the menu.
#include <cstdint>
#include <memory>
#include <string>

#include "fuzz/require.hpp"
#include "grub/interpreter.hpp"

using namespace gpuhealth::grub;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  Machine machine;
  machine.grubenv = EnvValues{{"saved_entry", "a>b"}, {"next_entry", size % 2 == 0 ? "" : "1"}};
  machine.bls.push_back(
      parse_bls("m-6.1.2-1.fc40.conf", "title T\nlinux /vmlinuz-6.1.2-1.fc40\noptions $kernelopts\n"));
  machine.exists = [](std::string_view path, bool) { return path.size() % 2 == 0; };
  const auto script = std::make_shared<const Script>(parse_script(text));
  machine.load = [&](std::string_view path) { return path.size() % 3 == 0 ? script : nullptr; };
  Interpreter run(machine);
  run.run(script);
  for (const Matching matching : {Matching::NumberFirst, Matching::IdFirst}) {
    const Choice choice = run.choose(matching);
    if (!choice.known) continue;
    const MenuEntry* entry = entry_at(run.menu(), choice.path);
    require(entry != nullptr && !entry->submenu, "what is chosen is an entry");
    require(!choice.reason.empty(), "and there is a reason");
    (void)run.grubenv_after(choice);
    (void)kind_of(*entry);
    const std::string release = release_of(*entry);
    require(release.empty() || looks_like_release(release), "a release looks like one");
  }
  return 0;
}
