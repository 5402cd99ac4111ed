// SPDX-License-Identifier: Apache-2.0
// Events of a kernel's life that change nothing of what boots.
#include "grub/menu_script.hpp"
#include "grub/operations.hpp"
#include "grub/qualification.hpp"

namespace gpuhealth::grub {

Result<std::string> note_installed(const Tree& tree, const std::string& release, const Surroundings& surroundings) {
  if (!is_plain_release(release)) return fail(ErrorCode::InvalidInput, "not a kernel release: " + release);
  const auto ledger = Ledger::open(tree, *surroundings.system);  // for its lock
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Qualifications all = read_qualifications(tree);
  Qualification& one = all.kernels[release];
  const Occasion occasion{surroundings.boot_id, surroundings.now, {}};
  // Under the same release there is another kernel now.
  (void)advance(one, QualificationEvent::BuildChanged, occasion);
  const Choices choices = read_choices(tree);
  if (choices.hold && choices.pinned != release) (void)advance(one, QualificationEvent::Held, occasion);
  std::string state(to_string(one.state));
  if (auto put =
          put_file(tree, *surroundings.system, std::string(kQualificationFile), {true, qualifications_text(all), 0640});
      !put)
    return tl::unexpected<Error>(put.error());
  return state;
}

Result<std::string> note_event(const Tree& tree, const std::string& release, QualificationEvent event,
                               const std::string& reason, const Surroundings& surroundings) {
  if (!is_plain_release(release)) return fail(ErrorCode::InvalidInput, "not a kernel release: " + release);
  const auto ledger = Ledger::open(tree, *surroundings.system);  // for its lock
  if (!ledger) return tl::unexpected<Error>(ledger.error());
  Qualifications all = read_qualifications(tree);
  Qualification& one = all.kernels[release];
  if (!advance(one, event, {surroundings.boot_id, surroundings.now, {}}, reason))
    return fail(ErrorCode::InvalidInput, release + " is " + std::string(to_string(one.state)) + ": " +
                                             std::string(to_string(event)) + " means nothing there");
  std::string state(to_string(one.state));
  if (auto put =
          put_file(tree, *surroundings.system, std::string(kQualificationFile), {true, qualifications_text(all), 0640});
      !put)
    return tl::unexpected<Error>(put.error());
  return state;
}

}  // namespace gpuhealth::grub
