// SPDX-License-Identifier: Apache-2.0
// Runs a grub.cfg as GRUB would at boot, with what a running system can know: grubenv and files, not disks or firmware.
// A condition that cannot be known runs both ways, and what differs afterwards is unknown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "grub/bls.hpp"
#include "grub/menu.hpp"
#include "grub/script.hpp"

namespace gpuhealth::grub {

enum class Tri : std::uint8_t { No, Yes, Unknown };

struct Value {
  std::string text;  // where unknown: with ${name} in place of what is not known
  bool known = true;
  std::string origin;  // the variable that alone made it: "saved_entry" in set default="${saved_entry}"
  friend bool operator==(const Value& a, const Value& b) { return a.text == b.text && a.known == b.known; }
};
using Arguments = std::vector<Value>;

using EnvValues = std::map<std::string, std::string, std::less<>>;

// What a configuration can ask of its machine. Paths are GRUB's without the device: "/boot/grub/grubenv".
struct Machine {
  std::string folder = "/boot/grub";  // $prefix
  std::string platform;               // "pc", "efi"; empty: not known
  std::function<bool(std::string_view path, bool not_empty)> exists = [](std::string_view, bool) { return false; };
  std::function<std::shared_ptr<const Script>(std::string_view path)> load = [](std::string_view) { return nullptr; };
  std::vector<BlsEntry> bls;         // in the order of the menu
  std::optional<EnvValues> grubenv;  // null: there is none, or GRUB does not take it
  bool grubenv_unknown = false;      // its values are where only GRUB sees them
};

// How GRUB finds the entry that a text names: number first, or (Fedora's GRUB) id, title, then number.
enum class Matching : std::uint8_t { NumberFirst, IdFirst };

struct Choice {
  bool known = false;
  MenuPath path;
  std::string reason;
};

class Interpreter {
 public:
  // `machine` outlives it.
  explicit Interpreter(const Machine& machine);

  // `bodies`: also find out what each entry loads. Submenus are filled in any case.
  void run(const std::shared_ptr<const Script>& script, bool bodies = true);

  [[nodiscard]] const Menu& menu() const { return menu_; }
  [[nodiscard]] Value variable(std::string_view name) const { return look_up(name); }
  [[nodiscard]] bool uses_blscfg() const { return uses_blscfg_; }
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }
  // Null: it can be known. Else why not.
  [[nodiscard]] std::optional<std::string> obscured() const;

  [[nodiscard]] Choice choose(Matching matching) const;
  // What grubenv holds after that entry was started without a person; null where that cannot be known.
  std::optional<EnvValues> grubenv_after(const Choice& choice);

 private:
  enum class Flow : std::uint8_t { Go, Break, Continue, Return, Stop };
  using Variables = std::unordered_map<std::string, Value>;
  using Undo = std::vector<std::pair<std::string, std::optional<Value>>>;
  using Changed = std::map<std::string, std::optional<Value>>;

  Tri run_block(const Block& block);
  Tri run_statement(const Statement& statement);
  Tri run_if(const Statement& statement);
  Tri run_loop(const Statement& statement);
  Tri run_command(const Statement& statement);
  Tri call(const Statement& function, Arguments arguments);
  Tri builtin(const std::string& name, const Arguments& arguments);
  Tri load_env(const Arguments& arguments);
  Tri save_env(const Arguments& arguments);
  Tri include(const Arguments& arguments, bool replaces_menu);
  Tri test(const Arguments& arguments) const;
  void forget_result_of(const std::string& name, const Arguments& arguments);
  void count(const Arguments& arguments, int by);
  void add_entry(const Statement& statement, const Arguments& arguments);
  void add_bls_entries();
  [[nodiscard]] std::string expand_text(std::string_view text) const;
  bool collect(const std::string& name, const Arguments& arguments);
  void run_body(std::size_t body);
  void look_at_bodies(Menu& menu, bool entries);
  void look_at_submenu(MenuEntry& entry, bool entries);
  void enter_submenu(const MenuEntry& entry);

  // A way that is perhaps taken: what it changed, with everything as before afterwards.
  Changed try_out(const std::function<void()>& way);
  void merge(const std::vector<Changed>& ways);

  [[nodiscard]] Arguments expand(const std::vector<Word>& words) const;
  void expand(const Word& word, Arguments& out) const;
  [[nodiscard]] Value look_up(std::string_view name) const;
  void set(const std::string& name, std::optional<Value> value);
  void roll_back(std::size_t mark);

  const Machine& machine_;
  std::vector<std::shared_ptr<const Script>> scripts_;  // what bodies point into
  Variables variables_;
  Undo undo_;
  std::unordered_map<std::string, const Statement*> functions_;
  std::set<std::string, std::less<>> exported_;
  struct Body {
    const Block* block = nullptr;
    Arguments arguments;
  };
  std::vector<Body> bodies_{1};
  std::vector<Arguments> parameters_;
  Menu menu_;
  Menu* filling_ = nullptr;
  BootSteps* steps_ = nullptr;  // of the entry whose body is being run
  std::vector<std::string> notes_;
  Flow flow_ = Flow::Go;
  int uncertain_ = 0;  // > 0: what runs now may not run at boot
  int watched_ = 0;    // > 0: changes can be rolled back
  int depth_ = 0;
  int rounds_ = 0;
  std::size_t budget_;
  bool uses_blscfg_ = false;
  bool direct_ = false;     // loads a kernel outside of any entry
  bool cut_ = false;        // a file ends in the middle
  bool exhausted_ = false;  // too long, or it may end early
};

// `[ … ]` without the bracket: -n, -z, =, -f and so on. `exists` answers for files.
Tri evaluate_test(const Arguments& arguments, const std::function<Tri(const Value& path, bool not_empty)>& exists);

// The place in a menu that a text names; -1: none; null: that cannot be known.
std::optional<int> find_entry(const Menu& menu, std::string_view wanted, Matching matching);

}  // namespace gpuhealth::grub
