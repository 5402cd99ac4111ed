// SPDX-License-Identifier: Apache-2.0
// The commands of a grub.cfg that matter for what boots, and menus.
#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "grub/interpreter.hpp"

namespace gpuhealth::grub {
namespace {

constexpr char kSaved = '\x01';

// "(hd0,gpt2)/boot/x" and "(${root})/boot/x" without the device; null where the path itself is not known.
std::optional<std::string> without_device(std::string_view path) {
  if (path.starts_with('(')) {
    const auto close = path.find(')');
    if (close == std::string_view::npos) return std::nullopt;
    path.remove_prefix(close + 1);
  }
  if (path.find("${") != std::string_view::npos) return std::nullopt;
  return std::string(path);
}

std::string joined(const Arguments& arguments, std::size_t from) {
  std::string out;
  for (std::size_t i = from; i < arguments.size(); ++i) {
    if (i > from) out += ' ';
    out += arguments[i].text;
  }
  return out;
}

// Options of menuentry and submenu that take a value, as --name VALUE or --name=VALUE.
struct EntryOptions {
  std::optional<Value> id;
  std::vector<std::string> classes;
  bool restricted = false;
  Arguments rest;
};

EntryOptions read_entry_options(const Arguments& arguments) {
  EntryOptions out;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Value& word = arguments[i];
    if (!word.text.starts_with("--")) {
      out.rest.push_back(word);
      continue;
    }
    const auto equals = word.text.find('=');
    const std::string name = word.text.substr(0, equals);
    if (name == "--unrestricted") continue;
    Value value{{}, word.known, {}};
    if (equals != std::string::npos) {
      value.text = word.text.substr(equals + 1);
    } else if (i + 1 < arguments.size()) {
      value = arguments[++i];
    }
    if (name == "--id") out.id = value;
    if (name == "--class") out.classes.push_back(value.text);
    if (name == "--users") out.restricted = !value.text.empty();
  }
  return out;
}

}  // namespace

Tri Interpreter::test(const Arguments& arguments) const {
  return evaluate_test(arguments, [this](const Value& path, bool not_empty) {
    const auto plain = without_device(path.text);
    if (!plain) return Tri::Unknown;
    if (machine_.exists(*plain, not_empty)) return Tri::Yes;
    // Beside the configuration it would be seen; elsewhere it may be on a device that this tree does not have.
    return path.known && plain->starts_with(machine_.folder + "/") ? Tri::No : Tri::Unknown;
  });
}

Tri Interpreter::builtin(const std::string& name, const Arguments& arguments) {
  if (name == "[") {
    Arguments inner = arguments;
    if (!inner.empty() && inner.back().text == "]") inner.pop_back();
    return test(inner);
  }
  if (name == "test") return test(arguments);
  if (name == "true" || name == "echo") return Tri::Yes;
  if (name == "false") return Tri::No;
  if (name == "set") {
    for (const Value& word : arguments) {
      const auto equals = word.text.find('=');
      if (equals == std::string::npos) continue;
      set(word.text.substr(0, equals), Value{word.text.substr(equals + 1), word.known, word.origin});
    }
    return Tri::Yes;
  }
  if (name == "unset") {
    for (const Value& word : arguments) set(word.text, std::nullopt);
    return Tri::Yes;
  }
  if (name == "export") {
    for (const Value& word : arguments) {
      exported_.insert(word.text.substr(0, word.text.find('=')));
      if (word.text.find('=') != std::string::npos) (void)builtin("set", {word});
    }
    return Tri::Yes;
  }
  if (name == "load_env") return load_env(arguments);
  if (name == "save_env") return save_env(arguments);
  if (name == "source" || name == ".") return include(arguments, false);
  if (name == "configfile") return include(arguments, true);
  if (name == "blscfg") {
    add_bls_entries();
    return Tri::Yes;
  }
  if (name == "increment") count(arguments, 1);
  if (name == "decrement") count(arguments, -1);
  if (name == "return") flow_ = Flow::Return;
  if (name == "break") flow_ = Flow::Break;
  if (name == "continue") flow_ = Flow::Continue;
  if (collect(name, arguments)) return Tri::Yes;
  if (name == "exit" || name == "normal_exit" || name == "halt" || name == "reboot") flow_ = Flow::Stop;
  forget_result_of(name, arguments);
  return Tri::Unknown;
}

void Interpreter::count(const Arguments& arguments, int by) {
  if (arguments.empty()) return;
  const Value now = look_up(arguments.front().text);
  int number = 0;
  const auto [end, error] = std::from_chars(now.text.data(), now.text.data() + now.text.size(), number);
  if (now.known && error == std::errc() && end == now.text.data() + now.text.size() && number < 1'000'000) {
    set(arguments.front().text, Value{std::to_string(number + by), true, {}});
  } else {
    set(arguments.front().text, Value{"${" + arguments.front().text + "}", false, {}});
  }
}

// Variables that a command fills with what it found.
void Interpreter::forget_result_of(const std::string& name, const Arguments& arguments) {
  const auto forget = [&](const std::string& variable) {
    if (!variable.empty()) set(variable, Value{"${" + variable + "}", false, variable});
  };
  if (name == "hwmatch") forget("match");
  if (name == "read" && !arguments.empty()) forget(arguments.back().text);
  if (name == "getenv" && arguments.size() > 1) forget(arguments.back().text);
  if (name == "search" || name.starts_with("search.")) {
    bool named = name.starts_with("search.") && arguments.size() > 1;
    if (named) forget(arguments[1].text);
    for (const Value& word : arguments) named = named || word.text.starts_with("--set") || word.text == "-s";
    if (!named) return;
  }
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i].text;
    if ((word == "--set" || word == "-s") && i + 1 < arguments.size()) {
      std::string variable = arguments[i + 1].text;
      if (variable.starts_with("--")) variable = "root";
      forget(variable.substr(variable.find(':') == std::string::npos ? 0 : variable.find(':') + 1));
    } else if (word.starts_with("--set=")) {
      const std::string variable = word.substr(6);
      forget(variable.substr(variable.find(':') == std::string::npos ? 0 : variable.find(':') + 1));
    }
  }
}

Tri Interpreter::load_env(const Arguments& arguments) {
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].text == "-f" || arguments[i].text == "--file") {
      ++i;
    } else if (!arguments[i].text.starts_with('-')) {
      wanted.push_back(arguments[i].text);
    }
  }
  if (machine_.grubenv_unknown) {
    // Any value could be there; those that choose are.
    for (const char* name : {"saved_entry", "next_entry", "prev_saved_entry"})
      set(name, Value{"${" + std::string(name) + "}", false, name});
    return Tri::Unknown;
  }
  if (!machine_.grubenv) return Tri::No;
  for (const auto& [name, value] : *machine_.grubenv) {
    if (!wanted.empty() && std::ranges::find(wanted, name) == wanted.end()) continue;
    const auto saved = variables_.find(kSaved + name);
    if (saved == variables_.end()) set(name, Value{value, true, {}});
  }
  return Tri::Yes;
}

Tri Interpreter::save_env(const Arguments& arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i].text;
    if (word == "-f" || word == "--file") {
      ++i;
    } else if (!word.starts_with('-')) {
      set(kSaved + word, look_up(word));
    }
  }
  return Tri::Yes;
}

Tri Interpreter::include(const Arguments& arguments, bool replaces_menu) {
  if (arguments.empty()) return Tri::No;
  const auto path = without_device(arguments.front().text);
  const auto script = path ? machine_.load(*path) : nullptr;
  if (!script) {
    notes_.push_back((replaces_menu ? "configfile " : "source ") + arguments.front().text + ": not in this tree");
    if (replaces_menu && steps_ == nullptr) exhausted_ = true;
    return Tri::No;
  }
  if (steps_ != nullptr) return Tri::Yes;  // an entry that opens another menu
  cut_ = cut_ || script->cut;
  scripts_.push_back(script);
  if (replaces_menu) {
    if (uncertain_ > 0) exhausted_ = true;
    menu_.clear();
    filling_ = &menu_;
    const std::string folder = path->substr(0, path->rfind('/'));
    set("config_directory", Value{folder, true, {}});
  }
  const Tri status = run_block(script->block);
  if (flow_ == Flow::Return) flow_ = Flow::Go;
  if (replaces_menu) flow_ = Flow::Stop;
  return status;
}

// --- entries

void Interpreter::add_entry(const Statement& statement, const Arguments& arguments) {
  if (filling_ == nullptr || statement.branches.empty()) return;
  EntryOptions options = read_entry_options(arguments);
  MenuEntry entry;
  const Value title = options.rest.empty() ? Value{} : options.rest.front();
  entry.title = title.text;
  entry.own_id = options.id.has_value();
  entry.id = options.id ? options.id->text : title.text;
  entry.known = title.known && (!options.id || options.id->known);
  entry.certain = uncertain_ == 0;
  entry.submenu = !statement.words.empty() && statement.words[0].size() == 1 && statement.words[0][0].text == "submenu";
  entry.restricted = options.restricted;
  entry.classes = std::move(options.classes);
  entry.line = statement.line;
  entry.body = bodies_.size();
  bodies_.push_back({&statement.branches.front().body, std::move(options.rest)});
  filling_->push_back(std::move(entry));
}

// $name and ${name} in a BLS value, as blscfg expands them.
std::string Interpreter::expand_text(std::string_view text) const {
  std::string out;
  while (!text.empty()) {
    const auto dollar = text.find('$');
    out += text.substr(0, dollar);
    if (dollar == std::string_view::npos) break;
    text.remove_prefix(dollar + 1);
    const bool braces = text.starts_with('{');
    if (braces) text.remove_prefix(1);
    std::size_t n = 0;
    while (n < text.size() && (text[n] == '_' || std::isalnum(static_cast<unsigned char>(text[n])) != 0)) ++n;
    if (n == 0) out += '$';
    if (n != 0) out += look_up(text.substr(0, n)).text;
    text.remove_prefix(n);
    if (braces && text.starts_with('}')) text.remove_prefix(1);
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

void Interpreter::add_bls_entries() {
  uses_blscfg_ = true;
  if (filling_ == nullptr) return;
  for (const BlsEntry& bls : machine_.bls) {
    if (bls.linux_image.empty() && bls.efi.empty()) continue;
    MenuEntry entry = menu_entry(bls);
    entry.certain = uncertain_ == 0;
    entry.classes = bls.grub_classes;
    entry.steps.linux_image = bls.linux_image;
    entry.steps.chainloader = bls.efi;
    entry.steps.arguments = expand_text(bls.options);
    for (const std::string& initrd : bls.initrds) {
      std::string path = expand_text(initrd);
      if (!path.empty()) entry.steps.initrds.push_back(std::move(path));
    }
    filling_->push_back(std::move(entry));
  }
}

// A command that loads something: into the entry whose body runs, or (at top level) without any.
bool Interpreter::collect(const std::string& name, const Arguments& arguments) {
  static constexpr std::array<std::string_view, 3> kLinux = {"linux", "linux16", "linuxefi"};
  static constexpr std::array<std::string_view, 3> kInitrd = {"initrd", "initrd16", "initrdefi"};
  static constexpr std::array<std::string_view, 2> kMultiboot = {"multiboot", "multiboot2"};
  static constexpr std::array<std::string_view, 5> kModule = {"module", "module2", "xen_module", "xen_linux",
                                                              "xen_initrd"};
  static constexpr std::array<std::string_view, 10> kOther = {"ntldr",    "drivemap",   "kfreebsd",     "knetbsd",
                                                              "kopenbsd", "xnu_kernel", "xnu_kernel64", "appleloader",
                                                              "plan9",    "freedos"};
  const auto is = [&](const auto& names) { return std::ranges::find(names, name) != names.end(); };
  const bool image = is(kLinux) || is(kMultiboot) || name == "xen_hypervisor" || name == "chainloader" ||
                     (is(kOther) && name != "drivemap");
  if (image && steps_ == nullptr) {
    direct_ = direct_ || uncertain_ == 0 || watched_ > 0;
    return true;
  }
  if (steps_ == nullptr) return is(kInitrd) || is(kModule) || name == "fwsetup";
  Arguments given = arguments;
  while (!given.empty() && given.front().text.starts_with("--")) given.erase(given.begin());
  if (is(kLinux)) {
    const std::string path = given.empty() ? std::string() : given.front().text;
    if (!steps_->linux_image.empty() && steps_->linux_image != path) steps_->several = true;
    if (steps_->linux_image.empty()) {
      steps_->linux_image = path;
      steps_->arguments = joined(given, 1);
    }
    if (!given.empty() && !given.front().known && path.find("${") != std::string::npos && !path.starts_with("(${"))
      steps_->several = true;
  } else if (is(kInitrd)) {
    for (const Value& word : given) steps_->initrds.push_back(word.text);
  } else if (is(kMultiboot) || name == "xen_hypervisor") {
    if (steps_->multiboot.empty() && !given.empty()) steps_->multiboot = given.front().text;
  } else if (is(kModule)) {
    if (!given.empty()) steps_->modules.push_back(joined(given, 0));
  } else if (name == "chainloader") {
    if (steps_->chainloader.empty() && !given.empty()) steps_->chainloader = given.front().text;
  } else if (is(kOther)) {
    steps_->other = name;
  } else if (name == "fwsetup") {
    steps_->firmware = true;
  } else if (name == "halt" || name == "reboot" || name == "exit" || name == "poweroff") {
    steps_->power = true;
  } else {
    return false;
  }
  return true;
}

// With everything as before afterwards, whatever it sets.
void Interpreter::run_body(std::size_t body) {
  if (body == 0 || body >= bodies_.size()) return;
  parameters_.push_back(bodies_[body].arguments);
  (void)run_block(*bodies_[body].block);
  parameters_.pop_back();
  flow_ = Flow::Go;
}

void Interpreter::look_at_bodies(Menu& menu, bool entries) {
  for (MenuEntry& entry : menu) {
    if (entry.submenu) {
      look_at_submenu(entry, entries);
      continue;
    }
    if (!entries) continue;
    const std::size_t mark = undo_.size();
    ++watched_;
    steps_ = &entry.steps;
    run_body(entry.body);
    steps_ = nullptr;
    roll_back(mark);
    --watched_;
  }
}

// GRUB opens a submenu with the exported variables only (grub_env_context_open).
void Interpreter::enter_submenu(const MenuEntry& entry) {
  std::erase_if(variables_,
                [&](const auto& item) { return item.first.front() != kSaved && !exported_.contains(item.first); });
  set("chosen", Value{entry.id, true, {}});
}

void Interpreter::look_at_submenu(MenuEntry& entry, bool entries) {
  if (depth_ >= 8) return;
  ++depth_;
  const Variables before = variables_;
  Menu* const outer = filling_;
  enter_submenu(entry);
  Menu children;  // the entry may move while it is filled
  filling_ = &children;
  const bool direct = direct_;
  run_body(entry.body);
  direct_ = direct;
  filling_ = outer;
  entry.children = std::move(children);
  look_at_bodies(entry.children, entries);
  variables_ = before;
  --depth_;
}

std::optional<EnvValues> Interpreter::grubenv_after(const Choice& choice) {
  if (!choice.known || !machine_.grubenv) return std::nullopt;
  const Variables before = variables_;
  const MenuEntry* entry = nullptr;
  const Menu* level = &menu_;
  std::string chosen;
  for (const std::size_t index : choice.path) {
    if (entry != nullptr) enter_submenu(*entry);
    entry = &(*level)[index];
    level = &entry->children;
    chosen += (chosen.empty() ? "" : ">") + entry->id;
    set("chosen", Value{chosen, true, {}});
  }
  BootSteps steps;
  steps_ = &steps;
  if (entry != nullptr) run_body(entry->body);
  steps_ = nullptr;
  EnvValues out = *machine_.grubenv;
  bool known = true;
  for (const auto& [name, value] : variables_) {
    if (name.front() != kSaved) continue;
    known = known && value.known;
    out[name.substr(1)] = value.text;
  }
  variables_ = before;
  if (!known) return std::nullopt;
  return out;
}

}  // namespace gpuhealth::grub
