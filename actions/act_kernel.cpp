// SPDX-License-Identifier: Apache-2.0
// gpuhealth-act kernel …: changes of the boot menu.
#include <cstdio>
#include <string>
#include <vector>

#include "actions/act.hpp"
#include "grub/operations.hpp"

namespace gpuhealth::actions {
namespace {

using namespace gpuhealth::grub;

Json words(const std::vector<std::string>& list) {
  return list.empty() ? Json::array() : Json(list);
}

int done(const Outcome& out) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  print({{"operation", to_string(out.operation)},
         {"release", or_null(out.release)},
         {"steps", words(out.steps)},
         {"changed", words(out.changed)},
         {"undone", words(out.undone)},
         {"next", or_null(out.next)},
         {"default", or_null(out.lasting)},
         {"ledger", or_null(out.ledger)},
         {"warnings", words(out.warnings)}});
  return 0;
}

}  // namespace

int act_kernel(const std::vector<std::string>& arguments) {
  std::vector<std::string> words_given;
  std::string root = "/";
  Request request;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if ((word == "--root" || word == "--expires") && i + 1 < arguments.size()) {
      (word == "--root" ? root : request.expires) = arguments[++i];
    } else {
      words_given.push_back(word);
    }
  }
  const bool recovery = words_given.size() == 1 && words_given[0] == "recover";
  const auto operation = words_given.empty() ? std::nullopt : operation_from(words_given[0]);
  const bool installed = words_given.size() == 2 && words_given[0] == "installed";
  if ((!operation && !recovery && !installed) || words_given.size() > 2) return usage();
  const auto tree = Tree::open(root);
  if (!tree) return complain(tree.error());
  System system;
  const Surroundings surroundings = real_surroundings(system);
  if (recovery) {
    const auto undone = recover(*tree, surroundings);
    if (!undone) return complain(undone.error());
    print({{"operation", "recover"}, {"undone", words(*undone)}});
    return 0;
  }
  if (installed) {
    const auto state = note_installed(*tree, words_given[1], surroundings);
    if (!state) return complain(state.error());
    print({{"operation", "installed"}, {"release", words_given[1]}, {"state", *state}});
    return 0;
  }
  request.operation = *operation;
  if (words_given.size() > 1) request.release = words_given[1];
  const auto out = perform(*tree, request, surroundings);
  return out ? done(*out) : complain(out.error());
}

}  // namespace gpuhealth::actions
